"""Opaque constants: they have a text but no value, in graphs parsed from a text that omits the value."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rekindle.ir.types.enums import EnumType


@dataclass(slots=True, frozen=True)
class OpaqueConstant:
    """A constant of which only the ``text`` is known, such as ``<Tensor>`` or ``object(0x55d0c8)``. A graph with one
    can be inspected, not run."""

    text: str


@dataclass(slots=True, frozen=True)
class EnumMember:
    """A member of an enum whose Python class is not known."""

    type: EnumType
    name: str


def are_equal_tensors(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether one constant tensor can replace the other: both have the same dtype, device, shape and contents.

    Sparse, quantized and meta tensors, whose contents ``torch.equal`` does not compare, are equal to themselves only.
    """
    if left is right:
        return True
    is_comparable = all(
        item.layout is torch.strided and not (item.is_quantized or item.is_meta) for item in (left, right)
    )
    if not is_comparable or left.dtype != right.dtype or left.device != right.device:
        return False
    return torch.equal(left, right)

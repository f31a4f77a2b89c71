"""The Tensor type, with optional refinements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from rekindle.ir.types.base import Type

DTYPE_NAMES: dict[torch.dtype, str] = {
    torch.uint8: "Byte",
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.float16: "Half",
    torch.float32: "Float",
    torch.float64: "Double",
    torch.complex32: "ComplexHalf",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
    torch.bool: "Bool",
    torch.qint8: "QInt8",
    torch.quint8: "QUInt8",
    torch.qint32: "QInt32",
    torch.bfloat16: "BFloat16",
    torch.quint4x2: "QUInt4x2",
    torch.quint2x4: "QUInt2x4",
    torch.uint16: "UInt16",
    torch.uint32: "UInt32",
    torch.uint64: "UInt64",
    **{
        getattr(torch, name.lower()): name
        for name in (
            *("Bits1x8", "Bits2x4", "Bits4x2", "Bits8", "Bits16"),
            *(
                "Float8_e5m2",
                "Float8_e4m3fn",
                "Float8_e5m2fnuz",
                "Float8_e4m3fnuz",
                "Float8_e8m0fnu",
                "Float4_e2m1fn_x2",
                "BComplex32",
            ),
            *(f"{kind}{width}" for kind in ("UInt", "Int") for width in range(1, 8)),
        )
        if hasattr(torch, name.lower())
    },
}
"""The names of dtypes in the text form: ``Float(2, 3)``; ``FloatTensor`` if the rank is unknown."""

Sizes = tuple[int | None, ...]


@dataclass(slots=True, frozen=True)
class TensorType(Type):
    """The type of a tensor. A property that is None is unknown, and so is an entry of ``sizes`` or ``strides`` that is
    None. ``undefined``: whether the value is the placeholder for a missing gradient."""

    kind: ClassVar[str] = "TensorType"

    dtype: torch.dtype | None = None
    device: torch.device | None = None
    sizes: Sizes | None = None
    strides: Sizes | None = None
    requires_grad: bool | None = None
    undefined: bool | None = None
    annotation = "Tensor"

    @property
    def rank(self) -> int | None:
        return None if self.sizes is None else len(self.sizes)

    @property
    def is_refined(self) -> bool:
        """Whether the type has any refinement."""
        return self != TENSOR

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorType:
        """Return the fully refined type of ``tensor``."""
        strides = tuple(tensor.stride()) if tensor.layout is torch.strided else None
        return cls(tensor.dtype, tensor.device, tuple(tensor.shape), strides, tensor.requires_grad, False)

    def with_rank_only(self) -> TensorType:
        """Return the type without sizes and strides, but with the rank."""
        sizes = None if self.sizes is None else (None,) * len(self.sizes)
        return replace(self, sizes=sizes, strides=None)

    def accepts(self, other: Type) -> bool:
        """Return whether ``other`` is a subtype: a Tensor type that is equal where this one is refined, and may be more
        refined."""
        if not isinstance(other, TensorType):
            return False
        return (
            self.dtype in (None, other.dtype)
            and self.device in (None, other.device)
            and self.requires_grad in (None, other.requires_grad)
            and self.undefined in (None, other.undefined)
            and _covers(self.sizes, other.sizes)
            and _covers(self.strides, other.strides)
        )

    def merge(self, other: TensorType) -> TensorType:
        """Return the type with the properties in which both types agree."""
        return TensorType(
            self.dtype if self.dtype == other.dtype else None,
            self.device if self.device == other.device else None,
            _merge(self.sizes, other.sizes),
            _merge(self.strides, other.strides),
            self.requires_grad if self.requires_grad == other.requires_grad else None,
            self.undefined if self.undefined == other.undefined else None,
        )

    def matches(self, tensor: torch.Tensor) -> bool:
        """Return whether ``tensor`` has all properties that this type states."""
        return self is TENSOR or self == TENSOR or self.accepts(TensorType.of(tensor))

    def __str__(self) -> str:
        name = "Tensor" if self.dtype is None else DTYPE_NAMES[self.dtype]
        facts: list[str] = []
        if self.sizes is not None:
            facts += ["*" if size is None else str(size) for size in self.sizes]
            if self.sizes and self.strides is not None and None not in self.strides:
                facts.append(f"strides=[{', '.join(map(str, self.strides))}]")
        elif self.dtype is not None:
            name += "Tensor"
        if self.requires_grad is not None:
            facts.append(f"requires_grad={int(self.requires_grad)}")
        if self.device is not None:
            facts.append(f"device={self.device}")
        if facts or self.sizes is not None:
            name += f"({', '.join(facts)})"
        return f"{name}[Undefined]" if self.undefined else name


def _covers(known: Sizes | None, other: Sizes | None) -> bool:
    if known is None:
        return True
    if other is None or len(known) != len(other):
        return False
    return all(a is None or a == b for a, b in zip(known, other, strict=True))


def _merge(a: Sizes | None, b: Sizes | None) -> Sizes | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


TENSOR = TensorType()


def tensor_type(
    dtype: torch.dtype | None = None, sizes: Sequence[int | None] | None = None, device: torch.device | None = None
) -> TensorType:
    """Return a tensor type of the given dtype, sizes and device."""
    return TensorType(dtype, device, None if sizes is None else tuple(sizes))

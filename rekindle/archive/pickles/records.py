"""Inert records of the contents of pickles: nothing here imports, calls or allocates anything.

Besides the records, a pickle's value is made of None, bools, ints, floats, complex numbers, strings, tuples, lists,
dicts, ``torch.device``, ``torch.dtype``, ``torch.layout`` and ``torch.qscheme``. The same record in two places is one
object in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import torch


class _Unset:
    def __repr__(self) -> str:
        return "<no state>"


UNSET: Final = _Unset()
"""The state of an object that was given none."""


@dataclass(slots=True, eq=False)
class PickledObject:
    """An object of a class of the program, or of one of ``torch.classes``: its class by name, and its state, which is a
    dict of attributes, or the result of ``__getstate__``."""

    name: str
    state: object = UNSET


@dataclass(slots=True, eq=False)
class PickledEnum:
    """A member of an enum of the program, by its value."""

    name: str
    value: object


@dataclass(slots=True, eq=False)
class PickledTyped:
    """A list or a dict with the type that it was declared with, as ``List[int]``."""

    value: object
    type: str


@dataclass(slots=True, eq=False)
class StorageRecord:
    """The bytes of tensors: the member ``key``, of ``count`` elements of ``dtype``, on a device."""

    key: str
    dtype: torch.dtype
    location: str
    count: int

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize


@dataclass(slots=True, eq=False)
class QuantizerRecord:
    """The quantization of a tensor: a stored number represents ``(number - zero_point) * scale``."""

    scale: float
    zero_point: int


@dataclass(slots=True, eq=False)
class ChannelQuantizerRecord:
    """A quantization with a scale and a zero point for each index along ``axis``."""

    scales: TensorRecord
    zero_points: TensorRecord
    axis: int


@dataclass(slots=True, eq=False)
class TensorRecord:
    """A tensor: a view of a storage. ``sizes``, ``strides`` and ``offset`` are in elements, and were checked against
    the size of the storage."""

    storage: StorageRecord
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool = False
    is_parameter: bool = False
    quantizer: QuantizerRecord | ChannelQuantizerRecord | None = None
    bits: tuple[str, ...] = ()
    """``conj`` and ``neg``, for a view that conjugates or negates its base."""

    @property
    def dtype(self) -> torch.dtype:
        return self.storage.dtype


@dataclass(slots=True, eq=False)
class SparseRecord:
    """A sparse tensor: its layout, sizes and the tensors that it consists of; ``(indices, values)``, or compressed
    indices, plain indices and values."""

    layout: torch.layout
    sizes: tuple[int, ...]
    parts: tuple[TensorRecord, ...]
    requires_grad: bool = False

    @property
    def dtype(self) -> torch.dtype:
        return self.parts[-1].dtype


@dataclass(slots=True, eq=False)
class TensorNumber:
    """A tensor in an archive of PyTorch 1.2 or older: its index in the table of tensors; a negative number is None."""

    number: int


@dataclass(slots=True, frozen=True)
class ClassName:
    """A class of the program, while a pickle is read."""

    name: str


@dataclass(slots=True, frozen=True)
class StorageClass:
    """A class of storages, such as ``torch.FloatStorage``, while a pickle is read; ``dtype`` is None for the untyped
    one."""

    dtype: torch.dtype | None


@dataclass(slots=True)
class Pickle:
    """A pickle that was read: its value, and the classes and storages that it names."""

    value: object
    classes: list[str] = field(default_factory=list)
    storages: dict[str, StorageRecord] = field(default_factory=dict)

"""Subscripts of Tensors with Tensors: ``x[i]``, ``x[rows, :, columns]``, ``x[..., keep]``.

In ``aten::index`` every index is a Tensor. In Python a Tensor without dimensions is used as the number that it holds:
``x[i]`` is then a view of a row, as ``x[2]`` is. The program tests at run time whether an index has dimensions::

    x[i]        %has_numbers : bool = aten::eq(aten::dim(%i), 0)
                %item : Tensor = item_at(%x, %i, [%i], %has_numbers)

Programs from archives index as TorchScript does, without the test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rekindle.frontend.expressions.primaries import from_library
from rekindle.ir.types import TENSOR, ListType, TensorType, optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rekindle.errors import SourceRange
    from rekindle.frontend.emitter import Emitter
    from rekindle.ir.graph import Value

_INDICES: Final = ListType(optional(TENSOR))


@dataclass(slots=True)
class IndexedTensor:
    """A view of a Tensor, and the Tensors that index its dimensions; None represents a whole dimension."""

    view: Value
    is_alone: bool
    """Whether the subscript has a single index."""
    front: list[Value | None] = field(default_factory=list)
    """The indices of the first dimensions."""
    back: list[Value | None] = field(default_factory=list)
    """The indices of the last dimensions, after ``...``."""

    def add(self, dim: int, index: Value | None) -> None:
        """Record the index of the dimension ``dim`` of the view; after ``...``, ``dim`` is negative and grows."""
        if dim < 0:
            self.back.append(index)
        elif index is not None:
            self.front += [None] * (dim - len(self.front))
            self.front.append(index)

    @property
    def tensors(self) -> list[Value]:
        return [index for index in (*self.front, *self.back) if index is not None]

    @property
    def has_tensors(self) -> bool:
        return bool(self.tensors)


def read_indexed(emitter: Emitter, indexed: IndexedTensor, range: SourceRange, *, is_copied: bool = False) -> Value:
    """Emit the value of the subscript, and return it: a view if no Tensor with dimensions indexes, else a copy. With
    ``is_copied`` it is a copy wherever a Tensor indexes, for ``x[i] += y``, which writes the item back."""
    if not indexed.has_tensors:
        return indexed.view
    indices = _indices(emitter, indexed, range)
    numbers = _has_numbers(emitter, indexed, range)
    if numbers is None:
        return emitter.insert("aten::index", range, indexed.view, indices)
    item = "item_copy" if is_copied else "item"
    if indexed.is_alone:
        return from_library(emitter, f"{item}_at", range, indexed.view, indexed.tensors[0], indices, numbers)
    return from_library(emitter, f"{item}_of_indices", range, indexed.view, indices, numbers)


def write_indexed(emitter: Emitter, indexed: IndexedTensor, value: Value, range: SourceRange) -> None:
    """Emit the assignment of ``value``, a Tensor, to the subscript."""
    if not indexed.has_tensors:
        emitter.insert("aten::copy_", range, indexed.view, value)
        return
    indices = _indices(emitter, indexed, range)
    numbers = _has_numbers(emitter, indexed, range)
    if numbers is None:
        emitter.insert("aten::index_put_", range, indexed.view, indices, value)
    elif indexed.is_alone:
        from_library(emitter, "put_item_at", range, indexed.view, indexed.tensors[0], indices, numbers, value)
    else:
        from_library(emitter, "put_item_of_indices", range, indexed.view, indices, numbers, value)


def _indices(emitter: Emitter, indexed: IndexedTensor, range: SourceRange) -> Value:
    """Emit the list of index Tensors that ``aten::index`` takes, and return it."""
    front = _list_of(emitter, indexed.front, range)
    if not any(index is not None for index in indexed.back):
        return front
    return from_library(
        emitter, "indices_around_dots", range, indexed.view, front, _list_of(emitter, indexed.back, range)
    )


def _list_of(emitter: Emitter, indices: Sequence[Value | None], range: SourceRange) -> Value:
    filled = [emitter.graph.insert_constant(None, range=range) if item is None else item for item in indices]
    return emitter.insert_node("prim::ListConstruct", range, filled, [_INDICES]).output


def _has_numbers(emitter: Emitter, indexed: IndexedTensor, range: SourceRange) -> Value | None:
    """Emit a test whether one of the index Tensors has no dimensions; return None if all are known to have some."""
    if not emitter.graph.follows_python:
        return None
    found: Value | None = None
    for index in indexed.tensors:
        if _has_dimensions(index):
            continue
        dims = emitter.insert("aten::dim", range, index)
        is_number = emitter.insert("aten::eq", range, dims, emitter.graph.insert_constant(0, range=range))
        found = is_number if found is None else emitter.insert("aten::__or__", range, found, is_number)
    return found


_OF_DIMENSIONS: Final = frozenset({"aten::arange", "aten::nonzero", "aten::randperm"})


def _has_dimensions(index: Value) -> bool:
    """Return whether a Tensor is known to have at least one dimension."""
    if isinstance(index.type, TensorType) and index.type.rank is not None:
        return index.type.rank > 0
    node = index.node
    if node.kind == "aten::tensor":
        data, *_ = node.inputs
        return isinstance(data.type, ListType)
    return node.kind in _OF_DIMENSIONS

"""Lists of data-dependent length: those that a ``while_loop`` has appended to.

Such a list contains, beside tensors, ``UnbackedScalar("rows", tensor)``: one element for each row of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import SymInt, Tensor

from rekindle.exporting.interpreter.values import UnbackedScalar, is_rows, with_symbols

GROWING: Final = -2
"""Mark of rows to which a loop still adds: its body must not read them."""


def is_growing(value: Any) -> bool:
    """Return whether ``value`` is a list to which the enclosing loop appends."""
    return isinstance(value, list) and any(is_rows(item) and item.limit == GROWING for item in value)


def _joined(items: Sequence[Any]) -> Tensor:
    """Return one tensor whose rows are the elements of the list: tensors, and the rows of its rows entries."""
    pieces = [item.tensor if is_rows(item) else torch.ops.aten.unsqueeze.default(item, 0) for item in items]
    joined: Tensor = pieces[0] if len(pieces) == 1 else torch.ops.aten.cat.default(pieces)
    return joined


def _stack(args: Sequence[Any]) -> Any:
    rows, dim = _joined(args[0]), with_symbols(args[1]) if len(args) > 1 else 0
    return torch.movedim(rows, 0, dim) if dim else rows.clone()


def _cat(args: Sequence[Any]) -> Any:
    rows, dim = _joined(args[0]), with_symbols(args[1]) if len(args) > 1 else 0
    dim = dim + rows.dim() - 1 if dim < 0 else dim
    moved = torch.movedim(rows, 0, dim)
    shape = list(moved.shape)
    return moved.reshape([*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]])


def _length(args: Sequence[Any]) -> Any:
    return sum(item.tensor.shape[0] if is_rows(item) else 1 for item in args[0])


def _item(args: Sequence[Any]) -> Any:
    items, index = args[0], with_symbols(args[1])
    known = 0
    for item in items:
        if is_rows(item):
            break
        known += 1
    if isinstance(index, int) and 0 <= index < known:
        return items[index]
    if isinstance(index, int) and index < 0 and not any(is_rows(item) for item in items[index:]):
        return items[index]
    if isinstance(index, (int, SymInt)):
        return _joined(items).select(0, index)
    raise TypeError("the index must be an int")


def _append(args: Sequence[Any]) -> Any:
    args[0].append(args[1])
    return args[0]


def _reverse(args: Sequence[Any]) -> Any:
    args[0][:] = [UnbackedScalar("rows", torch.ops.aten.flip.default(_joined(args[0]), [0]))]


def _copy(args: Sequence[Any]) -> Any:
    return list(args[0])


OF_ROWS: Final[dict[str, Callable[[Sequence[Any]], Any]]] = {
    "aten::stack": _stack,
    "aten::cat": _cat,
    "aten::concat": _cat,
    "aten::len": _length,
    "aten::__getitem__": _item,
    "aten::append": _append,
    "aten::reverse": _reverse,
    "aten::list": _copy,
    "aten::copy": _copy,
}
"""Operations on lists of data-dependent length, by the kind of the node. Each takes the arguments of the node."""

"""``x[i, 1:n, None, mask]`` and ``x[…] = y`` as the operators that implement them."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType, NoneType
from typing import Any, Final

import torch

from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import TENSOR, ListType, optional
from rekindle.tracing.recording.creation import has_traced_numbers
from rekindle.tracing.recording.numbers import all_plain
from rekindle.tracing.recording.recorder import Recorder

_MASKS: Final = (torch.bool, torch.uint8)


def record_getitem(recorder: Recorder, tensor: torch.Tensor, index: object) -> Value:
    """Record reading ``tensor[index]``, and return the graph value of the result."""
    view, tensors = _view(recorder, tensor, index)
    if not tensors:
        # Eager gives a new tensor even where nothing is taken away.
        return recorder.insert("aten::alias", [NamedValue(view)]) if view is recorder.known(tensor) else view
    return recorder.insert("aten::index", [NamedValue(view), NamedValue(_index_list(recorder, tensors))])


def record_setitem(recorder: Recorder, tensor: torch.Tensor, index: Any, value: object) -> None:
    """Record ``tensor[index] = value``."""
    view, tensors = _view(recorder, tensor, index)
    if not tensors and not isinstance(value, torch.Tensor):
        recorder.insert("aten::fill_", [NamedValue(view), value])
        return
    if not isinstance(value, torch.Tensor):
        keywords = {
            name: NamedValue(recorder.insert(f"prim::{name}", [tensor]), name=name) for name in ("dtype", "device")
        }
        filled = NamedValue(recorder.insert("aten::tensor", [value], keywords))
    else:
        filled = _without_leading_ones(recorder, value, tensor[index].dim())
    if tensors:
        indices = NamedValue(_index_list(recorder, tensors))
        recorder.insert("aten::index_put_", [NamedValue(view), indices, filled])
    else:
        recorder.insert("aten::copy_", [NamedValue(view), filled])


def _without_leading_ones(recorder: Recorder, value: torch.Tensor, rank: int) -> NamedValue:
    """Return ``value`` without leading dimensions of size one that exceed ``rank``. Python's assignment accepts these,
    and the operators do not."""
    given = recorder.argument(value)
    for _ in range(min(value.dim() - rank, _leading_ones(value))):
        given = NamedValue(recorder.insert("aten::squeeze", [given, 0]))
    return given


def _leading_ones(value: torch.Tensor) -> int:
    return next((dim for dim, size in enumerate(value.shape) if size != 1), value.dim())


def _view(recorder: Recorder, tensor: torch.Tensor, index: object) -> tuple[Value, list[Value | None]]:
    """Record the view of ``tensor`` that the ints, slices and Nones of ``index`` select. Return it, and the index
    tensor of each of its dimensions: None for dimensions without one, and no entries after the last."""
    value = recorder.value_of_tensor(tensor)
    tensors: list[Value | None] = []
    dim = 0
    items = _items(index)
    for item in items:
        if item is Ellipsis:
            dim += tensor.dim() - _taken(items)
        elif item is None:
            value = recorder.insert("aten::unsqueeze", [NamedValue(value), dim])
            dim += 1
        elif isinstance(item, slice):
            if not (item.start is None and item.stop is None and item.step is None):
                step = 1 if item.step is None else item.step
                value = recorder.insert("aten::slice", [NamedValue(value), dim, item.start, item.stop, step])
            dim += 1
        elif isinstance(item, bool):
            # True takes all of a new dimension, False nothing of it.
            value = recorder.insert("aten::unsqueeze", [NamedValue(value), dim])
            tensors += [None] * (dim - len(tensors))
            tensors.append(recorder.constant(torch.arange(int(item))))
            dim += 1
        elif isinstance(item, int):
            value = recorder.insert("aten::select", [NamedValue(value), dim, item])
        elif isinstance(item, torch.Tensor) and item.dim() == 0 and item.dtype not in _MASKS:
            number = recorder.insert("aten::IntImplicit", [item])
            value = recorder.insert("aten::select", [NamedValue(value), dim, NamedValue(number)])
        elif isinstance(item, torch.Tensor) and item.dim() == 0:
            # A mask without dimensions takes all of a new dimension, or nothing of it.
            value = recorder.insert("aten::unsqueeze", [NamedValue(value), dim])
            tensors += [None] * (dim - len(tensors))
            tensors.append(recorder.insert("aten::unsqueeze", [item, 0]))
            dim += 1
        else:
            indices = item if isinstance(item, torch.Tensor) else torch.tensor(all_plain(item))
            tensors += [None] * (dim - len(tensors))
            if indices is item:
                tensors.append(recorder.value_of_tensor(indices))
            elif has_traced_numbers(recorder, item):
                tensors.append(recorder.insert("aten::tensor", [item]))
            else:
                tensors.append(recorder.constant(indices))
            dim += indices.dim() if indices.dtype in _MASKS else 1
            tensors += [None] * (dim - len(tensors))
    while tensors and tensors[-1] is None:
        tensors.pop()
    return value, tensors


def _items(index: object) -> list[Any]:
    """Return the items of a subscript. As in eager PyTorch, a short list is like a tuple if it has more than
    numbers."""
    if isinstance(index, list) and len(index) < 32:
        others = (torch.Tensor, Sequence, slice, EllipsisType, NoneType)
        return index if any(isinstance(item, others) for item in index) else [index]
    return list(index) if isinstance(index, tuple) else [index]


def _taken(items: Sequence[Any]) -> int:
    """Return the number of dimensions of the tensor that the items other than ``...`` index."""
    count = 0
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, bool):
            continue
        is_mask = isinstance(item, torch.Tensor) and item.dtype in _MASKS
        count += item.dim() if is_mask else 1
    return count


def _index_list(recorder: Recorder, tensors: Sequence[Value | None]) -> Value:
    none: Value | None = None
    if None in tensors:
        none = recorder.graph.insert_constant(None)
    filled = [none if item is None else item for item in tensors]
    assert all(item is not None for item in filled)
    type = ListType(optional(TENSOR))
    return recorder.node("prim::ListConstruct", [item for item in filled if item is not None], [type]).output

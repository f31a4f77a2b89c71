"""Handlers of functions that create tensors from Python numbers: ``torch.tensor(data)``, ``x.new_tensor(data)``,
``x.new(…)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.tracing.recording.numbers import all_plain
from rekindle.tracing.recording.recorder import WRITE, Recorder

_SPELLINGS: Final = {"input": "self", "axis": "dim", "keepdims": "keepdim"}
"""Python's names of arguments that are called otherwise in schemas."""


def as_in_schema(kwargs: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the keyword arguments under the parameter names of the operators of ``kind``. ``requires_grad=False`` and
    ``out=None`` are dropped unless an operator has such a parameter."""
    taken = {argument.name for operator in REGISTRY.overloads(kind) for argument in operator.schema.arguments}
    found = {}
    for name, item in kwargs.items():
        says_nothing = (name == "requires_grad" and not item) or (name == "out" and item is None)
        if name in taken or not says_nothing:
            found[name if name in taken else _SPELLINGS.get(name, name)] = item
    return found


def tensor(recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run and record ``torch.tensor(data)``: an operator for traced numbers, a copy for a tensor, else a constant."""
    result = function(*map(all_plain, args), **{name: all_plain(item) for name, item in kwargs.items()})
    data = args[0] if args else kwargs.get("data")
    _report_numbers(recorder, data, result)
    if has_traced_numbers(recorder, data):
        keywords = as_in_schema({name: item for name, item in kwargs.items() if name != "data"}, "aten::tensor")
        return recorder.bind_result(result, recorder.insert("aten::tensor", [data], keywords))
    if isinstance(data, torch.Tensor):
        value = recorder.insert("aten::clone", [NamedValue(recorder.insert("aten::detach", [data]))])
        return recorder.bind_result(result, value)
    value = _constant(recorder, result)
    dtype = kwargs.get("dtype")
    if dtype is not None:
        wanted = recorder.dtype_argument(dtype, "dtype")
        if wanted.value is not None:  # the constant has another dtype already
            value = recorder.insert("aten::to", [NamedValue(value), NamedValue(wanted.value)])
    return recorder.bind_result(result, value)


def new_tensor(recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run and record ``x.new_tensor(data)``. The result has the dtype and the device of ``x`` unless the call specifies
    others."""
    result = function(*map(all_plain, args), **{name: all_plain(item) for name, item in kwargs.items()})
    source, data = args[0], args[1] if len(args) > 1 else kwargs["data"]
    _report_numbers(recorder, data, result)
    device = NamedValue(recorder.insert("prim::device", [source]), name="device")
    if "device" in kwargs:
        device = recorder.argument(kwargs["device"], "device")
    if kwargs.get("dtype") is not None:
        dtype = recorder.dtype_argument(kwargs["dtype"], "dtype")
    else:
        dtype = NamedValue(recorder.insert("prim::dtype", [source]), name="dtype")
    if has_traced_numbers(recorder, data):
        keywords = {"dtype": dtype, "device": device}
        return recorder.bind_result(result, recorder.insert("aten::tensor", [data], keywords))
    if isinstance(data, torch.Tensor):
        value = recorder.insert("aten::clone", [NamedValue(recorder.insert("aten::detach", [data]))])
    else:
        value = _constant(recorder, result)
    moved = recorder.insert("aten::to", [NamedValue(value)], {"dtype": dtype, "device": device})
    return recorder.bind_result(result, moved)


def new(recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run and record ``x.new(2, 3)`` as ``x.new_empty((2, 3))``, ``x.new([1.0])`` as ``x.new_tensor([1.0])``, and
    ``x.new(y)`` as an alias of the tensor ``y``."""
    result = function(*args, **kwargs)
    source, *data = args
    if len(data) == 1 and isinstance(data[0], (list, tuple)) and not isinstance(data[0], torch.Size):
        return new_tensor(recorder, lambda *args, **kwargs: result, args, kwargs)
    if len(data) == 1 and isinstance(data[0], torch.Tensor):
        return recorder.bind_result(result, recorder.insert("aten::alias", data))
    sizes = list(data[0]) if len(data) == 1 and isinstance(data[0], torch.Size) else list(data) or [0]
    return recorder.bind_result(result, recorder.insert("aten::new_empty", [source, sizes]))


def has_traced_numbers(recorder: Recorder, data: object) -> bool:
    """Return whether ``data`` is a number that this recording computes, or a list or a tuple with one."""
    if isinstance(data, (list, tuple)):
        return any(has_traced_numbers(recorder, item) for item in data)
    return recorder.is_traced_number(data)


def _report_numbers(recorder: Recorder, data: object, made: torch.Tensor) -> None:
    """List in the trace report that ``made`` has fixed numbers, if they were read from computed tensors in the list
    ``data``."""
    if isinstance(data, (list, tuple)) and _has_computed(recorder, data):
        recorder.bake_tensor("a tensor that is made of numbers in tensors", made.tolist())


def _has_computed(recorder: Recorder, data: object) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_computed(recorder, item) for item in data)
    return isinstance(data, torch.Tensor) and recorder.is_computed(data)


# ------------------------------------------------------------------------------------------------------------ constants


@dataclass(slots=True)
class FreshConstant:
    """A constant tensor that the code creates at each call: ``copy`` is the node that copies it for this call.
    ``version`` is the version counter of ``made`` when it was created."""

    made: torch.Tensor
    version: int | None
    copy: Node


def _constant(recorder: Recorder, made: torch.Tensor) -> Value:
    kept = recorder.constant(made.detach().clone())
    copy = recorder.insert("aten::clone", [NamedValue(kept)])
    recorder.fresh_constants.append(FreshConstant(made, _version(made), copy.node))
    return copy


def _version(tensor: torch.Tensor) -> int | None:
    """Return the version counter of the tensor, which counts writes; None if it has none."""
    return None if tensor.is_inference() else tensor._version


def settle_constants(recorder: Recorder, outputs: Sequence[Value]) -> None:
    """Remove from the graph the copies of constants that the code neither writes to, stores in attributes nor returns.
    Clear the recorder's list of them."""
    kept = set(_held_by(outputs))
    for constant in recorder.fresh_constants:
        copy = constant.copy.output
        written = constant.version is None or constant.made._version != constant.version
        if written or copy in kept or any(use.user.kind == WRITE for use in copy.uses):
            continue
        copy.replace_all_uses_with(constant.copy.named_input("self"))
        constant.copy.destroy()
    recorder.fresh_constants.clear()


def _held_by(values: Sequence[Value]) -> Iterator[Value]:
    for value in values:
        yield value
        if value.node.kind in ("prim::TupleConstruct", "prim::ListConstruct", "prim::DictConstruct"):
            yield from _held_by(value.node.inputs)

"""Tuples, lists and dicts of tensors: what a trace takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rekindle.errors import TracingError
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import FLOAT, INT, STRING, TENSOR, DictType, ListType, TupleType, Type, unify_all
from rekindle.tracing.recording.numbers import value_of_number
from rekindle.tracing.recording.recorder import Recorder

_KEYS = ((str, STRING), (int, INT), (float, FLOAT))


def type_of_example(example: object, where: str) -> Type:
    """The type of an input, by its example.

    Raises:
        TracingError: an input of such a kind cannot be traced.
    """
    if isinstance(example, torch.Tensor):
        return TENSOR
    if isinstance(example, tuple):
        return TupleType(tuple(type_of_example(item, f"{where}[{i}]") for i, item in enumerate(example)))
    if isinstance(example, list) and example:
        return ListType(_common([type_of_example(item, f"{where}[{i}]") for i, item in enumerate(example)], where))
    if isinstance(example, dict) and example:
        keys = [kind for key in example for python, kind in _KEYS if type(key) is python]
        values = [type_of_example(item, f"{where}[{key!r}]") for key, item in example.items()]
        if len(keys) == len(values):
            return DictType(_common(keys, f"the keys of {where}"), _common(values, where))
    raise TracingError(
        f"{where} is {_describe(example)}; a trace takes tensors, and tuples, lists and dicts of tensors that are not "
        "empty",
        hint="fix other arguments with a lambda or functools.partial, or compile the function with script",
    )


def _common(types: Sequence[Type], where: str) -> Type:
    found = unify_all(types)
    if found is None:
        names = ", ".join(dict.fromkeys(type.annotation for type in types))
        raise TracingError(f"{where} holds values of different types ({names})", hint="use a tuple")
    return found


def _describe(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, (list, dict)) and not value:
        return f"an empty {type(value).__name__}"
    return f"a value of class '{type(value).__name__}'"


def enter(recorder: Recorder, value: Value, example: Any, copies: dict[int, torch.Tensor]) -> Any:
    """A copy of ``example`` whose tensors are parts of the input ``value``.

    ``copies`` keeps one copy for each tensor: two inputs that are one tensor stay one.
    """
    if isinstance(example, torch.Tensor):
        made = _copy(example) if id(example) not in copies else copies[id(example)]
        if id(example) in copies:
            return made
        copies[id(example)] = made
        recorder.bind(made, value)
        return made
    if isinstance(example, tuple):
        assert isinstance(value.type, TupleType)
        parts = recorder.node("prim::TupleUnpack", [value], value.type.elements).outputs
        items = [enter(recorder, part, item, copies) for part, item in zip(parts, example, strict=True)]
        return type(example)(*items) if hasattr(example, "_fields") else tuple(items)
    if isinstance(example, list):
        assert isinstance(value.type, ListType)
        parts = recorder.node("prim::ListUnpack", [value], [value.type.element] * len(example)).outputs
        return [enter(recorder, part, item, copies) for part, item in zip(parts, example, strict=True)]
    assert isinstance(example, Mapping)
    found = {}
    for key, item in example.items():
        part = recorder.insert("aten::__getitem__", [NamedValue(value), key])
        found[key] = enter(recorder, part, item, copies)
    return found


def _copy(example: torch.Tensor) -> torch.Tensor:
    """A tensor of the same values: what the traced code writes to its inputs is not seen outside."""
    with torch.no_grad():
        if example.layout is torch.strided and not example.is_quantized and not (example.is_conj() or example.is_neg()):
            # As a view of a storage of its own, which may hold more than the tensor shows.
            whole = torch.empty(0, dtype=example.dtype, device=example.device)
            whole.set_(example.untyped_storage().clone())
            made = whole.as_strided(example.size(), example.stride(), example.storage_offset())
        else:
            made = example.detach().clone()
    return made.requires_grad_(example.requires_grad)


def leave(recorder: Recorder, result: Any, strict: bool, where: str = "the result") -> Value:
    """The value of the graph for what the traced code returned.

    Raises:
        TracingError: it holds something that is no tensor, or, with ``strict``, a list or a dict.
    """
    if isinstance(result, torch.Tensor):
        return recorder.value_of_tensor(result)
    number = value_of_number(result, recorder)
    if number is not None:
        return number
    if isinstance(result, (list, Mapping)) and strict:
        kind = "list" if isinstance(result, list) else "dict"
        raise TracingError(
            f"{where} is a {kind}, of which a trace would fix the length and the keys",
            hint="return a tuple, or trace with strict=False if they are always the same",
        )
    if isinstance(result, (tuple, list)) and result:
        values = [leave(recorder, item, strict, f"{where}[{i}]") for i, item in enumerate(result)]
        types = [value.type for value in values]
        if isinstance(result, list):
            return recorder.node("prim::ListConstruct", values, [ListType(_common(types, where))]).output
        return recorder.node("prim::TupleConstruct", values, [TupleType(tuple(types))]).output
    if isinstance(result, Mapping) and result:
        pairs: list[Value] = []
        for key, item in result.items():
            pairs.append(recorder.graph.insert_constant(key))
            pairs.append(leave(recorder, item, strict, f"{where}[{key!r}]"))
        type = DictType(_common([v.type for v in pairs[::2]], where), _common([v.type for v in pairs[1::2]], where))
        return recorder.node("prim::DictConstruct", pairs, [type]).output
    raise TracingError(
        f"{where} is {_describe(result)}; a trace gives tensors, and tuples of them",
        hint="return only tensors from what is traced, or compile it with script",
    )

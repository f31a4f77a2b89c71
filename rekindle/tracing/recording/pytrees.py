"""Nested tuples, lists and dicts of tensors: the inputs and outputs of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rekindle.errors import TracingError
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import FLOAT, INT, STRING, TENSOR, DictType, ListType, TupleType, Type, unify_all, union
from rekindle.tracing.recording.lent_tensors import LentTensors
from rekindle.tracing.recording.numbers import plain, value_of_number
from rekindle.tracing.recording.recorder import Recorder
from rekindle.tracing.report import Baked
from rekindle.tracing.source_locations import users_place

_KEYS = ((str, STRING), (int, INT), (float, FLOAT))


def type_of_example(example: object, where: str) -> Type:
    """Return the type of an input, determined from its example; ``where`` describes the input in errors.

    Raises:
        TracingError: the example is not a tensor, a tuple of such, or a non-empty list or dict of such; or the items of
            a list, or the keys or values of a dict, have no common type.
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


def enter(recorder: Recorder, value: Value, example: Any, lent: LentTensors) -> Any:
    """Return the object that the run receives in place of ``example``: new containers, whose tensors are bound to
    elements of the graph input ``value``."""
    if isinstance(example, torch.Tensor):
        given = lent.lend(example)
        recorder.bind(given, value)
        return given
    if isinstance(example, tuple):
        assert isinstance(value.type, TupleType)
        parts = recorder.node("prim::TupleUnpack", [value], value.type.elements).outputs
        items = [enter(recorder, part, item, lent) for part, item in zip(parts, example, strict=True)]
        return type(example)(*items) if hasattr(example, "_fields") else tuple(items)
    if isinstance(example, list):
        assert isinstance(value.type, ListType)
        parts = recorder.node("prim::ListUnpack", [value], [value.type.element] * len(example)).outputs
        return [enter(recorder, part, item, lent) for part, item in zip(parts, example, strict=True)]
    assert isinstance(example, Mapping)
    found = {}
    for key, item in example.items():
        part = recorder.insert("aten::__getitem__", [NamedValue(value), key])
        found[key] = enter(recorder, part, item, lent)
    return found


def leave(recorder: Recorder, result: Any, strict: bool, where: str = "the result") -> Value:
    """Return the graph value of ``result``, which the traced code returned.

    Numbers that the trace does not compute, strings and, within containers, None are constants, listed in the trace
    report. Lists keep their length and dicts their keys: with ``strict``, a list is reported, and a dict is an error.

    Raises:
        TracingError: ``result`` is None or an empty container, holds an object of another class, or, with ``strict``, a
            dict.
    """
    if isinstance(result, torch.Tensor):
        return recorder.value_of_tensor(result)
    number = value_of_number(result, recorder)
    if number is not None:
        return number
    if isinstance(result, Mapping) and strict:
        raise TracingError(
            f"{where} is a dict, of which a trace would fix the keys",
            hint="return a tuple, or trace with strict=False if they are always the same",
        )
    if isinstance(result, list) and result and strict:
        recorder.bake_list(where, len(result))
    if isinstance(result, (tuple, list)) and result:
        values = [leave(recorder, item, strict, f"{where}[{i}]") for i, item in enumerate(result)]
        types = [value.type for value in values]
        if isinstance(result, list):
            return recorder.node("prim::ListConstruct", values, [ListType(_any_of(types))]).output
        return recorder.node("prim::TupleConstruct", values, [TupleType(tuple(types))]).output
    if isinstance(result, Mapping) and result:
        pairs: list[Value] = []
        for key, item in result.items():
            pairs.append(recorder.graph.insert_constant(key))
            pairs.append(leave(recorder, item, strict, f"{where}[{key!r}]"))
        type = DictType(_common([v.type for v in pairs[::2]], where), _any_of([v.type for v in pairs[1::2]]))
        return recorder.node("prim::DictConstruct", pairs, [type]).output
    if isinstance(result, (bool, int, float, complex, str)) or (result is None and where != "the result"):
        recorder.report.add(Baked.CONSTANT, where, result, users_place())
        return recorder.constant(plain(result))
    raise TracingError(
        f"{where} is {_describe(result)}; a trace gives tensors and numbers, and tuples of them",
        hint="return only tensors from what is traced, or compile it with script",
    )


def _any_of(types: Sequence[Type]) -> Type:
    """Return the type of items of these types: the common one, or a Union."""
    return unify_all(types) or union(types)

"""Calls of Python from a program: functions that the program names and the compiler leaves alone."""

from __future__ import annotations

from typing import Any

from rekindle.errors import GraphError
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ir.scalar_types import NUMBERED_CLASSES, number_of
from rekindle.ir.types import NONE, DictType, FloatType, IntType, ListType, OptionalType, TupleType, Type
from rekindle.ops.python.values import describe, new_named_tuple, value_matches
from rekindle.ops.registration.declare import implements, implements_for_node


@implements_for_node("prim::PythonOp(...) -> ...", effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)
def call_python(node: Node) -> Operation:
    """Return the operation that calls the Python function in attribute ``function``. Its result is converted to the
    type of the output by :func:`as_result`; the operation raises a TypeError that names the function if it has another
    type then. Any result is accepted, and None returned, if the type of the output is NoneType.

    Raises:
        GraphError: the attribute is not a callable.
    """
    holder = node["function"]
    if not isinstance(holder, ConstantObject) or not callable(holder.value):
        raise GraphError("prim::PythonOp needs a callable as its attribute 'function'")
    function: Operation = holder.value
    if len(node.outputs) != 1:
        return function
    name = getattr(function, "__qualname__", repr(function))
    type = node.output.type

    def call(*args: object) -> object:
        result = function(*args)
        if type == NONE:
            return None  # a function without a declared result may return anything
        taken = as_result(result, type)
        if not value_matches(taken, type):
            expected = type.annotation
            raise TypeError(f"the Python function '{name}' should return {expected}, but returned {describe(result)}")
        return taken

    return call


def as_result(value: Any, type: Type) -> Any:
    """Return a result of Python as a value of ``type``: an int as a float, a tuple as a list, a dtype as its number,
    also within containers. Other values are returned unchanged."""
    if value_matches(value, type):
        return value
    if isinstance(type, OptionalType):
        return as_result(value, type.element)
    if isinstance(type, FloatType) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(type, IntType) and isinstance(value, NUMBERED_CLASSES):
        return number_of(value)
    if isinstance(type, ListType) and isinstance(value, (list, tuple)):
        return [as_result(item, type.element) for item in value]
    if isinstance(type, DictType) and isinstance(value, dict):
        return {as_result(key, type.key): as_result(item, type.value) for key, item in value.items()}
    if isinstance(type, TupleType) and isinstance(value, tuple) and len(value) == len(type.elements):
        items = [as_result(item, element) for item, element in zip(value, type.elements, strict=True)]
        return tuple(items) if type.fields is None else new_named_tuple(type)(*items)
    return value


@implements("prim::IgnoredPythonOp(...) -> NoneType", effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)
def refuse_ignored(*args: object) -> None:
    """Raise the error for a call of a Python function that was not saved with its program.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("the program calls a Python function that was marked to be ignored and is not part of it")

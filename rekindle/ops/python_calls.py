"""Calls of Python from a program: functions that the program names and the compiler leaves alone."""

from __future__ import annotations

from rekindle.errors import GraphError
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Node
from rekindle.ir.registry import Effects, Operation
from rekindle.ir.types import NONE
from rekindle.ops.arguments import ValueMismatch, converter
from rekindle.ops.declare import implements, implements_for_node


@implements_for_node("prim::PythonOp(...) -> ...", effects=Effects.CONSERVATIVE, side_effects=True)
def call_python(node: Node) -> Operation:
    """Call the Python function in attribute ``function`` with the inputs; what it returns must be of the output's type.

    Raises:
        TypeError: it is not; the message names the function.
    """
    holder = node["function"]
    if not isinstance(holder, ConstantObject) or not callable(holder.value):
        raise GraphError("prim::PythonOp needs a callable as its attribute 'function'")
    function: Operation = holder.value
    if not node.outputs:
        return function
    name = getattr(function, "__qualname__", repr(function))
    if len(node.outputs) > 1:
        return function
    type = node.output.type
    if type == NONE:
        # A function without a declared result may return anything; a program sees None.
        def call_for_nothing(*args: object) -> None:
            function(*args)

        return call_for_nothing
    convert = converter(type)

    def call(*args: object) -> object:
        result = function(*args)
        try:
            return convert(result)
        except ValueMismatch as error:
            raise TypeError(f"the Python function '{name}' returned a wrong value: {error}") from None

    return call


@implements("prim::IgnoredPythonOp(...) -> NoneType", effects=Effects.CONSERVATIVE, side_effects=True)
def refuse_ignored(*args: object) -> None:
    """What is left of a call of a Python function that was not saved with its program.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("the program calls a Python function that was marked to be ignored and is not part of it")

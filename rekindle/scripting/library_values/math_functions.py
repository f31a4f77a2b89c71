"""The functions of ``math`` and ``cmath``: they convert their arguments to floats or complex numbers.

The operators that compute them take Tensors, too, and then give Tensors; Python's functions never do::

    math.sqrt(x)          %n : float = aten::Float(%x)
                          %r : float = aten::sqrt(%n)
"""

from __future__ import annotations

import cmath
import math
from dataclasses import replace
from types import ModuleType
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError
from rekindle.frontend.expressions.number_dispatch import emit_for_tensor_and_number
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values.base import CallSite, FlattenedValue, SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.types import COMPLEX, NUMBER, TensorType, number_beside_tensor, number_members, present
from rekindle.scripting.library_values.builtin_table import builtin_kind


class MathFunction(BuiltinFunction):
    """A function of ``math`` or ``cmath`` that an operator computes."""

    def __init__(self, kind: str, module: ModuleType, name: str) -> None:
        super().__init__(kind)
        self.name = name
        self.module = module
        self.qualified_name = f"{module.__name__}.{name}"
        self.is_complex = module is cmath and name not in _OF_FLOATS

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        return FlattenedValue((type(self), self.qualified_name), (), lambda values, emitter: self)

    def call(self, call: CallSite) -> SugaredValue:
        either = next((item for item in call.args if number_beside_tensor(item.type) is not None), None)
        if either is not None:

            def emit(taken: NamedValue) -> Value:
                args = [taken if item is either else item for item in call.args]
                return self.call(replace(call, args=args)).as_value(call.range, call.graph)

            return SimpleValue(emit_for_tensor_and_number(either, call.range, call.graph, emit))
        args = [self._converted(self._present(item, call), index, call) for index, item in enumerate(call.args)]
        found = super().call(CallSite(call.range, call.graph, args, call.kwargs, call.targets))
        if self.qualified_name == "math.pow" and call.graph.follows_python:
            found.as_value(call.range, call.graph).node.set_attribute("math", 1)
        return found

    def _present(self, argument: NamedValue, call: CallSite) -> NamedValue:
        """Return the argument; if it is an optional tensor, emit a check that raises if it is None. Other arguments are
        returned unchanged."""
        checks = call.graph.none_checks
        if checks is None or not argument.type.is_optional or not isinstance(present(argument.type), TensorType):
            return argument
        message = _NO_INT if self.name in _AS_INTS else "must be real number, not NoneType"
        value = checks.check(argument.materialize(call.graph), argument.range, "builtins.TypeError", message)
        return NamedValue(value, range=argument.range, name=argument.name)

    def _converted(self, argument: NamedValue, index: int, call: CallSite) -> NamedValue:
        given = argument.type
        if not self.is_complex and self.module is math and call.graph.follows_python:
            if given == COMPLEX:
                raise TypeMismatchError("must be real number, not complex", argument.range)
            if NUMBER in (number_members(given) or ()):
                return self._real(argument, call)
        if not isinstance(given, TensorType) and not (self.is_complex and given != COMPLEX):
            return argument
        refused = _REFUSED.get((self.name, index)) if isinstance(given, TensorType) else None
        if refused is not None:
            raise TypeMismatchError(refused, argument.range, hint="pass its number: x.item()")
        graph, value = call.graph, argument.materialize(call.graph)
        if self.is_complex:
            number = graph.insert("aten::item", [value], range=argument.range) if given.kind == "TensorType" else value
            value = graph.insert("aten::Complex", [number], range=argument.range)
        else:
            value = graph.insert(_AS_INTS.get(self.name, "aten::Float"), [value], range=argument.range)
        return NamedValue(value, range=argument.range)

    def _real(self, argument: NamedValue, call: CallSite) -> NamedValue:
        """Emit a check that raises if the argument, a number, is complex. Return the argument."""
        value = SimpleValue(argument.materialize(call.graph))
        library_function("check_real").call_with(call.range, call.graph, [value], {})
        return NamedValue(value.value, range=argument.range)


_AS_INTS: Final = {"factorial": "aten::IntImplicit"}
_NO_INT: Final = "'NoneType' object cannot be interpreted as an integer"

_REFUSED: Final = {
    ("trunc", 0): "type Tensor doesn't define __trunc__ method",
    ("ldexp", 1): "Expected an int as second argument to ldexp.",
}
"""Calls that raise in Python too, by the name of the function and the position of the Tensor."""

_OF_FLOATS: Final = frozenset({"rect"})
_OF_PYTHON: Final = frozenset({"log2", "exp2", "cbrt", "nextafter"})
"""Functions that operators of namespace ``python`` compute by calling Python. Some were added in Python 3.11."""


def math_functions() -> dict[int, SugaredValue]:
    """Return the sugared values of the functions of ``math`` and ``cmath`` that are operators, by identity."""
    return dict(_FUNCTIONS)


def math_name(function: object) -> str | None:
    """Return the name by which :func:`math_function` finds a function of ``math`` or ``cmath``: ``cmath.sqrt``; None
    for other functions."""
    found = _FUNCTIONS.get(id(function))
    return None if found is None else found.qualified_name


def math_function(name: str) -> MathFunction | None:
    """Return the function of ``math`` or ``cmath`` with a qualified name such as ``cmath.sqrt``; None if there is
    none."""
    return next((found for found in _FUNCTIONS.values() if found.qualified_name == name), None)


def _functions() -> dict[int, MathFunction]:
    found: dict[int, MathFunction] = {}
    for module in (math, cmath):
        for name, function in vars(module).items():
            kind = f"python::{name}" if name in _OF_PYTHON else builtin_kind(function) if callable(function) else None
            if kind is not None:
                found[id(function)] = MathFunction(kind, module, name)
    return found


_FUNCTIONS: Final = _functions()

"""Wrappers that take any arguments, and forward them to the function within."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rekindle.errors import SourceRange
from rekindle.frontend.sugared_values.base import Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.ir.graph import Graph
from rekindle.scripting.callables.generic_functions import call_generic
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Apply, Attribute, Def, Expr, Ident, Return, Starred, Var


@dataclass(slots=True, frozen=True)
class Forwarding:
    """A wrapper that forwards all its arguments, ``wrapper(*args, **kwargs)``, to a function that has a signature.

    A call of it is compiled with the parameters of that function.
    """

    wrapper: types.FunctionType
    function: types.FunctionType
    """The innermost wrapped function, whose parameters a call of the wrapper has."""

    def definition(self, name: str) -> Def:
        """Return the syntax tree of ``def name(parameters): return wrapper(parameters)``."""
        inner = function_def(self.function, name)
        range = inner.range
        args: list[Expr] = []
        named: list[Attribute] = []
        for param in inner.params:
            value = Var.create(param.range, param.name)
            if param.takes_positional:
                args.append(Starred.create(param.range, value))
            elif param.takes_keywords:
                named.append(Attribute.create(param.range, Ident.create(param.range, "**"), value))
            elif param.kwarg_only:
                named.append(Attribute.create(param.range, param.name, value))
            else:
                args.append(value)
        call = Apply.create(range, Var.create(range, Ident.create(range, _WRAPPER)), args, named)
        return Def.create(range, inner.name, inner.params, inner.return_type, [Return.create(range, call)])

    def names(self, forms: Mapping[str, SugaredValue] | None) -> dict[str, SugaredValue]:
        return {**(forms or {}), _WRAPPER: Wrapper(self.wrapper)}


_WRAPPER: Final = "$wrapper"


class Wrapper(SugaredFunction, StaticValue):
    """A wrapper, called with the arguments of the wrapped function."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function

    @property
    def description(self) -> str:
        return f"the wrapper of '{self.function.__name__}'"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        return call_generic(self.function, range, graph, args, kwargs)


def forwarding(function: types.FunctionType) -> Forwarding | None:
    """Return how ``function`` forwards its calls, if it wraps a function (``__wrapped__``) and has ``*args`` or
    ``**kwargs``; None for other functions."""
    inner: Any = vars(function).get("__wrapped__")
    if not isinstance(inner, types.FunctionType):
        return None
    code = function.__code__
    if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    while isinstance(vars(inner).get("__wrapped__"), types.FunctionType):
        inner = vars(inner)["__wrapped__"]
    return Forwarding(function, inner)

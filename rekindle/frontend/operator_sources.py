"""Compile functions that are written in terms of operators: derivative formulas and batching rules.

In their source ``torch.NAME`` is the operator ``aten::NAME``, whatever PyTorch calls it in Python, and further names
refer to other namespaces. They can call the other functions of their collection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rekindle.errors import LIBRARY, Source, SourceRange
from rekindle.frontend.functions import emit_function
from rekindle.frontend.sugared_values.base import EmptyResolver, SugaredValue
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.frontend.sugared_values.values import BuiltinFunction, FunctionValue
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def


class _Operators(SugaredValue):
    """``torch`` within the sources of operators: every attribute is an operator of a namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        return BuiltinFunction(f"{self.namespace}::{name}")


_TORCH: Final = {"torch": "aten"}


@dataclass(slots=True)
class OperatorSourceCompiler:
    """Compiler of functions in terms of operators. ``helpers`` returns the functions that they may call, by name;
    ``namespaces`` maps further names to the operator namespaces that they refer to."""

    helpers: Callable[[], Mapping[str, GraphFunction]]
    namespaces: Mapping[str, str] = field(default_factory=dict)

    def emit(self, text: str, name: str) -> Graph:
        """Return the graph of the one function that ``text`` defines; ``name`` is that of its schema.

        Raises:
            CompileError: the function cannot be compiled.
        """
        (statement,) = parse_module(Source(text, LIBRARY))
        return emit_function(Def(statement.tree), _Resolver(self), name=name)[0]

    def helper(self, text: str) -> GraphFunction:
        """Return the function that ``text`` defines, compiled when it is first used."""
        (statement,) = parse_module(Source(text, LIBRARY))
        definition = Def(statement.tree)
        name = definition.name.name

        def define(record: GraphFunction) -> None:
            record.define(*emit_function(definition, _Resolver(self), name=name))

        return GraphFunction(name, function_creator=define)


class _Resolver(EmptyResolver):
    def __init__(self, texts: OperatorSourceCompiler) -> None:
        self.texts = texts

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        helper = self.texts.helpers().get(name)
        if helper is not None:
            return FunctionValue(helper)
        namespace = self.texts.namespaces.get(name) or _TORCH.get(name)
        return GLOBALS.get(name) if namespace is None else _Operators(namespace)

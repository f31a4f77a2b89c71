"""Patterns and replacements from Python functions, compiled or not, and from IR text."""

from __future__ import annotations

import types
from typing import Any

from rekindle.errors import RuleError
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.program.calling import inlined
from rekindle.program.function import Function
from rekindle.runtime.pipelines import NORMAL_FORM
from rekindle.scripting.callables.functions import underlying_function
from rekindle.scripting.script import script


def graph_of(source: Any) -> tuple[str, Graph]:
    """The name and the graph of a Python function, compiled or not, of IR text, or of a graph; in normal form: calls
    inlined, constants folded."""
    if isinstance(source, str):
        name, graph = "text", parse_graph(source.strip() + "\n")
    elif isinstance(source, Graph):
        name, graph = "graph", source.copy()
    else:
        function = source if isinstance(source, Function) else _compiled(source)
        name, graph = function.name, inlined(function._record)
    normalise(graph)
    verify(graph)
    return name, graph


def _compiled(source: Any) -> Function:
    if not isinstance(underlying_function(source) or source, types.FunctionType):
        raise RuleError(f"a {type(source).__qualname__} cannot be part of a rule; write a function, or IR text")
    found = script(source)
    if not isinstance(found, Function):
        raise RuleError(f"the function '{source.__name__}' has overloads and cannot be part of a rule")
    return found


def normalise(graph: Graph) -> bool:
    """Bring a graph into the form in which patterns and programs are compared; returns whether anything changed."""
    return run_passes(graph, NORMAL_FORM)

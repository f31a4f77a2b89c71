"""Graphs that ``torch.compile(f, backend="rekindle")`` has compiled so far. Nothing here loads Dynamo."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final
from weakref import WeakValueDictionary

from torch import fx, nn

from rekindle.program.function import Function

_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(eq=False)
class CompiledGraph:
    """The compiled functions of one graph that Dynamo captured. Dynamo captures a function again when its guards on the
    arguments fail, and in several graphs if there are graph breaks.

    ``compile_id`` is its name in Dynamo's logs: ``0/1`` for ``[0/1]``. ``functions`` are the compiled functions, by
    their names ``graph_<number>``, or, if the graph is compiled ahead of time, ``inference_<number>``, or
    ``forward_<number>`` and ``backward_<number>``, each added when it is compiled.
    """

    compile_id: str
    places: frozenset[tuple[str, int]] = frozenset()
    """The source lines of the compiled function that the graph was captured from, by file and number."""
    functions: list[Function] = field(default_factory=list)


_GRAPHS: Final[WeakValueDictionary[int, CompiledGraph]] = WeakValueDictionary()
_NUMBERS: Final = itertools.count()


def new_graph(compile_id: str, module: fx.GraphModule) -> tuple[int, CompiledGraph]:
    """Create the record of a graph that Dynamo has captured; return it with its number. Only a weak reference to it is
    stored."""
    number = next(_NUMBERS)
    graph = _GRAPHS[number] = CompiledGraph(compile_id, frozenset(_outermost_lines(module)))
    return number, graph


def compiled_graphs() -> list[CompiledGraph]:
    """Return all graphs that are in use, in the order in which they were compiled."""
    return [graph for _, graph in sorted(_GRAPHS.items())]


def graphs_of(f: Any) -> list[CompiledGraph] | None:
    """Return the graphs in use that were compiled for ``f``, a result of ``torch.compile``; None if it is not one. The
    list is empty if ``f`` has no Python code."""
    original = getattr(f, "_torchdynamo_orig_callable", None) or getattr(f, "_orig_mod", None)
    if original is None:
        return None
    if isinstance(original, nn.Module):
        original = original.forward
    code = getattr(original, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    lines = {(code.co_filename, line) for line in _lines_of(code)}
    return [graph for graph in compiled_graphs() if graph.places & lines]


def _outermost_lines(module: fx.GraphModule) -> Iterator[tuple[str, int]]:
    for node in module.graph.nodes:
        found = _FRAME.search(node.meta.get("stack_trace") or "")
        if found is not None:
            yield found[1], int(found[2])


def _lines_of(code: CodeType) -> Iterator[int]:
    """Yield the lines of a function and of the functions within it."""
    yield from (line for _, _, line in code.co_lines() if line is not None)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines_of(constant)

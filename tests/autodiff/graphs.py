"""Graphs of scripted functions, as the passes before splitting leave them, with a tuple of results as several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rekindle
from rekindle.ir.graph import Graph
from rekindle.passes import DeadCodeElimination, run_passes
from rekindle.runtime.pipelines import OPTIMIZATION


def graph_of(function: Callable[..., Any]) -> Graph:
    """The graph of ``function``, optimized."""
    graph = rekindle.script(function).graph.copy()
    run_passes(graph, OPTIMIZATION)
    made = graph.outputs[0].node
    if made.kind == "prim::TupleConstruct":
        graph.block.erase_output(0)
        for value in list(made.inputs):
            graph.add_output(value)
        run_passes(graph, [DeadCodeElimination()])
    return graph

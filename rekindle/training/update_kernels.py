"""Kernels of updates: the program of an update rule with what surrounds it in a training step.

.. code-block:: text

    graph(%p, %g, %m, …):                    graph(%p, %g, %m, …, %factor, %decay, %average, %weight):
      …                                        %g.1 = aten::mul(%g, %factor)
      return (%p.1, %m.1)        becomes       %g.2 = aten::add(%g.1, %p, %decay)
                                               … with %g.2 for %g
                                               %average.1 = aten::lerp(%average, %p.1, %weight)
                                               return (%p.1, %m.1, %average.1)

The factor of the gradient clips its norm, and its sign says whether the loss is maximized. Decoupled weight decay
multiplies the parameter instead.
"""

from __future__ import annotations

from functools import cache, lru_cache

from torch import Tensor

from rekindle.ir.graph import Graph
from rekindle.ir.types import FLOAT, TENSOR
from rekindle.passes import DeadCodeElimination, LowerSimpleTuples, run_passes
from rekindle.scripting.script import script
from rekindle.training.kernel_tables import TableKernel
from rekindle.training.update_rules import ProgramKey


@lru_cache(maxsize=256)
def update_kernel(program: ProgramKey, *, clamps: bool, decoupled: bool | None, averages: bool) -> TableKernel:
    """Return the kernel of an update: ``program`` with gradient scaling, clamping, weight decay and averaging around
    it.

    It takes the tensors of the program, and the weight average if it ``averages``. Numbers follow: those of the
    program, the factor of the gradient, the limit of its elements and the negated limit if it ``clamps``, the number of
    the weight decay if there is one, and the weight of the new parameter in the average. It returns what the program
    returns, and the new average. ``decoupled``: weight decay multiplies the parameter (True), is added to the gradient
    (False), or is absent (None).
    """
    rule = script(program.make(*program.choices)).inlined_graph
    run_passes(rule, (LowerSimpleTuples(), DeadCodeElimination()))
    graph = Graph()
    values = [graph.add_input(value.base_name, value.type) for value in rule.inputs]
    parameter, gradient = values[:2]
    gradient = graph.insert("aten::mul", [gradient, graph.add_input("factor", FLOAT)])
    if clamps:
        high, low = graph.add_input("high", FLOAT), graph.add_input("low", FLOAT)
        gradient = graph.insert("aten::clamp", [gradient, low, high])
    if decoupled is not None:
        decay = graph.add_input("decay", FLOAT)
        if decoupled:
            parameter = graph.insert("aten::mul", [parameter, decay])
        else:
            gradient = graph.insert("aten::add", [gradient, parameter], {"alpha": decay})
    (packed,) = graph.insert_graph(rule, [parameter, gradient, *values[2:]])
    results = list(packed.node.inputs)
    if averages:
        average, weight = graph.add_input("average", TENSOR), graph.add_input("weight", FLOAT)
        results.append(graph.insert("aten::lerp", [average, results[0], weight]))
    for each in results:
        graph.add_output(each)
    packed.node.destroy()
    return TableKernel(graph, f"update_{program.make.__name__.strip('_').removesuffix('_program')}")


@cache
def count_kernel() -> TableKernel:
    """Return the kernel that adds 1 to tensors that count updates."""
    return TableKernel(script(_incremented).inlined_graph, "count_updates")


def _incremented(count: Tensor) -> Tensor:
    return count + 1

"""``_force_outplace`` of ``torch.jit.trace``: functional operators in the place of in-place ones."""

from __future__ import annotations

from rekindle.ir.graph import Graph
from rekindle.ir.types import TENSOR, TensorType
from rekindle.passes import RemoveMutation, run_passes
from rekindle.program.function import Function
from rekindle.program.modules.module import ScriptModule


def make_functional(compiled: Function | ScriptModule) -> None:
    """Apply :func:`remove_writes` to the graph of a traced function, or to those of all methods of a traced module and
    its submodules."""
    if isinstance(compiled, Function):
        remove_writes(compiled._record.graph)
    else:
        for part in compiled.modules():
            for record in part.script_type.methods.values() if isinstance(part, ScriptModule) else ():
                remove_writes(record.graph)


def remove_writes(graph: Graph) -> None:
    """Replace in-place operators of ``graph`` with functional ones where nothing outside of the graph can observe the
    write.

    The graph is modified. Tensors are assumed to have the sizes of the traced run: ``x.add_(y)`` becomes ``x + y`` if
    the result had the size of ``x`` in that run.
    """
    for value in graph.block.all_values():
        if value.recorded_type is not None and value.type == TENSOR:
            value.type = value.recorded_type
    run_passes(graph, [RemoveMutation()])
    for value in graph.block.all_values():
        if isinstance(value.type, TensorType) and value.type.is_refined:  # which no other call has to share
            value.recorded_type = value.type
            value.set_type(TENSOR)

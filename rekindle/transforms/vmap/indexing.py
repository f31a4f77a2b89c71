"""Index batches with Tensors.

A row that the number in a Tensor selects is a view, as in Python; a batch of such rows cannot be one. In a program that
writes to nothing but items, a copy serves::

    %numbers : bool = aten::eq(aten::dim(%i), 0)
    %item : Tensor = item_at(%x, %i, %indices, %numbers)    becomes    %item : Tensor = aten::index(%x, %indices)
"""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Graph, Node, Value
from rekindle.passes import Inlining
from rekindle.passes.inlining import called_function
from rekindle.program.function import Function
from rekindle.transforms.vmap.spread import written_by

_READS: Final = {"item_at": 2, "item_of_indices": 1}
_WRITES: Final = {"put_item_at": 2, "put_item_of_indices": 1}
"""The functions of the frontend's library for subscripts, and which of their arguments is the list of the indices."""


def with_plain_indices(function: Function) -> Graph:
    """Return a copy of the function's graph without calls, in which ``aten::index`` reads the items of Tensors."""
    graph = function.graph.copy()
    Inlining(frozenset(_READS | _WRITES)).run(graph)
    nodes = list(graph.all_nodes())
    has_views = any(_name_of(node) in _READS for node in nodes)
    if not has_views or all(_augments(node) for node in nodes):
        for node in nodes:
            name = _name_of(node)
            if name in _READS or name in _WRITES:
                _use_operator(graph, node, name)
    Inlining().run(graph)
    return graph


def _name_of(call: Node) -> str:
    """Return the name of the library's function that a node calls; nothing for other nodes."""
    record = called_function(call)
    return "" if record is None else record.library_name


def _augments(node: Node) -> bool:
    """Return whether ``node`` is the operator of ``x[i] += y``: what it writes to becomes an item at once."""
    return all(
        _name_of(item.node) in _READS
        and len(item.uses) == 1
        and [_name_of(use.user) for output in node.outputs for use in output.uses] in [[name] for name in _WRITES]
        for item in written_by(node)
    )


def _use_operator(graph: Graph, call: Node, name: str) -> None:
    """Put an operator in the place of a call, unless a number among its indices could change the order of the
    dimensions."""
    arguments = call.inputs[1:]
    indices = arguments[(_READS | _WRITES)[name]]
    if not _keep_their_order(indices):
        return
    with graph.inserting_before(call):
        if name in _READS:
            index = graph.insert("aten::index", [arguments[0], indices], range=call.range)
            call.output.replace_all_uses_with(index)
        else:
            graph.insert("aten::index_put_", [arguments[0], indices, arguments[-1]], range=call.range)
    call.destroy()


def _keep_their_order(indices: Value) -> bool:
    """Return whether the dimensions of the result are in the same order whichever indices are numbers: no dimension
    lies between those that Tensors index, or all are the same Tensor."""
    if indices.node.kind != "prim::ListConstruct":
        return False
    given = indices.node.inputs
    positions = [at for at, index in enumerate(given) if index.node.kind != "prim::Constant"]
    return len({given[at] for at in positions}) < 2 or positions[-1] - positions[0] == len(positions) - 1

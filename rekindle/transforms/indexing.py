"""Inline calls, with the subscripts of Tensors as the operators that formulas and rules of batching know.

A row that the number in a Tensor selects is a view, as in Python. In a program that writes to nothing but items, a copy
serves::

    %numbers : bool = aten::eq(aten::dim(%i), 0)
    %item : Tensor = item_at(%x, %i, %indices, %numbers)    becomes    %item : Tensor = aten::index(%x, %indices)
"""

from __future__ import annotations

from typing import Final

from rekindle.analysis.effects import is_write
from rekindle.ir.graph import Graph, Node, Value
from rekindle.passes import Inlining
from rekindle.passes.inlining import called_function

_READS: Final = {"item_at": 2, "item_of_indices": 1}
_COPIES: Final = {"item_copy_at": 2, "item_copy_of_indices": 1}
_WRITES: Final = {"put_item_at": 2, "put_item_of_indices": 1}
_ALL: Final = _READS | _COPIES | _WRITES
"""The functions of the frontend's library for subscripts, and which of their arguments is the list of the indices."""


def inline_with_plain_indices(graph: Graph) -> None:
    """Inline the calls in ``graph``; where the program shows no difference, ``aten::index`` reads items of Tensors."""
    Inlining(frozenset(_ALL)).run(graph)
    nodes = list(graph.all_nodes())
    has_views = any(_name_of(node) in _READS for node in nodes)
    if not has_views or not any(_writes(node) for node in nodes):
        for node in nodes:
            if _name_of(node) in _ALL:
                _use_operator(graph, node, _name_of(node))
    Inlining().run(graph)


def _name_of(call: Node) -> str:
    """Return the name of the library's function that a node calls; nothing for other nodes."""
    record = called_function(call)
    return "" if record is None else record.library_name


def _writes(node: Node) -> bool:
    """Return whether the operator of a node writes to an argument; of calls, the library's functions that stay do not
    count."""
    return node.schema is not None and any(is_write(argument.alias) for argument in node.schema.arguments)


def _use_operator(graph: Graph, call: Node, name: str) -> None:
    """Put an operator in the place of a call, unless a number among its indices could change the order of the
    dimensions."""
    arguments = call.inputs[1:]
    indices = arguments[_ALL[name]]
    if not _keep_their_order(indices):
        return
    with graph.inserting_before(call):
        if name not in _WRITES:
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

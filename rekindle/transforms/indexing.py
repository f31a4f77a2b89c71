"""Inline calls, with the subscripts of Tensors as the operators that formulas and rules of batching know.

A row that the number in a Tensor selects is a view, as in Python. Where nothing writes to the row, or to the Tensor
that it is a row of, while the row is in use, a copy serves::

    %numbers : bool = aten::eq(aten::dim(%i), 0)
    %item : Tensor = item_at(%x, %i, %indices, %numbers)    becomes    %item : Tensor = aten::index(%x, %indices)
"""

from __future__ import annotations

from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import may_write
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.passes import Inlining

_READS: Final = {"item_at": 2, "item_of_indices": 1}
_COPIES: Final = {"item_copy_at": 2, "item_copy_of_indices": 1}
_WRITES: Final = {"put_item_at": 2, "put_item_of_indices": 1}
_ALL: Final = _READS | _COPIES | _WRITES
"""The functions of the frontend's library for subscripts, and which of their arguments is the list of the indices."""


def inline_with_plain_indices(graph: Graph) -> None:
    """Inline the calls in ``graph``. If the program shows no difference, items of tensors are read by ``aten::index``
    and not by the function of the prelude."""
    Inlining(frozenset(_ALL)).run(graph)
    calls = [node for node in graph.all_nodes() if _name_of(node) in _ALL]
    kept = _reads_of_written(graph) if calls else set()
    for call in calls:
        if call not in kept:
            _use_operator(graph, call, _name_of(call))
    Inlining().run(graph)


def _reads_of_written(graph: Graph) -> set[Node]:
    """Return the calls that read items whose results the program may write to, or whose memory it may write to
    elsewhere while they are in use."""
    twin = graph.copy()
    reads = [
        (call, other)
        for call, other in zip(graph.all_nodes(), list(twin.all_nodes()), strict=True)
        if _name_of(call) in _READS and not _is_used_at_once(call)
    ]
    if not reads:
        return set()
    items = {other: _use_aliasing_operator(twin, other) for other in list(twin.all_nodes()) if _name_of(other) in _ALL}
    aliases = AliasDb(twin)
    return {call for call, other in reads if aliases.has_writers(items[other])}


def _use_aliasing_operator(graph: Graph, call: Node) -> Value:
    """Replace a call by an operator with the aliases that the call may have. Return the operator's result."""
    name, arguments = _name_of(call), call.inputs[1:]
    with graph.inserting_before(call):
        if name in _WRITES:
            item = graph.insert("aten::copy_", [arguments[0], arguments[-1]], range=call.range)
        else:
            item = graph.insert("aten::select", [arguments[0], 0, 0], range=call.range)
            call.output.replace_all_uses_with(item)
    call.destroy()
    return item


def _is_used_at_once(call: Node) -> bool:
    """Return whether each use of the item computes a new tensor before any write: ``z[i] * 2``."""
    users = {use.user for use in call.output.uses}
    node = call.next
    while users and node.schema is not None and not may_write(node):
        if node in users and not _makes_new(node, call.output):
            return False
        users.discard(node)
        node = node.next
    return not users


def _makes_new(node: Node, value: Value) -> bool:
    """Return whether the results of a node cannot share memory with ``value``."""
    arguments = node.schema.arguments if node.schema is not None and node.kind.startswith("aten::") else []
    at = [number for number, given in enumerate(node.inputs) if given is value]
    return all(number < len(arguments) and arguments[number].alias is None for number in at)


def _name_of(call: Node) -> str:
    """Return the name of the prelude function that a node calls; empty for other nodes."""
    record = called_function(call)
    return "" if record is None else record.library_name


def _use_operator(graph: Graph, call: Node, name: str) -> None:
    """Replace a call by an operator, unless a number among its indices could change the order of the dimensions."""
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

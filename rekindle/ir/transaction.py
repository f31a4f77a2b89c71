"""Transactions on graphs: the previous state is recorded, and restored after an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rekindle.ir import graph as _graph
from rekindle.ir.graph import Block, Graph, Node
from rekindle.ir.verifier import verify


@contextmanager
def transaction(graph: Graph) -> Iterator[None]:
    """Make edits of ``graph`` within the ``with`` block atomic; see :meth:`rekindle.ir.graph.Graph.transaction`."""
    before = GraphState(graph)
    try:
        yield
        verify(graph)
    except BaseException:
        before.restore()
        raise


class GraphState:
    """A snapshot of ``graph``, its nodes and values, and the graphs in attributes of nodes. :meth:`restore` restores
    them with the same objects. A list in an attribute is not copied; the graphs in it are recorded."""

    __slots__ = ("_fields", "_graphs")

    def __init__(self, graph: Graph) -> None:
        self._graphs = [graph]
        """``graph`` and the graphs in attributes, at any depth."""
        self._fields: list[tuple[Any, str, object, Callable[[Any], object]]] = []
        """An object, one of its fields, the previous value, and a function that copies it if it is a container."""
        for each in self._graphs:  # _keep_node appends to it
            self._keep_graph(each)

    def _keep_graph(self, graph: Graph) -> None:
        for name in ("_names", "_name_suffixes"):
            self._keep(graph, name, dict)
        for name in ("_next_unique", "insert_point", "block"):
            self._keep(graph, name)
        pending = [graph.block]
        while pending:
            block = pending.pop()
            self._keep_block(block)
            for node in (block.param_node, *block.nodes, block.return_node):
                self._keep_node(node)
                pending.extend(node.blocks)

    def _keep_block(self, block: Block) -> None:
        for name in ("owning_node", "param_node", "return_node"):
            self._keep(block, name)

    def _keep_node(self, node: Node) -> None:
        for name in _NODE_FIELDS:
            self._keep(node, name)
        for name in ("_inputs", "_outputs", "_blocks"):
            self._keep(node, name, list)
        self._keep(node, "attributes", dict)
        for attribute in node.attributes.values():
            items = attribute if isinstance(attribute, list) else (attribute,)
            self._graphs.extend(item for item in items if isinstance(item, Graph) and item not in self._graphs)
        for value in node.outputs:
            for name in _VALUE_FIELDS:
                self._keep(value, name)
            self._keep(value, "_uses", dict)

    def _keep(self, item: object, name: str, copied: Callable[[Any], object] | None = None) -> None:
        copied = _itself if copied is None else copied
        self._fields.append((item, name, copied(getattr(item, name)), copied))

    def restore(self) -> None:
        """Restore the previous state. Nodes created since then do not belong to the graph any more."""
        for item, name, held, copied in self._fields:
            setattr(item, name, copied(held))
        for graph in self._graphs:
            graph.note_change()


def _itself(item: Any) -> object:
    found: object = item
    return found


_NODE_FIELDS: Final = (
    *("kind", "range", "owning_block", "callstack", "scope"),
    *("_next", "_prev", "_position", "_operator"),
)
_VALUE_FIELDS: Final = ("node", "offset", "unique", "type", "recorded_type", "_name")

_graph._transaction = transaction

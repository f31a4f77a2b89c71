"""Submodule analysis: which submodule each value in the methods of a module is."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch

from rekindle.analysis.attribute_writes import nodes_within
from rekindle.analysis.effects import DEFERRED_SUBGRAPH_KINDS
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import ClassType, InterfaceType, Type
from rekindle.program.modules.module import ScriptModule


class ModuleValues:
    """The submodule that each value of the methods is, as far as that can be determined (``known``).

    ``methods`` are pairs of a module, which is ``root`` or a submodule of it, and the graph of one of its methods.
    ``whole`` has the ids of opaque submodules, whose attributes cannot be resolved: the program replaces them, or uses
    them other than to read and write their attributes. ``preserved`` has ids that belong to it from the start. All
    submodules of an opaque submodule are opaque, and calls through interfaces there are not resolved.
    """

    def __init__(
        self, root: ScriptModule, methods: Iterable[tuple[ScriptModule, Graph]], preserved: Collection[int]
    ) -> None:
        self.known: dict[Value, ScriptModule] = {}
        self.whole: set[int] = set()
        methods = list(methods)
        self._swapped = {
            node.get_string("name")
            for _, graph in methods
            for node in nodes_within(graph)
            if node.kind == "prim::SetAttr" and is_class(node.inputs[1].type)
        }
        """The names of the attributes whose modules a program replaces."""
        for part in root.modules():
            for name, held in part._modules.items():
                if held is not None and (name in self._swapped or id(held) in preserved):
                    self._keep(held)
        for owner, graph in methods:
            self.known[graph.self_value] = owner
            self._visit(graph.block)

    def narrow(self, graph: Graph) -> bool:
        """Replace interface types of values in ``graph`` by the class of the submodule. Return whether there were
        any."""
        changed = False
        for node in nodes_within(graph):
            for value in node.outputs:
                part = self.known.get(value)
                if part is not None and isinstance(value.type, InterfaceType) and id(part) not in self.whole:
                    value.type = part.script_type
                    changed = True
        return changed

    def _keep(self, part: torch.nn.Module) -> None:
        self.whole.update(id(inner) for inner in part.modules())

    def _visit(self, block: Block) -> None:
        for node in block.nodes:
            subgraph = node.attributes.get("Subgraph")
            if node.kind in DEFERRED_SUBGRAPH_KINDS and isinstance(subgraph, Graph):
                for parameter, value in zip(subgraph.inputs, node.inputs, strict=True):
                    if value in self.known:
                        self.known[parameter] = self.known[value]
                self._visit(subgraph.block)
                continue
            self._visit_uses(node)
            if node.kind == "prim::GetAttr":
                self._visit_read(node)
            for inner in node.blocks:
                self._visit(inner)
        self._visit_uses(block.return_node)

    def _visit_read(self, node: Node) -> None:
        owner, name = self.known.get(node.input), node.get_string("name")
        held = None if owner is None else owner._modules.get(name)
        if isinstance(held, ScriptModule) and name not in self._swapped:
            self.known[node.output] = held

    def _visit_uses(self, node: Node) -> None:
        """Make each module that ``node`` uses opaque, except as the owner of an attribute that it reads or writes, and
        as the receiver of a call through an interface."""
        is_plain = node.kind in ("prim::GetAttr", "prim::SetAttr")
        for index, value in enumerate(node.inputs):
            if value not in self.known or (index == 0 and (is_plain or self._is_call_of_interface(node))):
                continue
            self._keep(self.known[value])

    def _is_call_of_interface(self, node: Node) -> bool:
        """Return whether ``node`` is a call through an interface, which is inlined once :meth:`narrow` has determined
        its callee."""
        if node.kind != "prim::CallMethod":
            return False
        receiver, *_ = node.inputs
        return isinstance(receiver.type, InterfaceType) and id(self.known[receiver]) not in self.whole


def is_class(type: Type) -> bool:
    """Return whether a type is a class or an interface, of modules or of other objects."""
    return isinstance(type, (ClassType, InterfaceType))

"""Lower a method to a function: each module attribute that it reads becomes an input, and ``self`` is removed.

.. code-block:: text

    graph(%self : __torch__.Net, %x : Tensor):               graph(%x : Tensor, %fc.weight : Tensor):
      %fc : … = prim::GetAttr[name="fc"](%self)
      %w : Tensor = prim::GetAttr[name="weight"](%fc)
      %y : Tensor = aten::mm(%x, %w)               becomes     %y : Tensor = aten::mm(%x, %fc.weight)
      return (%y)                                              return (%y)

The new inputs follow the others; those of one module are in the order in which they are first read. A module that is
written to, or that has a use other than an attribute read (such as a call that was not inlined), remains an input. All
modules do if the graph runs unknown code, which may write to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from rekindle.analysis.effects import CALLS
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import ClassType, InterfaceType
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class LowerGraph:
    """Make attributes of a module inputs of the graph. The docstring of the module shows the IR before and after.

    ``paths`` then lists the attributes to pass for the new inputs, such as ``fc.weight``, in order.

    Example:
        >>> from rekindle.passes import LowerGraph, run_passes
        >>> graph = rekindle.script(torch.nn.Linear(2, 2)).graph.copy()
        >>> lower = LowerGraph()
        >>> run_passes(graph, [lower])
        True
        >>> lower.paths, [value.name for value in graph.inputs]
        (['weight', 'bias'], ['input.1', 'weight', 'bias'])
    """

    name: ClassVar[str] = "lower_graph"
    paths: list[str] = field(default_factory=list)

    def run(self, graph: Graph) -> bool:
        changed = False
        if any(node.kind in CALLS for node in graph.all_nodes()):
            return False
        for index in reversed(range(len(graph.inputs))):
            value = graph.inputs[index]
            if _is_module(value):
                changed |= self._lower(graph, index)
        return changed

    def _lower(self, graph: Graph, index: int) -> bool:
        module = graph.inputs[index]
        reads = _reads_of(module)
        if reads is None:
            return False
        for path, nodes in reads.items():
            if not may_change("make an input of", nodes[0]):
                return bool(self.paths)
            new = graph.add_input(path, nodes[0].output.type)
            self.paths.append(path)
            for node in nodes:
                node.output.replace_all_uses_with(new)
                _destroy_chain(node)
        if module.has_uses or not may_change("take away", module):
            return bool(reads)
        graph.block.erase_input(index)
        return True


def lower_graph(graph: Graph) -> list[str] | None:
    """Replace the module attributes that ``graph`` reads by new inputs, in place. Return their paths, such as
    ``fc.weight``, in the order of the inputs; None if an input is still a module, though others may have been
    replaced."""
    lowering = LowerGraph()
    lowering.run(graph)
    return None if any(map(_is_module, graph.inputs)) else lowering.paths


def _is_module(value: Value) -> bool:
    return isinstance(value.type, (ClassType, InterfaceType)) and value.type.is_module


def _reads_of(module: Value) -> dict[str, list[Node]] | None:
    """Return the nodes that read attributes other than modules from ``module`` and its submodules, by their paths in
    the order of the first reads; None if one of these modules has any other use."""
    found: dict[str, list[Node]] = {}
    pending = [(module, "")]
    while pending:
        value, path = pending.pop()
        for user, _ in value.uses:
            if user.kind != "prim::GetAttr":
                return None
            inner = f"{path}.{user.get_string('name')}".removeprefix(".")
            if _is_module(user.output):
                pending.append((user.output, inner))
            else:
                found.setdefault(inner, []).append(user)
    order = {node: place for place, node in enumerate(module.graph.all_nodes())} if len(found) > 1 else {}
    return dict(sorted(found.items(), key=lambda item: min(order.get(node, 0) for node in item[1])))


def _destroy_chain(node: Node) -> None:
    """Destroy an unused attribute read, and the reads of modules that only it used."""
    while node.kind == "prim::GetAttr" and not node.has_uses:
        before = node.input.node
        node.destroy()
        node = before

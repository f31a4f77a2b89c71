"""Estimate how many nodes a call executes.

The body of a loop counts once for each iteration, if the trip count follows from the arguments of the call::

    graph(%x : Tensor, %n : int):
      %rows : int = aten::size(%x, %zero)
       = prim::Loop(%rows, %true)            rows iterations of 1 + n * 2 nodes
        block0(%i : int):
           = prim::Loop(%n, %true)
            block0(%j : int):
              ...

The estimate decides how a call is executed, never what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.graph_function import called_function

_UNKNOWN: Final = object()
_PLAIN: Final = (torch.Tensor, torch.nn.Parameter, list, tuple, dict, int, str)
"""Classes of the values that are read. Derived ones may do anything when they are: a defaultdict adds keys."""
_ON_INTS: Final = frozenset({"aten::__range_length"}) | {
    f"aten::{name}" for name in ("add", "sub", "mul", "floordiv", "neg", "remainder")
}
_ON_OTHERS: Final = frozenset({"aten::len", "aten::size", "aten::dim", "aten::__getitem__", "prim::GetAttr"}) | {
    *("prim::min", "prim::max", "prim::ListConstruct", "prim::ListUnpack", "prim::TupleUnpack"),
}
"""Kinds of nodes that trip counts are computed by. On the values that are read, they have no effects and take no time:
of ``[0] * n`` nothing is computed."""


def most_iterations(loop: LoopView) -> Value | None:
    """Return how many iterations a ``for`` loop has at most; None for a ``while`` loop. A ``for`` loop that may end
    early has the form of a ``while`` loop, whose first condition is that there is an iteration: ``n > 0``."""
    if not loop.is_endless:
        return loop.trip_count
    condition = loop.condition.node
    return condition.inputs[0] if loop.node.range.text.startswith("for ") and condition.kind == "aten::gt" else None


@dataclass(slots=True)
class WorkEstimate:
    """Estimates of the number of nodes that one call executes.

    ``values`` are the known values of the call, such as the arguments, by the inputs of the graph. A loop whose trip
    count does not follow from them is assumed to have ``assumed_trips`` iterations.
    """

    assumed_trips: int
    values: dict[Value, object] = field(default_factory=dict)
    _callees: dict[Graph, int] = field(default_factory=dict)

    @classmethod
    def of_call(cls, graph: Graph, arguments: Sequence[object], assumed_trips: int) -> WorkEstimate:
        """Return the estimates for a call of ``graph`` with ``arguments``."""
        if torch._C._is_torch_function_mode_enabled():  # it would see the queries
            return cls(assumed_trips)
        return cls(assumed_trips, dict(zip(graph.inputs, arguments, strict=True)))

    def nodes(self, nodes: Iterable[Node]) -> int:
        """Return how many nodes are executed in one execution of each of ``nodes``."""
        return sum(map(self.node, nodes))

    def node(self, node: Node) -> int:
        """Return how many nodes are executed in one execution of ``node``: itself, those in its blocks, and those of
        the function that it calls. Constants count nothing; of an ``if``, the larger branch counts."""
        if node.kind == "prim::Constant":
            return 0
        if node.kind == "prim::Loop":
            return 1 + self._trips(LoopView(node)) * self.iteration(LoopView(node))
        found = 1 + max([self.nodes(block.nodes) for block in node.blocks], default=0)
        callee = called_function(node)
        if callee is not None and callee.is_defined:
            found += self._of_function(callee.graph)
        return found

    def iteration(self, loop: LoopView) -> int:
        """Return how many nodes are executed in one iteration of a loop; the test for another one counts."""
        return 1 + self.nodes(loop.body.nodes)

    def _of_function(self, graph: Graph) -> int:
        if graph not in self._callees:
            self._callees[graph] = 0  # what a recursive call executes is not known
            self._callees[graph] = self.nodes(graph.nodes)
        return self._callees[graph]

    def _trips(self, loop: LoopView) -> int:
        most = most_iterations(loop)
        found = _UNKNOWN if most is None else self._value(most)
        return max(found, 0) if isinstance(found, int) else self.assumed_trips

    def _value(self, value: Value) -> object:
        """Return the value that ``value`` has in the call; ``_UNKNOWN`` if it does not follow from the known ones."""
        if value not in self.values:
            self.values.update(self._outputs(value.node))
        return self.values.setdefault(value, _UNKNOWN)

    def _outputs(self, node: Node) -> Mapping[Value, object]:
        if node.kind == "prim::Constant":
            return {node.output: node.output.to_python()}
        if node.kind not in _ON_INTS | _ON_OTHERS or node.operator is None:
            return {}
        inputs = [self._value(each) for each in node.inputs]
        if node.kind in _ON_INTS:
            is_read = all(type(each) is int for each in inputs)
        elif node.kind == "prim::GetAttr":
            is_read = isinstance(inputs[0], torch.nn.Module)
        else:
            is_read = all(type(each) in _PLAIN for each in inputs)
        if not is_read:
            return {}
        try:
            results: Any = node.operator.operation_of(node)(*inputs)
        except Exception:
            return {}  # the call raises it, if it executes the node
        return dict(zip(node.outputs, (results,) if len(node.outputs) == 1 else results, strict=True))

"""Min-cut rematerialization: select the residuals of minimum total cost, if cheap operators may be recomputed.

.. code-block:: text

    %g : Tensor = aten::mm(%x, %w)                read by the backward: %i, %t, %u
    %i : Tensor = aten::sigmoid(%g)               saved: %g
    %t : Tensor = aten::tanh(%g)                  recomputed from it, in the kernel that uses them: the others
    %u : Tensor = aten::mul(%i, %t)

This is a minimum cut. Each value is an edge whose capacity is the cost of saving it; a node that may be recomputed
connects its inputs to its outputs. Every path from a value that cannot be recomputed to a value that is read contains a
saved value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.graph import Node, Value

_INFINITE_CAPACITY: Final = 10**9


def min_cut_saved_values(
    read: Iterable[Value], may_run_again: Callable[[Node], bool], cost: Callable[[Value], int | None]
) -> set[Value]:
    """Return the tensors, and lists of them, to save, so that all values in ``read`` can be recomputed from them by
    nodes that ``may_run_again``. ``cost`` is a positive number; None for values that cannot be saved."""
    network = _FlowNetwork()
    pending = [value for value in read if may_contain_tensor(value.type)]
    for value in pending:
        network.add((value, True), _END, _INFINITE_CAPACITY)
    seen = set(pending)
    while pending:
        value = pending.pop()
        price = cost(value)
        network.add((value, False), (value, True), _INFINITE_CAPACITY if price is None else price)
        taken = [each for each in value.node.inputs if may_contain_tensor(each.type)]
        if not may_run_again(value.node) or not taken:
            network.add(_START, (value, False), _INFINITE_CAPACITY)
            continue
        for each in taken:
            network.add((each, True), (value, False), _INFINITE_CAPACITY)
            if each not in seen:
                seen.add(each)
                pending.append(each)
    reached = network.source_side_of_min_cut()
    return {value for value in seen if (value, False) in reached and (value, True) not in reached}


_FlowNode = tuple[Value | None, bool]
_START: Final[_FlowNode] = (None, False)
_END: Final[_FlowNode] = (None, True)


@dataclass(slots=True)
class _FlowNetwork:
    """The residual capacities of a flow network."""

    capacity: dict[_FlowNode, dict[_FlowNode, int]] = field(default_factory=dict)

    def add(self, source: _FlowNode, target: _FlowNode, width: int) -> None:
        self.capacity.setdefault(source, {})[target] = width
        self.capacity.setdefault(target, {}).setdefault(source, 0)

    def source_side_of_min_cut(self) -> set[_FlowNode]:
        """Return the source side of a minimum cut: the nodes that can be reached from the source in the residual
        network of a maximum flow. This object becomes that network."""
        while True:
            before = self._search()
            if _END not in before:
                return set(before)
            way = [_END]
            while way[-1] != _START:
                way.append(before[way[-1]])
            steps = [(b, a) for a, b in pairwise(way)]
            flow = min(self.capacity[a][b] for a, b in steps)
            for a, b in steps:
                self.capacity[a][b] -= flow
                self.capacity[b][a] += flow

    def _search(self) -> dict[_FlowNode, _FlowNode]:
        """Return the predecessor of each reachable node on a shortest path."""
        before = {_START: _START}
        pending = deque([_START])
        while pending:
            place = pending.popleft()
            for other, width in self.capacity.get(place, {}).items():
                if width > 0 and other not in before:
                    before[other] = place
                    pending.append(other)
        return before

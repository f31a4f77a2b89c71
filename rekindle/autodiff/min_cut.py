"""Which values are kept for the way back, where cheap operators may run again: those that cost least together.

.. code-block:: text

    %g : Tensor = aten::mm(%x, %w)                read by the way back: %i, %t, %u
    %i : Tensor = aten::sigmoid(%g)               kept: %g
    %t : Tensor = aten::tanh(%g)                  made again from it, in the kernel that uses them: the others
    %u : Tensor = aten::mul(%i, %t)

This is a smallest cut. Each value is an edge as wide as it costs to keep it; what makes a value again leads from the
values that it takes. Whatever flows from what cannot be made again to what is read has to pass something that is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rekindle.analysis.mutability import may_hold_tensor
from rekindle.ir.graph import Node, Value

_ENDLESS: Final = 10**9


def cheapest_to_keep(
    read: Iterable[Value], may_run_again: Callable[[Node], bool], cost: Callable[[Value], int | None]
) -> set[Value]:
    """The tensors, and lists of them, to keep so that all that are ``read`` can be made again from them, by nodes that
    ``may_run_again``. ``cost`` is a positive number; None for what cannot be kept."""
    network = _Network()
    pending = [value for value in read if may_hold_tensor(value.type)]
    for value in pending:
        network.add((value, True), _END, _ENDLESS)
    seen = set(pending)
    while pending:
        value = pending.pop()
        price = cost(value)
        network.add((value, False), (value, True), _ENDLESS if price is None else price)
        taken = [each for each in value.node.inputs if may_hold_tensor(each.type)]
        if not may_run_again(value.node) or not taken:
            network.add(_START, (value, False), _ENDLESS)
            continue
        for each in taken:
            network.add((each, True), (value, False), _ENDLESS)
            if each not in seen:
                seen.add(each)
                pending.append(each)
    reached = network.reached_after_flow()
    return {value for value in seen if (value, False) in reached and (value, True) not in reached}


_Place = tuple[Value | None, bool]
_START: Final[_Place] = (None, False)
_END: Final[_Place] = (None, True)


@dataclass(slots=True)
class _Network:
    """What can still flow from place to place."""

    room: dict[_Place, dict[_Place, int]] = field(default_factory=dict)

    def add(self, source: _Place, target: _Place, width: int) -> None:
        self.room.setdefault(source, {})[target] = width
        self.room.setdefault(target, {}).setdefault(source, 0)

    def reached_after_flow(self) -> set[_Place]:
        """The places that more could flow to from the start, once as much as possible flows to the end."""
        while True:
            before = self._search()
            if _END not in before:
                return set(before)
            way = [_END]
            while way[-1] != _START:
                way.append(before[way[-1]])
            steps = [(b, a) for a, b in pairwise(way)]
            flow = min(self.room[a][b] for a, b in steps)
            for a, b in steps:
                self.room[a][b] -= flow
                self.room[b][a] += flow

    def _search(self) -> dict[_Place, _Place]:
        """For each place that can be reached, the one before it on a shortest way."""
        before = {_START: _START}
        pending = deque([_START])
        while pending:
            place = pending.popleft()
            for other, width in self.room.get(place, {}).items():
                if width > 0 and other not in before:
                    before[other] = place
                    pending.append(other)
        return before

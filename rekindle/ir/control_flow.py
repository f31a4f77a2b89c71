"""Views of ``prim::If`` and ``prim::Loop``: names for their inputs, blocks and outputs.

.. code-block:: text

    %result : Tensor = prim::Loop(%trip_count, %condition, %initial)
      block0(%iteration : int, %parameter : Tensor):
        …
        -> (%next_condition, %following)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rekindle.ir.graph import Block, Node, Value

MAX_TRIP_COUNT: Final = (1 << 63) - 1
"""The trip count of a loop that its condition alone ends."""


class Carried(NamedTuple):
    """A loop-carried variable of a ``prim::Loop``, by its values before, in and after the loop."""

    initial: Value
    """Its value before the first iteration: an input of the node."""
    parameter: Value
    """Its value in an iteration: an input of the body."""
    following: Value
    """Its value for the next iteration: an output of the body."""
    result: Value
    """Its value after the loop: an output of the node."""


@dataclass(slots=True, frozen=True)
class LoopView:
    """Named access to the inputs, blocks and outputs of a ``prim::Loop`` in SSA form."""

    node: Node

    @property
    def trip_count(self) -> Value:
        """The maximum number of iterations."""
        return self.node.inputs[0]

    @property
    def condition(self) -> Value:
        """The bool that determines whether the first iteration runs."""
        return self.node.inputs[1]

    @property
    def initial(self) -> Sequence[Value]:
        """The values of the carried variables before the first iteration."""
        return self.node.inputs[2:]

    @property
    def body(self) -> Block:
        """The block of an iteration."""
        return self.node.blocks[0]

    @property
    def iteration(self) -> Value:
        """The number of the iteration, from 0 on, in the body."""
        return self.body.inputs[0]

    @property
    def parameters(self) -> Sequence[Value]:
        """The carried variables in the body."""
        return self.body.inputs[1:]

    @property
    def next_condition(self) -> Value:
        """The bool, computed in the body, that determines whether another iteration follows."""
        return self.body.outputs[0]

    @property
    def following(self) -> Sequence[Value]:
        """The values of the carried variables for the next iteration."""
        return self.body.outputs[1:]

    @property
    def carried(self) -> list[Carried]:
        """The carried variables."""
        parts = zip(self.initial, self.parameters, self.following, self.node.outputs, strict=True)
        return [Carried(*each) for each in parts]

    @property
    def is_endless(self) -> bool:
        """Whether only the condition ends the loop, as in a ``while`` loop."""
        limit = self.trip_count.node.attributes.get("value") if self.trip_count.node.kind == "prim::Constant" else None
        return isinstance(limit, int) and limit >= MAX_TRIP_COUNT

    @property
    def counts(self) -> bool:
        """Whether the number of iterations is limited, or the iteration number is used."""
        return not self.is_endless or self.iteration.has_uses

    @property
    def is_complete(self) -> bool:
        """Whether the loop is in SSA form already: it has an output for every carried variable."""
        return len(self.node.blocks) == 1 and len(self.node.inputs) == len(self.node.outputs) + 2


@dataclass(slots=True, frozen=True)
class IfView:
    """Named access to the inputs, blocks and outputs of a ``prim::If`` in SSA form."""

    node: Node

    @property
    def condition(self) -> Value:
        """The bool that selects the block."""
        return self.node.input

    @property
    def then(self) -> Block:
        """The block that runs if the condition holds."""
        return self.node.blocks[0]

    @property
    def otherwise(self) -> Block:
        """The block that runs if the condition does not hold."""
        return self.node.blocks[1]

    @property
    def merged(self) -> list[tuple[Value, Value, Value]]:
        """The outputs, each with its value in the first and in the second block."""
        return list(zip(self.node.outputs, self.then.outputs, self.otherwise.outputs, strict=True))


def loop_of_parameter(value: Value) -> Node | None:
    """Return the loop whose body has ``value`` as an input: the iteration number or a carried variable. None for other
    values."""
    block = value.node.owning_block if value.node.kind == "prim::Param" else None
    owner = None if block is None else block.owning_node
    return owner if owner is not None and owner.kind == "prim::Loop" else None


def incoming_values(value: Value) -> list[Value] | None:
    """Return the values that control flow may merge into ``value``: an output of a branch or a loop, or a loop-carried
    variable in the body. None for every other value, the iteration number included."""
    node = value.node
    if node.kind == "prim::If":
        return [block.outputs[value.offset] for block in node.blocks]
    loop = node if node.kind == "prim::Loop" else loop_of_parameter(value)
    if loop is None or (loop is not node and value.offset == 0):
        return None
    index = value.offset if loop is node else value.offset - 1
    view = LoopView(loop)
    return [view.initial[index], view.following[index]]

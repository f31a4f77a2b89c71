"""Determines which values of a program differ between the examples of a batch, given which inputs do.

A value differs where it is computed from one that does, or written to with one, or chosen by one. What is only asked
of a tensor's sizes and dtype is the same for all examples.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import CASTS, CONSTRUCTS, UNPACKS, is_nondeterministic, is_write, may_write
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.control_flow import LoopView, incoming_values
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TENSOR, has_free_variables
from rekindle.transforms.vmap.batched_scalars import is_number
from rekindle.transforms.vmap.batching_rule import rule_of
from rekindle.transforms.vmap.rules.metadata import UNCHANGED

_STRUCTURAL: Final = CONSTRUCTS | UNPACKS | CASTS | {"prim::Uninitialized"}


def is_structural(node: Node) -> bool:
    """Return whether ``node`` forwards the contents of containers without reading them."""
    if node.kind in _STRUCTURAL:
        return True
    operator = node.operator
    if operator is None or Trait.INSPECTS_ELEMENTS in operator.traits or node.kind in UNCHANGED or node.blocks:
        return False
    return any(has_free_variables(argument.type) for argument in operator.schema.arguments)


def written_by(node: Node) -> list[Value]:
    """Return the inputs that ``node`` is declared to write to."""
    schema = node.schema
    if schema is None:
        return []
    return [value for value, argument in zip(node.inputs, schema.arguments, strict=False) if is_write(argument.alias)]


def may_be_uninitialized(value: Value) -> bool:
    """Return whether ``value`` is a variable that some paths through branches and loops do not assign."""
    pending, seen = [value], {value}
    while pending:
        made = pending.pop()
        node = made.node
        if node.kind == "prim::Uninitialized":
            return True
        for source in incoming_values(made) or ():
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return False


def is_data_dependent(node: Node) -> bool:
    """Return whether results of ``node`` other than tensors may depend on the elements of its tensors."""
    if node.kind in UNCHANGED or is_structural(node):
        return False
    rule = rule_of(node)
    if rule is None:
        return True
    return rule.takes_numbers or node.has_trait(Trait.DATA_DEPENDENT)


@dataclass(slots=True)
class BatchednessAnalysis:
    """An analysis of which values of ``graph`` differ between examples. If ``is_random``, random numbers differ."""

    graph: Graph
    is_random: bool
    batched: set[Value] = field(default_factory=set)
    written: set[Value] = field(default_factory=set)
    """Values that have to have memory of their own for each example: something that differs is written there."""
    _aliases: AliasDb | None = None

    def run(self, inputs: Collection[Value]) -> None:
        """Find all values that differ between examples, if ``inputs`` do."""
        self.batched.update(inputs)
        before = -1
        while before != len(self.batched) + len(self.written):
            before = len(self.batched) + len(self.written)
            self._block(self.graph.block)

    def _add(self, value: Value) -> None:
        if may_contain_tensor(value.type) or is_number(value.type):
            self.batched.add(value)

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            if node.kind == "prim::If":
                self._if(node)
            elif node.kind == "prim::Loop":
                self._loop(node)
            elif node.kind != "prim::Constant":
                self._node(node)

    def _if(self, node: Node) -> None:
        for block in node.blocks:
            self._block(block)
        differs = node.input in self.batched
        for index, output in enumerate(node.outputs):
            if differs or any(block.outputs[index] in self.batched for block in node.blocks):
                self._add(output)
            if output in self.batched and not is_number(output.type):
                self._pull(output, [block.outputs[index] for block in node.blocks])

    def _loop(self, node: Node) -> None:
        view = LoopView(node)
        differs = is_for_each(node, self.batched)
        for start, inside, following, output in view.carried:
            if differs or start in self.batched or inside in self.batched or following in self.batched:
                for value in (output, inside):
                    self._add(value)
            if inside in self.batched and not is_number(inside.type):
                self._pull(inside, [start, following])
        self._block(view.body)

    def _pull(self, value: Value, sources: Collection[Value]) -> None:
        """Mark ``sources`` as batched if ``value`` is a container: it may be the same object as each of them."""
        if value.type != TENSOR and may_contain_tensor(value.type):
            for source in sources:
                self._add(source)

    def _node(self, node: Node) -> None:
        differs = any(value in self.batched for value in node.used_values())
        differs = differs or (self.is_random and is_nondeterministic(node) and rule_of(node) is not None)
        if not differs:
            return
        for output in node.outputs:
            if may_contain_tensor(output.type) or is_data_dependent(node):
                self._add(output)
        if may_write(node):
            self._write(node)

    @property
    def aliases(self) -> AliasDb:
        if self._aliases is None:
            self._aliases = AliasDb(self.graph)
        return self._aliases

    def is_written_view(self, node: Node) -> bool:
        """Return whether a result of ``node`` may be a view of an operand whose memory the program writes to."""
        made = {value for block in node.blocks for value in block.all_values()}
        used = [value for value in node.used_values() if value not in made and may_contain_tensor(value.type)]
        return any(
            may_contain_tensor(output.type)
            and self.aliases.has_writers(output)
            and self.aliases.may_contain_alias(output, used)
            for output in node.outputs
        )

    def _write(self, node: Node) -> None:
        for value in self.graph.block.all_values():
            if may_contain_tensor(value.type) and self.aliases.writes_to_alias(node, [value]):
                if value not in self.batched:
                    self.written.add(value)
                self.batched.add(value)


def is_for_each(node: Node, batched: Collection[Value]) -> bool:
    """Return whether the examples may leave loop ``node`` at different times."""
    view = LoopView(node)
    return any(value in batched for value in (view.trip_count, view.condition, view.next_condition))

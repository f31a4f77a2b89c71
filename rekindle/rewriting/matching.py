"""Pattern matching: find occurrences of a pattern in a graph, and explain mismatches.

Matching proceeds from the results of a pattern to its inputs. A pattern's input matches any value of its type, and a
constant an equal constant. Any other node matches one of the same kind, overload and attributes whose inputs match.
Commutative operators are tried in both orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import torch

from rekindle.analysis.constants import attribute_key, constant_key, is_constant, value_of
from rekindle.ir.constants import are_equal_tensors
from rekindle.ir.graph import AttributeValue, Graph, Node, Value
from rekindle.ir.types import Type
from rekindle.rewriting.pattern import Pattern, commutes

_MISSING: Final = object()

Pairs: TypeAlias = list[tuple[Value, Value]]
"""Values of a pattern, each with the value of the program that it must match."""


@dataclass(slots=True, eq=False)
class Match:
    """An occurrence of a pattern: the node or value that each of its parts matches."""

    pattern: Pattern
    values: dict[Value, Value] = field(default_factory=dict)
    nodes: dict[Node, Node] = field(default_factory=dict)
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    """Captured attributes, by name: the pattern spells such an attribute ``"$name"``."""

    @property
    def node(self) -> Node:
        """The node that computes the first result."""
        return self.nodes[self.pattern.roots[0].node]

    @property
    def graph(self) -> Graph:
        return self.node.graph

    def __getitem__(self, name: str) -> Value:
        """Return the value that matches the parameter ``name`` of the pattern."""
        return self.values[self.pattern.inputs[name]]

    def type(self, name: str) -> Type:
        """Return the type of the value that matches the parameter ``name``, with the dtype and shape known in the
        program."""
        return self[name].type

    def is_constant(self, name: str) -> bool:
        return is_constant(self[name])

    def constant(self, name: str, default: object = None) -> object:
        """Return the Python value of the constant that matches the parameter ``name``; ``default`` if it is not a
        constant."""
        value = self[name]
        return value_of(value.node) if is_constant(value) else default

    def copy(self) -> Match:
        return Match(self.pattern, dict(self.values), dict(self.nodes), dict(self.attributes))

    @property
    def roots(self) -> list[Value]:
        """The values of the program that match the results of the pattern."""
        return [self.values[root] for root in self.pattern.roots]


@dataclass(slots=True, frozen=True)
class PatternMismatch:
    """The first difference between a pattern and a program: ``wanted`` in the pattern, ``found`` in the program.
    ``reached`` is the number of nodes that matched."""

    reached: int
    wanted: Node | Value | None
    found: Node | Value | None
    why: str


class Matcher:
    """Search for one pattern. ``closest`` is the mismatch of the best partial match so far; None if there is none. A
    node of another kind than that of the pattern's first result begins no partial match."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.closest: PatternMismatch | None = None

    def matches_at(self, node: Node) -> Iterator[Match]:
        """Yield the matches in which ``node`` computes the first result of the pattern."""
        root = self.pattern.roots[0]
        if node.kind != root.node.kind or len(node.outputs) != len(root.node.outputs):
            return
        pairs = [(root, node.outputs[root.offset])]
        yield from self._rest_of_roots(Match(self.pattern), pairs, 1)

    def _rest_of_roots(self, match: Match, pairs: Pairs, index: int) -> Iterator[Match]:
        """Yield the matches that satisfy ``pairs``, and in which the results from ``index`` on match too."""
        for found in self._solve(match, pairs):
            if index == len(self.pattern.roots):
                yield found
                continue
            root = self.pattern.roots[index]
            if root in found.values:
                yield from self._rest_of_roots(found, [], index + 1)
                continue
            known = found.nodes.get(root.node)
            candidates = [known] if known is not None else self._candidates(found, root)
            for candidate in candidates:
                yield from self._rest_of_roots(found.copy(), [(root, candidate.outputs[root.offset])], index + 1)

    def _candidates(self, match: Match, root: Value) -> list[Node]:
        """Return the nodes that may produce a further result: of the right kind, in the same block, and not matched
        yet."""
        block = match.node.owning_block
        taken = set(match.nodes.values())
        assert block is not None
        return [
            node
            for node in block.nodes
            if node.kind == root.node.kind and node not in taken and len(node.outputs) == len(root.node.outputs)
        ]

    def _solve(self, match: Match, pairs: Pairs) -> Iterator[Match]:
        """Yield the extensions of ``match`` in which each value of the pattern in ``pairs`` matches its value of the
        program. ``match`` itself is extended, also without success, up to the first node whose operands commute."""
        pairs = list(pairs)
        while pairs:
            wanted, found = pairs.pop()
            orders = self._fit(match, wanted, found)
            if orders is None:
                return
            if len(orders) > 1:
                for order in orders:
                    yield from self._solve(match.copy(), [*pairs, *order])
                return
            pairs.extend(orders[0])
        yield match

    def _fit(self, match: Match, wanted: Value, found: Value) -> list[Pairs] | None:
        """Match ``wanted`` of the pattern with ``found`` of the program, and record them in ``match``. Return the pairs
        of operands that must match then, one list for each order of commutative operands; None if the two do not
        match."""
        known = None if wanted.node.kind == "prim::Constant" else match.values.get(wanted)
        if known is not None:
            if known is found or _same_constant(known, found):
                return [[]]
            return self._fail(
                match, wanted, found, f"another value (%{found.name}) where %{known.name} is expected again"
            )
        node = wanted.node
        if node.kind == "prim::Param":
            if not found.type.is_subtype_of(wanted.type):
                return self._fail(match, wanted, found, f"a {found.type} where '{wanted.base_name}' is a {wanted.type}")
            match.values[wanted] = found
            return [[]]
        if node.kind == "prim::Constant":
            if not _same_constant(wanted, found):
                return self._fail(match, wanted, found, f"{_describe(found)} where {_describe(wanted)} is expected")
            match.values[wanted] = found
            return [[]]
        return self._fit_node(match, wanted, found)

    def _fit_node(self, match: Match, wanted: Value, found: Value) -> list[Pairs] | None:
        pattern_node, node = wanted.node, found.node
        why = _difference(pattern_node, node)
        if why is None and wanted.offset != found.offset:
            why = f"result {found.offset} of {node.kind} where result {wanted.offset} is expected"
        if why is not None:
            return self._fail(match, wanted, found, why)
        known = match.nodes.get(pattern_node)
        if known is not None and known is not node:
            return self._fail(match, wanted, found, f"another {node.kind} than the one that gives the other results")
        attributes = _captured(pattern_node, node, match.attributes)
        if isinstance(attributes, str):
            return self._fail(match, wanted, found, attributes)
        match.attributes.update(attributes)
        match.values[wanted] = found
        if known is not None:
            return [[]]
        match.nodes[pattern_node] = node
        # The last pair is matched first: reverse the inputs, so that differences are reported from left to right.
        pairs = list(zip(pattern_node.inputs, node.inputs, strict=True))[::-1]
        if not commutes(pattern_node) or not commutes(node):
            return [pairs]
        (left, right), (first, second) = pattern_node.inputs[:2], node.inputs[:2]
        swapped = [*pairs[:-2], (right, first), (left, second)]
        return [pairs, swapped]

    def _fail(self, match: Match, wanted: Value, found: Value, why: str) -> list[Pairs] | None:
        """Record the mismatch in ``closest``, if more nodes matched than for the earlier one; return None."""
        reached = len(match.nodes)
        if self.closest is None or reached > self.closest.reached:
            self.closest = PatternMismatch(reached, *_reported_sites(match, wanted, found), why)
        return None


def _reported_sites(match: Match, wanted: Value, found: Value) -> tuple[Node | Value, Node | Value]:
    """Return the nodes or values at which a difference is reported. Equal constants are pooled at the start of the
    graph: report their user instead."""
    if wanted.node.kind == "prim::Constant":
        for user, offset in wanted.uses:
            node = match.nodes.get(user)
            if node is not None and node.inputs[offset] is found:
                return user, node
    return wanted, found


def _difference(wanted: Node, found: Node) -> str | None:
    """Describe the difference between a node of a program and that of a pattern in kind, overload, or number of inputs
    or outputs, or that the node has blocks. Return None if there is none."""
    if found.kind != wanted.kind:
        return f"{_kind(found)} where {wanted.kind} is expected"
    if len(found.inputs) != len(wanted.inputs):
        return f"{found.kind} with {len(found.inputs)} inputs where {len(wanted.inputs)} are expected"
    if len(found.outputs) != len(wanted.outputs):
        return f"{found.kind} with {len(found.outputs)} results where {len(wanted.outputs)} are expected"
    ours, theirs = wanted.operator, found.operator
    if ours is not None and theirs is not None and ours.schema.qualified_name != theirs.schema.qualified_name:
        return f"{theirs.schema.qualified_name} where {ours.schema.qualified_name} is expected"
    if found.blocks:
        return f"a {found.kind} with blocks"
    return None


def _kind(node: Node) -> str:
    return {"prim::Param": "a parameter", "prim::Constant": "a constant"}.get(node.kind, node.kind)


def _captured(wanted: Node, found: Node, known: dict[str, AttributeValue]) -> dict[str, AttributeValue] | str:
    """Return the attributes of ``found`` that the pattern captures, by the captured name; a description of the mismatch
    if other attributes differ, or a captured one differs from that in ``known``."""
    captured: dict[str, AttributeValue] = {}
    if wanted.attributes.keys() != found.attributes.keys():
        ours, theirs = sorted(wanted.attributes), sorted(found.attributes)
        return f"{found.kind} with the attributes {theirs} where {ours} are expected"
    for name, value in wanted.attributes.items():
        actual = found.attributes[name]
        if isinstance(value, str) and value.startswith("$"):
            before = {**known, **captured}.get(value[1:], _MISSING)
            if before is not _MISSING and attribute_key(before) != attribute_key(actual):  # type: ignore[arg-type]
                return f"{name}={actual!r} where {before!r} is expected again"
            captured[value[1:]] = actual
        elif attribute_key(value) != attribute_key(actual):
            return f"{found.kind}[{name}={actual!r}] where {value!r} is expected"
    return captured


def _same_constant(a: Value, b: Value) -> bool:
    if not is_constant(a) or not is_constant(b):
        return False
    if a.type.kind == "TensorType" and b.type.kind == "TensorType":
        left, right = value_of(a.node), value_of(b.node)
        assert isinstance(left, torch.Tensor)
        assert isinstance(right, torch.Tensor)
        return are_equal_tensors(left, right)
    return constant_key(a.node) == constant_key(b.node)


def _describe(value: Value) -> str:
    """Return a description of a value for messages: constants by their value."""
    if is_constant(value):
        found = value_of(value.node)
        return "a constant tensor" if isinstance(found, torch.Tensor) else repr(found)
    return f"%{value.name} (no constant)"

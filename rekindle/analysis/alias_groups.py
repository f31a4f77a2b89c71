"""Which values may share memory, told coarsely: values are put into groups, and only values of one group may alias.

A container and what it holds are one group, whatever a function gets from outside is one, and the order of nodes does
not count. So the answers are on the safe side: values of different groups never alias.
"""

from __future__ import annotations

from functools import cache

import torch

from rekindle.analysis.effects import CONTROL_FLOW, FRESH, PASSES_ON, is_conservative, is_immutable, is_write
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.registry import Effects, Operator
from rekindle.ir.schema import AliasInfo
from rekindle.ir.types import TensorType


class _Group:
    """A set of values, merged by union-find."""

    __slots__ = ("outlives", "parent")

    def __init__(self) -> None:
        self.parent: _Group | None = None
        self.outlives = False
        """Whether something in it is known outside of the call: an input, a constant, the attribute of a module."""

    def root(self) -> _Group:
        found = self
        while found.parent is not None:
            if found.parent.parent is not None:
                found.parent = found.parent.parent
            found = found.parent
        return found


class AliasGroups:
    """The groups of the values of a graph, and which group each node writes to."""

    def __init__(self, graph: Graph) -> None:
        self._groups: dict[Value, _Group] = {}
        self._outside = _Group()
        self._outside.outlives = True
        self._written: dict[Node, list[Value]] = {}
        for value in graph.inputs:
            self._join_outside(value)
        self._visit(graph.block)

    # ---------------------------------------------------------------------------------------------------------- answers

    def group(self, value: Value) -> object | None:
        """What stands for the group of ``value``; None where its type cannot be written to."""
        if is_immutable(value.type):
            return None
        return self._group(value).root()

    def written_groups(self, node: Node) -> list[object]:
        """The groups that ``node`` itself (not the nodes in its blocks) writes to."""
        return [self._group(value).root() for value in self._written.get(node, ())]

    def outlives_call(self, group: object) -> bool:
        """Whether something in ``group`` may be known outside of the call, or in the next one."""
        assert isinstance(group, _Group)
        return group.outlives

    def is_outside(self, value: Value) -> bool:
        """Whether ``value`` may alias an input, or something that a call has got hold of."""
        return self.group(value) is self._outside.root()

    def all_written_groups(self) -> set[object]:
        """The groups that some node writes to."""
        return {self._group(value).root() for values in self._written.values() for value in values}

    # --------------------------------------------------------------------------------------------------------- grouping

    def _visit(self, block: Block) -> None:
        for node in block.nodes:
            for inner in node.blocks:
                self._visit(inner)
            self._visit_node(node)

    def _visit_node(self, node: Node) -> None:
        kind = node.kind
        if kind == "prim::Constant":
            for value in self._mutable(node.outputs):
                self._group(value).root().outlives = True
        elif kind == "prim::If":
            for index, output in enumerate(node.outputs):
                self._join([output, *(block.outputs[index] for block in node.blocks)])
        elif kind == "prim::Loop":
            self._visit_loop(node)
        elif kind == "prim::SetAttr":
            self._join(node.inputs)
            self._written[node] = [node.inputs[0]]
        elif kind in PASSES_ON:
            self._join([*node.inputs, *node.outputs])
        elif kind in FRESH or kind in CONTROL_FLOW:
            pass
        elif is_conservative(node) or node.blocks:
            for value in (*node.inputs, *node.outputs):
                self._join_outside(value)
            self._written[node] = self._mutable(node.inputs)
        else:
            operator = node.operator
            assert operator is not None
            self._visit_operator(node, operator)

    def _visit_loop(self, node: Node) -> None:
        body = node.blocks[0]
        if len(node.blocks) != 1 or len(node.inputs) != len(node.outputs) + 2:
            # A loop that is not in SSA form yet.
            for value in (*node.inputs, *node.outputs, *body.inputs, *body.outputs):
                self._join_outside(value)
            return
        for index, output in enumerate(node.outputs):
            self._join([output, node.inputs[index + 2], body.inputs[index + 1], body.outputs[index + 1]])

    def _visit_operator(self, node: Node, operator: Operator) -> None:
        schema = operator.schema
        if operator.effects is Effects.PURE:
            return
        infos: list[tuple[Value, AliasInfo | None]] = [
            *_zip_infos(node.inputs, [argument.alias for argument in schema.arguments]),
            *_zip_infos(node.outputs, [result.alias for result in schema.returns]),
        ]
        if any(info is not None and _is_wildcard(info) for _, info in infos):
            self._join([*node.inputs, *node.outputs])
        by_set: dict[str, list[Value]] = {}
        for value, info in infos:
            for name in _set_names(info):
                by_set.setdefault(name, []).append(value)
        for members in by_set.values():
            self._join(members)
        holds = any(not isinstance(value.type, TensorType) for value in self._mutable(node.inputs))
        for output, info in _zip_infos(node.outputs, [result.alias for result in schema.returns]):
            if not isinstance(output.type, TensorType) or (info is None and _may_pass_on(operator, holds)):
                # A new list may hold the elements of an old one.
                self._join([output, *node.inputs])
        written = [v for v, info in _zip_infos(node.inputs, [a.alias for a in schema.arguments]) if is_write(info)]
        if written:
            self._written[node] = self._mutable(written)

    def _mutable(self, values: object) -> list[Value]:
        return [value for value in values if not is_immutable(value.type)]  # type: ignore[attr-defined]

    def _group(self, value: Value) -> _Group:
        found = self._groups.get(value)
        if found is None:
            found = self._groups[value] = _Group()
        return found

    def _join(self, values: object) -> None:
        members = self._mutable(values)
        for other in members[1:]:
            self._merge(self._group(members[0]), self._group(other))

    def _join_outside(self, value: Value) -> None:
        if not is_immutable(value.type):
            self._merge(self._outside, self._group(value))

    @staticmethod
    def _merge(a: _Group, b: _Group) -> None:
        a, b = a.root(), b.root()
        if a is not b:
            b.parent = a
            a.outlives = a.outlives or b.outlives


def _zip_infos(values: object, infos: list[AliasInfo | None]) -> list[tuple[Value, AliasInfo | None]]:
    found = list(values)  # type: ignore[call-overload]
    return list(zip(found, [*infos, *[None] * len(found)], strict=False))


def _is_wildcard(info: AliasInfo) -> bool:
    return info.is_wildcard or any(_is_wildcard(part) for part in info.contained)


def _set_names(info: AliasInfo | None) -> set[str]:
    if info is None:
        return set()
    return {*info.before, *info.after, *(name for part in info.contained for name in _set_names(part))}


def _may_pass_on(operator: Operator, holds: bool) -> bool:
    """Whether a tensor that an operator returns may be one of its inputs, though its schema does not tell.

    ``holds`` says that it may also be in an input: a list, a future.
    """
    name = operator.schema.qualified_name
    return _is_composite(name) if name in _dispatcher_names() else holds


@cache
def _is_composite(qualified_name: str) -> bool:
    """Whether the dispatcher runs the operator as a composition of others, whose schema need not tell all aliases."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(qualified_name, "CompositeImplicitAutograd"))


@cache
def _dispatcher_names() -> frozenset[str]:
    return frozenset(torch._C._dispatch_get_all_op_names())

"""Alias analysis of the lists in a native region: which may be the same list, and which the region creates itself. The
elements of the latter are always in the region's memory, and are not written back.

Code for other lists, which represent Python objects, must be able to read elements from these objects. The analysis
unifies the lists that one value may be, as Steensgaard's does for pointers. It ignores the order of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rekindle.codegen.native.native_types import native_type_of
from rekindle.codegen.native.writer import raises
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value

_FRESH: Final = frozenset({"prim::ListConstruct", "aten::mul", "aten::list", "aten::copy"})
"""Kinds that return a new list."""
_READS: Final = frozenset({"aten::__getitem__", "aten::select", "aten::pop"})
"""Kinds that return an element."""
_WRITES: Final = frozenset({"aten::_set_item", "aten::append"})
"""Kinds whose last input becomes an element of the first, which they return."""


class ListClasses:
    """The alias classes of the lists in a region."""

    def __init__(self, graph: Graph) -> None:
        self._analysis = _Analysis()
        for value in graph.inputs:
            if _is_list(value):
                self._analysis.mark_foreign(value)
        for node in graph.all_nodes():
            self._analysis.visit(node)

    def is_own(self, value: Value) -> bool:
        """Return whether the region itself creates the list, on every path."""
        found = self._analysis.lists.get(value)
        return found is not None and not found.root().is_foreign

    def may_be_same(self, a: Value, b: Value) -> bool:
        """Return whether two values may be one list."""
        return self._analysis.of(a) is self._analysis.of(b)


class _Lists:
    """An alias class: lists that may be one object, and the alias class of their elements that are lists."""

    __slots__ = ("elements", "is_foreign", "same")

    def __init__(self) -> None:
        self.same: _Lists | None = None
        self.elements: _Lists | None = None
        self.is_foreign = False

    def root(self) -> _Lists:
        found = self
        while found.same is not None:
            found = found.same
        return found


class _Analysis:
    def __init__(self) -> None:
        self.lists: dict[Value, _Lists] = {}

    def of(self, value: Value) -> _Lists:
        return self.lists.setdefault(value, _Lists()).root()

    def elements(self, lists: _Lists) -> _Lists:
        root = lists.root()
        if root.elements is None:
            root.elements = _Lists()
            root.elements.is_foreign = root.is_foreign
        return root.elements.root()

    def unify(self, a: _Lists, b: _Lists) -> None:
        a, b = a.root(), b.root()
        if a is b:
            return
        b.same = a
        for one, other in ((a, b), (b, a)):
            if other.is_foreign and not one.is_foreign:
                self._make_foreign(one)
        if a.elements is None:
            a.elements = b.elements
        elif b.elements is not None:
            self.unify(a.elements, b.elements)

    def mark_foreign(self, value: Value) -> None:
        self._make_foreign(self.of(value))

    def _make_foreign(self, lists: _Lists) -> None:
        lists.is_foreign = True
        if lists.elements is not None and not lists.elements.root().is_foreign:
            self._make_foreign(lists.elements.root())

    def visit(self, node: Node) -> None:
        """Unify the alias classes of values that ``node`` may make one list, and mark lists as foreign if ``node`` is
        of an unknown kind."""
        if node.kind in ("prim::If", "prim::Loop"):
            for value, target in _flows(node):
                if _is_list(target):
                    self.unify(self.of(value), self.of(target))
            return
        lists = [value for value in (*node.inputs, *node.outputs) if _is_list(value)]
        if node.kind in _FRESH:
            for value in lists[:-1]:
                inner = self.of(value) if node.kind == "prim::ListConstruct" else self.elements(self.of(value))
                self.unify(self.elements(self.of(node.output)), inner)
        elif node.kind in _READS:
            if lists and _is_list(node.output):
                self.unify(self.of(node.output), self.elements(self.of(node.inputs[0])))
        elif node.kind in _WRITES:
            owner, item = node.inputs[0], node.inputs[-1]
            if _is_list(item):
                self.unify(self.elements(self.of(owner)), self.of(item))
            for output in node.outputs:
                self.unify(self.of(owner), self.of(output))
        elif node.kind not in ("aten::len", "prim::Uninitialized", "prim::Constant"):
            self._give_up(lists)

    def _give_up(self, lists: Iterable[Value]) -> None:
        for value in lists:
            self.mark_foreign(value)


def _flows(node: Node) -> Iterator[tuple[Value, Value]]:
    """Yield pairs of values that may be the same object: a value, and what it becomes after ``node``, an ``if`` or a
    loop, or in the iterations of the loop. Branches that raise yield none."""
    if node.kind == "prim::If":
        for block in node.blocks:
            if not raises(block):
                yield from zip(block.outputs, node.outputs, strict=True)
        return
    for variable in LoopView(node).carried:
        for value in (variable.initial, variable.following, variable.result):
            yield value, variable.parameter


def _is_list(value: Value) -> bool:
    kind = native_type_of(value.type)
    return kind is not None and kind.is_list

"""Points-to graph: elements and what they may point to, queried by
:class:`~rekindle.analysis.aliasing.alias_db.AliasDb`.

An element stands for a value, or for a set of objects without a value: the contents of a list, the wildcard set. An
element that is *fresh* has a memory location of its own; every element may be what it *points to*. So the locations of
an element are those of all elements reachable from it::

    c = torch.neg(a)             c: fresh
    r = a[0] if t else c         r -> a, r -> c          a -> what callers pass
    l = [c]                      l: fresh; its items -> c
    y = l[0]                     y -> the items of l

Elements that may be one object share a *cell*, which holds their parts: what is stored into a list through one alias is
found through the others. ``is_wildcard`` marks the cell of an object that has escaped: what is read from it may be
anything in the wildcard set, and what is stored into it escapes.

Sets of locations are ints used as bit sets. They are computed once for each element, for all elements of a cycle
together, and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from rekindle.analysis.mutability import ANY_ALIAS_CLASS, AliasClass, Key, MemoryTraits, traits_of
from rekindle.ir.types import ANY, TensorType, Type

MemoryLocations: TypeAlias = int
"""A set of memory locations, one bit each: ``a & b`` is the intersection of two sets, ``a | b`` the union."""


class ContainerContents:
    """A cell: the parts of a container. Elements that may be one object share a cell: cells are merged by
    union-find."""

    __slots__ = ("is_wildcard", "parent", "parts")

    def __init__(self) -> None:
        self.parent: ContainerContents | None = None
        self.parts: dict[Key, tuple[Element, Type]] = {}
        self.is_wildcard = False

    def root(self) -> ContainerContents:
        found = self
        while found.parent is not None:
            if found.parent.parent is not None:
                found.parent = found.parent.parent
            found = found.parent
        return found


class Element:
    """A node of the points-to graph: one or more values that may alias others. ``cell`` has its parts; it is None if no
    part can be written to, as in a tensor or a list of ints."""

    __slots__ = ("bit", "cell", "holds", "is_fresh", "points_to")

    def __init__(self, is_fresh: bool, holds: tuple[Type, ...]) -> None:
        self.is_fresh = is_fresh
        self.holds = holds
        self.points_to: dict[Element, None] = {}
        self.cell = ContainerContents() if holds else None
        self.bit: MemoryLocations = 0


class WildcardSet:
    """The wildcard set of one family of types: objects that code outside of the graph may access."""

    __slots__ = ("input", "read")

    def __init__(self, input: Element, read: Element) -> None:
        self.input = input
        """Memory that a caller may pass: from before the call, and constants."""
        self.read = read
        """What a read of an escaped object may return: anything that was outside already, and anything that has
        escaped."""


class AliasTracker:
    """The points-to graph: all elements of an analysis, and what each may point to."""

    def __init__(self) -> None:
        self.changes = 0
        """Number of additions that may invalidate cached results."""
        self._bits = 0
        self._memory: dict[Element, MemoryLocations] = {}
        self._reachable: dict[Element, MemoryLocations] = {}
        self._traits: dict[Type, MemoryTraits] = {}
        self._worlds: dict[AliasClass, WildcardSet] = {}
        self._gone = Element(False, ())
        """Points to all elements that escape."""
        self._gone_as_anything: Element | None = None
        """Points to escaping elements of an unknown family of types: any read from outside may return them."""
        self._everything = self.world(ANY)

    # --------------------------------------------------------------------------------------------------------- building

    def traits(self, type: Type) -> MemoryTraits:
        found = self._traits.get(type)
        if found is None:
            found = self._traits[type] = traits_of(type)
            for part in found.holds:
                self.world(part)
        return found

    def fresh(self, type: Type) -> Element:
        """Return an element for something new of this type."""
        if isinstance(type, TensorType):
            return Element(True, ())
        traits = self.traits(type)
        return Element(traits.has_memory, traits.holds)

    def blank(self, type: Type) -> Element:
        """Return an element without memory of its own, which gets its targets later."""
        return Element(False, self.traits(type).holds)

    def between(self, type: Type, targets: Iterable[Element]) -> Element:
        """Return an element that is one of ``targets``: the only one itself, else a new one that points to all."""
        found = list(dict.fromkeys(targets))
        if len(found) == 1:
            return found[0]
        element = self.blank(type)
        for target in found:
            self.point(element, target)
        return element

    def point(self, source: Element, target: Element) -> None:
        """Add a points-to edge: ``source`` may be ``target``."""
        if self._add_edge(source, target):
            self._share_cells([(source, target)])

    def part(self, element: Element, key: Key, type: Type) -> Element:
        """Return the element found in ``element`` under ``key``, of the given type: what a read of the wildcard set may
        return, if ``element`` is in it or has no cell."""
        if element.cell is None:
            return self.world(type).read
        cell = element.cell.root()
        if cell.is_wildcard:
            return self.world(type).read
        known = cell.parts.get(key)
        if known is None:
            self._forget_reachable()
            known = cell.parts[key] = (self.blank(type), type)
        elif known[1] is not type and self.traits(known[1]).family != self.traits(type).family:
            # Read as what it was not stored as: they are one thing all the same.
            other = self.blank(type)
            self.point(other, known[0])
            self.point(known[0], other)
            return other
        return known[0]

    def store(self, element: Element, key: Key, content: Element, type: Type) -> None:
        """Record that the container ``element`` may hold ``content``, of the given type, under ``key``. If ``element``
        is in the wildcard set or has no cell, ``content`` escapes."""
        if element.cell is None or element.cell.root().is_wildcard:
            self.escape(content, type)
        else:
            self.point(self.part(element, key, type), content)

    def escape(self, element: Element, type: Type) -> None:
        """Let ``element`` escape: add it to the wildcard set."""
        self._add_edge(self._gone, element)
        self._share_cells(self._add_to_wildcard(element, type))

    def world(self, type: Type) -> WildcardSet:
        """Return the wildcard set of the objects that may share memory with ``type``."""
        traits = self.traits(type)
        found = self._worlds.get(traits.family)
        return self._make_world(traits) if found is None else found

    def _make_world(self, traits: MemoryTraits) -> WildcardSet:
        memory, passed, read = (Element(fresh, traits.holds) for fresh in (traits.has_memory, False, False))
        if memory.cell is not None:
            memory.cell.is_wildcard = True
        world = self._worlds[traits.family] = WildcardSet(passed, read)
        self.point(passed, memory)
        self.point(read, passed)
        if self._gone_as_anything is not None:
            self.point(read, self._gone_as_anything)
        wide = self._worlds.get(ANY_ALIAS_CLASS)
        if wide is not None and wide is not world:
            self.point(wide.input, passed)
            self.point(wide.read, read)
        return world

    # ------------------------------------------------------------------------------------------------------------ cells

    def _share_cells(self, pairs: list[tuple[Element, Element]]) -> None:
        """Unify the parts of each pair of elements, which may be one object."""
        while pairs:
            a, b = pairs.pop()
            if a.cell is None or b.cell is None:
                continue
            mine, theirs = a.cell.root(), b.cell.root()
            if mine is theirs:
                continue
            self._forget_reachable()
            if len(mine.parts) < len(theirs.parts):
                mine, theirs = theirs, mine
            theirs.parent = mine
            moved, theirs.parts = theirs.parts, {}
            if mine.is_wildcard or theirs.is_wildcard:
                exposed = [*mine.parts.values(), *moved.values()]
                mine.is_wildcard, mine.parts = True, {}
                for element, type in exposed:
                    pairs += self._add_to_wildcard(element, type)
                    pairs += self._edge(element, self.world(type).read)
            else:
                for key, (element, type) in moved.items():
                    known, _ = mine.parts.setdefault(key, (element, type))
                    if known is not element:
                        pairs += self._edge(known, element) + self._edge(element, known)

    def _add_to_wildcard(self, element: Element, type: Type) -> list[tuple[Element, Element]]:
        """Add ``element`` to the elements that a read through a wildcard may return. Return the pairs that have yet to
        share cells."""
        world = self.world(type)
        if world is not self._everything:
            return self._edge(world.read, element)
        hub = self._gone_as_anything
        pairs: list[tuple[Element, Element]] = []
        if hub is None:
            hub = self._gone_as_anything = Element(False, (ANY,))
            for other in self._worlds.values():
                pairs += self._edge(other.read, hub)
        return pairs + self._edge(hub, element)

    def _edge(self, source: Element, target: Element) -> list[tuple[Element, Element]]:
        return [(source, target)] if self._add_edge(source, target) else []

    def _add_edge(self, source: Element, target: Element) -> bool:
        """Add an edge; return whether it is new."""
        if source is target or target in source.points_to:
            return False
        if source in self._memory:
            self._memory.clear()
        self._forget_reachable()
        source.points_to[target] = None
        return True

    def _forget_reachable(self) -> None:
        self.changes += 1
        self._reachable.clear()

    # ---------------------------------------------------------------------------------------------------------- answers

    def memory(self, element: Element) -> MemoryLocations:
        """Return the locations that ``element`` may be."""
        found = self._memory.get(element)
        if found is None:
            if not element.points_to:
                found = self._memory[element] = self._bit(element)
            else:
                found = self._solve(element, self._memory, _targets)
        return found

    def reachable(self, element: Element) -> MemoryLocations:
        """Return the locations that ``element`` may be, and those of all that it may hold, however deep."""
        if element.cell is None and not element.points_to:
            return self.memory(element)
        found = self._reachable.get(element)
        if found is None:
            found = self._solve(element, self._reachable, self._neighbors)
        return found

    @property
    def wildcard_memory(self) -> MemoryLocations:
        """All locations in the wildcard set."""
        return self.reachable(self._everything.read)

    @property
    def escaped(self) -> MemoryLocations:
        """All locations reachable from elements that escape."""
        return self.reachable(self._gone)

    def _bit(self, element: Element) -> MemoryLocations:
        if element.is_fresh and not element.bit:
            element.bit = 1 << self._bits
            self._bits += 1
        return element.bit

    def _neighbors(self, element: Element) -> Iterable[Element]:
        if element.cell is None:
            return element.points_to
        cell = element.cell.root()
        found = [*element.points_to, *(part for part, _ in cell.parts.values())]
        if cell.is_wildcard:
            found += [self.world(part).read for part in element.holds]
        return found

    def _solve(
        self, start: Element, known: dict[Element, MemoryLocations], neighbors: Callable[[Element], Iterable[Element]]
    ) -> MemoryLocations:
        """Unite the locations of all elements reachable from ``start``, and from each element on the way.

        This is Tarjan's algorithm: the elements of a strongly connected component have the same answer.
        """
        number = {start: 0}
        low = {start: 0}
        gathered = {start: self._bit(start)}
        component = [start]
        stack = [(start, iter(neighbors(start)))]
        while stack:
            element, following = stack[-1]
            for other in following:
                answer = known.get(other)
                if answer is not None:
                    gathered[element] |= answer
                elif other in number:
                    low[element] = min(low[element], number[other])
                else:
                    number[other] = low[other] = len(number)
                    gathered[other] = self._bit(other)
                    component.append(other)
                    stack.append((other, iter(neighbors(other))))
                    break
            else:
                stack.pop()
                found = gathered[element]
                if stack:
                    parent = stack[-1][0]
                    low[parent] = min(low[parent], low[element])
                    gathered[parent] |= found
                if low[element] == number[element]:
                    while element not in known:
                        known[component.pop()] = found
        return known[start]


def _targets(element: Element) -> Iterable[Element]:
    return element.points_to

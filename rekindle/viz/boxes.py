"""Layout model of a graph: nested boxes, and arrows between them.

Nodes are boxes. Blocks, subgraphs and inlined calls are boxes around others, so that a large program starts as a few
boxes. Three or more adjacent calls of equal structure are collapsed into one box, "fc × 12"; sequences that remain long
are split.
Constants, and submodules that are read from modules, are not drawn: the text of their user mentions them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.aliasing.alias_tracker import MemoryLocations
from rekindle.analysis.effects import is_immutable
from rekindle.errors import Source
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.text.printer import print_head
from rekindle.ir.types import ClassType

Category = Literal["operator", "value", "control", "kernel", "call", "edge", "repeat", "piece"]
"""``edge``: an input or output of a block; ``piece``: a part of a block that was too long."""

MAX_BOXES: Final = 120
"""The largest number of boxes side by side, in pictures that are drawn whole."""
MAX_BOXES_IN_VIEW: Final = 30
"""The largest number of boxes side by side on the page, whose first view shows the whole graph with legible labels."""
MIN_REPEATS: Final = 3

_NODES: Final = frozenset({"operator", "value", "kernel", "control"})
_CONTROL: Final = frozenset({"prim::If", "prim::Loop", "prim::With", "prim::fork", "prim::BailOut"})
_KERNELS: Final = frozenset({"prim::FusionGroup", "prim::NativeRegion", "prim::DifferentiableGraph"})


@dataclass(slots=True)
class Box:
    """A box in a picture of a graph. ``text`` is the node in the text form of graphs, or the inputs or outputs of a
    block; ``place`` is an index of :attr:`Picture.files` and a line, both counted from 0; ``kernels`` are indices
    defined by the creator of the picture. ``memory`` are numbers of memory locations that the results may share with
    other values; ``writes`` are those that the node may write to."""

    id: int
    title: str
    category: Category
    text: str = ""
    place: tuple[int, int] | None = None
    children: list[Box] = field(default_factory=list)
    kernels: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    seconds: float | None = None
    """Time of the node itself in seconds, without inner nodes, if it was measured."""

    def walk(self) -> Iterator[Box]:
        """Yield the box, then all boxes within it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Arrow:
    """A value, as an arrow from the box that computes it to one that uses it."""

    source: int
    target: int
    name: str
    type: str


@dataclass(slots=True)
class Picture:
    """A graph as nested boxes: ``root`` contains all boxes. ``files`` are their sources, which several pictures may
    share."""

    root: Box
    arrows: list[Arrow]
    files: list[Source]


def picture_of(
    graph: Graph,
    *,
    files: list[Source] | None = None,
    kernels_of: Callable[[Node], Sequence[int]] = lambda node: (),
    aliases: bool = False,
    seconds_of: Callable[[Node], float | None] = lambda node: None,
    max_boxes: int = MAX_BOXES,
) -> Picture:
    """Return the boxes of ``graph``. Its sources are appended to ``files`` unless they are there. ``kernels_of``
    returns the indices of a node's kernels, ``seconds_of`` its measured time. With ``aliases``, boxes have the memory
    that they may share or write to. More than ``max_boxes`` boxes side by side are divided into pieces."""
    aliasing = AliasDb(graph) if aliases else None
    builder = _Builder([] if files is None else files, kernels_of, aliasing, seconds_of, max_boxes)
    root = Box(builder.new_id(), "graph", "call")
    root.children = builder.block(graph.block, "inputs", "outputs")
    _set_memory(root, builder.memory, builder.writes)
    return Picture(root, builder.arrows, builder.files)


class _Builder:
    def __init__(
        self,
        files: list[Source],
        kernels_of: Callable[[Node], Sequence[int]],
        aliases: AliasDb | None,
        seconds_of: Callable[[Node], float | None],
        max_boxes: int,
    ) -> None:
        self.files = files
        self.max_boxes = max_boxes
        self.numbers = {id(source): number for number, source in enumerate(files)}
        self.kernels_of = kernels_of
        self.seconds_of = seconds_of
        self.arrows: list[Arrow] = []
        self.makers: dict[Value, int] = {}
        self.aliases = aliases
        self.memory: dict[int, MemoryLocations] = {}
        self.writes: dict[int, MemoryLocations] = {}
        """Memory locations by the ids of boxes."""
        self.ids = 0

    def new_id(self) -> int:
        self.ids += 1
        return self.ids - 1

    def block(self, block: Block, entry: str, exit: str, depth: int = 0) -> list[Box]:
        """Return the boxes of a block, with one titled ``entry`` for its inputs and one titled ``exit`` for its
        outputs. ``depth`` is the number of inlined calls that contain the block."""
        found: list[_Part] = []
        if block.inputs:
            found.append(_Part(None, self._edge(entry, block.inputs)))
        for node in block.nodes:
            found.append(_Part(node, None if _is_hidden(node) else self._node(node), _path(node)))
        if block.outputs:
            out = Box(self.new_id(), exit, "edge", ", ".join(f"%{value.name}" for value in block.outputs))
            self._uses(out.id, block.outputs)
            found.append(_Part(None, out))
        return self._arranged(found, depth)

    def _edge(self, title: str, values: Sequence[Value]) -> Box:
        box = Box(self.new_id(), title, "edge", ", ".join(f"%{value.name} : {value.type}" for value in values))
        self._makes(box.id, values)
        return box

    def _makes(self, box: int, values: Sequence[Value]) -> None:
        for value in values:
            self.makers[value] = box
            if self.aliases is not None and not is_immutable(value.type):
                self.memory[box] = self.memory.get(box, 0) | self.aliases.memory(value)

    def _node(self, node: Node) -> Box:
        box = Box(self.new_id(), _title(node), _category(node), print_head(node).strip(), self._place(node))
        box.kernels = tuple(self.kernels_of(node))
        box.seconds = self.seconds_of(node)
        self._uses(box.id, node.inputs)
        self._makes(box.id, node.outputs)
        if self.aliases is not None:
            self.writes[box.id] = self.aliases.writes_to(node)
        names = {"prim::If": ("then", "else"), "prim::Loop": ("body",)}.get(node.kind, ())
        for number, block in enumerate(node.blocks):
            name = names[number] if number < len(names) else f"block {number}"
            inner = Box(self.new_id(), name, "control")
            inner.children = self.block(block, "carried in", "carried out", len(_path(node)))
            box.children.append(inner)
        if "Subgraph" in node.attributes:
            outer, self.aliases = self.aliases, None  # it knows nothing of graphs within nodes
            graph = node.get_graph("Subgraph")
            paths = [_path(each) for each in graph.nodes if each.kind != "prim::Constant"]
            box.children += self.block(graph.block, "inputs", "outputs", _common(paths))
            self.aliases = outer
        return box

    def _uses(self, box: int, values: Sequence[Value]) -> None:
        for value in values:
            maker = self.makers.get(value)
            if maker is not None:
                self.arrows.append(Arrow(maker, box, value.name, str(value.type)))

    def _place(self, node: Node) -> tuple[int, int] | None:
        place = node.range.original
        if not place.is_known:
            return None
        number = self.numbers.setdefault(id(place.source), len(self.files))
        if number == len(self.files):
            self.files.append(place.source)
        return number, place.source.line_index(place.start)

    # ---------------------------------------------------------------------------------------------------- arranging

    def _arranged(self, found: Sequence[_Part], depth: int) -> list[Box]:
        """Return the boxes of ``found``, grouped by the inlined call at ``depth``, with repeats collapsed and long
        sequences split."""
        boxes: list[Box] = []
        for step, run in groupby(found, key=lambda each: each.path[depth : depth + 1]):
            if not step:
                boxes += [part.box for part in run if part.box is not None]
                continue
            for members in _calls(list(run), depth + 1):
                inside = self._arranged(members, depth + 1)
                if inside:
                    boxes.append(Box(self.new_id(), step[0], "call", children=inside))
        return self._in_pieces(self._repeats_joined(boxes))

    def _repeats_joined(self, boxes: list[Box]) -> list[Box]:
        joined: list[Box] = []
        for shape, run in groupby(boxes, key=_shape):
            members = list(run)
            if shape is None or len(members) < MIN_REPEATS:
                joined += members
            else:
                first, last = members[0].title, members[-1].title
                title = f"{first if first == last else f'{first} … {last}'} × {len(members)}"
                joined.append(Box(self.new_id(), title, "repeat", children=self._in_pieces(members)))
        return joined

    def _in_pieces(self, boxes: list[Box]) -> list[Box]:
        most = self.max_boxes * 5 // 6  # in a piece
        while len(boxes) > self.max_boxes:
            size = math.ceil(len(boxes) / math.ceil(len(boxes) / most))
            pieces = [boxes[start : start + size] for start in range(0, len(boxes), size)]
            boxes = [Box(self.new_id(), self._range_of(piece), "piece", children=piece) for piece in pieces]
        return boxes

    def _range_of(self, boxes: Sequence[Box]) -> str:
        """Return a title for a group of boxes: the number of nodes, and their lines if they are from one source."""
        nodes = [each for box in boxes for each in box.walk() if each.category in _NODES]
        places = [each.place for each in nodes if each.place is not None]
        text = f"{len(nodes):,} node{'' if len(nodes) == 1 else 's'}"
        if len({file for file, _ in places}) != 1:
            return text
        lines = [self.files[file].first_line + line for file, line in places]
        first, last = min(lines), max(lines)
        return f"{text}, line {first}" if first == last else f"{text}, lines {first}–{last}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A node, its box, and the calls from which it was inlined. Hidden nodes have no box; boxes of inputs and outputs
    have no node."""

    node: Node | None
    box: Box | None
    path: tuple[str, ...] = ()


def _calls(run: Sequence[_Part], depth: int) -> Iterator[Sequence[_Part]]:
    """Yield the parts of each call among the parts from one call site: a new call begins where an operator recurs. Only
    operators of the callee itself count, unless all are in nested calls."""
    nearest = min(len(part.path) for part in run)
    start = 0
    seen: set[object] = set()
    for index, part in enumerate(run):
        node = part.node
        if node is None or len(part.path) != nearest:
            continue
        key = (node.kind, node.range, tuple(place for _, place in node.callstack[depth:]), node.attributes.get("name"))
        if key in seen and node.kind != "prim::Constant":
            yield run[start:index]
            start, seen = index, set()
        seen.add(key)
    yield run[start:]


def _set_memory(root: Box, memory: dict[int, MemoryLocations], writes: dict[int, MemoryLocations]) -> None:
    """Set ``memory`` and ``writes`` of the boxes under ``root`` to numbered memory locations, omitting those of a
    single box."""
    once = several = 0
    for places in memory.values():
        several |= once & places
        once |= places
    for places in writes.values():
        several |= places & once
    numbers: dict[int, int] = {}

    def numbers_of(places: MemoryLocations) -> tuple[int, ...]:
        found, places = [], places & several
        while places:
            bit = places & -places
            found.append(numbers.setdefault(bit, len(numbers)))
            places ^= bit
        return tuple(found)

    for box in root.walk():
        box.memory, box.writes = numbers_of(memory.get(box.id, 0)), numbers_of(writes.get(box.id, 0))


def _common(paths: Sequence[tuple[str, ...]]) -> int:
    """Return the length of the longest common prefix of all paths."""
    found = 0
    for steps in zip(*paths, strict=False):
        if len(set(steps)) > 1:
            break
        found += 1
    return found


def _is_hidden(node: Node) -> bool:
    if node.kind == "prim::Constant":
        return True
    return node.kind == "prim::GetAttr" and isinstance(node.output.type, ClassType)


def _title(node: Node) -> str:
    if node.kind in ("prim::GetAttr", "prim::SetAttr", "prim::CallMethod"):
        return f"{node.kind.removeprefix('prim::')} {node['name']}"
    return node.kind.removeprefix("aten::").removeprefix("prim::")


def _category(node: Node) -> Category:
    if node.kind in _CONTROL or node.blocks:
        return "control"
    if node.kind in _KERNELS:
        return "kernel"
    return "operator" if not node.kind.startswith("prim::") else "value"


def _path(node: Node) -> tuple[str, ...]:
    """Return the calls from which a node was inlined, outermost first: the source lines of the calls, or the scopes of
    a trace."""
    calls = [
        (place.text.splitlines() or [name])[0].strip() if place.is_known else name for name, place in node.callstack
    ]
    return tuple(calls) or tuple(part.rpartition("::")[2] for part in node.scope.split("/") if part)


_DIGITS: Final = re.compile(r"\d+")


def _shape(box: Box) -> object:
    """Return a key of a box's structure: equal for boxes whose titles differ only in numbers. None unless the box is a
    call or a repeat with children."""
    if not box.children or box.category not in ("call", "repeat"):
        return None
    return tuple((_DIGITS.sub("#", each.title), len(each.children)) for each in box.walk())

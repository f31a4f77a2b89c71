"""SVG picture of a graph: boxes in layers, each below the boxes that it uses; a box with children encloses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import islice, pairwise
from typing import Final

from rekindle.ir.graph import Graph
from rekindle.viz.boxes import Arrow, Box, Category, picture_of

_WIDTH: Final = 7.2
"""Approximate width of a letter in pixels at 12 points. All lengths and positions are in pixels."""
_HEIGHT: Final = 28.0
_TITLE: Final = 24.0
_GAP: Final = 18.0
_RISE: Final = 26.0
_MAX_LENGTH: Final = 42
_MAX_NODES_IN_NOTEBOOK: Final = 300

_COLOURS: Final[dict[Category, str]] = {
    "operator": "#0072b2",
    "value": "#7f7f7f",
    "control": "#d55e00",
    "kernel": "#009e73",
    "call": "#56b4e9",
    "edge": "#999999",
    "repeat": "#cc79a7",
    "piece": "#b0b0b0",
}
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#1b1e24}.box{fill:#fff;stroke:#8a90a0}.open{fill:#f5f6f8}"
    ".arrow{fill:none;stroke:#5b6270}.tip{fill:#5b6270}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e8ec}.box{fill:#16181d;stroke:#6a7080}.open{fill:#1f2229}"
    ".arrow{stroke:#a3aab8}.tip{fill:#a3aab8}}"
)

_ARROW_HEAD: Final = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
)


@dataclass(slots=True, eq=False)
class _Place:
    """The size and the position of a box, relative to the enclosing box. If ``box`` is None, it is a bend of an arrow
    that crosses a layer. ``lines`` are the paths of the arrows between the boxes ``inside``."""

    box: Box | None
    width: float = 10.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    inside: list[_Place] = field(default_factory=list)
    lines: list[list[_Place]] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def to_svg(graph: Graph) -> str:
    """Return ``graph`` as an SVG picture. Blocks, fusion groups and inlined calls are boxes around others.

    The picture is readable in light and dark themes. Tooltips of boxes (``title`` elements) have the text form of the
    nodes.

    Args:
        graph: any graph.

    Example:
        >>> graph = rekindle.script(lambda x: torch.relu(x) + 1).graph
        >>> rekindle.to_svg(graph).startswith("<svg")
        True
    """
    picture = picture_of(graph)
    whole = _laid_out(picture.root, _between_siblings(picture.root, picture.arrows))
    width, height = whole.width, whole.height - _TITLE
    seen = f'viewBox="0 {_TITLE:g} {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {seen} role="img" aria-label="graph"><style>{_STYLE}</style>'
    return "\n".join([head, _ARROW_HEAD, *_drawn(whole), "</svg>", ""])


def notebook_svg(graph: Graph) -> str | None:
    """Return the result of :func:`to_svg` for a graph of at most 300 nodes; None for a larger one."""
    size = sum(1 for _ in islice(graph.all_nodes(), _MAX_NODES_IN_NOTEBOOK + 1))
    return to_svg(graph) if size <= _MAX_NODES_IN_NOTEBOOK else None


def _between_siblings(root: Box, arrows: list[Arrow]) -> dict[int, list[tuple[int, int]]]:
    """Map the id of a box to the arrows between its children: each arrow connects the siblings that contain its ends,
    in the innermost box that contains both."""
    above: dict[int, Box] = {child.id: box for box in root.walk() for child in box.children}

    def path(id: int) -> list[int]:
        found = [id]
        while found[-1] in above:
            found.append(above[found[-1]].id)
        return found[::-1]

    found: dict[int, dict[tuple[int, int], None]] = {}
    for arrow in arrows:
        source, target = path(arrow.source), path(arrow.target)
        for home, a, b in zip(source, source[1:], target[1:], strict=False):
            if a != b:
                found.setdefault(home, {})[a, b] = None
                break
    return {home: list(pairs) for home, pairs in found.items()}


def _laid_out(box: Box, arrows: dict[int, list[tuple[int, int]]]) -> _Place:
    made = _Place(box, max(60.0, _WIDTH * len(_short(box.title)) + 24), _HEIGHT)
    if not box.children:
        return made
    places = {child.id: _laid_out(child, arrows) for child in box.children}
    layers, made.lines = _layers(places, arrows.get(box.id, []))
    widths = [sum(each.width for each in layer) + _GAP * (len(layer) - 1) for layer in layers]
    made.width = max(made.width, max(widths) + 2 * _GAP)
    y = _TITLE + _GAP / 2
    for layer, width in zip(layers, widths, strict=True):
        x, height = (made.width - width) / 2, max(each.height for each in layer)
        for each in layer:
            each.height = height if each.box is None else each.height  # arrows pass a layer straight
            each.x, each.y = x, y + (height - each.height) / 2
            x += each.width + _GAP
        y += height + _RISE
    made.height = y - _RISE + _GAP
    made.inside = [each for layer in layers for each in layer if each.box is not None]
    return made


def _layers(places: dict[int, _Place], arrows: list[tuple[int, int]]) -> tuple[list[list[_Place]], list[list[_Place]]]:
    """Return the boxes arranged in layers, each after its predecessors, and the paths of the arrows through the layers.
    Arrows against the order of ``places`` are dropped."""
    depth = dict.fromkeys(places, 0)
    order = {id: number for number, id in enumerate(places)}
    forward = sorted((pair for pair in arrows if order[pair[0]] < order[pair[1]]), key=lambda pair: order[pair[1]])
    for a, b in forward:
        depth[b] = max(depth[b], depth[a] + 1)
    layers: list[list[_Place]] = [[] for _ in range(max(depth.values()) + 1)]
    for id, place in places.items():
        layers[depth[id]].append(place)
    lines = []
    for a, b in forward:
        bends = [_Place(None) for _ in range(depth[a] + 1, depth[b])]
        for level, bend in enumerate(bends, start=depth[a] + 1):
            layers[level].append(bend)
        lines.append([places[a], *bends, places[b]])
    _sort(layers, lines)
    return layers, lines


def _sort(layers: list[list[_Place]], lines: list[list[_Place]]) -> None:
    """Sort each layer but the first, in place, by the mean position of its predecessors, to reduce crossings of
    arrows."""
    before: dict[int, list[_Place]] = {}
    for line in lines:
        for a, b in pairwise(line):
            before.setdefault(id(b), []).append(a)
    position = {id(each): float(number) for number, each in enumerate(layers[0])}
    for layer in layers[1:]:
        centre = {
            id(each): sum(position[id(a)] for a in before[id(each)]) / len(before[id(each)])
            if id(each) in before
            else 0.0
            for each in layer
        }
        layer.sort(key=lambda each: centre[id(each)])
        position |= {id(each): float(number) for number, each in enumerate(layer)}


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def _drawn(place: _Place) -> Iterator[str]:
    """Yield the SVG elements of the contents of ``place``: arrows first, so that boxes cover them."""
    for line in place.lines:
        first, *bends, last = line
        points = [(first.middle, first.y + first.height)]
        for bend in bends:
            points += [(bend.middle, bend.y), (bend.middle, bend.y + bend.height)]
        points.append((last.middle, last.y))
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        yield f'<path class="arrow" marker-end="url(#head)" d="M{path}"/>'
    for each in place.inside:
        box = each.box
        assert box is not None
        kind = "box open" if box.children else "box"
        round = 3 if box.category == "operator" else 9
        yield (
            f'<g transform="translate({each.x:g} {each.y:g})"><title>{escape(box.text or box.title)}</title>'
            f'<rect class="{kind}" width="{each.width:g}" height="{each.height:g}" rx="{round}"/>'
            f'<rect width="5" height="{_TITLE if box.children else each.height:g}" rx="2" '
            f'fill="{_COLOURS[box.category]}"/>'
            f'<text x="12" y="{17 if box.children else 18}">{escape(_short(box.title))}</text>'
        )
        yield from _drawn(each)
        yield "</g>"

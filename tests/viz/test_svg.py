"""Graphs as SVG pictures."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

import rekindle

SOURCE = """
def f(x, w, n: int):
    y = x @ w
    for i in range(n):
        if i > 2:
            y = y.tanh() * i
        y = y + x
    return y, x.sum()
"""
SVG = "{http://www.w3.org/2000/svg}"


def picture(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(rekindle.to_svg(rekindle.CompilationUnit(source.lstrip()).f.graph))


Rectangle = tuple[float, float, float, float]


def rectangles(group: ElementTree.Element, x: float = 0.0, y: float = 0.0) -> Iterator[tuple[str, Rectangle, int]]:
    """The title of each box, its left, top, right and bottom, and how many boxes are around it."""
    for child in group.findall(f"{SVG}g"):
        left, top = map(float, child.attrib["transform"].removeprefix("translate(").rstrip(")").split())
        back = child.find(f"{SVG}rect")
        text = child.find(f"{SVG}text")
        assert back is not None
        assert text is not None
        assert text.text is not None
        width, height = float(back.attrib["width"]), float(back.attrib["height"])
        yield text.text, (x + left, y + top, x + left + width, y + top + height), 0
        for title, place, depth in rectangles(child, x + left, y + top):
            yield title, place, depth + 1


def test_boxes_lie_in_those_around_them_and_beside_one_another() -> None:
    root = picture(SOURCE)
    found = list(rectangles(root))
    assert [(title, depth) for title, _, depth in found] == [
        *(("inputs", 0), ("matmul", 0), ("sum", 0), ("Loop", 0), ("body", 1), ("carried in", 2), ("gt", 2), ("If", 2)),
        *(("then", 3), ("tanh", 4), ("mul", 4), ("carried out", 4), ("else", 3), ("carried out", 4)),
        *(("add", 2), ("carried out", 2), ("TupleConstruct", 0), ("outputs", 0)),
    ]
    outermost = [place for _, place, depth in found if depth == 0]
    for index, (left, top, right, bottom) in enumerate(outermost):
        for a, b, c, d in outermost[:index]:
            assert right <= a or c <= left or bottom <= b or d <= top
    (_, loop, _) = next(each for each in found if each[0] == "Loop")
    assert all(
        loop[0] <= place[0] and loop[1] <= place[1] and place[2] <= loop[2] and place[3] <= loop[3]
        for title, place, depth in found
        if depth > 0
    )
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert all(place[2] <= width and place[3] <= height + 24 for _, place, _ in found)


def test_titles_tell_what_the_text_form_says() -> None:
    titles = [each.text for each in picture(SOURCE).iter(f"{SVG}title")]
    assert [title for title in titles if title is not None and "aten::matmul" in title] == [
        "%y.1 : Tensor = aten::matmul(%x.1, %w.1)"
    ]


def test_what_would_end_an_element() -> None:
    root = picture('def f(x):\n    assert x.dim() == 1, "<b>&"\n    return x\n')
    assert any("RaiseException" in str(each.text) for each in root.iter(f"{SVG}text"))

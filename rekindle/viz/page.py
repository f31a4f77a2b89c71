"""An HTML page that shows graphs: one file, without requests to the network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from rekindle.errors import Source
from rekindle.viz.boxes import Arrow, Box, Picture

_ASSETS: Final = resources.files("rekindle.viz") / "assets"
_HEIGHT: Final = 640
"""Height in a notebook, in pixels."""


@dataclass(frozen=True, slots=True)
class PageStage:
    """A graph after one stage of compilation: ``diff`` is the change since the previous stage, in the format of ``diff
    -u``."""

    name: str
    picture: Picture
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page for browsers, which :func:`rekindle.show` returns. ``html`` is its text. Notebooks display it.

    Example:
        >>> page = rekindle.show(lambda x: x + 1)
        >>> page.save("f.html").exists()
        True
    """

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the HTML text to ``path``, and return the path."""
        path = Path(path)
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        text = html.escape(self.html, quote=True)
        style = f"width: 100%; height: {_HEIGHT}px; border: 1px solid #8888"
        return (
            f'<iframe title="graph" sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{text}"></iframe>'
        )


def page(title: str, stages: Sequence[PageStage], files: Sequence[Source], kernels: Sequence[str] = ()) -> Page:
    """Return the page that shows these stages. ``files`` are the sources that the boxes' ``place`` refers to,
    ``kernels`` the listings that their ``kernels`` refer to."""
    data = {
        "title": title,
        "stages": [
            {"name": stage.name, "diff": stage.diff, "root": _box(stage.picture.root), "arrows": _arrows(stage.picture)}
            for stage in stages
        ],
        "files": [
            {
                "name": Path(source.filename).name if source.filename else "",
                "first": source.first_line,
                "text": source.text,
            }
            for source in files
        ],
        "kernels": list(kernels),
    }
    # Within a script, no text may look like its end, or like the beginning of a comment.
    payload = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    parts = {"title": html.escape(title), "data": payload}
    for name in ("page.css", "dagre.min.js", "dagre.LICENSE", "page.js"):
        parts[name] = (_ASSETS / name).read_text(encoding="utf-8")
    text = (_ASSETS / "page.html").read_text(encoding="utf-8")
    pieces = text.split("@@")  # every second one is the name of a part
    return Page("".join(piece if index % 2 == 0 else parts[piece] for index, piece in enumerate(pieces)))


def _box(box: Box) -> dict[str, Any]:
    found: dict[str, Any] = {"i": box.id, "t": box.title, "k": box.category}
    if box.text:
        found["d"] = box.text
    if box.place is not None:
        found["s"] = box.place
    if box.kernels:
        found["n"] = box.kernels
    if box.memory:
        found["m"] = box.memory
    if box.writes:
        found["w"] = box.writes
    if box.seconds is not None:
        found["u"] = round(box.seconds * 1e6, 2)
    if box.children:
        found["c"] = [_box(child) for child in box.children]
    return found


def _arrows(picture: Picture) -> list[list[Any]]:
    return [_arrow(arrow) for arrow in picture.arrows]


def _arrow(arrow: Arrow) -> list[Any]:
    return [arrow.source, arrow.target, arrow.name, arrow.type]

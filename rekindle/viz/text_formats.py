"""Graphs in the DOT language of Graphviz, and in Mermaid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rekindle.ir.graph import Graph
from rekindle.viz.boxes import Box, Category, picture_of

_SHAPES: Final[dict[Category, str]] = {
    "operator": "box",
    "value": "box, style=rounded",
    "control": "diamond",
    "kernel": "box3d",
    "edge": "plaintext",
    "call": "box",
    "repeat": "box",
    "piece": "box",
}


def to_dot(graph: Graph) -> str:
    """Return ``graph`` in the language of Graphviz; ``dot -Tsvg`` draws it.

    Blocks, fusion groups and inlined calls are clusters. An arrow to or from one of them is clipped at its border.

    Args:
        graph: any graph.

    Example:
        >>> graph = rekindle.script(lambda x: torch.relu(x) + 1).graph
        >>> print(rekindle.to_dot(graph).splitlines()[0])
        digraph ...
    """
    picture = picture_of(graph)
    lines = ["digraph {", "  compound=true", '  node [shape=box, fontname="sans-serif", fontsize=10]']
    lines += ['  edge [fontname="sans-serif", fontsize=8]', *_dot(picture.root.children, "  ")]
    ends = {box.id: next(each.id for each in box.walk() if not each.children) for box in picture.root.walk()}
    for arrow in picture.arrows:
        at = [f"label={_quoted('%' + arrow.name)}", f"tooltip={_quoted(arrow.type)}"]
        at += [f"ltail=cluster{arrow.source}"] if ends[arrow.source] != arrow.source else []
        at += [f"lhead=cluster{arrow.target}"] if ends[arrow.target] != arrow.target else []
        lines.append(f"  n{ends[arrow.source]} -> n{ends[arrow.target]} [{', '.join(at)}]")
    return "\n".join([*lines, "}", ""])


def _dot(boxes: list[Box], indent: str) -> Iterator[str]:
    for box in boxes:
        if box.children:
            yield f"{indent}subgraph cluster{box.id} {{"
            yield f"{indent}  label={_quoted(box.title)}"
            yield from _dot(box.children, indent + "  ")
            yield f"{indent}}}"
        else:
            yield (
                f"{indent}n{box.id} [label={_quoted(box.title)}, shape={_SHAPES[box.category]}, "
                f"tooltip={_quoted(box.text)}]"
            )


def to_mermaid(graph: Graph) -> str:
    """Return ``graph`` in the language of Mermaid, which many viewers of Markdown draw.

    Blocks, fusion groups and inlined calls are subgraphs.

    Args:
        graph: any graph.

    Example:
        >>> graph = rekindle.script(lambda x: torch.relu(x) + 1).graph
        >>> print(rekindle.to_mermaid(graph))
        flowchart TD
          n1(["inputs"])
          n2["relu"]
          n3["add"]
          ...
    """
    picture = picture_of(graph)
    lines = ["flowchart TD", *_mermaid(picture.root.children, "  ")]
    lines += [f"  n{arrow.source} -->|{_escaped('%' + arrow.name)}| n{arrow.target}" for arrow in picture.arrows]
    return "\n".join([*lines, ""])


_BRACKETS: Final[dict[Category, tuple[str, str]]] = {"value": ("(", ")"), "edge": ("([", "])"), "kernel": ("[[", "]]")}


def _mermaid(boxes: list[Box], indent: str) -> Iterator[str]:
    for box in boxes:
        if box.children:
            yield f"{indent}subgraph n{box.id} [{_escaped(box.title)}]"
            yield from _mermaid(box.children, indent + "  ")
            yield f"{indent}end"
        else:
            left, right = _BRACKETS.get(box.category, ("[", "]"))
            yield f"{indent}n{box.id}{left}{_escaped(box.title)}{right}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "\n": " "}
    return f'"{"".join(entities.get(character, character) for character in text)}"'

"""Syntax trees: parsed source text, before name resolution and typing.

A tree is an s-expression: a kind, a source range, and children that are trees or strings. Trees are independent of
Python and of types; :mod:`rekindle.syntax.views` gives their children names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TypeAlias

from rekindle.errors import SourceRange

Child: TypeAlias = "Tree | str"


class Tree:
    """A node of a syntax tree: ``kind``, ``children`` (trees and strings) and the ``range`` of its source."""

    __slots__ = ("children", "kind", "range")

    def __init__(self, kind: str, range: SourceRange, children: tuple[Child, ...] = ()) -> None:
        self.kind = kind
        self.range = range
        self.children = children

    def subtree(self, index: int) -> Tree:
        """Return child number ``index``, which must be a tree."""
        child = self.children[index]
        assert isinstance(child, Tree), f"child {index} of ({self.kind} …) is a string"
        return child

    def string(self, index: int) -> str:
        """Return child number ``index``, which must be a string."""
        child = self.children[index]
        assert isinstance(child, str), f"child {index} of ({self.kind} …) is a tree"
        return child

    def subtrees(self) -> list[Tree]:
        """Return the children, all of which must be trees."""
        assert str not in map(type, self.children), f"a child of ({self.kind} …) is a string"
        return list(self.children)  # type: ignore[arg-type]

    def walk(self) -> Iterator[Tree]:
        """Yield this tree and all below it, parents first, without recursion."""
        stack = [self]
        while stack:
            tree = stack.pop()
            yield tree
            for child in reversed(tree.children):
                if type(child) is Tree:
                    stack.append(child)

    def same_as(self, other: Tree) -> bool:
        """Return whether both trees have the same kinds and strings at all levels; source ranges are not compared."""
        stack: list[tuple[Child, Child]] = [(self, other)]
        while stack:
            a, b = stack.pop()
            if isinstance(a, str) or isinstance(b, str):
                if a != b:
                    return False
                continue
            if a.kind != b.kind or len(a.children) != len(b.children):
                return False
            stack.extend(zip(a.children, b.children, strict=True))
        return True

    def __str__(self) -> str:
        return format_tree(self)

    def __repr__(self) -> str:
        return f"<Tree {self.kind} at {self.range.place or '?'}>"


_WIDTH = 100
_MAX_INDENT = 30


def format_tree(tree: Tree) -> str:
    """Return the s-expression of ``tree``: on one line if it is short, otherwise with one child per line, indented by
    two spaces."""
    lines: list[str] = []
    _format(tree, 0, lines)
    return "\n".join(lines)


_WORD = re.compile(r"[^\s()\"\\]+")


def _atom(text: str) -> str:
    """Return a string as it is if it is one word, else in quotes."""
    return text if _WORD.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _flat(child: Child, budget: int) -> str | None:
    """Format ``child`` on one line; return None if that takes more than ``budget`` characters."""
    if isinstance(child, str):
        text = _atom(child)
        return text if len(text) <= budget else None
    parts = [child.kind]
    used = len(child.kind) + 2
    if used > budget:
        return None
    for sub in child.children:
        part = _flat(sub, budget - used - 1)
        if part is None:
            return None
        parts.append(part)
        used += len(part) + 1
        if used > budget:
            return None
    return "(" + " ".join(parts) + ")"


def _format(tree: Tree, indent: int, lines: list[str]) -> None:
    """Append the lines of ``tree`` to ``lines``, without recursion, so that deep trees can be printed."""
    work: list[Child | tuple[str]] = [tree]
    depth = indent
    while work:
        item = work.pop()
        if isinstance(item, tuple):
            lines[-1] += item[0]
            depth -= 1
            continue
        # Indentation stops growing where it has taken most of the width.
        pad = "  " * min(depth, _MAX_INDENT)
        flat = _flat(item, _WIDTH - len(pad))
        if flat is not None or isinstance(item, str):
            lines.append(pad + (_atom(item) if isinstance(item, str) else flat or ""))
            continue
        lines.append(pad + "(" + item.kind)
        depth += 1
        work.append((")",))
        work.extend(reversed(item.children))

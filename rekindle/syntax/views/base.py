"""What all views have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from rekindle.errors import SourceRange
from rekindle.syntax.tree import Child, Tree

LIST = "list"
OPTION = "option"

V = TypeVar("V", bound="View")


class View:
    """The base of all views."""

    __slots__ = ("tree",)
    KIND: ClassVar[str] = ""

    def __init__(self, tree: Tree) -> None:
        assert not self.KIND or tree.kind == self.KIND, f"a {self.KIND} view of a {tree.kind} tree"
        self.tree = tree

    @property
    def range(self) -> SourceRange:
        return self.tree.range

    @classmethod
    def _build(cls: type[V], range: SourceRange, *children: Child) -> V:
        return cls(Tree(cls.KIND, range, children))

    def __str__(self) -> str:
        return str(self.tree)

    def _views(self, index: int, view: type[V]) -> list[V]:
        return [view(tree) for tree in self.tree.subtree(index).subtrees()]

    def _maybe(self, index: int, view: type[V]) -> V | None:
        option = self.tree.subtree(index)
        return view(option.subtree(0)) if option.children else None


def list_tree(range: SourceRange, items: Iterable[View]) -> Tree:
    return Tree(LIST, range, tuple(item.tree for item in items))


def option_tree(range: SourceRange, item: View | None) -> Tree:
    return Tree(OPTION, range, () if item is None else (item.tree,))


def bare(view: type[V], range: SourceRange) -> V:
    """A view of a tree without children: ``bare(Pass, range)``."""
    return view(Tree(view.KIND, range))


class Expr(View):
    """Any expression."""

    __slots__ = ()


class Stmt(View):
    """Any statement."""

    __slots__ = ()


class Ident(View):
    """``(ident name)``"""

    __slots__ = ()
    KIND = "ident"

    @classmethod
    def create(cls, range: SourceRange, name: str) -> Ident:
        return cls._build(range, name)

    @property
    def name(self) -> str:
        return self.tree.string(0)

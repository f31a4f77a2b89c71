"""Base classes of views."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from rekindle.errors import SourceRange
from rekindle.syntax.tree import Child, Tree

LIST = "list"
OPTION = "option"

V = TypeVar("V", bound="View")


class View:
    """The base of all views: typed wrappers of the syntax trees of one kind."""

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


@dataclass(slots=True, frozen=True)
class Field(Generic[V]):
    """Descriptor of a view: child ``index`` of its tree, as a view of the class ``view``."""

    index: int
    view: type[V]

    def __get__(self, instance: View, owner: object) -> V:
        return self.view(instance.tree.children[self.index])  # type: ignore[arg-type]  # the view checks the kind


@dataclass(slots=True, frozen=True)
class ListField(Generic[V]):
    """Descriptor of a view: the items of the ``list`` tree at child ``index``, each as a view of the class ``view``."""

    index: int
    view: type[V]

    def __get__(self, instance: View, owner: object) -> list[V]:
        return [self.view(tree) for tree in instance.tree.subtree(self.index).subtrees()]


@dataclass(slots=True, frozen=True)
class OptionField(Generic[V]):
    """Descriptor of a view: the content of the ``option`` tree at child ``index``, as a view of the class ``view``;
    None if it is empty."""

    index: int
    view: type[V]

    def __get__(self, instance: View, owner: object) -> V | None:
        content = instance.tree.subtree(self.index).children
        return self.view(content[0]) if content else None  # type: ignore[arg-type]  # the view checks the kind


@dataclass(slots=True, frozen=True)
class TextField:
    """Descriptor of a view: the string at child ``index``."""

    index: int

    def __get__(self, instance: View, owner: object) -> str:
        text = instance.tree.children[self.index]
        assert isinstance(text, str)
        return text


def list_tree(range: SourceRange, items: Iterable[View]) -> Tree:
    return Tree(LIST, range, tuple([item.tree for item in items]))


def option_tree(range: SourceRange, item: View | None) -> Tree:
    return Tree(OPTION, range, () if item is None else (item.tree,))


def bare(view: type[V], range: SourceRange) -> V:
    """Return a view of a tree without children: ``bare(Pass, range)``."""
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
    name = TextField(0)

    @classmethod
    def create(cls, range: SourceRange, name: str) -> Ident:
        return cls._build(range, name)

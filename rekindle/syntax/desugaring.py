"""Rewrite ``else`` after a loop. (``match``: :mod:`rekindle.syntax.python_patterns`.)"""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import SourceRange
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Assign,
    Break,
    Def,
    Expr,
    FalseLiteral,
    For,
    Ident,
    If,
    Stmt,
    TrueLiteral,
    UnaryOp,
    Var,
    While,
    bare,
)


def hidden(range: SourceRange, name: str) -> Var:
    """Return a variable with a name that programs cannot write; it is identified by its location."""
    return Var.create(range, Ident.create(range, f"${name}{range.start}"))


def together(range: SourceRange, statements: Sequence[Stmt]) -> Stmt:
    """Return one statement that runs ``statements``: an ``if`` whose condition is True."""
    return If.create(range, bare(TrueLiteral, range), statements, [])


def loop_with_else(loop: For | While, otherwise: Sequence[Stmt]) -> Stmt:
    """Return a loop with an ``else``: the statements ``otherwise`` run if no ``break`` ended it.

    .. code-block:: text

        for x in xs:                 $broken = False
            if x == n:               for x in xs:
                break                    if x == n:
        else:               becomes          $broken = True
            found = False                    break
                                     if not $broken:
                                         found = False
    """
    range = loop.range
    flag = hidden(range, "broken")
    body, marked = mark_breaks([statement.tree for statement in loop.body], flag)
    if not marked:
        return together(range, [loop, *otherwise])
    changed: Stmt
    if isinstance(loop, For):
        changed = For.create(range, loop.target, loop.iterable, [Stmt(tree) for tree in body])
    else:
        changed = While.create(range, loop.condition, [Stmt(tree) for tree in body])
    before = Assign.create(range, [flag], bare(FalseLiteral, range))
    after = If.create(range, UnaryOp.create(range, "not", flag), otherwise, [])
    return together(range, [before, changed, after])


def mark_breaks(trees: Sequence[Tree], flag: Expr) -> tuple[list[Tree], bool]:
    """Return the statements with an assignment of True to ``flag`` before each ``break`` of the loop that contains
    them, and whether there is one. A ``break`` of an inner loop is unchanged."""
    made: list[Tree] = []
    found = False
    for tree in trees:
        if tree.kind == Break.KIND:
            made.append(Assign.create(tree.range, [flag], bare(TrueLiteral, tree.range)).tree)
            made.append(tree)
            found = True
        elif tree.kind in (For.KIND, While.KIND, Def.KIND):
            made.append(tree)  # a break in it is its own
        else:
            changed, inner = _marked_within(tree, flag)
            made.append(changed)
            found |= inner
    return made, found


def _marked_within(tree: Tree, flag: Expr) -> tuple[Tree, bool]:
    children: list[Tree | str] = []
    found = False
    for child in tree.children:
        if isinstance(child, Tree) and child.kind == "list":
            items, inner = mark_breaks(child.subtrees(), flag)
            child, found = Tree("list", child.range, tuple(items)), found or inner
        children.append(child)
    return (Tree(tree.kind, tree.range, tuple(children)), True) if found else (tree, False)

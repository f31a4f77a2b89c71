"""Rewrite ``continue`` and ``break`` to branches, for loops that are unrolled.

.. code-block:: text

    for layer in layers:              for layer in layers:
        if skips:                         if skips:
            continue          becomes         pass
        x = layer(x)                      else:
                                              x = layer(x)

The statements after an ``if`` that may jump are moved into its branches. A ``break`` sets a flag, which the
caller tests before each later iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Assign, Break, Continue, Def, Expr, For, If, Stmt, TrueLiteral, While, bare


class NotStructured(Exception):
    """Raised if a ``break`` or ``continue`` of the unrolled loop is inside a statement other than ``if``, such as
    ``with`` or ``try``. Jumps of nested loops are their own."""


def jumps_in(statements: Sequence[Stmt]) -> set[str]:
    """Return the kinds of the jumps in ``statements`` that belong to the loop around them: ``break``, ``continue``,
    both or none."""
    return {kind for statement in statements for kind in _jumps(statement.tree)}


def without_jumps(statements: Sequence[Stmt], flag: Expr) -> list[Stmt]:
    """Return ``statements``, the body of a loop, without ``break`` and ``continue`` of that loop: a ``break`` sets
    ``flag`` to True.

    Raises:
        NotStructured: a jump is in a statement other than ``if``.
    """
    for position, statement in enumerate(statements):
        before, after = list(statements[:position]), list(statements[position + 1 :])
        kind = statement.tree.kind
        if kind == Continue.KIND:
            return before
        if kind == Break.KIND:
            return [*before, Assign.create(statement.range, [flag], bare(TrueLiteral, statement.range))]
        if not _jumps(statement.tree):
            continue
        if kind != If.KIND:
            raise NotStructured
        branches = [[*branch, *after] for branch in (If(statement.tree).true_branch, If(statement.tree).false_branch)]
        changed = [without_jumps(branch, flag) for branch in branches]
        return [*before, If.create(statement.range, If(statement.tree).condition, *changed)]
    return list(statements)


def _jumps(tree: Tree) -> set[str]:
    if tree.kind in (Break.KIND, Continue.KIND):
        return {tree.kind}
    if tree.kind in (For.KIND, While.KIND, Def.KIND):
        return set()  # a jump in it is its own
    return {kind for child in tree.children if isinstance(child, Tree) for kind in _jumps(child)}

"""What is to be known of a statement that could not be compiled, so that the emitter can go on behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Apply,
    Assign,
    AugAssign,
    Def,
    Delete,
    ErrorStmt,
    Expr,
    For,
    Handler,
    Lambda,
    ListLiteral,
    LocalClass,
    LocalImport,
    Raise,
    Return,
    Select,
    Starred,
    Stmt,
    Try,
    TupleLiteral,
    Var,
    Walrus,
    With,
)


def target_names(target: Expr) -> set[str]:
    """The names that assigning to ``target`` gives a meaning."""
    if target.tree.kind == Var.KIND:
        return {Var(target.tree).name.name}
    if target.tree.kind == Starred.KIND:
        return target_names(Starred(target.tree).value)
    if target.tree.kind in (TupleLiteral.KIND, ListLiteral.KIND):
        return {name for item in target.tree.subtree(0).subtrees() for name in target_names(Expr(item))}
    return set()


def assigned_names(statements: Iterable[Stmt | Expr]) -> set[str]:
    """The names that the statements (or expressions), and those within them, give a meaning."""
    return {name for statement in statements for tree in walk_scope(statement.tree) for name in _names(tree)}


def deleted_names(statement: Stmt) -> set[str]:
    """The variables that the statement, and those within it, delete."""
    deletions = [Delete(tree) for tree in walk_scope(statement.tree) if tree.kind == Delete.KIND]
    return {name for each in deletions for target in each.targets for name in target_names(target)}


def tries_that_assign(statement: Stmt) -> dict[str, frozenset[int]]:
    """The ``try`` statements within the statement, by the identity of their trees, for each name that they assign."""
    found: dict[str, frozenset[int]] = {}
    for tree in walk_scope(statement.tree):
        if tree.kind == Try.KIND:
            for name in assigned_names([Stmt(tree)]):
                found[name] = found.get(name, frozenset()) | {id(tree)}
    return found


def walk_scope(tree: Tree) -> Iterator[Tree]:
    """``tree`` and all below it, parents first; of functions within it the definition alone, without what is in it."""
    stack = [tree]
    while stack:
        tree = stack.pop()
        yield tree
        if tree.kind == Def.KIND:
            stack.extend(param.default.tree for param in Def(tree).params if param.default is not None)
        elif tree.kind != Lambda.KIND:
            stack.extend(child for child in reversed(tree.children) if isinstance(child, Tree))


def _names(tree: Tree) -> Iterator[str]:
    if tree.kind == ErrorStmt.KIND:
        yield from ErrorStmt(tree).names
    if tree.kind == Def.KIND:
        yield Def(tree).name.name
    if tree.kind == LocalClass.KIND:
        yield LocalClass(tree).name
    if tree.kind == LocalImport.KIND:
        yield LocalImport(tree).name
    if tree.kind == Handler.KIND and Handler(tree).name:
        yield Handler(tree).name
    for target in _targets(tree):
        yield from target_names(target)


def _targets(tree: Tree) -> list[Expr]:
    if tree.kind == Assign.KIND:
        return Assign(tree).targets
    if tree.kind == AugAssign.KIND:
        return [AugAssign(tree).target]
    if tree.kind == For.KIND:
        return [For(tree).target]
    if tree.kind == With.KIND:
        return [item.target for item in With(tree).items if item.target is not None]
    if tree.kind == Walrus.KIND:
        return [Walrus(tree).target]
    return []


def assigns_attribute(tree: Tree) -> bool:
    """Whether the statement assigns to an attribute, so that emitting it may leave traces in a class."""
    return any(target.tree.kind == Select.KIND for each in tree.walk() for target in _targets(each))


def may_leave(statements: Iterable[Stmt]) -> bool:
    """Whether the function may end within the statements."""
    return any(
        tree.kind in (Return.KIND, Raise.KIND) for statement in statements for tree in walk_scope(statement.tree)
    )


def names_in(expr: Expr) -> set[str]:
    """The variables that ``expr`` names."""
    return {Var(tree).name.name for tree in expr.tree.walk() if tree.kind == Var.KIND}


_STATIC: Final = frozenset({"hasattr", "isinstance", "is_scripting", "is_tracing"})


def asks_compiler(expr: Expr) -> bool:
    """Whether ``expr`` calls what the compiler answers, so that a branch may be meant for it not to see."""
    for tree in expr.tree.walk():
        if tree.kind == Apply.KIND:
            callee = Apply(tree).callee
            name = Var(callee.tree).name.name if callee.tree.kind == Var.KIND else ""
            if callee.tree.kind == Select.KIND:
                name = Select(callee.tree).selector.name
            if name in _STATIC:
                return True
    return False

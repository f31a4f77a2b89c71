"""What a statement that could not be compiled binds and does, so that the emitter can continue after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    """Return the names that an assignment to ``target`` binds."""
    if target.tree.kind == Var.KIND:
        return {Var(target.tree).name.name}
    if target.tree.kind == Starred.KIND:
        return target_names(Starred(target.tree).value)
    if target.tree.kind in (TupleLiteral.KIND, ListLiteral.KIND):
        return {name for item in target.tree.subtree(0).subtrees() for name in target_names(Expr(item))}
    return set()


def assigned_names(statements: Iterable[Stmt | Expr]) -> set[str]:
    """Return the names that the statements (or expressions) bind, including nested statements."""
    return names_given_by(tree for statement in statements for tree in walk_scope(statement.tree))


def names_given_by(trees: Iterable[Tree]) -> set[str]:
    """Return the names that ``trees`` bind themselves; names that only nested statements bind are excluded."""
    names: set[str] = set()
    for tree in trees:
        if tree.kind in _NAMING:
            names.update(_NAMING[tree.kind](tree))
        elif tree.kind in _ASSIGNING:
            names.update(*map(target_names, _ASSIGNING[tree.kind](tree)))
    return names


def deleted_names(statement: Stmt) -> set[str]:
    """Return the variables that the statement deletes, including nested statements."""
    deletions = [Delete(tree) for tree in walk_scope(statement.tree) if tree.kind == Delete.KIND]
    return {name for each in deletions for target in each.targets for name in target_names(target)}


def tries_that_assign(statement: Stmt) -> dict[str, frozenset[int]]:
    """Return, for each name that ``try`` statements in the statement assign, the ids of these."""
    found: dict[str, frozenset[int]] = {}
    for tree in walk_scope(statement.tree):
        if tree.kind == Try.KIND:
            for name in assigned_names([Stmt(tree)]):
                found[name] = found.get(name, frozenset()) | {id(tree)}
    return found


def walk_scope(tree: Tree) -> Iterator[Tree]:
    """Yield ``tree`` and its descendants in the same scope, parents first. Of a nested function only the definition and
    the defaults are included, of a lambda only the expression itself."""
    stack = [tree]
    while stack:
        tree = stack.pop()
        yield tree
        if tree.kind == Def.KIND:
            stack.extend(param.default.tree for param in Def(tree).params if param.default is not None)
        elif tree.kind != Lambda.KIND:
            for child in reversed(tree.children):
                if type(child) is Tree:
                    stack.append(child)


_NAMING: Final[dict[str, Callable[[Tree], Iterable[str]]]] = {
    ErrorStmt.KIND: lambda tree: ErrorStmt(tree).names,
    Def.KIND: lambda tree: [Def(tree).name.name],
    LocalClass.KIND: lambda tree: [LocalClass(tree).name],
    LocalImport.KIND: lambda tree: [LocalImport(tree).name],
    Handler.KIND: lambda tree: filter(None, [Handler(tree).name]),
}
"""Functions by kind of tree that return the names which it binds other than as targets."""

_ASSIGNING: Final[dict[str, Callable[[Tree], Iterable[Expr]]]] = {
    Assign.KIND: lambda tree: Assign(tree).targets,
    AugAssign.KIND: lambda tree: [AugAssign(tree).target],
    For.KIND: lambda tree: [For(tree).target],
    With.KIND: lambda tree: [item.target for item in With(tree).items if item.target is not None],
    Walrus.KIND: lambda tree: [Walrus(tree).target],
}
"""Functions by kind of tree that return the targets to which it assigns."""


def assigns_attribute(tree: Tree) -> bool:
    """Return whether the statement assigns to an attribute, so that emitting it may change a class."""
    return any(
        target.tree.kind == Select.KIND
        for each in tree.walk()
        if each.kind in _ASSIGNING
        for target in _ASSIGNING[each.kind](each)
    )


def may_leave(statements: Iterable[Stmt]) -> bool:
    """Return whether the statements contain a ``return`` or a ``raise``."""
    return any(
        tree.kind in (Return.KIND, Raise.KIND) for statement in statements for tree in walk_scope(statement.tree)
    )


def names_in(expr: Expr) -> set[str]:
    """Return the names of variables that occur in ``expr``."""
    return {Var(tree).name.name for tree in expr.tree.walk() if tree.kind == Var.KIND}


_STATIC: Final = frozenset({"hasattr", "isinstance", "callable", "is_scripting", "is_tracing"})


def asks_compiler(expr: Expr) -> bool:
    """Return whether ``expr`` calls a function that is evaluated at compile time, so that a branch may be excluded from
    compilation."""
    for tree in expr.tree.walk():
        if tree.kind == Apply.KIND:
            callee = Apply(tree).callee
            name = Var(callee.tree).name.name if callee.tree.kind == Var.KIND else ""
            if callee.tree.kind == Select.KIND:
                name = Select(callee.tree).selector.name
            if name in _STATIC:
                return True
    return False

"""Find the variables of a function that never share their container with another variable.

The analysis reads the source of the function: such a variable is assigned only new containers, and is never used where
another variable could get its container.
"""

from __future__ import annotations

from typing import Final

from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Apply,
    Assign,
    AugAssign,
    Def,
    DictLiteral,
    Expr,
    For,
    ListComp,
    ListLiteral,
    Return,
    Select,
    SetLiteral,
    Subscript,
    TupleLiteral,
    Var,
)

_NEW: Final = frozenset({ListLiteral.KIND, ListComp.KIND, DictLiteral.KIND, SetLiteral.KIND, "dict_comp", "set_comp"})
_MAKERS: Final = frozenset({"list", "dict", "set", "sorted", "deque", "defaultdict", "OrderedDict", "Counter"})
_READERS: Final = _MAKERS | frozenset(
    {"len", "enumerate", "zip", "sum", "min", "max", "any", "all", "reversed", "tuple", "print", "str", "bool", "map"}
)
_RETURNS_AN_ARGUMENT: Final = frozenset({"min", "max", "sum"})
"""Readers that return one of several arguments itself."""
_READING_METHODS: Final = frozenset({"cat", "stack", "concat", "vstack", "hstack", "extend", "join", "update"})
_TRANSPARENT: Final = frozenset({"if", "while", "expression_statement", "assert", "not", "in", "not_in"})
_PASSED_ON: Final = frozenset({"list", "option", "and", "or"})
"""Kinds of trees whose children are only read if the tree is: its value may be one of them."""


def private_names(definition: Def) -> frozenset[str]:
    """Return the variables of the function that are assigned new containers, and have the only reference to them."""
    assigned: set[str] = set()
    shared = {param.name.name for param in definition.params}
    for statement in definition.body:
        _visit(statement.tree, assigned, shared, passes=False)
    return frozenset(assigned - shared)


def _visit(tree: Tree, assigned: set[str], shared: set[str], *, passes: bool) -> None:
    """Add to ``assigned`` the variables in ``tree`` that are assigned a new container, and to ``shared`` those whose
    container another variable may hold. ``passes`` says that the value of ``tree`` is only read."""
    kind = tree.kind
    if kind == Var.KIND:
        if not passes:
            shared.add(Var(tree).name.name)
        return
    if kind == Assign.KIND and Assign(tree).value is not None:
        _visit_assignment(Assign(tree), assigned, shared)
        return
    looked_at = _looked_at(tree)
    for child in tree.children:
        if isinstance(child, Tree):
            is_read = passes and kind in _PASSED_ON
            _visit(child, assigned, shared, passes=is_read or any(child is each for each in looked_at))


def _visit_assignment(statement: Assign, assigned: set[str], shared: set[str]) -> None:
    value = statement.value
    assert value is not None
    pairs: list[tuple[Expr, Expr | None]] = []
    for target in statement.targets:
        if target.tree.kind == TupleLiteral.KIND and value.tree.kind == TupleLiteral.KIND:
            targets, values = TupleLiteral(target.tree).items, TupleLiteral(value.tree).items
            pairs += zip(targets, values if len(values) == len(targets) else [None] * len(targets), strict=True)
        else:
            pairs.append((target, value if len(statement.targets) == 1 else None))
    for target, given in pairs:
        if target.tree.kind == Var.KIND and given is not None and _is_new(given):
            assigned.add(Var(target.tree).name.name)
        else:
            _visit(target.tree, assigned, shared, passes=False)
    _visit(value.tree, assigned, shared, passes=False)


def _is_new(value: Expr) -> bool:
    if value.tree.kind == Apply.KIND:
        return Apply(value.tree).callee_name in _MAKERS
    return value.tree.kind in _NEW


def _looked_at(tree: Tree) -> list[Tree]:
    """Return the operands of ``tree`` to whose containers it creates no reference that lasts. It may modify them. They
    include the value that is returned."""
    match tree.kind:
        case Select.KIND:
            return [Select(tree).value.tree]
        case Subscript.KIND:
            return [Subscript(tree).value.tree]
        case For.KIND:
            return [For(tree).iterable.tree]
        case AugAssign.KIND:
            return [AugAssign(tree).target.tree, AugAssign(tree).value.tree]
        case Return.KIND:
            return [Return(tree).value.tree]
        case Apply.KIND:
            call = Apply(tree)
            method = Select(call.callee.tree).selector.name if call.callee.tree.kind == Select.KIND else None
            arguments = tree.subtree(1)
            returns_one = call.callee_name in _RETURNS_AN_ARGUMENT and len(arguments.children) > 1
            if (call.callee_name in _READERS and not returns_one) or method in _READING_METHODS:
                return [call.callee.tree, arguments]
            return [call.callee.tree]
        case kind if kind in _TRANSPARENT or kind in ("==", "!=", "+", "comprehension"):
            return [child for child in tree.children if isinstance(child, Tree)]
    return []

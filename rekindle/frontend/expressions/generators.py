"""Rewrite loops over generator expressions to nested loops, so that elements are computed one by one.

.. code-block:: text

    for z in (f(v) for v in xs if v > 0):        for $v in xs:
        if z > 9:                                    if $v > 0:
            break                   becomes              z = f($v)
        use(z)                                           if z > 9:
                                                             break
                                                         use(z)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.statements.error_recovery import names_in, target_names
from rekindle.syntax.desugaring import hidden, mark_breaks, together
from rekindle.syntax.tree import Child, Tree
from rekindle.syntax.views import (
    Apply,
    Assign,
    Break,
    Comprehension,
    Expr,
    FalseLiteral,
    For,
    GeneratorExpr,
    Ident,
    If,
    Lambda,
    Select,
    Stmt,
    TupleLiteral,
    Var,
    bare,
)


def loop_over_generator(loop: For, generator: GeneratorExpr) -> Stmt:
    """Return the nested loops that are equivalent to a loop over a generator expression."""
    range = loop.range
    element, generators = _with_own_names(generator)
    body: list[Stmt] = [Assign.create(loop.target.range, [loop.target], element), *loop.body]
    if len(generators) == 1:
        return _loops(range, generators, body, None)
    flag = hidden(range, "left")
    marked, has_break = mark_breaks([statement.tree for statement in body], flag)
    if not has_break:
        return _loops(range, generators, body, None)
    begun = Assign.create(range, [flag], bare(FalseLiteral, range))
    return together(range, [begun, _loops(range, generators, [Stmt(tree) for tree in marked], flag)])


def _loops(range: SourceRange, generators: Sequence[Comprehension], body: list[Stmt], left: Expr | None) -> Stmt:
    """Return nested loops over all generators, the first outermost. If the variable ``left`` is set in an inner loop,
    the enclosing ones end too."""
    for position, generator in reversed(list(enumerate(generators))):
        for condition in reversed(generator.conditions):
            body = [If.create(condition.range, condition, body, [])]
        body = [For.create(range, generator.target, generator.iterable, body)]
        if left is not None and position > 0:
            body.append(If.create(range, left, [bare(Break, range)], []))
    return body[0]


def flattened(
    generators: Sequence[Comprehension], generator_of: Callable[[Expr], GeneratorExpr | None]
) -> list[Comprehension]:
    """Return the generators of a comprehension. One that iterates over a generator expression, as ``generator_of``
    returns it, is replaced by the generators of that expression."""
    found: list[Comprehension] = []
    for generator in generators:
        within = generator_of(generator.iterable)
        if within is None:
            found.append(generator)
            continue
        element, inner = _with_own_names(within)
        found += flattened(inner, generator_of)
        single = TupleLiteral.create(element.range, [element])
        found.append(Comprehension.create(generator.range, generator.target, single, generator.conditions))
    return found


def names_read_late(expr: GeneratorExpr) -> set[str]:
    """Return the captured variables that a generator reads when its elements are computed, not when it is created."""
    own = {name for generator in expr.generators for name in target_names(generator.target)}
    late = [expr.element, *(each.iterable for each in expr.generators[1:])]
    late += [condition for each in expr.generators for condition in each.conditions]
    return {name for part in late for name in names_in(part)} - own


def _with_own_names(expr: GeneratorExpr) -> tuple[Expr, list[Comprehension]]:
    """Return the element and the generators with unique names for the targets. The first iterable is not renamed: it is
    evaluated outside the generator."""
    names = {name for generator in expr.generators for name in target_names(generator.target)}
    own = {name: f"${expr.range.start}.{name}" for name in names}
    made = []
    for position, each in enumerate(expr.generators):
        iterable = each.iterable if position == 0 else renamed(each.iterable, own)
        conditions = [renamed(condition, own) for condition in each.conditions]
        made.append(Comprehension.create(each.range, renamed(each.target, own), iterable, conditions))
    return renamed(expr.element, own), made


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return ``expr`` with variables renamed by the mapping ``names``."""
    return Expr(_renamed(expr.tree, names))


def _renamed(tree: Tree, names: Mapping[str, str]) -> Tree:
    if tree.kind == Var.KIND:
        name = Var(tree).name
        return Var.create(tree.range, Ident.create(name.range, names[name.name])).tree if name.name in names else tree
    if tree.kind == Lambda.KIND:
        own = {param.name.name for param in Lambda(tree).params}
        names = {name: other for name, other in names.items() if name not in own}
    children: list[Child] = [_renamed(child, names) if isinstance(child, Tree) else child for child in tree.children]
    if all(new is old for new, old in zip(children, tree.children, strict=True)):
        return tree
    return Tree(tree.kind, tree.range, tuple(children))


LAZY: Final = ("map", "filter")
"""Builtins whose calls are equivalent to generator expressions."""

_NAMED: Final = frozenset({Var.KIND, Select.KIND, Lambda.KIND})
"""Kinds of expressions for a function that can be evaluated once per element."""


def as_generator(
    expr: Expr, functions: Collection[str], is_builtin: Callable[[str, SourceRange], bool]
) -> GeneratorExpr | None:
    """Return a generator expression as it is, or the one that is equivalent to a call of one of the ``functions``
    (``map`` or ``filter``) over one iterable, of a function that a variable, an attribute or a lambda denotes; None for
    other expressions. ``is_builtin`` returns whether a name refers to Python's builtin."""
    if expr.tree.kind == GeneratorExpr.KIND:
        return GeneratorExpr(expr.tree)
    if expr.tree.kind != Apply.KIND:
        return None
    call = Apply(expr.tree)
    name = call.callee_name
    if (
        name is None
        or name not in functions
        or len(call.inputs) != 2
        or call.attributes
        or not is_builtin(name, expr.range)
    ):
        return None
    function, iterable = call.inputs
    item = Var.create(function.range, Ident.create(function.range, f"${expr.range.start}.item"))
    if name == "filter" and function.tree.kind == "none":
        condition: Expr = item
    elif function.tree.kind in _NAMED:
        condition = Apply.create(function.range, function, [item])
    else:
        return None
    element, conditions = (condition, []) if name == "map" else (item, [condition])
    generator = Comprehension.create(expr.range, item, iterable, conditions)
    return GeneratorExpr(GeneratorExpr.create(expr.range, element, [generator]).tree)

"""Convert ``match`` statements of Python's ``ast`` to ``if`` and ``elif``.

.. code-block:: text

    match point:                          if isinstance(point, tuple of two) and point[0] == 0:
        case (0, y):                          y = point[1]
            return y                          return y
        case (x, y) if x > y:   becomes   elif isinstance(…) and point[0] > point[1]:
            return x                          x, y = point[0], point[1]
        case _:                               return x
            return -1                     else:
                                              return -1
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.errors import SourceRange
from rekindle.syntax.desugaring import hidden, together
from rekindle.syntax.python_expressions import ExpressionBuilder
from rekindle.syntax.python_names import names_bound_by
from rekindle.syntax.tree import Child, Tree
from rekindle.syntax.unsupported_syntax import refuse
from rekindle.syntax.views import (
    Apply,
    Assign,
    BinOp,
    Const,
    DictComp,
    Expr,
    FalseLiteral,
    GeneratorExpr,
    Ident,
    If,
    Lambda,
    ListComp,
    NoneLiteral,
    Select,
    SetComp,
    SliceExpr,
    Stmt,
    Subscript,
    TernaryIf,
    TrueLiteral,
    Var,
    Walrus,
    bare,
)

HAS_LENGTH: Final = "$has_length"
"""Name of the function that tests whether a value is a sequence of a given length, or of at least that length."""

WITHOUT: Final = "$without"
"""Name of the function that returns a dict without some of its keys."""

POSITIONAL: Final = "$positional"
"""Name of the function that returns an attribute of an object by its position in ``__match_args__`` of its class."""


@dataclass(slots=True)
class _Case:
    """The condition under which a pattern matches, and the names that it binds."""

    conditions: list[Expr] = field(default_factory=list)
    captures: dict[str, Expr] = field(default_factory=dict)


def match_statement(
    node: ast.Match,
    builder: ExpressionBuilder,
    block: Callable[[Sequence[ast.stmt]], list[Stmt]],
    read_outside: Callable[[ast.AST], set[str]],
) -> Stmt:
    """Convert a ``match`` statement. ``block`` converts the statements of a case. ``read_outside`` returns the names
    that the function reads outside of a case: a pattern that matches binds its names even if the guard fails.

    Raises:
        UnsupportedError: a pattern is unsupported, or a guard assigns a name that its pattern binds.
    """
    range = builder.range_of(node)
    subject = builder.expr(node.subject)
    before: list[Stmt] = []
    # A pattern that binds the name of the subject would assign it before the other names are read from it.
    bound = {name for case in node.cases for name in names_bound_by(case.pattern)}
    if subject.tree.kind != Var.KIND or Var(subject.tree).name.name in bound:
        name = hidden(subject.range, "match")
        before.append(Assign.create(subject.range, [name], subject))
        subject = name
    otherwise: list[Stmt] = []
    for case in reversed(node.cases):
        found = _Case()
        _Patterns(builder, found).read(case.pattern, subject)
        place = builder.range_of(case.pattern)
        bindings = [_binding(place, name, value) for name, value in found.captures.items()]
        body = [*bindings, *block(case.body)]
        condition = _all_of(found.conditions, place)
        if case.guard is not None:
            if not found.captures.keys().isdisjoint(read_outside(case)):
                otherwise = [If.create(place, condition, bindings, []), *otherwise]
            guard = Expr(_substituted(builder.expr(case.guard).tree, found.captures))
            condition = _all_of([*found.conditions, guard], place)
        otherwise = [If.create(place.merge(body[-1].range), condition, body, otherwise)]
    return together(range, [*before, *otherwise])


def _binding(range: SourceRange, name: str, value: Expr) -> Stmt:
    return Assign.create(range, [Var.create(range, Ident.create(range, name))], value)


def _all_of(conditions: Sequence[Expr], range: SourceRange) -> Expr:
    if not conditions:
        return bare(TrueLiteral, range)
    first, *rest = conditions
    for other in rest:
        first = BinOp.create(range, "and", first, other)
    return first


def _substituted(tree: Tree, captures: Mapping[str, Expr]) -> Tree:
    """Return the guard ``tree`` with the captured names replaced by the expressions that they capture: a guard is
    evaluated before the names are assigned. Parameters of a lambda and variables of a comprehension with these names
    are other variables.

    Raises:
        UnsupportedError: the guard assigns a captured name.
    """
    if tree.kind == Var.KIND:
        found = captures.get(Var(tree).name.name)
        return tree if found is None else found.tree
    if tree.kind == Walrus.KIND and Walrus(tree).target.name.name in captures:
        raise refuse("match_guard", tree.range)
    if tree.kind in _COMPREHENSIONS:
        return _substituted_in_comprehension(tree, captures)
    if tree.kind == Lambda.KIND:
        return _substituted_in_lambda(Lambda(tree), captures)
    return _with_children(tree, [_substituted_child(child, captures) for child in tree.children])


def _substituted_child(child: Child, captures: Mapping[str, Expr]) -> Child:
    return _substituted(child, captures) if isinstance(child, Tree) else child


def _with_children(tree: Tree, children: Sequence[Child]) -> Tree:
    return Tree(tree.kind, tree.range, tuple(children))


_COMPREHENSIONS: Final = frozenset({ListComp.KIND, GeneratorExpr.KIND, SetComp.KIND, DictComp.KIND})


def _substituted_in_comprehension(tree: Tree, captures: Mapping[str, Expr]) -> Tree:
    """Substitute in a comprehension. Python evaluates the first iterable outside of its scope."""
    *elements, generators = tree.subtrees()
    own = {name for each in generators.subtrees() for name in _names(each.subtree(0))}
    inner = {name: value for name, value in captures.items() if name not in own}
    loops: list[Tree] = []
    for index, each in enumerate(generators.subtrees()):
        target, iterable, conditions = each.subtrees()
        iterable = _substituted(iterable, inner if index else captures)
        loops.append(_with_children(each, [target, iterable, _substituted(conditions, inner)]))
    return _with_children(tree, [*(_substituted(each, inner) for each in elements), _with_children(generators, loops)])


def _substituted_in_lambda(expr: Lambda, captures: Mapping[str, Expr]) -> Tree:
    """Substitute in a lambda. Python evaluates the defaults of the parameters outside of its scope."""
    own = {param.name.name for param in expr.params}
    inner = {name: value for name, value in captures.items() if name not in own}
    params, body = expr.tree.subtrees()
    return _with_children(expr.tree, [_substituted(params, captures), _substituted(body, inner)])


def _names(tree: Tree) -> set[str]:
    return {Var(each).name.name for each in tree.walk() if each.kind == Var.KIND}


class _Patterns:
    """A converter of the pattern of one ``case``: it adds conditions and captures to ``case``."""

    def __init__(self, builder: ExpressionBuilder, case: _Case) -> None:
        self.builder = builder
        self.case = case

    def read(self, pattern: ast.pattern, subject: Expr) -> None:
        range = self.builder.range_of(pattern)
        match pattern:
            case ast.MatchValue():
                self._ask(BinOp.create(range, "==", subject, self.builder.expr(pattern.value)))
            case ast.MatchSingleton():
                value: Expr = bare(NoneLiteral, range)
                if pattern.value is not None:
                    value = bare(TrueLiteral, range) if pattern.value else bare(FalseLiteral, range)
                self._ask(BinOp.create(range, "is", subject, value))
            case ast.MatchAs():
                if pattern.pattern is not None:
                    self.read(pattern.pattern, subject)
                if pattern.name is not None:
                    self.case.captures[pattern.name] = subject
            case ast.MatchOr():
                self._either(pattern, subject, range)
            case ast.MatchSequence():
                self._sequence(pattern, subject, range)
            case ast.MatchClass():
                self._class(pattern, subject, range)
            case ast.MatchMapping():
                self._mapping(pattern, subject, range)
            case _:
                raise refuse("match_pattern", range)

    def _ask(self, condition: Expr) -> None:
        self.case.conditions.append(condition)

    def _either(self, pattern: ast.MatchOr, subject: Expr, range: SourceRange) -> None:
        """Add the condition of a pattern with alternatives, ``[x, 0] | [0, x]``. Names are bound by the first
        alternative that matches."""
        found: Expr | None = None
        alternatives: list[tuple[Expr, dict[str, Expr]]] = []
        for part in pattern.patterns:
            case = _Case()
            _Patterns(self.builder, case).read(part, subject)
            condition = _all_of(case.conditions, self.builder.range_of(part))
            found = condition if found is None else BinOp.create(range, "or", found, condition)
            alternatives.append((condition, case.captures))
        assert found is not None
        self._ask(found)
        *earlier, (_, captured) = alternatives
        for condition, others in reversed(earlier):
            captured = {
                name: TernaryIf.create(range, condition, others[name], value) for name, value in captured.items()
            }
        self.case.captures.update(captured)

    def _sequence(self, pattern: ast.MatchSequence, subject: Expr, range: SourceRange) -> None:
        parts = pattern.patterns
        star = next((index for index, part in enumerate(parts) if isinstance(part, ast.MatchStar)), None)
        least = len(parts) - (star is not None)
        exact: Expr = bare(TrueLiteral if star is None else FalseLiteral, range)
        asks = Var.create(range, Ident.create(range, HAS_LENGTH))
        self._ask(Apply.create(range, asks, [subject, Const.create(range, str(least)), exact]))
        for index, part in enumerate(parts):
            place = self.builder.range_of(part)
            if isinstance(part, ast.MatchStar):
                behind = len(parts) - index - 1
                stop = _number(place, -behind) if behind else None
                taken = Subscript.create(place, subject, [SliceExpr.create(place, _number(place, index), stop, None)])
                if part.name is not None:
                    self.case.captures[part.name] = taken
                continue
            position = index if star is None or index < star else index - len(parts)
            self.read(part, Subscript.create(place, subject, [_number(place, position)]))

    def _class(self, pattern: ast.MatchClass, subject: Expr, range: SourceRange) -> None:
        cls = self.builder.expr(pattern.cls)
        isinstance_of = Var.create(range, Ident.create(range, "isinstance"))
        self._ask(Apply.create(range, isinstance_of, [subject, cls]))
        if pattern.patterns:
            if cls.range.text in ("int", "float", "str", "bool", "list", "tuple"):
                if len(pattern.patterns) > 1:
                    raise refuse("match_pattern", range)
                self.read(pattern.patterns[0], subject)
            else:
                field = Var.create(range, Ident.create(range, POSITIONAL))
                for index, part in enumerate(pattern.patterns):
                    self.read(part, Apply.create(range, field, [subject, cls, _number(range, index)]))
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            self.read(part, Select.create(range, subject, Ident.create(range, name)))

    def _mapping(self, pattern: ast.MatchMapping, subject: Expr, range: SourceRange) -> None:
        keys = self.builder.exprs(pattern.keys)
        isinstance_of = Var.create(range, Ident.create(range, "isinstance"))
        self._ask(Apply.create(range, isinstance_of, [subject, Var.create(range, Ident.create(range, "dict"))]))
        for wanted, part in zip(keys, pattern.patterns, strict=True):
            self._ask(BinOp.create(range, "in", wanted, subject))
            self.read(part, Subscript.create(range, subject, [wanted]))
        if pattern.rest is not None:
            without = Var.create(range, Ident.create(range, WITHOUT))
            self.case.captures[pattern.rest] = Apply.create(range, without, [subject, *keys])


def _number(range: SourceRange, value: int) -> Expr:
    positive = Const.create(range, str(abs(value)))
    return positive if value >= 0 else Expr(Tree("unary_minus", range, (positive.tree,)))

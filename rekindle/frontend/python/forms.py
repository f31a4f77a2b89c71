"""Emit ``type(x)``, which is evaluated at compile time, and ``next(…)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls.special_calls import expect_arguments
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.conditions import class_info, negation, static_condition
from rekindle.frontend.expressions.generators import LAZY
from rekindle.frontend.expressions.primaries import from_library, join_types
from rekindle.frontend.expressions.tensor_classes import emit_test, tensor_subclass
from rekindle.frontend.inference.none_error_messages import class_name
from rekindle.frontend.scopes.refinement import CondValue, RefinementSet
from rekindle.frontend.statements.generator_loops import among_generated, begun, first_of
from rekindle.frontend.statements.loops import generator_of, list_of
from rekindle.frontend.sugared_values.base import StaticValue, SugaredValue
from rekindle.frontend.sugared_values.infinite_iterators import InfiniteIterator, IsliceValue
from rekindle.frontend.sugared_values.iterables import IterableTree
from rekindle.frontend.sugared_values.special_forms import CaughtException, ClassOfCaught
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import (
    ANY,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    INT,
    NUMBER,
    STRING,
    DictType,
    IntType,
    ListType,
    TupleType,
    Type,
    is_open_named_tuple,
    union,
    union_members,
)
from rekindle.syntax.views import Apply, BinOp, Expr, Var


class TypeOf(StaticValue):
    """``type(x)``: a compile-time value. Its name can be read, and ``type(x)`` itself can be compared with classes, but
    not a variable for it. It cannot be used as a value."""

    description = "the class of a value"

    def __init__(self, sugared: SugaredValue, name: Callable[[SourceRange], Value]) -> None:
        self.sugared = sugared
        self.name = name

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(
            "the class of a value is known only while compiling", range, hint="ask isinstance(x, …), or type(x) is …"
        )

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name not in ("__name__", "__qualname__"):
            raise UndefinedNameError(f"'{name}' of type(…) is not known here; its __name__ is", range)
        return SimpleValue(self.name(range))


def _type(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    (item,) = expect_arguments(emitter, call, 1, 1)
    sugared = emitter.emit_sugared(item)
    if isinstance(sugared, CaughtException):
        return ClassOfCaught(sugared.value)

    def name(range: SourceRange) -> Value:
        cls = sugared.class_of_module
        if cls is not None:
            return emitter.graph.insert_constant(cls.__name__, range=range)
        value = sugared.as_value(item.range, emitter.graph)
        return _name_of(emitter, value, list(union_members(value.type)), range)

    return TypeOf(sugared, name)


def _name_of(emitter: Emitter, value: Value, members: list[Type], range: SourceRange) -> Value:
    first, *rest = members
    if first in (ANY, NUMBER) or (is_open_named_tuple(first) and value.node.kind != "prim::TupleConstruct"):
        raise UnsupportedError(f"the class of a value of type {first.annotation} has no name here", range)
    said = emitter.graph.insert_constant(_named(first), range=range)
    if not rest:
        return said
    is_first = emitter.insert_node("prim::isinstance", range, [value], [BOOL], {"types": [_plain(first)]}).output
    node, _, _ = emitter.branch(
        range, is_first, RefinementSet(), lambda: said, lambda: _name_of(emitter, value, rest, range)
    )
    return node.add_output(STRING)


def type_question(emitter: Emitter, expr: BinOp) -> CondValue | None:
    """Emit ``type(x) is int``, ``type(x) != type(y)`` or ``x in (y for …)`` as a condition; return None for other
    comparisons.

    Raises:
        UnsupportedError: the class of a value is data-dependent, and is compared with that of another value.
    """
    if expr.operator == "in":
        generator = generator_of(emitter, expr.rhs, LAZY)
        if generator is not None:
            return CondValue(among_generated(emitter, expr, generator))
    sides = [_argument_of_type(emitter, side) for side in (expr.lhs, expr.rhs)]
    if sides == [None, None] or (expr.operator == "in" and sides[1] is not None):
        return None
    positive = expr.operator in ("is", "==", "in")
    if None not in sides:
        first, second = (_exact_class(emitter, side) for side in sides if side is not None)
        return static_condition(emitter, expr.range, (first == second) is positive)
    operand, classes = (sides[0], expr.rhs) if sides[0] is not None else (sides[1], expr.lhs)
    assert operand is not None
    found = _is_exactly(emitter, operand, classes, expr.range)
    return found if positive else negation(emitter, expr, found)


def _argument_of_type(emitter: Emitter, expr: Expr) -> Expr | None:
    """Return the argument of ``type(x)``; None for other expressions."""
    if expr.tree.kind != Apply.KIND:
        return None
    call = Apply(expr.tree)
    return (
        call.only_argument
        if call.callee_name == "type" and emitter.environment.is_builtin("type", expr.range)
        else None
    )


def _exact_class(emitter: Emitter, expr: Expr) -> object:
    sugared = emitter.emit_sugared(expr)
    if sugared.class_of_module is not None:
        return sugared.class_of_module
    type = sugared.as_value(expr.range, emitter.graph).type
    if len(union_members(type)) > 1 or type in (ANY, NUMBER) or is_open_named_tuple(type):
        raise UnsupportedError(
            f"the class of a value of type {type.annotation} is known only when the program runs",
            expr.range,
            hint="compare it with classes: type(x) is int",
        )
    return _named(type) if isinstance(type, (ListType, TupleType, DictType)) else type.kind + _named(type)


def _is_exactly(emitter: Emitter, operand: Expr, classes: Expr, range: SourceRange) -> CondValue:
    sugared = emitter.emit_sugared(operand)
    if sugared.class_of_module is not None:
        named = emitter.emit_sugared(classes)
        return static_condition(emitter, range, named.python_class(classes.range) is sugared.class_of_module)
    value = sugared.as_value(operand.range, emitter.graph)
    subclass = tensor_subclass(emitter, classes)
    if subclass is not None:
        variable = Var(operand.tree).name.name if operand.tree.kind == Var.KIND else None
        return emit_test(emitter, value, subclass, variable, range, exact=True)
    wanted = [part for type in class_info(emitter, classes) for part in union_members(type)]
    members = union_members(value.type)
    yes = [part for part in members if any(_is_of(part, type) for type in wanted)]
    maybe = [type for type in wanted if any(_may_be(part, type) for part in members)]
    no = [part for part in members if part not in yes]
    names = [Var(operand.tree).name.name] if operand.tree.kind == Var.KIND else []
    if not no:
        return static_condition(emitter, range, True, RefinementSet(dict.fromkeys(names, union(yes))))
    if not yes and not maybe:
        return static_condition(emitter, range, False, RefinementSet({}, dict.fromkeys(names, value.type)))
    kinds = [*map(_plain, yes), *maybe]
    node = emitter.insert_node("prim::isinstance", range, [value], [BOOL], {"types": kinds})
    refinements = RefinementSet(dict.fromkeys(names, union([*yes, *maybe])), dict.fromkeys(names, union(no)))
    # prim::isinstance takes True for an int
    if INT in kinds and BOOL not in kinds and not _HOLDS_BOOL.isdisjoint(members):
        bools: list[Type] = [BOOL]
        is_bool = emitter.insert_node("prim::isinstance", range, [value], [BOOL], {"types": bools}).output
        is_other = emitter.insert("aten::__not__", range, is_bool)
        return CondValue(emitter.insert("aten::__and__", range, node.output, is_other), refinements)
    return CondValue(node.output, refinements)


# ------------------------------------------------------------------------------------------------------------ next


def _next(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit the first element of an iterable: ``next(iter(xs))``, ``next(self.parameters())`` or ``next((x for x in xs
    if …), None)``. Return it.

    Raises:
        UnsupportedError: the argument is a variable, from which elements may have been taken before.
    """
    items = expect_arguments(emitter, call, 1, 2)
    taken = _iterated(emitter, items[0])
    if len(items) == 2:
        taken = begun(emitter, taken, items[1])
    generator = generator_of(emitter, taken, LAZY)
    if generator is not None:
        other = emitter.emit_expression(items[1]) if len(items) == 2 else None
        return SimpleValue(first_of(emitter, generator, other))
    source = emitter.emit_sugared(taken)
    length = None if isinstance(source, SimpleValue) else source.static_length
    if length is None and source.must_unroll:
        length = len(source.as_tuple(call.range, emitter.graph))
    if length is not None and (length > 0 or len(items) == 2):
        if length == 0:
            return emitter.emit_sugared(items[1])
        return source.as_tuple(call.range, emitter.graph)[0]
    if isinstance(source, (InfiniteIterator, IterableTree)):
        bounds = [emitter.literal(bound, call.range) for bound in (0, 1, 1)]
        source = IsliceValue(source, bounds)
    xs = list_of(emitter, call.range, source, None)
    if len(items) == 1:
        return SimpleValue(from_library(emitter, "first_of", call.range, xs))
    default = emitter.emit_expression(items[1])
    count = emitter.insert("aten::len", call.range, xs)
    is_there = emitter.insert("aten::gt", call.range, count, 0)
    first = emitter.literal(0, call.range)
    node, found, other = emitter.branch(
        call.range,
        is_there,
        RefinementSet(),
        lambda: SimpleValue(xs).item(call.range, emitter.graph, first).as_value(call.range, emitter.graph),
        lambda: default,
    )
    return SimpleValue(node.add_output(join_types(emitter, call.range, found, other)))


def _iterated(emitter: Emitter, expr: Expr) -> Expr:
    """Return the argument of ``iter(xs)``; other expressions unchanged.

    Raises:
        UnsupportedError: ``expr`` is a variable, which may hold an iterator.
    """
    if expr.tree.kind == Apply.KIND:
        call = Apply(expr.tree)
        is_iter = call.callee_name == "iter" and emitter.environment.is_builtin("iter", expr.range)
        return (call.only_argument if is_iter else None) or expr
    if expr.tree.kind == Var.KIND:
        raise UnsupportedError(
            "what has been taken out of an iterator so far is not known here",
            expr.range,
            hint="loop over it, or take the first: next(iter(xs))",
        )
    return expr


FORMS: Final[dict[str, FormHandler]] = {
    "type": _type,
    "next": _next,
}


_HOLDS_BOOL: Final = frozenset({ANY, NUMBER, BOOL})
"""Types whose values may be bools."""


def _named(type: Type) -> str:
    if isinstance(type, ListType) and type.python:
        return type.python.partition(":")[0]
    if isinstance(type, DictType) and type.python:
        return type.python.partition(":")[0]
    if isinstance(type, TupleType) and type.name is not None:
        return type.name.rpartition(".")[2]
    if isinstance(type, TupleType) and type.python_class is not None:
        return type.python_class.__name__
    return "dtype" if type.annotation == "torch.dtype" else class_name(type)


def _plain(type: Type) -> Type:
    """Return the type by which ``prim::isinstance`` tests for ``type``: a list for a tuple of variable length, a deque
    and the like."""
    return ListType(type.element) if isinstance(type, ListType) else type


def _may_be(part: Type, wanted: Type) -> bool:
    """Return whether a value of type ``part``, Any or a Scalar, may be of the class ``wanted``, depending on the
    run."""
    return part in (ANY, NUMBER) and (part.accepts(wanted) or wanted == BOOL)


def _is_of(part: Type, wanted: Type) -> bool:
    """Return whether values of type ``part`` have exactly the class ``wanted``, not a derived class."""
    if wanted == ANY_LIST:
        return isinstance(part, ListType) and not part.python
    if wanted == ANY_TUPLE:
        return (isinstance(part, TupleType) and part.fields is None) or (
            isinstance(part, ListType) and part.python == "tuple"
        )
    if isinstance(part, IntType):
        return part == wanted
    return part.kind == wanted.kind and (part == wanted or part.is_subtype_of(wanted))

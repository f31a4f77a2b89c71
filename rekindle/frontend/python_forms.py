"""``type(x)`` and ``next(…)``: what of them has a meaning while compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.generators import LAZY
from rekindle.frontend.none_errors import class_name
from rekindle.frontend.refinement import Condition, Refinements
from rekindle.frontend.sequences import SequenceEmitter
from rekindle.frontend.special_forms import CaughtException, ClassOfCaught
from rekindle.frontend.sugared import StaticValue, SugaredValue
from rekindle.frontend.values import SimpleValue
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
    ListType,
    TupleType,
    Type,
    is_open_named_tuple,
    may_be_bool,
    union,
    union_members,
)
from rekindle.syntax.views import Apply, BinOp, Expr, Var


class TypeOf(StaticValue):
    """``type(x)``: its name is known, and comparisons with classes are answered; as a value it is refused."""

    def __init__(self, meaning: SugaredValue, name: Callable[[SourceRange], Value]) -> None:
        self.meaning = meaning
        self.name = name

    @property
    def description(self) -> str:
        return "the class of a value"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(
            "the class of a value is known only while compiling", range, hint="ask isinstance(x, …), or type(x) is …"
        )

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name not in ("__name__", "__qualname__"):
            raise UndefinedNameError(f"'{name}' of type(…) is not known here; its __name__ is", range)
        return SimpleValue(self.name(range))


class PythonFormEmitter(SequenceEmitter):
    """Emits ``type(x)``, questions that are asked of it, and ``next(…)``."""

    def _type(self, call: Apply, hint: Type | None) -> SugaredValue:
        (item,) = self._expect(call, 1, 1)
        meaning = self.emit_sugared(item)
        if isinstance(meaning, CaughtException):
            return ClassOfCaught(meaning.value)

        def name(range: SourceRange) -> Value:
            cls = meaning.class_of_module
            if cls is not None:
                return self.graph.insert_constant(cls.__name__, range=range)
            value = meaning.as_value(item.range, self.graph)
            return self._name_of(value, list(union_members(value.type)), range)

        return TypeOf(meaning, name)

    def _name_of(self, value: Value, members: list[Type], range: SourceRange) -> Value:
        first, *rest = members
        if first in (ANY, NUMBER) or (is_open_named_tuple(first) and value.node.kind != "prim::TupleConstruct"):
            raise UnsupportedError(f"the class of a value of type {first.annotation} has no name here", range)
        said = self.graph.insert_constant(_named(first), range=range)
        if not rest:
            return said
        asked = self.insert_node("prim::isinstance", range, [value], [BOOL], {"types": [_plain(first)]}).output
        node, _, _ = self.branch(range, asked, Refinements(), lambda: said, lambda: self._name_of(value, rest, range))
        return node.add_output(STRING)

    def type_question(self, expr: BinOp) -> Condition | None:
        """``type(x) is int``, ``type(x) != type(y)``, ``x in (y for …)``; None for other comparisons."""
        if expr.operator == "in":
            generator = self.generator_of(expr.rhs, LAZY)
            if generator is not None:
                return Condition(self.among_generated(expr, generator))
        sides = [self._asked_for(side) for side in (expr.lhs, expr.rhs)]
        if sides == [None, None] or (expr.operator == "in" and sides[1] is not None):
            return None
        positive = expr.operator in ("is", "==", "in")
        if None not in sides:
            first, second = (self._exact_class(side) for side in sides if side is not None)
            return self._static(expr.range, (first == second) is positive)
        asked, classes = (sides[0], expr.rhs) if sides[0] is not None else (sides[1], expr.lhs)
        assert asked is not None
        found = self._is_exactly(asked, classes, expr.range)
        return found if positive else self._negation(expr, found)

    def _asked_for(self, expr: Expr) -> Expr | None:
        """The x of ``type(x)``; None for any other expression."""
        if expr.tree.kind != Apply.KIND:
            return None
        call = Apply(expr.tree)
        if call.callee.tree.kind != Var.KIND or Var(call.callee.tree).name.name != "type" or len(call.inputs) != 1:
            return None
        return call.inputs[0] if self.environment.is_builtin("type", expr.range) else None

    def _exact_class(self, expr: Expr) -> object:
        meaning = self.emit_sugared(expr)
        if meaning.class_of_module is not None:
            return meaning.class_of_module
        type = meaning.as_value(expr.range, self.graph).type
        if len(union_members(type)) > 1 or type in (ANY, NUMBER) or is_open_named_tuple(type):
            raise UnsupportedError(
                f"the class of a value of type {type.annotation} is known only when the program runs",
                expr.range,
                hint="compare it with classes: type(x) is int",
            )
        return _named(type) if isinstance(type, (ListType, TupleType, DictType)) else type.kind + _named(type)

    def _is_exactly(self, asked: Expr, classes: Expr, range: SourceRange) -> Condition:
        sugared = self.emit_sugared(asked)
        if sugared.class_of_module is not None:
            named = self.emit_sugared(classes)
            return self._static(range, named.python_class(classes.range) is sugared.class_of_module)
        wanted = [part for type in self._class_info(classes) for part in union_members(type)]
        value = sugared.as_value(asked.range, self.graph)
        members = union_members(value.type)
        yes = [part for part in members if any(_is_of(part, type) for type in wanted)]
        maybe = [type for type in wanted if any(_may_be(part, type) for part in members)]
        no = [part for part in members if part not in yes]
        names = [Var(asked.tree).name.name] if asked.tree.kind == Var.KIND else []
        if not no:
            return self._static(range, True, Refinements(dict.fromkeys(names, union(yes))))
        if not yes and not maybe:
            return self._static(range, False, Refinements({}, dict.fromkeys(names, value.type)))
        kinds = [*map(_plain, yes), *maybe]
        node = self.insert_node("prim::isinstance", range, [value], [BOOL], {"types": kinds})
        refinements = Refinements(dict.fromkeys(names, union([*yes, *maybe])), dict.fromkeys(names, union(no)))
        if INT in kinds and BOOL not in kinds and may_be_bool(value.type):  # prim::isinstance takes True for an int
            bools: list[Type] = [BOOL]
            is_bool = self.insert_node("prim::isinstance", range, [value], [BOOL], {"types": bools}).output
            is_other = self.insert("aten::__not__", range, is_bool)
            return Condition(self.insert("aten::__and__", range, node.output, is_other), refinements)
        return Condition(node.output, refinements)

    # ------------------------------------------------------------------------------------------------------------ next

    def _next(self, call: Apply, hint: Type | None) -> SugaredValue:
        """The first of ``next(iter(xs))``, ``next(self.parameters())``, ``next((x for x in xs if …), None)``."""
        items = self._expect(call, 1, 2)
        taken = self._iterated(items[0])
        if len(items) == 2:
            taken = self.begun(taken, items[1])
        generator = self.generator_of(taken, LAZY)
        if generator is not None:
            other = self.emit_expression(items[1]) if len(items) == 2 else None
            return SimpleValue(self.first_of(generator, other))
        source = self.emit_sugared(taken)
        length = None if isinstance(source, SimpleValue) else source.static_length
        if length is None and source.must_unroll:
            length = len(source.as_tuple(call.range, self.graph))
        if length is not None and (length > 0 or len(items) == 2):
            if length == 0:
                return self.emit_sugared(items[1])
            return source.as_tuple(call.range, self.graph)[0]
        xs = self.list_of(call.range, source, None)
        if len(items) == 1:
            return SimpleValue(self.from_library("first_of", call.range, xs))
        default = self.emit_expression(items[1])
        count = self.insert("aten::len", call.range, xs)
        is_there = self.insert("aten::gt", call.range, count, 0)
        first = self.literal(0, call.range)
        node, found, other = self.branch(
            call.range,
            is_there,
            Refinements(),
            lambda: SimpleValue(xs).item(call.range, self.graph, first).as_value(call.range, self.graph),
            lambda: default,
        )
        return SimpleValue(node.add_output(self.join_types(call.range, found, other)))

    def _iterated(self, expr: Expr) -> Expr:
        """The xs of ``iter(xs)``; the expression itself where it is no such call."""
        if expr.tree.kind == Apply.KIND:
            call = Apply(expr.tree)
            named = call.callee.tree.kind == Var.KIND and Var(call.callee.tree).name.name == "iter"
            if named and len(call.inputs) == 1 and self.environment.is_builtin("iter", expr.range):
                return call.inputs[0]
            return expr
        if expr.tree.kind == Var.KIND:
            raise UnsupportedError(
                "what has been taken out of an iterator so far is not known here",
                expr.range,
                hint="loop over it, or take the first: next(iter(xs))",
            )
        return expr

    _FORMS: ClassVar[dict[str, Callable[[Any, Apply, Type | None], SugaredValue]]] = {
        **SequenceEmitter._FORMS,
        "type": _type,
        "next": _next,
    }


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
    """The type by which the run knows it."""
    return ListType(type.element) if isinstance(type, ListType) else type


def _may_be(part: Type, asked: Type) -> bool:
    """Whether it depends on the value, of type ``part``, whether it is an ``asked``: a Scalar may hold a bool, too."""
    return part in (ANY, NUMBER) and (part.accepts(asked) or asked == BOOL)


def _is_of(part: Type, asked: Type) -> bool:
    """Whether values of ``part`` are of the class ``asked`` itself, not of one that derives from it."""
    if asked == ANY_LIST:
        return isinstance(part, ListType) and not part.python
    if asked == ANY_TUPLE:
        return (isinstance(part, TupleType) and part.fields is None) or (
            isinstance(part, ListType) and part.python == "tuple"
        )
    return part.kind == asked.kind and (part == asked or part.is_subtype_of(asked))

"""Sets: dicts of bools with the elements as keys, so that what is saved is ordinary TorchScript.

What a program may ask of a set is what does not depend on the order of its elements, which only Python knows: whether
they are in it, how many they are, the operations of sets, and whatever eats all of them whole, such as ``sorted``,
``min`` and ``any``. Loops over a set, ``pop`` and texts of sets are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rekindle.errors import SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.inference import SET, Origin
from rekindle.frontend.python_operators import PythonOperatorEmitter
from rekindle.frontend.set_values import UnboundSetMethod, check_sum
from rekindle.frontend.sugared import Keywords, SugaredValue
from rekindle.frontend.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    DictType,
    ListType,
    Type,
    unshaped,
    without_none,
)
from rekindle.syntax.views import (
    Apply,
    BinOp,
    Expr,
    GeneratorExpr,
    ListComp,
    ListLiteral,
    Select,
    SetComp,
    SetLiteral,
    Starred,
)

_ELEMENTS: Final = (INT, FLOAT, BOOL, STRING)
"""What can be the key of a dict, and so an element of a set."""

_EATS_ALL: Final = frozenset({"sorted", "min", "max", "sum", "any", "all"})
"""Builtins whose answer does not depend on the order in which they are given elements."""

_COMPREHENSIONS: Final = {view.KIND: view for view in (GeneratorExpr, ListComp, SetComp)}

_OPERATORS: Final = {"|": "put_all", "&": "keep_all", "-": "drop_all", "^": "swap_all"}
"""What changes the set on the left by the one on the right."""

_IN_PLACE: Final = {
    "update": "|",
    "intersection_update": "&",
    "difference_update": "-",
    "symmetric_difference_update": "^",
}
_MADE_ANEW: Final = {"union": "|", "intersection": "&", "difference": "-", "symmetric_difference": "^"}
_QUESTIONS: Final = {"issubset", "issuperset", "isdisjoint"}
_OF_ONE: Final = {"add", "discard", "remove"}
_COMPARED: Final = {
    "==": "same_set",
    "!=": "same_set",
    ">=": "has_all",
    ">": "has_more",
    "<=": "has_all",
    "<": "has_more",
}


def is_set(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, DictType) and value.type.is_set


def new_set(range: SourceRange, graph: Graph, element: Type, python: str = "set") -> Value:
    """A set without elements.

    Raises:
        UnsupportedError: such a type cannot be the key of a dict.
    """
    if element not in _ELEMENTS:
        raise UnsupportedError(
            f"the elements of a set are int, float, bool or str in a program, not {element.annotation}",
            range,
            hint="use a list; 'in' asks for its elements, too",
        )
    type = DictType(element, BOOL, python)
    return graph.insert_node(graph.create("prim::DictConstruct", types=[type], range=range)).output


class SetMethod(SugaredValue):
    """``s.add``, ``s.union`` …"""

    def __init__(self, emitter: SetEmitter, value: Value, name: str, origin: Origin | None) -> None:
        self.emitter = emitter
        self.value = value
        self.name = name
        self.origin = origin

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of a set"

    @property
    def takes_meanings(self) -> bool:
        return True

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if kwargs:
            raise TypeMismatchError(f"{self.description} takes no keyword arguments", range)
        if self.name in _OF_ONE:
            if len(args) != 1:
                raise TypeMismatchError(f"{self.description} takes one argument, got {len(args)}", range)
            return self.emitter.change_by_one(range, self, args[0].as_value(range, graph))
        return self.emitter.call_set_method(range, self, args)


class SetEmitter(PythonOperatorEmitter):
    """Emits sets and what is asked of them."""

    # -------------------------------------------------------------------------------------------------------- literals

    def emit_comprehension(self, expr: Expr, hint: Type | None) -> Value:
        if expr.tree.kind == SetLiteral.KIND:
            return self._set_literal(SetLiteral(expr.tree))
        if expr.tree.kind == SetComp.KIND:
            self.order_free.update(_iterables(expr))
            comprehension = SetComp(expr.tree)
            listed = ListComp.create(expr.range, comprehension.element, comprehension.generators)
            return self._set_of(expr.range, self._list_comprehension(listed, None))
        return super().emit_comprehension(expr, hint)

    def _set_literal(self, expr: SetLiteral) -> Value:
        parts = [item for item in expr.items if item.tree.kind == Starred.KIND]
        single = [item for item in expr.items if item.tree.kind != Starred.KIND]
        listed = [self._elements(self.emit_sugared(Starred(item.tree).value), item.range) for item in parts]
        if single:
            listed.append(self.emit_expression(ListLiteral.create(expr.range, single)))
        made = self._set_of(expr.range, listed[0])
        for other in listed[1:]:
            self._change(expr.range, "put_all", made, other)
        return made

    def _set(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``set(…)``, ``frozenset(…)``"""
        (*given,) = self._expect(call, 0, 1)
        python = "frozenset" if call.callee.range.text == "frozenset" else "set"
        if given:
            return SimpleValue(self._set_of(call.range, self._elements_of(given[0]), python))
        wanted = None if hint is None else without_none(hint)
        known = isinstance(wanted, DictType) and wanted.is_set
        element = wanted.key if known and isinstance(wanted, DictType) else INT
        return SimpleValue(new_set(call.range, self.graph, element, python))

    def _set_of(self, range: SourceRange, xs: Value, python: str = "set") -> Value:
        """The set of the elements of a list."""
        assert isinstance(xs.type, ListType)
        made = new_set(range, self.graph, unshaped(xs.type.element), python)
        self._change(range, "put_all", made, xs)
        return made

    def _change(self, range: SourceRange, function: str, found: Value, xs: Value) -> Value:
        return self.from_library(function, range, found, xs)

    # -------------------------------------------------------------------------------------------------------- elements

    def _elements_of(self, expr: Expr) -> Value:
        """The elements of what ``expr`` gives, as a list whose order is not to count."""
        if expr.tree.kind in _COMPREHENSIONS:
            self.order_free.update(_iterables(expr))
        return self._elements(self.emit_sugared(expr), expr.range)

    def _elements(self, found: SugaredValue, range: SourceRange) -> Value:
        if isinstance(found, SimpleValue):
            type = found.value.type
            if isinstance(type, DictType):
                return self.insert("aten::keys", range, found.value)
            if isinstance(type, ListType):
                return found.value
        return self.list_of(range, found, None)

    def _iterator(self, iterable: Expr) -> SugaredValue:
        found = self.emit_sugared(iterable)
        if isinstance(found, SimpleValue) and id(iterable.tree) in self.order_free:
            if is_set(found.value):
                self.order_free.discard(id(iterable.tree))
                return SimpleValue(self.insert("aten::keys", iterable.range, found.value))
        return found.iterator(iterable.range, self.graph)

    def emit_call(self, call: Apply, targets: int, hint: Type | None) -> SugaredValue:
        name = call.callee_name
        if name is not None and name in _EATS_ALL and len(call.inputs) == 1:
            if call.inputs[0].tree.kind in _COMPREHENSIONS and not _has_key(call):
                if self.environment.is_builtin(name, call.callee.range):
                    return self._eat_all(call, name, targets, hint)
        return super().emit_call(call, targets, hint)

    def _eat_all(self, call: Apply, name: str, targets: int, hint: Type | None) -> SugaredValue:
        """``sorted(… for x in s)``, ``any(…)``: the order in which ``s`` is gone through does not show."""
        mine = _iterables(call.inputs[0])
        self.order_free |= mine
        found = super().emit_call(call, targets, hint)
        had_set = not mine <= self.order_free
        self.order_free -= mine
        if had_set and name == "sum":
            check_sum(found.as_value(call.range, self.graph).type, call.range)
        return found

    def unordered_list(self, call: Apply, source: Expr) -> Value:
        if _has_key(call):  # of elements with equal keys the first counts
            return super().unordered_list(call, source)
        return self._elements_of(source)

    # ------------------------------------------------------------------------------------------- methods and operators

    def attribute_of(self, base: SugaredValue, expr: Select, name: str) -> SugaredValue:
        found = super().attribute_of(base, expr, name)
        if isinstance(found, UnboundSetMethod):
            return SetMethod(self, found.value, found.name, self.environment.origin_of(expr.value))
        return found

    def change_by_one(self, range: SourceRange, method: SetMethod, item: Value) -> SugaredValue:
        """``s.add(x)``, ``s.discard(x)``, ``s.remove(x)``"""
        found = method.value
        if method.origin is not None and method.origin.kind == SET:
            self.evidence.learn(method.origin, key=item.type)
        self._check_changes(range, method)
        if method.name == "add":
            yes = self.graph.insert_constant(True, range=range)
            self.call_builtin("aten::_set_item", range, found, item, yes)
        elif method.name == "remove":
            self.call_builtin("aten::Delete", range, found, item)
        else:
            self.from_library("discard", range, found, item)
        return SimpleValue(self.graph.insert_constant(None, range=range))

    def _check_changes(self, range: SourceRange, method: SetMethod) -> None:
        if _type_of(method.value).python == "frozenset":
            raise UndefinedNameError(f"a frozenset has no method '{method.name}'", range, hint="make it a set: set(…)")

    def call_set_method(self, range: SourceRange, method: SetMethod, args: Sequence[SugaredValue]) -> SugaredValue:
        name, found = method.name, method.value
        if name in _IN_PLACE or name == "clear":
            self._check_changes(range, method)
        if name in ("clear", "copy") or name in _QUESTIONS:
            wanted = 1 if name in _QUESTIONS else 0
            if len(args) != wanted:
                raise TypeMismatchError(f"{method.description} takes {wanted} arguments, got {len(args)}", range)
        if name == "clear":
            self.call_builtin("aten::clear", range, found)
            return SimpleValue(self.graph.insert_constant(None, range=range))
        others = [self._elements(item, range) for item in args]
        if name in _QUESTIONS:
            if name == "issubset":
                mine = self.insert("aten::keys", range, found)
                return SimpleValue(self._change(range, "has_all", self._set_of(range, others[0]), mine))
            question = "has_all" if name == "issuperset" else "has_none"
            return SimpleValue(self._change(range, question, found, others[0]))
        if name in _IN_PLACE:
            for other in others:
                if method.origin is not None and method.origin.kind == SET and isinstance(other.type, ListType):
                    self.evidence.learn(method.origin, key=other.type.element)
                self._combine(range, _IN_PLACE[name], found, other)
            return SimpleValue(self.graph.insert_constant(None, range=range))
        made = self._copied(range, found)
        for other in others:
            self._combine(range, _MADE_ANEW[name], made, other)
        return SimpleValue(made)

    def _copied(self, range: SourceRange, found: Value) -> Value:
        return self.call_builtin("aten::copy", range, found).set_type(found.type)

    def _combine(self, range: SourceRange, operator: str, found: Value, xs: Value) -> None:
        """Change a set by a list of elements."""
        if operator == "^":
            xs = self.insert("aten::keys", range, self._set_of(range, xs))  # each of them once
        self._change(range, _OPERATORS[operator], found, xs)

    def special_binary(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        if not is_set(lhs) or not is_set(rhs):
            return super().special_binary(operator, lhs, rhs, expr)
        range = expr.range
        if operator in _OPERATORS:
            made = self._copied(range, lhs)
            self._combine(range, operator, made, self.insert("aten::keys", range, rhs))
            return made
        if operator not in _COMPARED:
            return None
        first, second = (rhs, lhs) if operator in ("<", "<=") else (lhs, rhs)
        answer = self._change(range, _COMPARED[operator], first, self.insert("aten::keys", range, second))
        return answer if operator != "!=" else self.insert("aten::__not__", range, answer)

    def augment_set(
        self, range: SourceRange, operator: str, found: Value, other: Value, origin: Origin | None
    ) -> Value:
        """``s |= t`` and the like, which change a set in place."""
        if operator not in _OPERATORS or not is_set(other):
            raise TypeMismatchError(f"'{operator}=' of a set takes a set, got {other.type.annotation}", range)
        if origin is not None and origin.kind == SET:
            self.evidence.learn(origin, key=_type_of(other).key)
        if _type_of(found).python == "frozenset":
            found = self._copied(range, found)
        self._combine(range, operator, found, self.insert("aten::keys", range, other))
        return found

    _FORMS: ClassVar[dict[str, Callable[[Any, Apply, Type | None], SugaredValue]]] = {
        **PythonOperatorEmitter._FORMS,
        "set": _set,
        "frozenset": _set,
    }


def _type_of(value: Value) -> DictType:
    assert isinstance(value.type, DictType)
    return value.type


def _has_key(call: Apply) -> bool:
    return any(item.name.name == "key" for item in call.attributes)


def _iterables(expr: Expr) -> set[int]:
    """What a comprehension goes over, by the identity of the trees."""
    view = _COMPREHENSIONS[expr.tree.kind](expr.tree)
    return {id(item.iterable.tree) for item in view.generators}

"""Sets: dicts of bools with the elements as keys, so that saved programs are ordinary TorchScript.

Programs can use a set in ways that do not depend on the order of its elements, which only Python knows: membership,
length, set operations, and functions that consume all elements, such as ``sorted``, ``min`` and ``any``. Other loops
over a set, ``pop`` and the conversion of sets to strings are rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls.special_calls import expect_arguments
from rekindle.frontend.containers.set_values import UnboundSetMethod, is_set
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.primaries import call_builtin, from_library
from rekindle.frontend.expressions.unordered import elements_in_any_order, elements_of_value, iterables_of
from rekindle.frontend.inference.type_inference import SET, FirstAssignment
from rekindle.frontend.inference.usage_inference import learn_nested
from rekindle.frontend.statements.loops import list_comprehension
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue
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
    ListComp,
    ListLiteral,
    Select,
    SetComp,
    SetLiteral,
    Starred,
)

_ELEMENTS: Final = (INT, FLOAT, BOOL, STRING)
"""Types of dict keys, and so of set elements."""

_OPERATORS: Final = {"|": "put_all", "&": "keep_all", "-": "drop_all", "^": "swap_all"}
"""Functions that update the set on the left by the one on the right."""

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


def new_set(range: SourceRange, graph: Graph, element: Type, python: str = "set") -> Value:
    """Insert a set without elements, and return it.

    Raises:
        UnsupportedError: ``element`` cannot be the key type of a dict.
    """
    if element not in _ELEMENTS:
        raise UnsupportedError(
            f"the elements of a set are int, float, bool or str in a program, not {element.annotation}",
            range,
            hint="use a list; 'in' asks for its elements, too",
        )
    type = DictType(element, BOOL, python)
    return graph.insert_node(graph.create("prim::DictConstruct", types=[type], range=range)).output


class SetMethod(SugaredFunction):
    """A method of a set, such as ``s.add`` or ``s.union``, bound to the set."""

    def __init__(self, emitter: Emitter, value: Value, name: str, origin: FirstAssignment | None) -> None:
        self.emitter = emitter
        self.value = value
        self.name = name
        self.origin = origin
        self.owner: Expr | None = None
        """The expression whose value the set is, if the method is an attribute in the source."""

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of a set"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if kwargs:
            raise TypeMismatchError(f"{self.description} takes no keyword arguments", range)
        if self.name in _OF_ONE:
            if len(args) != 1:
                raise TypeMismatchError(f"{self.description} takes one argument, got {len(args)}", range)
            return change_by_one(self.emitter, range, self, args[0].as_value(range, graph))
        return call_set_method(self.emitter, range, self, args)


# -------------------------------------------------------------------------------------------------------- literals


def emit_set_comprehension(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    emitter.order_free.update(iterables_of(expr))
    comprehension = SetComp(expr.tree)
    listed = ListComp.create(expr.range, comprehension.element, comprehension.generators)
    return _set_of(emitter, expr.range, list_comprehension(emitter, listed, None))


def emit_set(emitter: Emitter, literal: Expr, hint: Type | None) -> Value:
    expr = SetLiteral(literal.tree)
    parts = [item for item in expr.items if item.tree.kind == Starred.KIND]
    single = [item for item in expr.items if item.tree.kind != Starred.KIND]
    listed = [elements_of_value(emitter, emitter.emit_sugared(Starred(item.tree).value), item.range) for item in parts]
    if single:
        listed.append(emitter.emit_expression(ListLiteral.create(expr.range, single)))
    made = _set_of(emitter, expr.range, listed[0])
    for other in listed[1:]:
        _change(emitter, expr.range, "put_all", made, other)
    return made


def _set(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``set(…)`` or ``frozenset(…)``."""
    (*given,) = expect_arguments(emitter, call, 0, 1)
    python = "frozenset" if call.callee.range.text == "frozenset" else "set"
    if given:
        return SimpleValue(_set_of(emitter, call.range, elements_in_any_order(emitter, given[0]), python))
    wanted = None if hint is None else without_none(hint)
    known = isinstance(wanted, DictType) and wanted.is_set
    element = wanted.key if known and isinstance(wanted, DictType) else INT
    return SimpleValue(new_set(call.range, emitter.graph, element, python))


def _set_of(emitter: Emitter, range: SourceRange, xs: Value, python: str = "set") -> Value:
    """Emit the set of the elements of a list, and return it."""
    assert isinstance(xs.type, ListType)
    made = new_set(range, emitter.graph, unshaped(xs.type.element), python)
    _change(emitter, range, "put_all", made, xs)
    return made


def _change(emitter: Emitter, range: SourceRange, function: str, found: Value, xs: Value) -> Value:
    return from_library(emitter, function, range, found, xs)


# ------------------------------------------------------------------------------------------- methods and operators


def attribute_of_set(emitter: Emitter, base: SugaredValue, expr: Select, name: str) -> SugaredValue | None:
    if not isinstance(base, SimpleValue) or not is_set(base.value):
        return None
    found = base.attribute(expr.range, emitter.graph, name)
    if isinstance(found, UnboundSetMethod):
        method = SetMethod(emitter, found.value, found.name, emitter.environment.origin_of(expr.value))
        method.owner = expr.value
        return method
    return found


def change_by_one(emitter: Emitter, range: SourceRange, method: SetMethod, item: Value) -> SugaredValue:
    """Emit ``s.add(x)``, ``s.discard(x)`` or ``s.remove(x)``. Record the type of ``x`` as evidence for the element type
    of the set.

    Raises:
        UndefinedNameError: the set is a frozenset.
    """
    found = method.value
    if method.origin is not None and method.origin.kind == SET:
        emitter.evidence.record(method.origin, key=item.type)
    elif method.origin is None and method.owner is not None:
        learn_nested(emitter, method.owner, DictType(item.type, BOOL, "set"))
    _check_changes(emitter, range, method)
    if method.name == "add":
        yes = emitter.graph.insert_constant(True, range=range)
        call_builtin(emitter, "aten::_set_item", range, found, item, yes)
    elif method.name == "remove":
        call_builtin(emitter, "aten::Delete", range, found, item)
    else:
        from_library(emitter, "discard", range, found, item)
    return SimpleValue(emitter.graph.insert_constant(None, range=range))


def _check_changes(emitter: Emitter, range: SourceRange, method: SetMethod) -> None:
    if _type_of(method.value).python == "frozenset":
        raise UndefinedNameError(f"a frozenset has no method '{method.name}'", range, hint="make it a set: set(…)")


def call_set_method(
    emitter: Emitter, range: SourceRange, method: SetMethod, args: Sequence[SugaredValue]
) -> SugaredValue:
    name, found = method.name, method.value
    if name in _IN_PLACE or name == "clear":
        _check_changes(emitter, range, method)
    if name in ("clear", "copy") or name in _QUESTIONS:
        wanted = 1 if name in _QUESTIONS else 0
        if len(args) != wanted:
            raise TypeMismatchError(f"{method.description} takes {wanted} arguments, got {len(args)}", range)
    if name == "clear":
        call_builtin(emitter, "aten::clear", range, found)
        return SimpleValue(emitter.graph.insert_constant(None, range=range))
    others = [elements_of_value(emitter, item, range) for item in args]
    if name in _QUESTIONS:
        if name == "issubset":
            mine = emitter.insert("aten::keys", range, found)
            return SimpleValue(_change(emitter, range, "has_all", _set_of(emitter, range, others[0]), mine))
        question = "has_all" if name == "issuperset" else "has_none"
        return SimpleValue(_change(emitter, range, question, found, others[0]))
    if name in _IN_PLACE:
        for other in others:
            if method.origin is not None and method.origin.kind == SET and isinstance(other.type, ListType):
                emitter.evidence.record(method.origin, key=other.type.element)
            _combine(emitter, range, _IN_PLACE[name], found, other)
        return SimpleValue(emitter.graph.insert_constant(None, range=range))
    made = _copied(emitter, range, found)
    for other in others:
        _combine(emitter, range, _MADE_ANEW[name], made, other)
    return SimpleValue(made)


def _copied(emitter: Emitter, range: SourceRange, found: Value) -> Value:
    return call_builtin(emitter, "aten::copy", range, found).set_type(found.type)


def _combine(emitter: Emitter, range: SourceRange, operator: str, found: Value, xs: Value) -> None:
    """Emit the in-place update of the set ``found`` with the elements of the list ``xs``, by the set ``operator``."""
    if operator == "^":
        xs = emitter.insert("aten::keys", range, _set_of(emitter, range, xs))  # each of them once
    _change(emitter, range, _OPERATORS[operator], found, xs)


def operator_of_sets(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    if not is_set(lhs) or not is_set(rhs):
        return None
    range = expr.range
    if operator in _OPERATORS:
        made = _copied(emitter, range, lhs)
        _combine(emitter, range, operator, made, emitter.insert("aten::keys", range, rhs))
        return made
    if operator not in _COMPARED:
        return None
    first, second = (rhs, lhs) if operator in ("<", "<=") else (lhs, rhs)
    answer = _change(emitter, range, _COMPARED[operator], first, emitter.insert("aten::keys", range, second))
    return answer if operator != "!=" else emitter.insert("aten::__not__", range, answer)


def augment_set(
    emitter: Emitter, range: SourceRange, operator: str, found: Value, other: Value, origin: FirstAssignment | None
) -> Value:
    """Emit ``s |= t`` and the other augmented assignments of sets, which change a set in place; return the set to
    assign. For a frozenset, it is a changed copy.

    Raises:
        TypeMismatchError: the operand is not a set, or sets have no such operator.
    """
    if operator not in _OPERATORS or not is_set(other):
        raise TypeMismatchError(f"'{operator}=' of a set takes a set, got {other.type.annotation}", range)
    if origin is not None and origin.kind == SET:
        emitter.evidence.record(origin, key=_type_of(other).key)
    if _type_of(found).python == "frozenset":
        found = _copied(emitter, range, found)
    _combine(emitter, range, operator, found, emitter.insert("aten::keys", range, other))
    return found


FORMS: Final[dict[str, FormHandler]] = {
    "set": _set,
    "frozenset": _set,
}


def _type_of(value: Value) -> DictType:
    assert isinstance(value.type, DictType)
    return value.type

"""Emit binary operators on values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from rekindle.errors import SourceRange
from rekindle.frontend.calls.enum_members import defined, plain_type, plain_value
from rekindle.frontend.containers.set_values import is_set
from rekindle.frontend.containers.tuple_comparison import COMPARISONS, compare_tuples, compares_tuples
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.operator_kinds import BINARY_KINDS
from rekindle.frontend.inference.none_error_messages import none_operand
from rekindle.frontend.inference.type_inference import DICT, LIST
from rekindle.frontend.python.result_types import with_none
from rekindle.frontend.sugared_values.base import CallSite
from rekindle.frontend.sugared_values.special_forms import MagicMethod
from rekindle.frontend.sugared_values.values import BuiltinFunction
from rekindle.ir.node import Value
from rekindle.ir.operators.schema_matching import unpack_tuple
from rekindle.ir.types import (
    NONE,
    ClassType,
    DictType,
    EnumType,
    ListType,
    NoneType,
    StringType,
    TupleType,
    Type,
    join_values,
    number_beside_tensor,
    number_members,
    without_none,
)
from rekindle.syntax.views import BinOp


def binary(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value:
    """Emit ``lhs operator rhs``, and return its value; for ``x in y``, the method of y is called. ``expr`` has the
    source locations.

    Raises:
        CompileError: no operator or method fits the operands.
    """
    if operator in ("==", "!=") and (value := _compared_with_none(lhs, rhs)) is not None:
        return _is_none(emitter, operator == "==", with_none(value, expr.range), expr.range)
    if number_beside_tensor(lhs.type) is not None:
        return emitter.split(lhs, expr.range, lambda part: binary(emitter, operator, part, rhs, expr))
    if number_beside_tensor(rhs.type) is not None:
        return emitter.split(rhs, expr.range, lambda part: binary(emitter, operator, lhs, part, expr))
    kind, method = BINARY_KINDS[operator]
    if lhs.type.is_optional or rhs.type.is_optional:
        lhs, rhs = present_operands(emitter, operator, lhs, rhs, expr.range)
    if operator == "+" and isinstance(lhs.type, TupleType) and isinstance(rhs.type, TupleType):
        values = [*unpack_tuple(emitter.graph, lhs, expr.range), *unpack_tuple(emitter.graph, rhs, expr.range)]
        type = TupleType(tuple(value.type for value in values))
        return emitter.insert_node("prim::TupleConstruct", expr.range, values, [type]).output
    lhs, rhs = _plain_members(emitter, operator, lhs, rhs, expr)
    if operator in COMPARISONS and emitter.graph.follows_python:
        if (equal := _compared_with_empty(emitter, operator, lhs, rhs, expr)) is not None:
            return equal
        if operator in ("==", "!=") and are_never_equal(lhs, rhs):
            return emitter.graph.insert_constant(operator == "!=", range=expr.range)
        give_empty_literals_types(lhs, rhs)
    if operator in ("+", "==", "!=") and emitter.graph.follows_python:
        lhs, rhs = as_one_list(emitter, lhs, rhs, expr.range)
    if compares_tuples(operator, lhs, rhs):
        return compare_tuples(emitter, lambda op, a, b: binary(emitter, op, a, b, expr), operator, lhs, rhs, expr.range)
    if operator == "%" and isinstance(lhs.type, StringType):
        kind = "aten::percentFormat"
    if operator == "in" and (among := _among_members(emitter, lhs, rhs, expr.range)) is not None:
        return among
    for emit in emitter.language.operators:
        found = emit(emitter, operator, lhs, rhs, expr)
        if found is not None:
            return found
    if operator == "/" and "ComplexType" in (lhs.type.kind, rhs.type.kind):
        lhs, rhs = _complex(emitter, lhs, expr.lhs.range), _complex(emitter, rhs, expr.rhs.range)
    arguments = [emitter.argument(lhs, expr.lhs.range), emitter.argument(rhs, expr.rhs.range)]
    if operator == "in":
        arguments.reverse()
    target = MagicMethod(method, BuiltinFunction(kind))
    return target.call(CallSite(expr.range, emitter.graph, arguments)).as_value(expr.range, emitter.graph)


def _compared_with_none(lhs: Value, rhs: Value) -> Value | None:
    """Return the operand that is compared with None, which only None equals. Return None if neither operand is None, or
    the class of the other one has a method that compares."""
    for value, other in ((lhs, rhs), (rhs, lhs)):
        if other.type == NONE:
            type = without_none(value.type)
            compares = isinstance(type, ClassType) and bool({"__eq__", "__ne__"} & type.methods.keys())
            return None if compares else value
    return None


def _is_none(emitter: Emitter, if_none: bool, value: Value, range: SourceRange) -> Value:
    """Emit ``value is None`` if ``if_none``, else ``value is not None``."""
    if value.type == NONE or not value.type.is_optional:
        return emitter.graph.insert_constant((value.type == NONE) is if_none, range=range)
    none = emitter.graph.insert_constant(None, range=range)
    return emitter.insert("aten::__is__" if if_none else "aten::__isnot__", range, value, none)


def _plain_members(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> tuple[Value, Value]:
    """Return the operands of an operator. Members of enums that are numbers or strings are replaced by these, unless
    both operands are compared as members of one enum."""
    if lhs.type == rhs.type and operator in ("==", "!="):
        return lhs, rhs
    if operator == "in" and isinstance(rhs.type, ListType) and rhs.type.element == lhs.type:
        return lhs, rhs
    return plain_value(emitter.graph, lhs, expr.lhs.range), plain_value(emitter.graph, rhs, expr.rhs.range)


def _compared_with_empty(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    """Emit ``lhs == rhs`` or ``lhs != rhs``, of lists or dicts one of which is empty, as no use shows the type of its
    elements: compare the lengths. The program raises an error if neither is empty after all, because a function that
    takes tensors has filled one. Return None for other operands."""
    if operator not in ("==", "!=") or lhs.type.kind != rhs.type.kind or are_never_equal(lhs, rhs):
        return None
    if not isinstance(lhs.type, (ListType, DictType)) or is_set(lhs) or is_set(rhs):
        return None
    are_empty = [_is_empty_dict(value) for value in (lhs, rhs)]
    origins = [emitter.environment.origin_of(side) for side in (expr.lhs, expr.rhs)]
    unknown = [
        origin is not None and origin.kind in (LIST, DICT) and emitter.evidence.type_of(origin) is None
        for origin in origins
    ]
    if not all(are_empty) and (not any(unknown) or (isinstance(lhs.type, ListType) and lhs.type == rhs.type)):
        return None
    lengths = [emitter.insert("aten::len", expr.range, value) for value in (lhs, rhs)]
    if not all(are_empty):
        _check_one_is_empty(emitter, lengths, expr.range)
    return emitter.insert("aten::eq" if operator == "==" else "aten::ne", expr.range, *lengths)


def _check_one_is_empty(emitter: Emitter, lengths: Sequence[Value], range: SourceRange) -> None:
    are_filled = [emitter.insert("aten::gt", range, length, 0) for length in lengths]
    both = emitter.insert("aten::__and__", range, *are_filled)
    node = emitter.insert_node("prim::If", range, [both], [])
    with emitter.inside(node.add_block()):
        message = "a list or dict of tensors is compared with one of other elements"
        said = [emitter.graph.insert_constant(text, range=range) for text in (message, "builtins.NotImplementedError")]
        emitter.graph.insert_node(emitter.graph.create("prim::RaiseException", said, outputs=0, range=range))
    node.add_block()


def _is_empty_dict(value: Value) -> bool:
    return value.node.kind == "prim::DictConstruct" and not value.node.inputs and not value.has_uses


def _among_members(emitter: Emitter, item: Value, container: Value, range: SourceRange) -> Value | None:
    """Emit ``item in (Color.RED, Color.GREEN)`` as comparisons, since no operator searches for members of enums; return
    None for other containers."""
    kinds = set(container.type.elements) if isinstance(container.type, TupleType) else set()
    if kinds != {item.type} or not isinstance(item.type, EnumType):
        return None
    first, *others = (
        emitter.insert("aten::eq", range, item, member) for member in unpack_tuple(emitter.graph, container, range)
    )
    return reduce(lambda found, equal: emitter.insert("aten::__or__", range, found, equal), others, first)


def as_one_list(emitter: Emitter, lhs: Value, rhs: Value, range: SourceRange) -> tuple[Value, Value]:
    """Return both operands of a concatenation, which creates a new list, or of a comparison. If they are lists of
    different number types, they are cast to lists of the common type."""
    if not isinstance(lhs.type, ListType) or not isinstance(rhs.type, ListType) or lhs.type == rhs.type:
        return lhs, rhs
    element = join_values(lhs.type.element, rhs.type.element)
    if element is None or element == lhs.type.element == rhs.type.element:
        return lhs, rhs
    wanted, cast = ListType(element), emitter.environment.cast
    return cast(lhs, wanted, range), cast(rhs, wanted, range)


def present_operands(
    emitter: Emitter, operator: str, lhs: Value, rhs: Value, range: SourceRange
) -> tuple[Value, Value]:
    """Return the operands of an operator that does not accept None, with checks emitted that raise TypeError if an
    Optional one is None. Operands of ``==``, ``!=``, script classes and string formatting are unchanged, since these
    may accept None, and so are the item of ``in``, operands beside None, and all in programs from archives."""
    if operator in ("==", "!=") or not emitter.graph.follows_python:
        return lhs, rhs
    types = without_none(lhs.type), without_none(rhs.type)
    if any(isinstance(type, ClassType) for type in types) or NONE in types:
        return lhs, rhs
    if operator == "%" and isinstance(lhs.type, StringType):
        return lhs, rhs  # "%s" % None
    checked = [
        emitter.present(value, range, none_operand(operator, *types, lhs_is_none=is_lhs))
        if value.type.is_optional and (operator != "in" or not is_lhs)
        else value
        for value, is_lhs in ((lhs, True), (rhs, False))
    ]
    return checked[0], checked[1]


def _complex(emitter: Emitter, value: Value, range: SourceRange) -> Value:
    """Emit the conversion of an int or a float to a complex number, because a quotient with one would get the type
    float. Other values are returned unchanged."""
    if value.type.kind in ("IntType", "FloatType"):
        return emitter.insert("aten::Complex", range, value, 0)
    return value


def are_never_equal(one: Value, other: Value) -> bool:
    """Return whether no two values of these kinds are equal in Python."""
    kinds = _kinds(one), _kinds(other)
    return bool(kinds[0]) and bool(kinds[1]) and not kinds[0] & kinds[1]


def _kinds(value: Value) -> frozenset[str]:
    """Return the names of the classes that the value may have in Python; empty if the type does not determine them."""
    type = value.type
    if number_members(type) is not None:
        return frozenset({"number"})
    if isinstance(type, NoneType):
        return frozenset({"None"})
    if isinstance(type, EnumType) and plain_type(type) is None and type.python_class is not None:
        return frozenset({type.name}) if defined(type.python_class, "__eq__") is object.__eq__ else frozenset()
    if isinstance(type, StringType):
        return frozenset({"str"})
    if isinstance(type, TupleType):
        return frozenset({"tuple"})
    if isinstance(type, DictType):
        return frozenset({"set" if type.is_set else "dict"})
    if isinstance(type, ListType):
        if type.is_tuple:
            return frozenset({"tuple"})
        if type.is_deque:
            return frozenset({"deque"})
        return frozenset({"list", "set"})  # the keys of a dict are a list here
    return frozenset()


def give_empty_literals_types(one: Value, other: Value) -> None:
    """Change the type of an operand that is an unused ``[]`` or ``{}``, or a list or dict literal of such, to the type
    of the list or dict with which it is compared. A dict literal stays a dict beside a dict of another class."""
    for literal, beside in ((one, other), (other, one)):
        changes: list[tuple[Value, Type]] = []
        if not literal.has_uses and _may_have_type(literal, beside.type, changes):
            for value, type in changes:
                value.set_type(type)


def _may_have_type(literal: Value, type: Type, changes: list[tuple[Value, Type]]) -> bool:
    """Return whether ``literal`` has the type, or may have it since it is, or contains, empty literals; add the changes
    of types that this takes to ``changes``."""
    if literal.type == type:
        return True
    node = literal.node
    if literal.type.kind != type.kind or len(literal.uses) > 1:
        return False
    if node.kind == "prim::ListConstruct" and isinstance(type, ListType):
        parts = [(item, type.element) for item in node.inputs]
    elif node.kind == "prim::DictConstruct" and isinstance(type, DictType):
        parts = [(item, type.value if index % 2 else type.key) for index, item in enumerate(node.inputs)]
        assert isinstance(literal.type, DictType)
        type = DictType(type.key, type.value, literal.type.python)
    elif node.kind == "prim::EmptyListLiteral":
        parts = []
    else:
        return False
    changes.append((literal, type))
    return all(_may_have_type(part, wanted, changes) for part, wanted in parts)

"""Overload resolution: selects the overload of a call, and creates the nodes that convert its arguments.

Overloads are tried in order: first as the arguments are, then with implicit conversions, and last, in programs from
Python, with checks that what may be None is not (:mod:`rekindle.ir.none_checks`). Matching is done in two
steps, so that an overload which does not fit leaves nothing in the graph: :func:`try_match_schema` compares types only
and gives a plan of every input, :meth:`MatchedSchema.inputs` makes the nodes.

Conversions:

* an int or float stands for an ``int[2]``, repeated;
* trailing positional arguments of an operator stand for a list (``x.view(2, 3)``), a tuple for a list of its elements'
  type;
* with ``conversions``: a Tensor for an int, float or Scalar (``aten::IntImplicit`` …), a Scalar for an int or float,
  a bool for an int, float or Scalar, a str for a Device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rekindle.errors import UNKNOWN_RANGE, Cause, SchemaError, SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.container_literals import can_be_made_as, make_as
from rekindle.ir.operators.named_value import InputBuilder, NamedValue as NamedValue
from rekindle.ir.operators.none_checking import NoneCheckingCall, can_check, has_lacking_items
from rekindle.ir.operators.number_classes import number_class_mismatch
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.operators.repetition import repeat
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    Bindings,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    has_free_variables,
    is_open_number,
    lost_class,
    match_variables,
    mismatch_note,
    number_beside_tensor,
    number_members,
    open_tuple_in,
    substitute,
    without_none,
)


def argument(item: object, range: SourceRange = UNKNOWN_RANGE, name: str | None = None) -> NamedValue:
    """Return ``item``, a :class:`Value` or a Python constant, as an argument of a call; a :class:`NamedValue`
    unchanged."""
    if isinstance(item, NamedValue):
        return item
    if isinstance(item, Value):
        return NamedValue(item, range=range, name=name)
    return NamedValue(constant=item, range=range, name=name)


@dataclass(slots=True)
class MatchedSchema:
    """The match of a call with a schema: one builder for each input, and the types of the results."""

    schema: FunctionSchema
    builders: list[InputBuilder]
    return_types: list[Type]

    def inputs(self, graph: Graph, range: SourceRange) -> list[Value]:
        """Insert the inputs at the graph's insertion point, and return them."""
        return [build(graph, range) for build in self.builders]


class SchemaMismatch(Exception):
    """Raised if a call does not match a schema. A message that is expensive to build is a function: most overloads that
    do not match precede one that does, and their messages are never shown."""

    def __init__(self, message: str | Callable[[], str], cause: Cause = Cause.TYPE_MISMATCH) -> None:
        super().__init__()
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        return _text_of(self.message)


def _text_of(message: str | Callable[[], str]) -> str:
    return message if isinstance(message, str) else message()


# ----------------------------------------------------------------------------------- converting values


def is_empty_list_literal(argument: NamedValue) -> bool:
    """Return whether the argument is ``[]`` without an annotation, which fits every list type."""
    return argument.value is not None and argument.value.node.kind == "prim::EmptyListLiteral"


def convert(argument: NamedValue, type: Type, conversions: bool) -> tuple[InputBuilder, Type]:
    """Return a builder that converts ``argument`` towards ``type``, as far as implicit conversions exist, and the type
    of its result, which may still not be a subtype of ``type``."""
    actual = argument.type
    if actual is type and not type.contained:
        return argument_builder(argument), actual
    if argument.value is not None and _is_assumed(argument.value) and not has_free_variables(type):
        return _reveal(argument.value, type), type
    if isinstance(type, OptionalType) and not actual.is_optional:
        return convert(argument, type.element, conversions)
    if isinstance(type, UnionType) and type.is_optional and is_open_number(actual):
        return convert(argument, without_none(type), conversions)
    fitting = open_tuple_in(type) if isinstance(actual, TupleType) and not actual.is_subtype_of(type) else None
    if fitting is not None:
        return convert(argument, fitting, conversions)
    if isinstance(type, ListType) and is_empty_list_literal(argument):
        return _empty_list(type), type
    if argument.value is not None and can_be_made_as(argument.value, type, conversions=conversions):
        literal = argument.value
        return lambda graph, range: make_as(literal, type), type
    if isinstance(actual, TupleType):
        # Only the formal type determines the element type of an empty tuple.
        empty = not actual.elements and has_free_variables(type)
        if isinstance(type, ListType) and not empty and _all_fit(actual, type.element, conversions):
            return _tuple_to_list(argument, type, conversions), type
        if (
            isinstance(type, TupleType)
            and not actual.is_subtype_of(type)
            and len(actual.elements) == len(type.elements)
            and argument.value is not None
            and not (_follows_python(argument.value) and _has_class(actual, type))
        ):
            return _convert_tuple(argument, actual, type, conversions)
    if _is_list_of_numbers(type) and _is_list_of_numbers(actual) and actual != type and argument.value is not None:
        if type.contained[0] == NUMBER and _follows_python(argument.value):
            return _cast(argument, type), type
    if argument.value is None and type == FLOAT and actual == INT and conversions:
        # A default such as `float eps=0` is an int only in its spelling.
        return argument_builder(NamedValue(constant=float(_int(argument.constant)), range=argument.range)), FLOAT
    if conversions:
        if type == FLOAT and actual == INT and argument.value is not None and _follows_python(argument.value):
            return _call("aten::Float", argument), FLOAT
        kind = _implicit_conversion(actual, type)
        if isinstance(type, UnionType) and (argument.value is None or not _follows_python(argument.value)):
            kind = None
        if kind is not None:
            if is_open_number(actual) and type != NUMBER:
                return _from_open_number(kind, argument, type), type
            return _cast(argument, type) if kind == "prim::unchecked_cast" else _call(kind, argument), type
    return argument_builder(argument), actual


def _has_class(actual: TupleType, wanted: TupleType) -> bool:
    """Return whether the conversion of a tuple to ``wanted`` would remove a NamedTuple's class, or add one."""
    return actual.fields is not None or wanted.fields is not None


def _is_list_of_numbers(type: Type) -> bool:
    return isinstance(type, ListType) and not type.python and is_open_number(type.element)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _follows_python(value: Value) -> bool:
    """Return whether the value is part of a program from Python, where an int may be passed for a float."""
    return value.node.graph.follows_python


def _stays_tensor(argument: NamedValue, type: Type) -> bool:
    """Return whether the argument is a Tensor where a number is declared, in a program from Python.

    Operators take such a Tensor for a number, as they do in Python. A variable, a container or a function would hold
    the Tensor in Python: a number in its place has another type, and no gradient. Through the drop-in, functions take
    its number, and raise where a gradient would be lost.
    """
    value = argument.value
    if value is None or not isinstance(argument.type, TensorType) or not _follows_python(value):
        return False
    return number_members(without_none(type)) is not None


def _passes_numbers(argument: NamedValue) -> bool:
    return argument.value is not None and argument.value.node.graph.tensors_as_numbers


def _is_assumed(value: Value) -> bool:
    """Return whether the value has a default type, Tensor or a tuple, because nothing declares what its producer
    returns."""
    node = value.node
    if not isinstance(value.type, (TensorType, TupleType)):
        return False  # its position determines its type
    if node.kind == "prim::CallMethod":
        receiver, *_ = node.inputs
        owner = receiver.type
        return isinstance(owner, ClassType) and owner.is_torchbind_class and owner.library_methods is None
    return is_foreign(node.kind) and node.schema is None


def _reveal(value: Value, type: Type) -> InputBuilder:
    """Return a builder that sets the type of ``value`` to ``type``, which the parameter that takes it determines,
    unless the value has a subtype of it already. The builder returns the value."""

    def build(graph: Graph, range: SourceRange) -> Value:
        return value if value.type.is_subtype_of(type) else value.set_type(type)

    return build


def argument_builder(argument: NamedValue) -> InputBuilder:
    def build(graph: Graph, range: SourceRange) -> Value:
        return argument.materialize(graph)

    return build


def _empty_list(type: ListType) -> InputBuilder:
    def build(graph: Graph, range: SourceRange) -> Value:
        return graph.insert_node(graph.create("prim::ListConstruct", types=[type], range=range)).output

    return build


_FROM_TENSOR = {FLOAT: "aten::FloatImplicit", COMPLEX: "aten::ComplexImplicit", INT: "aten::IntImplicit"}
_FROM_NUMBER: dict[Type, str] = {FLOAT: "aten::Float", COMPLEX: "aten::Complex", INT: "aten::Int"}
_FROM_BOOL: dict[Type, str] = {FLOAT: "aten::Float", INT: "aten::Int", NUMBER: "prim::unchecked_cast"}


def _implicit_conversion(actual: Type, wanted: Type) -> str | None:
    if isinstance(actual, TensorType):
        return "aten::ScalarImplicit" if wanted == NUMBER else _FROM_TENSOR.get(wanted)  # type: ignore[call-overload]
    if is_open_number(actual) and is_open_number(wanted) and not actual.is_subtype_of(wanted):
        return "prim::unchecked_cast"
    if is_open_number(actual) and actual != wanted:
        return "prim::unchecked_cast" if wanted == NUMBER else _FROM_NUMBER.get(wanted)
    if actual == BOOL:
        return _FROM_BOOL.get(wanted)
    if actual == STRING and wanted == DEVICE:
        return "aten::device"
    return None


def _call(kind: str, argument: NamedValue) -> InputBuilder:
    def build(graph: Graph, range: SourceRange) -> Value:
        return graph.insert(kind, [argument.materialize(graph)], range=range)

    return build


def _from_open_number(kind: str, argument: NamedValue, type: Type) -> InputBuilder:
    """Return a builder that converts a number whose type is known only at run time. In a program from Python, it raises
    where Python would."""

    def build(graph: Graph, range: SourceRange) -> Value:
        value, checks = argument.materialize(graph), graph.none_checks
        return graph.insert(kind, [value], range=range) if checks is None else checks.number_as(value, type, range)

    return build


def _cast(argument: NamedValue, type: Type) -> InputBuilder:
    """Return a builder that emits the value unconverted under another static type: where a number is expected,
    operators accept a bool with its Python value, and ``torch.full([2], True)`` is a tensor of bools."""

    def build(graph: Graph, range: SourceRange) -> Value:
        value = argument.materialize(graph)
        return graph.insert_node(graph.create("prim::unchecked_cast", [value], types=[type], range=range)).output

    return build


def _all_fit(actual: TupleType, element: Type, conversions: bool) -> bool:
    if isinstance(element, TensorType):
        return all(isinstance(part, TensorType) for part in actual.elements)
    if has_free_variables(element):
        return True
    return all(
        part.is_subtype_of(element) or (conversions and _implicit_conversion(part, element) is not None)
        for part in actual.elements
    )


def unpack_tuple(graph: Graph, value: Value, range: SourceRange = UNKNOWN_RANGE) -> list[Value]:
    """Return the elements of a tuple: the inputs of its ``prim::TupleConstruct``, or, if another node makes it, the
    outputs of a ``prim::TupleUnpack``, which is inserted."""
    if value.node.kind == "prim::TupleConstruct":
        return list(value.node.inputs)
    type = value.type
    assert isinstance(type, TupleType)
    return list(graph.insert_node(graph.create("prim::TupleUnpack", [value], types=type.elements, range=range)).outputs)


def _tuple_to_list(argument: NamedValue, type: ListType, conversions: bool) -> InputBuilder:
    def build(graph: Graph, range: SourceRange) -> Value:
        items = unpack_tuple(graph, argument.materialize(graph))
        if conversions:
            items = [convert(NamedValue(item), type.element, True)[0](graph, range) for item in items]
        return graph.insert_node(graph.create("prim::ListConstruct", items, types=[type], range=range)).output

    return build


def _convert_tuple(
    argument: NamedValue, actual: TupleType, wanted: TupleType, conversions: bool
) -> tuple[InputBuilder, Type]:
    # The element types are known without the unpacked values: plan on stand-ins, build on the values.
    types: list[Type] = []
    for part, formal in zip(actual.elements, wanted.elements, strict=True):
        fits = part.is_subtype_of(formal)
        kind = None if fits else _implicit_conversion(part, formal)
        tuple_parts = isinstance(part, TupleType) and isinstance(without_none(formal), (TupleType, ListType))
        types.append(formal if fits or (conversions and kind is not None) or tuple_parts else part)

    def build(graph: Graph, range: SourceRange) -> Value:
        items = unpack_tuple(graph, argument.materialize(graph))
        pairs = zip(items, wanted.elements, strict=True)
        converted = [convert(NamedValue(item), formal, conversions)[0](graph, range) for item, formal in pairs]
        result = TupleType(tuple(item.type for item in converted))
        return graph.insert_node(graph.create("prim::TupleConstruct", converted, types=[result], range=range)).output

    return build, TupleType(tuple(types))


def convert_value(graph: Graph, value: Value, type: Type, range: SourceRange, conversions: bool = True) -> Value:
    """Insert the implicit conversions of ``value`` to ``type``, and return the result; ``value`` itself if there are
    none. The caller checks the type. In a program from Python, a Tensor is not converted to a number, and a value that
    may be a number is checked to be a Tensor where one is declared."""
    checks = graph.none_checks
    if checks is not None and without_none(type) == TENSOR and number_beside_tensor(value.type) is not None:
        return checks.check(
            value, range, "builtins.TypeError", "a Tensor is declared, but the value is of type NoneType"
        )
    given = NamedValue(value, range=range)
    return value if _stays_tensor(given, type) else convert(given, type, conversions)[0](graph, range)


# -------------------------------------------------------------------------------------------- matching


_PYTHON_NAMES: Final = {
    "self": ("input", "x", "a", "x1"),
    "other": ("x2",),
    "dim": ("axis",),
    "keepdim": ("keepdims",),
}
"""Additional argument names of Python's functions: ``torch.sum(input=x, axis=0)``, as in NumPy."""

_NAMES_OF_FUNCTIONS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "aten::split": {
        "self": ("tensor",),
        "split_size": ("split_size_or_sections",),
        "split_sizes": ("split_size_or_sections",),
    }
}
"""Parameter names of functions that PyTorch implements in Python with other names than the operator, by operator."""


def _python_name(name: str, schema: FunctionSchema, given: Mapping[str | None, NamedValue]) -> str | None:
    """Return another name of an operator's argument by which the call passes it; None if there is none."""
    if not schema.name.startswith("aten::"):
        return None
    own = _NAMES_OF_FUNCTIONS.get(schema.name, {}).get(name, ())
    others = (other for other in (*own, *_PYTHON_NAMES.get(name, ())) if other in given)
    return next((other for other in others if schema.argument_index(other) is None), None)


def try_match_schema(
    schema: FunctionSchema,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None = None,
    *,
    conversions: bool = True,
    lenient: NoneCheckingCall | None = None,
) -> MatchedSchema:
    """Match a call with ``schema``. ``self_value`` is the argument for the parameter called self. For a ``lenient``
    call, Optional arguments are unwrapped by checks.

    Raises:
        SchemaMismatch: the call does not match the schema; the message says why.
    """
    bindings: Bindings = {}
    builders: list[InputBuilder] = []
    by_name = {item.name: item for item in kwargs}
    used = 0
    is_operator = "::" in schema.name
    for index, formal in enumerate(schema.arguments):
        if self_value is not None and formal.name == "self":
            actual, self_value = self_value, None
        elif not formal.kwarg_only and used < len(args):
            if _takes_rest_as_list(schema, index, args) and not _is_list_like(
                _as_given(args[used], formal, lenient), formal
            ):
                for item in args[used:]:
                    _check_number_class(schema, formal, item, args)
                builders.append(_plan_rest(formal, args[used:], bindings, conversions, lenient))
                used = len(args)
                continue
            actual = args[used]
            used += 1
        elif formal.name in by_name:
            actual = by_name.pop(formal.name)
        elif by_name and (other := _python_name(formal.name, schema, by_name)) is not None:
            actual = by_name.pop(other)
        elif formal.has_default:
            actual = _default_of(formal)
        else:
            raise SchemaMismatch(f"argument '{formal.name}' is missing")
        _check_number_class(schema, formal, actual, args)
        is_key = index == 1 and isinstance(schema.arguments[0].type, DictType)
        is_kept = is_key or not (is_operator or _passes_numbers(actual))
        if is_kept and _stays_tensor(actual, formal.type):
            note = ": Python looks up a Tensor by identity; write x.item()" if is_key else ""
            raise SchemaMismatch(f"argument '{formal.name}': expected {formal.type.annotation}, got Tensor{note}")
        if is_operator and conversions and _may_be_ints(actual, formal):
            builders.append(_ints_in(actual))
            continue
        builders.append(_plan_argument(formal, actual, bindings, conversions, lenient))
        lost = None if is_operator else lost_class(actual.type, formal.type)
        if lost is not None:
            raise SchemaMismatch(
                f"argument '{formal.name}': {lost}: leave the parameter without a type, and it is what the call gives"
            )
    if self_value is not None:
        raise SchemaMismatch("it takes no self: it cannot be called as a method")
    if schema.is_vararg:
        builders.extend(argument_builder(rest) for rest in args[used:])
        used = len(args)
    if used < len(args):
        hidden = 1 if _is_method(schema) else 0
        most = _count(used - hidden, "positional argument")
        raise SchemaMismatch(f"it takes at most {most}, got {len(args) - hidden}")
    for name in by_name:
        if schema.argument_index(name or "") is None:
            raise SchemaMismatch(f"it has no argument '{name}'")
        raise SchemaMismatch(f"argument '{name}' is given twice")
    return MatchedSchema(schema, builders, [_return_type(result, bindings) for result in schema.returns])


def _may_be_ints(argument: NamedValue, formal: Argument) -> bool:
    """Return whether the argument is a list of numbers of any class, in a program from Python, where an operator reads
    a list of ints, such as sizes."""
    type, value = without_none(formal.type), argument.value
    if formal.alias is not None or type != ListType(INT) or value is None or not _is_list_of_numbers(value.type):
        return False
    return _follows_python(value) and not can_be_made_as(value, type, conversions=True)


def _ints_in(argument: NamedValue) -> InputBuilder:
    def build(graph: Graph, range: SourceRange) -> Value:
        assert graph.none_checks is not None
        return graph.none_checks.ints_in(argument.materialize(graph), range)

    return build


def _check_number_class(
    schema: FunctionSchema, formal: Argument, actual: NamedValue, args: Sequence[NamedValue]
) -> None:
    mismatch = number_class_mismatch(schema, formal, actual, args)
    if mismatch is not None:
        raise SchemaMismatch(mismatch)


def _default_of(formal: Argument) -> NamedValue:
    type = without_none(formal.type)
    is_member = isinstance(type, EnumType) and formal.default is not None
    return NamedValue(constant=formal.default, declared=type if is_member else None)


def _is_method(schema: FunctionSchema) -> bool:
    """Return whether the first argument is the object whose method this is, which calls do not write."""
    first = schema.arguments[0] if schema.arguments else None
    return first is not None and first.name == "self" and isinstance(first.type, (ClassType, InterfaceType))


def _without_self(schema: FunctionSchema) -> FunctionSchema:
    if not _is_method(schema):
        return schema
    return schema.bound


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _return_type(result: Argument, bindings: Bindings) -> Type:
    type = substitute(result.type, bindings)
    if type is None:
        raise SchemaMismatch(f"the result type {result.type.annotation} cannot be inferred from the arguments")
    return type


def _takes_rest_as_list(schema: FunctionSchema, index: int, args: Sequence[NamedValue]) -> bool:
    """Return whether all further positional arguments may be passed in place of the list that argument ``index``
    takes: in TorchScript those of any call, in a program from Python those of operators only."""
    if "::" not in schema.name and any(item.value is not None and _follows_python(item.value) for item in args):
        return False
    formal = schema.arguments[index]
    last = index + 1 == len(schema.arguments) or schema.arguments[index + 1].kwarg_only
    return last and isinstance(formal.type, ListType) and not has_free_variables(formal.type) and formal.size is None


def _is_list_like(actual: NamedValue, formal: Argument) -> bool:
    type, wanted = actual.type, formal.type
    assert isinstance(wanted, ListType)
    return isinstance(type, ListType) or (isinstance(type, TupleType) and _all_fit(type, wanted.element, True))


def _as_given(actual: NamedValue, formal: Argument, lenient: NoneCheckingCall | None) -> NamedValue:
    return actual if lenient is None else lenient.present(formal, actual) or actual


def _plan_rest(
    formal: Argument,
    rest: Sequence[NamedValue],
    bindings: Bindings,
    conversions: bool,
    lenient: NoneCheckingCall | None,
) -> InputBuilder:
    type = formal.type
    assert isinstance(type, ListType)
    element = Argument(formal.name, type.element)
    builders = [_plan_argument(element, item, bindings, conversions, lenient) for item in rest]

    def build(graph: Graph, range: SourceRange) -> Value:
        items = [make(graph, range) for make in builders]
        return graph.insert_node(graph.create("prim::ListConstruct", items, types=[type], range=range)).output

    return build


def _plan_argument(
    formal: Argument, actual: NamedValue, bindings: Bindings, conversions: bool, lenient: NoneCheckingCall | None = None
) -> InputBuilder:
    present = None if lenient is None else lenient.present(formal, actual)
    if present is None:
        return _plan_given(formal, actual, bindings, conversions)
    saved = dict(bindings)
    try:
        return _plan_given(formal, actual, bindings, conversions)
    except SchemaMismatch:
        bindings.clear()
        bindings.update(saved)
        return _plan_given(formal, present, bindings, conversions)


def _plan_given(formal: Argument, actual: NamedValue, bindings: Bindings, conversions: bool) -> InputBuilder:
    if formal.size is not None:
        repeated = repeat(formal, actual)
        if repeated is not None:
            return repeated
    type: Type | None = formal.type
    assert type is not None
    if has_free_variables(type):
        known = substitute(type, bindings)
        if not (known is not None and _becomes(actual, known, conversions)):
            why = match_variables(type, actual.type, bindings)
            if why is not None:
                raise SchemaMismatch(f"argument '{formal.name}': {why}")
        type = substitute(formal.type, bindings)
        if type is None:
            if isinstance(formal.type, OptionalType) and actual.type == NONE:
                return argument_builder(actual)
            raise SchemaMismatch(f"argument '{formal.name}': its type cannot be inferred from {actual.type.annotation}")
    if actual.value is None and _default_fits(actual.constant, type):
        return _typed_constant(actual, type)
    build, result = convert(actual, type, conversions)
    if not result.is_subtype_of(type):
        raise SchemaMismatch(
            partial(_misfit, formal, actual, result, type),
            Cause.DEFAULT_TYPE_ASSUMED if formal.assumed else Cause.TYPE_MISMATCH,
        )
    return build


def _misfit(formal: Argument, actual: NamedValue, result: Type, type: Type) -> str:
    """Return the reason why ``actual``, which would be converted to ``result``, does not have ``type``."""
    message = f"argument '{formal.name}': expected {type.annotation}, got {result.annotation}"
    if is_empty_list_literal(actual) or (result == ListType(TENSOR) and isinstance(without_none(type), ListType)):
        message += " (an empty list without an annotation is a List[Tensor])"
    if formal.assumed:
        message += f" ('{formal.name}' was assumed to be a Tensor because it has no annotation)"
    return message + mismatch_note(result, type)


def _becomes(actual: NamedValue, known: Type, conversions: bool) -> bool:
    """Return whether the argument is converted to a ``known`` type, so that its own type does not bind type
    variables."""
    if is_empty_list_literal(actual):
        return isinstance(known, ListType)
    if _stays_tensor(actual, known):
        return False
    if actual.value is not None and can_be_made_as(actual.value, known, conversions=conversions):
        return True
    return conversions and _implicit_conversion(actual.type, known) is not None


def _default_fits(value: object, type: Type) -> bool:
    """Return whether a constant is a list, passed for a list parameter: its inferred type is not specific enough to
    decide."""
    return isinstance(value, list) and isinstance(without_none(type), ListType)


def _typed_constant(actual: NamedValue, type: Type) -> InputBuilder:
    def build(graph: Graph, range: SourceRange) -> Value:
        return graph.insert_constant(actual.constant, without_none(type), range)

    return build


# ------------------------------------------------------------------------------------------- overloads


def match_schemas(
    name: str,
    schemas: Sequence[FunctionSchema],
    range: SourceRange,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None = None,
) -> tuple[int, MatchedSchema]:
    """Return the index of the first of ``schemas`` that matches the call, with the match. Those that match without
    conversions come before the others, and those that take an int for a float after these. If there is none, one that
    matches with Optional arguments unwrapped by checks is returned.

    Raises:
        SchemaError: no schema matches; the message gives the reason for each.
    """
    failures: list[tuple[FunctionSchema, str | Callable[[], str]]] = []
    cause = Cause.TYPE_MISMATCH
    given = [*(() if self_value is None else (self_value,)), *args, *kwargs]
    rounds = (True,) if len(schemas) == 1 else (False, True)
    for conversions in rounds:
        failures = []
        with_floats: tuple[int, MatchedSchema] | None = None
        for index, schema in enumerate(schemas):
            try:
                found = index, try_match_schema(schema, args, kwargs, self_value, conversions=conversions)
            except SchemaMismatch as why:
                failures.append((schema, why.message))
                cause = why.cause if len(schemas) == 1 else cause
                continue
            if not conversions or not _takes_int_for_float(schema, args, kwargs, self_value):
                return found
            with_floats = with_floats or found  # ``torch.tensor(4, device="cpu")`` holds an int
        if with_floats is not None:
            return with_floats
    checked = _may_check(given)
    if checked:
        for conversions in rounds:
            failures = []
            for index, schema in enumerate(schemas):
                lenient = NoneCheckingCall(name, schema, self_value is not None)
                try:
                    return index, try_match_schema(
                        schema, args, kwargs, self_value, conversions=conversions, lenient=lenient
                    )
                except SchemaMismatch as why:
                    failures.append((schema, why.message))
    hint, likely = _hint(given)
    if (
        checked
        and likely is Cause.MISSING_REFINEMENT
        and not _would_fit_checked(name, schemas, args, kwargs, self_value)
    ):
        hint = likely = None
    texts = [(schema, _text_of(message)) for schema, message in failures]
    message = _describe_failure(name, texts, args, kwargs, self_value)
    raise SchemaError(message, range, hint=hint, cause=likely or cause)


def _takes_int_for_float(
    schema: FunctionSchema,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None,
) -> bool:
    """Return whether the call passes an int, other than a constant, for a parameter of ``schema`` that is a float."""
    formals = [item for item in schema.arguments if self_value is None or item.name != "self"]
    by_name = {item.name: item for item in formals}
    pairs = [*zip(formals, args, strict=False), *((by_name.get(item.name or ""), item) for item in kwargs)]
    return any(
        formal is not None and without_none(formal.type) == FLOAT and item.value is not None and item.type == INT
        for formal, item in pairs
    )


def _may_check(given: Sequence[NamedValue]) -> bool:
    """Return whether an argument, or an item of a list or tuple literal, may be None and the program has None
    checks."""
    return any(item.value is not None and (can_check(item.value) or has_lacking_items(item.value)) for item in given)


def _would_fit_checked(
    name: str,
    schemas: Sequence[FunctionSchema],
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None,
) -> bool:
    """Return whether the call fits an overload if every Optional argument is unwrapped by a check."""
    for schema in schemas:
        lenient = NoneCheckingCall(name, schema, self_value is not None, everywhere=True)
        with contextlib.suppress(SchemaMismatch):
            try_match_schema(schema, args, kwargs, self_value, lenient=lenient)
            return True
    return False


def _describe_failure(
    name: str,
    failures: Sequence[tuple[FunctionSchema, str]],
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None,
) -> str:
    positional = list(args) if self_value is None else [self_value, *args]
    if positional and all(_is_method(schema) for schema, _ in failures):
        del positional[0]
    failures = [(_without_self(schema), why) for schema, why in failures]
    given = [item.type.annotation for item in positional]
    given += [f"{item.name}: {item.type.annotation}" for item in kwargs]
    if len(failures) == 1:
        schema, why = failures[0]
        return f"'{name}' cannot be called with ({', '.join(given)}): {why}.\nIt is declared as\n  {schema}"
    lines = [f"no overload of '{name}' can be called with ({', '.join(given)}). The candidates are"]
    for schema, why in failures:
        lines += [f"  {schema}", f"      {why}"]
    return "\n".join(lines)


def _hint(given: Sequence[NamedValue]) -> tuple[str | None, Cause | None]:
    """Return a hint at the most likely mistake in a call that fits no overload, and the cause of the error; a pair of
    None if no likely mistake is known."""
    for item in given:
        if item.type.is_optional and item.type not in (NONE, ANY):
            text = item.range.text if item.range.is_known else ""
            name = text if text.isidentifier() else "the value"
            check = f"if {text if text.isidentifier() else 'x'} is not None"
            return f"{name} may be None; check it first: {check}", Cause.MISSING_REFINEMENT
    if len(given) > 1 and given[0].type == ListType(TENSOR) and not isinstance(given[1].type, (TensorType, ListType)):
        wanted = ListType(given[1].type).annotation
        hint = f"an empty list without an annotation is a List[Tensor]; declare it where it is made: {wanted}"
        return hint, Cause.DEFAULT_TYPE_ASSUMED
    return None, None

"""Emit calls of Python builtins for which there is no operator: they are composed of other operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from string import Formatter
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.arguments import emit_arguments, emit_sugared_args
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.calls.iterated_arguments import items_of
from rekindle.frontend.calls.special_calls import expect_arguments
from rekindle.frontend.containers.set_values import shown
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.conditions import emit_condition
from rekindle.frontend.expressions.generators import LAZY
from rekindle.frontend.expressions.number_arithmetic import emit_extreme, is_mixed
from rekindle.frontend.expressions.operators import present_operands
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.expressions.unordered import unordered_list
from rekindle.frontend.inference.none_error_messages import class_name
from rekindle.frontend.python.higher_order import first_by, length_known
from rekindle.frontend.python.operators import _NO_VALUES, REAL_KINDS, _int_power, is_literal, joined_element
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.frontend.statements.generator_loops import until_true
from rekindle.frontend.statements.loops import generator_of, list_of
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.special_forms import GLOBALS, NewStyleString
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.node import Value
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.operators.schema_matching import unpack_tuple
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionBase,
    is_open_number,
    join_values,
    may_be_bool,
    number_beside_tensor,
    number_members,
    present,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.views import Apply, BinOp, Expr, GeneratorExpr, ListComp, Select, StringLiteral, Subscript, Var


def emit_builtin(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit a call of one of Python's builtins, and return its result; return None for other calls, which are emitted as
    usual."""
    name = call.callee_name
    if name is not None:
        emit = _BUILTINS.get(name)
        if emit is not None and emitter.environment.is_builtin(name, call.callee.range):
            found = emit(emitter, call, hint)
            if found is not None:
                return found
    elif call.has_keywords and call.callee.range.text.endswith(".format"):
        callee = emitter.emit_sugared(call.callee)
        if isinstance(callee, NewStyleString):
            return _format(emitter, callee, call)
    return None


def _round(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``round(x)``, an int for a float, or ``round(x, 2)``, a number of the type of ``x``; return None for other
    calls.

    Raises:
        TypeMismatchError: the argument is a Tensor.
    """
    given = call.inputs
    if call.attributes:
        if len(call.attributes) != 1 or call.attributes[0].name.name != "ndigits" or len(given) != 1:
            return None
        given = [*given, call.attributes[0].value]
    if not 1 <= len(given) <= 2:
        return None
    number = emitter.emit_expression(given[0])
    if number_beside_tensor(number.type) is not None:
        return SimpleValue(
            emitter.split(number, call.range, lambda part: _rounded(emitter, call, given[0], part, hint))
        )
    if number_members(without_none(number.type)) is not None or isinstance(present(number.type), TensorType):
        number = emitter.present(number, call.range, "type NoneType doesn't define __round__ method")
    if may_be_bool(number.type):  # twice negated, True is 1, and all else what it was, in native code, too
        number = emitter.insert("aten::neg", call.range, emitter.insert("aten::neg", call.range, number))
    if is_open_number(number.type) and len(given) == 2:
        rounded = from_library(emitter, "round_number_to", call.range, number, emitter.emit_expression(given[1]))
        return SimpleValue(emitter.environment.cast(rounded, number.type, call.range))
    if number.type == BOOL:
        number = emitter.insert("aten::Int", call.range, number)
    if is_open_number(number.type) and len(given) == 1:
        return SimpleValue(from_library(emitter, "round_number", call.range, number))
    if isinstance(number.type, TensorType) and emitter.graph.follows_python:
        raise TypeMismatchError(
            "type Tensor doesn't define __round__ method", call.range, hint="write x.round(), or round(x.item())"
        )
    if number.type not in (FLOAT, INT):
        return _of_emitted(emitter, call, number)
    places = None if len(given) == 1 or given[1].tree.kind == "none" else emitter.emit_expression(given[1])
    if places is None:
        if number.type == INT:
            return SimpleValue(number)
        rounded = emitter.insert("aten::round", call.range, number)
        return SimpleValue(rounded if hint == FLOAT else emitter.insert("aten::Int", call.range, rounded))
    if number.type == INT:
        return SimpleValue(from_library(emitter, "round_int", call.range, number, places))
    digits = constant_int(places)
    if digits is None or digits < 0:
        return SimpleValue(emitter.insert("python::round", call.range, number, places))
    template = emitter.graph.insert_constant(f"{{:.{digits}f}}", range=call.range)
    text = emitter.insert("aten::format", call.range, template, number)
    return SimpleValue(emitter.insert("aten::Float", call.range, text))


def _rounded(emitter: Emitter, call: Apply, written: Expr, number: Value, hint: Type | None) -> Value:
    """Emit ``round(number)`` for the value of the argument ``written``, which has been emitted; return the result."""
    emitter.shared[id(written.tree)] = number
    try:
        found = _round(emitter, call, hint)
    finally:
        del emitter.shared[id(written.tree)]
    assert found is not None
    return found.as_value(call.range, emitter.graph)


def _of_emitted(emitter: Emitter, call: Apply, first: Value) -> SugaredValue:
    """Emit a call of the builtin as an operator, with ``first`` as the value of the first argument, which has been
    emitted."""
    callee = emitter.emit_sugared(call.callee)
    written, *others = call.inputs
    arguments = [NamedValue(first, range=written.range), *emit_arguments(emitter, others)]
    return callee.call(CallSite(call.callee.range, emitter.graph, arguments))


def _least(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    return _extreme(emitter, call, "min")


def _greatest(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    return _extreme(emitter, call, "max")


_ORDERED: Final = (StringType, TupleType, ListType, ClassType, EnumType)
"""Types of values that ``min`` and ``max`` compare one by one: no operator does."""


def _extreme(emitter: Emitter, call: Apply, name: str) -> SugaredValue | None:
    """Emit ``min`` or ``max`` (the ``name``); return None, without emitting anything, for calls with keyword arguments
    or none, with a starred argument or a set comprehension, and with another comprehension among several arguments."""
    kinds = [item.tree.kind for item in call.inputs]
    is_made = kinds in ([ListComp.KIND], [GeneratorExpr.KIND])
    if call.attributes or not kinds or (not is_made and not _NO_VALUES.isdisjoint(kinds)):
        return None
    value, *others = map(emitter.emit_expression, call.inputs)
    if others:
        return _extreme_of(emitter, call, name, [value, *others])
    value = items_of(emitter.graph, value, call.range)
    type = value.type
    if isinstance(type, TensorType):
        rows = emitter.insert("aten::unbind", call.range, value)
        return SimpleValue(from_library(emitter, f"{name}_row", call.range, rows))
    element = type.key if isinstance(type, DictType) else type.element if isinstance(type, ListType) else None
    if isinstance(type, ListType) and _may_be_tensor(emitter, type.element):
        return SimpleValue(from_library(emitter, f"{name}_row", call.range, value))
    if not isinstance(element, _ORDERED) and not (element and is_open_number(element)):
        return _of_emitted(emitter, call, value)
    xs = value if isinstance(type, ListType) else emitter.insert("aten::keys", call.range, value)
    return SimpleValue(first_by(emitter, call.range, xs, xs, name))


def _may_be_tensor(emitter: Emitter, type: Type) -> bool:
    """Return whether values of a type may be Tensors, alone or besides numbers, in a program from Python."""
    return emitter.graph.follows_python and (isinstance(type, TensorType) or bool(number_beside_tensor(type)))


def _extreme_of(emitter: Emitter, call: Apply, name: str, values: list[Value]) -> SugaredValue:
    """Emit ``min(a, b, …)`` or ``max``: for numbers of several types a selection of one, for others the operator."""
    operator = ">" if name == "max" else "<"
    for index in range(1, len(values)):
        values[index], values[0] = present_operands(emitter, operator, values[index], values[0], call.range)
    types = [value.type for value in values]
    is_one_type = len(set(types)) == 1 and isinstance(types[0], _ORDERED)
    is_compared = (
        is_one_type or is_mixed(types) or any(isinstance(type, (StringType, TupleType, ListType)) for type in types)
    )
    if emitter.graph.follows_python and is_compared:
        first, second, *_ = call.inputs
        comparison = BinOp.create(call.range, "<", first, second)
        return SimpleValue(emit_extreme(emitter, name, values, comparison))
    return _of_operands(emitter, call, *values)


def _sorted_rows(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``sorted(x)``; return None, without emitting anything, for other calls.

    Raises:
        UnsupportedError: the argument is a Tensor.
    """
    item = call.only_argument
    if item is None or item.tree.kind in _NO_VALUES:
        return None
    value = emitter.emit_expression(item)
    if isinstance(value.type, TensorType):
        raise UnsupportedError(
            "sorted of a Tensor would be a list of its rows",
            call.range,
            hint="write x.sort().values, or sort a list: values: List[float] = x.tolist()",
        )
    return _of_emitted(emitter, call, value)


_WITH_TRUTH: Final = (StringType, ListType, DictType, TupleType, ClassType)
"""Types of elements that ``any`` and ``all`` convert to bools."""


def _any(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    return _of_rows(emitter, call, "any_of_rows")


def _all(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    return _of_rows(emitter, call, "all_rows")


def _of_rows(emitter: Emitter, call: Apply, function: str) -> SugaredValue | None:
    """Emit ``any(x)`` or ``all(x)``: of a Tensor by its rows, as Python does, and of a generator as a loop. Return
    None, without emitting anything, for other calls."""
    item = call.only_argument
    if item is None:
        return None
    generator = generator_of(emitter, item, LAZY)
    if generator is not None:
        return SimpleValue(_of_generator(emitter, call, generator, function))
    if item.tree.kind in _NO_VALUES - {ListComp.KIND}:
        return None
    value = emitter.emit_expression(item)
    if isinstance(value.type, ListType) and (
        isinstance(value.type.element, _WITH_TRUTH) or _may_be_tensor(emitter, value.type.element)
    ):
        return SimpleValue(from_library(emitter, function, call.range, value))
    if not isinstance(value.type, TensorType):
        return _of_emitted(emitter, call, value)
    rows = emitter.insert("aten::unbind", call.range, value)
    return SimpleValue(from_library(emitter, function, call.range, rows))


def _of_generator(emitter: Emitter, call: Apply, expr: GeneratorExpr, function: str) -> Value:
    """Emit ``any(x > 0 for x in xs)``, or ``all``. The loop ends with the first element that decides."""
    is_any = function == "any_of_rows"

    def decides() -> Value:
        truth = emit_condition(emitter, expr.element).value
        return truth if is_any else emitter.insert("aten::__not__", expr.range, truth)

    found = until_true(emitter, expr, decides)
    return found if is_any else emitter.insert("aten::__not__", call.range, found)


def _int(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``int("ff", 16)``; return None for calls without a base."""
    named = [item.value for item in call.attributes if item.name.name == "base"]
    given = [*call.inputs, *named]
    if len(given) != 2 or len(named) != len(call.attributes):
        return None
    text, base = (emitter.emit_expression(item) for item in given)
    return SimpleValue(from_library(emitter, "int_of_text", call.range, text, base))


def _sum(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``sum(xs)`` or ``sum(xs, start)``; return None for other calls."""
    named = [item.value for item in call.attributes if item.name.name == "start"]
    given = [*call.inputs, *named]
    if len(given) == 1 and not call.attributes:
        return _sum_of_all(emitter, call, hint)
    if len(given) != 2 or len(named) != len(call.attributes):
        return None
    xs = unordered_list(emitter, call, given[0])
    start = emitter.emit_expression(given[1], xs.type.element if isinstance(xs.type, ListType) else None)
    if isinstance(xs.type, ListType) and start.type == INT and xs.type.element == FLOAT:
        first = emitter.insert("aten::Float", call.range, start)
        total = partial(from_library, emitter, "sum_from", call.range, xs, first)
        return SimpleValue(_sum_if_any(emitter, call, xs, start, total, hint))
    return SimpleValue(from_library(emitter, "sum_from", call.range, xs, start))


def _sum_if_any(
    emitter: Emitter, call: Apply, items: Value, start: Value, total: Callable[[], Value], hint: Type | None
) -> Value:
    """Emit ``total()``, a float, a complex or a Tensor, if there are items to add; else the int ``start``. Emit
    ``total()`` alone if a float is expected, or the program is from an archive."""
    if hint == FLOAT or not emitter.graph.follows_python or (is_literal(items) and items.node.inputs):
        return total()
    is_empty = emitter.insert("aten::eq", call.range, emitter.insert("aten::len", call.range, items), 0)
    node, first, other = emitter.branch(call.range, is_empty, RefinementSet(), lambda: start, total)
    joined = join_values(first.type, unshaped(other.type))
    assert joined is not None
    return node.add_output(joined)


def _sum_of_all(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``sum(xs)``, also of Tensors and over the rows of one; return None, without emitting anything, for other
    calls."""
    (item,) = call.inputs
    if item.tree.kind in ("starred", "set_comp"):
        return None
    found = emitter.emit_sugared(item)
    if isinstance(found, SimpleValue):
        xs = found.value
    elif found.static_length == 0:
        return SimpleValue(emitter.literal(0, call.range))
    else:
        xs = list_of(emitter, call.range, found.iterator(item.range, emitter.graph), None)
    if isinstance(xs.type, TupleType) and xs.type.elements:
        joined = joined_element(xs.type.elements)
        if joined is not None and (joined == TENSOR or number_beside_tensor(joined) is not None):
            items = unpack_tuple(emitter.graph, xs, call.range)
            xs = emitter.insert_node("prim::ListConstruct", call.range, items, [ListType(joined)]).output
    if isinstance(xs.type, TensorType):
        xs = emitter.insert("aten::unbind", call.range, xs)
    if isinstance(xs.type, ListType) and isinstance(xs.type.element, TensorType):
        total = partial(from_library, emitter, "sum_of_tensors", call.range, xs)
        return SimpleValue(_sum_if_any(emitter, call, xs, emitter.literal(0, call.range), total, hint))
    if isinstance(xs.type, ListType) and number_beside_tensor(xs.type.element) is not None:
        return SimpleValue(from_library(emitter, "sum_from", call.range, xs, emitter.literal(0, call.range)))
    element = xs.type.element if isinstance(xs.type, ListType) else None
    if element is not None and {part.kind for part in union_members(element)} <= REAL_KINDS:
        if element not in (INT, FLOAT, BOOL):
            return SimpleValue(from_library(emitter, "sum_of_numbers", call.range, xs))
    if element in (FLOAT, COMPLEX):
        start = emitter.literal(0, call.range)
        total = partial(emitter.insert, "aten::sum", call.range, xs)
        return SimpleValue(_sum_if_any(emitter, call, xs, start, total, hint))
    return _of_emitted(emitter, call, xs)


def _pow(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``pow(a, b, m)``, or ``pow(a, b)`` as ``a ** b``; return None for other calls."""
    if call.attributes or not 2 <= len(call.inputs) <= 3:
        return None
    numbers = [emitter.emit_expression(item) for item in call.inputs]
    if len(numbers) == 3:
        return SimpleValue(from_library(emitter, "power_modulo", call.range, *numbers))
    return SimpleValue(_power(emitter, call, present_operands(emitter, "**", numbers[0], numbers[1], call.range), hint))


def _power(emitter: Emitter, call: Apply, numbers: Sequence[Value], hint: Type | None) -> Value:
    for index, number in enumerate(numbers):
        if number_beside_tensor(number.type) is not None:

            def emit(part: Value, index: int = index) -> Value:
                return _power(emitter, call, [*numbers[:index], part, *numbers[index + 1 :]], hint)

            return emitter.split(number, call.range, emit)
    (base, exponent), (_, power) = numbers, call.inputs
    whole = None if hint == FLOAT else _int_power(emitter, base, exponent, power, call.range)
    if whole is not None:
        return whole
    return _of_operands(emitter, call, base, exponent).as_value(call.range, emitter.graph)


def _divmod(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``divmod(a, b)`` of numbers that may be None; return None for other calls.

    Raises:
        TypeMismatchError: an operand is a Tensor.
    """
    if call.attributes or len(call.inputs) != 2:
        return None
    one, other = map(emitter.emit_expression, call.inputs)
    one, other = present_operands(emitter, "divmod()", one, other, call.range)
    if emitter.graph.follows_python and any(isinstance(item.type, TensorType) for item in (one, other)):
        names = f"'{class_name(one.type)}' and '{class_name(other.type)}'"
        raise TypeMismatchError(f"unsupported operand type(s) for divmod(): {names}", call.range)
    return _of_operands(emitter, call, one, other)


def _of_operands(emitter: Emitter, call: Apply, *operands: Value) -> SugaredValue:
    """Emit a call of the builtin whose arguments have been emitted."""
    callee = emitter.emit_sugared(call.callee)
    pairs = zip(operands, call.inputs, strict=True)
    return callee.call(
        CallSite(call.callee.range, emitter.graph, [NamedValue(value, range=item.range) for value, item in pairs])
    )


def _format_of(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``format(x, ".2f")``. The result is never None."""
    given = expect_arguments(emitter, call, 1, 2)
    values = [emitter.emit_expression(item) for item in given]
    template = emitter.graph.insert_constant("{:{}}" if len(values) == 2 else "{:}", range=call.range)
    return SimpleValue(_formatted(emitter, call.range, template, *values))


def _formatted(emitter: Emitter, range: SourceRange, *given: Value) -> Value:
    args = shown("aten::format", [emitter.argument(item, range) for item in given], emitter.graph, range)
    return emitter.insert("aten::format", range, *(item.materialize(emitter.graph) for item in args))


def _truth(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``bool(x)``, also of a value that may be None, or have one of several types; return None, without emitting
    anything, for other calls."""
    item = call.only_argument
    if item is None or item.tree.kind in _NO_VALUES:
        return None
    value = emitter.emit_expression(item)
    if not emitter.graph.follows_python or not isinstance(value.type, (UnionBase, EnumType)):
        return _of_emitted(emitter, call, value)
    return SimpleValue(emitter.to_bool(value, call.range))


def _length(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``len(x)``, also of a value that may be None, or is not a value of the graph; return None, without emitting
    anything, for other calls."""
    item = call.only_argument
    if item is None or item.tree.kind in _NO_VALUES:
        return None
    known = length_known(emitter, call)
    if known is not None:
        return known
    if item.tree.kind in (Var.KIND, Select.KIND, Subscript.KIND) and id(item.tree) not in emitter.shared:
        found = emitter.emit_sugared(item)
        if found.known_length is not None:
            return SimpleValue(emitter.literal(found.known_length, call.range))
        value = emitter.as_scalar(found.as_value(item.range, emitter.graph))
    else:
        value = emitter.emit_expression(item)
    return _of_emitted(emitter, call, emitter.present(value, call.range, "object of type 'NoneType' has no len()"))


def _repr(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    (item,) = expect_arguments(emitter, call, 1, 1)
    value = emitter.emit_expression(item)
    template = emitter.graph.insert_constant("{!r}", range=call.range)
    return SimpleValue(_formatted(emitter, call.range, template, value))


def _print(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue | None:
    """Emit ``print`` with keyword arguments, ``sep`` and ``end``: print one string. Return None for a call without
    any.

    Raises:
        UnsupportedError: there is another keyword argument, or ``end`` is not a string in the source that ends with a
            newline.
    """
    if not call.attributes:
        return None
    options: dict[str, Expr] = {item.name.name: item.value for item in call.attributes}
    end = options.pop("end", None)
    between = options.pop("sep", None)
    if "flush" in options and options["flush"].tree.kind in ("true", "false"):
        del options["flush"]  # what is printed goes to Python's stream, whose buffer is Python's
    ending = "\n" if end is None else StringLiteral(end.tree).text if end.tree.kind == StringLiteral.KIND else ""
    unknown = next(iter(options), None if ending.endswith("\n") else "end")
    if unknown is not None:
        raise UnsupportedError(f"print does not take '{unknown}' here", call.range)
    separator = literal_text(emitter, " ", call.range) if between is None else emitter.emit_expression(between)
    text: Value | None = None
    for item in call.inputs:
        value = NamedValue(emitter.emit_expression(item), range=item.range)
        part = GLOBALS["str"].call(CallSite(item.range, emitter.graph, [value])).as_value(item.range, emitter.graph)
        text = part if text is None else _joined_texts(emitter, call.range, text, separator, part)
    whole = literal_text(emitter, "", call.range) if text is None else text
    whole = _joined_texts(emitter, call.range, whole, literal_text(emitter, ending[:-1], call.range))
    return GLOBALS["print"].call(CallSite(call.range, emitter.graph, [NamedValue(whole, range=call.range)], targets=0))


def _format(emitter: Emitter, callee: NewStyleString, call: Apply) -> SugaredValue:
    """Emit ``"{name}".format(name=…)``. The fields are numbered at compile time, so the template must be a constant.

    Raises:
        UnsupportedError: the template is not a string in the source.
    """
    node = callee.template.node
    template = node.attributes.get("value") if node.kind == "prim::Constant" else None
    if not isinstance(template, str):
        raise UnsupportedError(
            "format takes keyword arguments only where its template is a string in the source",
            call.range,
            hint="number the fields instead: '{0}'",
        )
    args, named = emit_sugared_args(emitter, call)
    values = [NamedValue(item.as_value(call.range, emitter.graph), range=call.range) for item in args]
    values += [NamedValue(item.as_value(call.range, emitter.graph), range=call.range) for item in named.values()]
    numbered = emitter.graph.insert_constant(_numbered(template, len(args), list(named), call.range), range=call.range)
    return NewStyleString(numbered).call(CallSite(call.range, emitter.graph, values))


def _numbered(template: str, positional: int, names: Sequence[str], range: SourceRange) -> str:
    """Return the template of ``format`` with numbers in place of field names.

    Raises:
        TypeMismatchError: a field has no argument.
        UnsupportedError: a format specification contains a named field.
    """
    parts: list[str] = []
    count = 0
    for text, field, spec, conversion in Formatter().parse(template):
        parts.append(text.replace("{", "{{").replace("}", "}}"))
        if field is None:
            continue
        if field == "":
            number, count = count, count + 1
        elif field.isdigit():
            number = int(field)
        elif field in names:
            number = positional + names.index(field)
        else:
            raise TypeMismatchError(f"format is given nothing for the field '{field}'", range)
        if spec and "{" in spec:
            raise UnsupportedError("fields within format specifications take no names here", range)
        parts.append(f"{{{number}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}")
    return "".join(parts)


def literal_text(emitter: Emitter, text: str, range: SourceRange) -> Value:
    return emitter.graph.insert_constant(text, range=range)


def _joined_texts(emitter: Emitter, range: SourceRange, first: Value, *others: Value) -> Value:
    for other in others:
        first = emitter.insert("aten::add", range, first, other)
    return first


_BUILTINS: Final[dict[str, Callable[[Emitter, Apply, Type | None], SugaredValue | None]]] = {
    "divmod": _divmod,
    "format": _format_of,
    "int": _int,
    "pow": _pow,
    "round": _round,
    "sum": _sum,
    "bool": _truth,
    "len": _length,
    "repr": _repr,
    "print": _print,
    "min": _least,
    "max": _greatest,
    "any": _any,
    "all": _all,
    "sorted": _sorted_rows,
}
"""Emitters of builtins, by name. Each returns None for calls that it does not handle."""

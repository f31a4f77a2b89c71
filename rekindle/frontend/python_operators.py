"""Operators and builtins of Python for which TorchScript has no operator: they are put together of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from string import Formatter
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.generators import LAZY
from rekindle.frontend.insertion import constant_int
from rekindle.frontend.iterated_arguments import items_of
from rekindle.frontend.iteration_forms import IterationEmitter
from rekindle.frontend.library import library_function
from rekindle.frontend.none_errors import class_name
from rekindle.frontend.number_arithmetic import (
    INT_OR_FLOAT,
    as_float,
    emit_extreme,
    emit_open_arithmetic,
    is_mixed,
    is_real,
)
from rekindle.frontend.refinement import Refinements
from rekindle.frontend.set_values import shown
from rekindle.frontend.special_forms import GLOBALS, NewStyleString
from rekindle.frontend.sugared import Call, SugaredValue
from rekindle.frontend.values import SimpleValue
from rekindle.ir.graph import Value
from rekindle.ir.matching import CallArgument, unpack_tuple
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    STRING,
    TENSOR,
    DictType,
    ListType,
    NoneType,
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
from rekindle.syntax.views import (
    Apply,
    BinOp,
    Expr,
    GeneratorExpr,
    ListComp,
    SliceExpr,
    StringLiteral,
    Subscript,
    UnaryOp,
)

_LISTS_COMPARED: Final = {"<": (False, False), "<=": (False, True), ">": (True, False), ">=": (True, True)}
"""Whether the operands change places, and what two equal lists give."""


_CHANGED_PLACES: Final = {"+": "+", "*": "*", "==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""What ``y operator x`` is that ``x operator y`` is."""

_WHOLE: Final = (INT, BOOL)
_TYPED_NUMBERS: Final = (INT, FLOAT, COMPLEX)
_REAL: Final = frozenset({"BoolType", "IntType", "FloatType", "NumberType"})

_NO_VALUES: Final = frozenset({"starred", "generator", "list_comp", "set_comp"})
"""Arguments that whoever is called looks at himself."""


def _joined(types: Sequence[Type]) -> Type | None:
    """Return the type of a number or a Tensor that is of one of the types; None where they have none in common."""
    found: Type | None = unshaped(types[0])
    for type in types[1:]:
        found = None if found is None else join_values(found, unshaped(type))
    return found


class PythonOperatorEmitter(IterationEmitter):
    """Emits what is made of several operators."""

    def from_library(self, name: str, range: SourceRange, *values: Value) -> Value:
        """What the function of the library's texts gives for these values."""
        arguments = [SimpleValue(value) for value in values]
        return library_function(name).call_with(range, self.graph, arguments, {}).as_value(range, self.graph)

    # ------------------------------------------------------------------------------------------------------- operators

    def special_binary(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        range = expr.range
        if operator == "**":
            return self._int_power(lhs, rhs, expr.rhs, range)
        if self.graph.none_checks is not None:
            number = emit_open_arithmetic(self, operator, lhs, rhs, expr)
            if number is not None:
                return number
            if operator == "*" and (is_open_number(lhs.type) or is_open_number(rhs.type)):
                return self._repeated(lhs, rhs, expr)
        if isinstance(rhs.type, TensorType) and self.graph.none_checks is not None:
            if lhs.type == BOOL and operator == "//":
                return self.binary(operator, self.insert("aten::Int", range, lhs), rhs, expr)
            if is_open_number(lhs.type) or lhs.type == BOOL or (operator == "-" and lhs.type in _TYPED_NUMBERS):
                return self._number_and_tensor(operator, lhs, rhs, expr)
        if operator == "*" and STRING in (lhs.type, rhs.type) and INT in (lhs.type, rhs.type):
            return self.from_library("repeated_text", range, *((lhs, rhs) if lhs.type == STRING else (rhs, lhs)))
        if operator == "in":
            if isinstance(rhs.type, TensorType):
                return self.from_library("tensor_contains", range, rhs, lhs)
            return self._among(lhs, rhs, expr)
        if operator == "|" and isinstance(lhs.type, DictType) and lhs.type == rhs.type:
            return self.from_library("merged_dicts", range, lhs, rhs)
        if operator in ("==", "!="):
            return self._special_equality(operator, lhs, rhs, expr)
        if operator in _LISTS_COMPARED and isinstance(lhs.type, ListType) and isinstance(rhs.type, ListType):
            changed, if_equal = _LISTS_COMPARED[operator]
            first, second = (rhs, lhs) if changed else (lhs, rhs)
            equal = self.graph.insert_constant(if_equal, range=range)
            return self.from_library("less_lists", range, first, second, equal)
        return None

    def _repeated(self, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        """``xs * n`` and ``n * xs`` of a list or a string and a number that has to be an int; None for others."""
        checks = self.graph.none_checks
        other, number = (rhs, lhs) if is_open_number(lhs.type) else (lhs, rhs)
        if checks is None or not isinstance(other.type, (ListType, StringType)):
            return None
        return self.binary("*", other, checks.number_as(number, INT, expr.range), expr)

    def power(self, base: Value, exponent: Value, expr: BinOp, hint: Type | None) -> Value:
        if base.type != INT or exponent.type != INT or hint != FLOAT:
            return self.binary("**", base, exponent, expr)
        if constant_int(exponent) is None:
            return as_float(self, self._number_power(base, exponent, expr.range), expr.range)
        return as_float(self, self.binary("**", base, exponent, expr), expr.range)

    def _number_power(self, base: Value, exponent: Value, range: SourceRange) -> Value:
        """``base ** exponent`` of reals: an int of ints, unless the exponent is negative; else a float."""
        result = self.from_library("number_power", range, base, exponent)
        return (
            self.environment.cast(result, INT_OR_FLOAT, range)
            if is_real(base.type) and is_real(exponent.type)
            else result
        )

    def _number_and_tensor(self, operator: str, number: Value, tensor: Value, expr: BinOp) -> Value | None:
        """``x.item() - y``: the operators of Tensors take numbers on their right.

        TorchScript's ``1.5 - y`` is ``neg(y) + 1.5``, which wraps in the dtype of ``y`` before it promotes.
        """
        if operator == "-":
            return self.insert("aten::rsub", expr.range, tensor, number)
        if operator == "/":
            return self.insert("aten::mul", expr.range, self.insert("aten::reciprocal", expr.range, tensor), number)
        changed = _CHANGED_PLACES.get(operator)
        return None if changed is None else self.binary(changed, tensor, number, expr)

    def _int_power(self, base: Value, exponent: Value, written: Expr, range: SourceRange) -> Value | None:
        """The power of two ints as an int; None where it is none: of other types, and where a minus stands in front of
        the exponent."""
        kinds = {part.kind for value in (base, exponent) for part in union_members(value.type)}
        is_open = any(value.type == NUMBER or isinstance(value.type, UnionBase) for value in (base, exponent))
        if is_open and kinds <= _REAL and self.graph.none_checks is not None:
            return self._number_power(base, exponent, range)
        if base.type not in _WHOLE or exponent.type not in _WHOLE or self.graph.none_checks is None:
            return None
        base, exponent = (self.insert("aten::Int", range, x) if x.type == BOOL else x for x in (base, exponent))
        if (constant_int(exponent) or 0) < 0:
            return self.insert("aten::pow", range, base, exponent)
        if written.tree.kind == "unary_minus":
            return self._number_power(base, exponent, range)
        return self.from_library("int_power", range, base, exponent)

    def _among(self, item: Value, container: Value, expr: BinOp) -> Value | None:
        """``x in (1, "a", None)``: compared with one after the other, where no operator looks through them all."""
        if isinstance(container.type, TupleType):
            parts = unpack_tuple(self.graph, container, expr.range)
        elif isinstance(container.type, ListType) and isinstance(container.type.element, _COMPARED_ONE_BY_ONE):
            return self.from_library("list_contains", expr.range, container, item)
        elif container.node.kind == "prim::ListConstruct":
            parts = list(container.node.inputs)
        else:
            return None
        if not parts or all(part.type == item.type for part in parts):
            return None
        found = self.graph.insert_constant(False, range=expr.range)
        for part in reversed(parts):
            found = self._either_equal(item, part, found, expr)
        return found

    def _either_equal(self, item: Value, part: Value, otherwise: Value, expr: BinOp) -> Value:
        if _never_equal(item.type, part.type):
            return otherwise
        if isinstance(part.type, NoneType):
            equal = self.insert("aten::__is__", expr.range, item, part)
        else:
            equal = self.to_bool(self.binary("==", item, part, expr), expr.range)
        node, _, _ = self.branch(
            expr.range,
            equal,
            Refinements(),
            lambda: self.graph.insert_constant(True, range=expr.range),
            lambda: otherwise,
        )
        return node.add_output(BOOL)

    def _equal_if_present(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        """``lhs == rhs`` where one of them may be None, which equals nothing but None."""
        may_be_none = [_is_optional_plain(value.type) for value in (lhs, rhs)]
        if not any(may_be_none) or TENSOR in (lhs.type, rhs.type):
            return None
        asked, other = (lhs, rhs) if may_be_none[0] else (rhs, lhs)
        range = expr.range
        nothing = self.graph.insert_constant(None, range=range)

        def both_none() -> Value:
            if not _is_optional_plain(other.type):
                return self.graph.insert_constant(operator == "!=", range=range)
            return self.insert("aten::__is__" if operator == "==" else "aten::__isnot__", range, other, nothing)

        node, _, _ = self.branch(
            range,
            self.insert("aten::__isnot__", range, asked, nothing),
            Refinements(),
            lambda: self.to_bool(self.binary(operator, self.without_none(asked, range), other, expr), range),
            both_none,
        )
        return node.add_output(BOOL)

    def _special_equality(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        range = expr.range
        if isinstance(rhs.type, NoneType) and isinstance(without_none(lhs.type), (ListType, DictType)):
            return self.insert("aten::__is__" if operator == "==" else "aten::__isnot__", range, lhs, rhs)
        if isinstance(lhs.type, DictType) and lhs.type == rhs.type and not isinstance(lhs.type.value, TensorType):
            equal = self.from_library("equal_dicts", range, lhs, rhs)
            return equal if operator == "==" else self.insert("aten::__not__", range, equal)
        if _compared_by_items(lhs.type, rhs.type):
            equal = self.from_library("equal_items", range, lhs, rhs)
            return equal if operator == "==" else self.insert("aten::__not__", range, equal)
        if STRING in (lhs.type, rhs.type) and _never_equal(lhs.type, rhs.type):
            return self.graph.insert_constant(operator == "!=", range=range)
        return self._equal_if_present(operator, lhs, rhs, expr)

    # ---------------------------------------------------------------------------------------------------------- slices

    def assign_slice(
        self, range: SourceRange, target: Subscript, base: Value, items: Value, deleted: bool = False
    ) -> None:
        """``xs[a:b:c] = items``; with no items it is ``del xs[a:b]``."""
        assert isinstance(base.type, ListType)
        slice = SliceExpr(target.indices[0].tree)
        bounds = [
            self.graph.insert_constant(None, range=range) if part is None else self.emit_expression(part)
            for part in (slice.start, slice.stop)
        ]
        if slice.step is None:
            self.from_library("assign_slice", range, base, *bounds, items)
        elif deleted:
            self.from_library("delete_places", range, base, *bounds, self.emit_expression(slice.step))
        else:
            self.from_library("assign_places", range, base, *bounds, self.emit_expression(slice.step), items)

    # -------------------------------------------------------------------------------------------------------- builtins

    def emit_call(self, call: Apply, targets: int, hint: Type | None) -> SugaredValue:
        name = call.callee_name
        if name is not None:
            emit = _BUILTINS.get(name)
            if emit is not None and self.environment.is_builtin(name, call.callee.range):
                found = emit(self, call, hint)
                if found is not None:
                    return found
        elif call.has_keywords and call.callee.range.text.endswith(".format"):
            callee = self.emit_sugared(call.callee)
            if isinstance(callee, NewStyleString):
                return self._format(callee, call)
        return super().emit_call(call, targets, hint)

    def _unary(self, expr: UnaryOp, operand: Value) -> Value:
        """``+x`` of a number that may be a bool: an int then."""
        result = super()._unary(expr, operand)
        if expr.operator == "unary_plus" and may_be_bool(result.type):
            return self.from_library("positive_number", expr.range, result)
        return result

    def _round(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``round(x)`` of a float is an int, ``round(x, 2)`` the float that is written so."""
        given = call.inputs
        if call.attributes:
            if len(call.attributes) != 1 or call.attributes[0].name.name != "ndigits" or len(given) != 1:
                return None
            given = [*given, call.attributes[0].value]
        if not 1 <= len(given) <= 2:
            return None
        number = self.emit_expression(given[0])
        if number_beside_tensor(number.type) is not None:
            return SimpleValue(self.split(number, call.range, lambda part: self._rounded(call, given[0], part, hint)))
        if number_members(without_none(number.type)) is not None or isinstance(present(number.type), TensorType):
            number = self.present(number, call.range, "type NoneType doesn't define __round__ method")
        if may_be_bool(number.type):  # twice negated, True is 1, and all else what it was, in native code, too
            number = self.insert("aten::neg", call.range, self.insert("aten::neg", call.range, number))
        if is_open_number(number.type) and len(given) == 2:
            rounded = self.from_library("round_number_to", call.range, number, self.emit_expression(given[1]))
            return SimpleValue(self.environment.cast(rounded, number.type, call.range))
        if number.type == BOOL:
            number = self.insert("aten::Int", call.range, number)
        if is_open_number(number.type) and len(given) == 1:
            return SimpleValue(self.from_library("round_number", call.range, number))
        if isinstance(number.type, TensorType) and self.environment.checks_assignment:
            raise TypeMismatchError(
                "type Tensor doesn't define __round__ method", call.range, hint="write x.round(), or round(x.item())"
            )
        if number.type not in (FLOAT, INT):
            return self._of_emitted(call, number)
        places = None if len(given) == 1 or given[1].tree.kind == "none" else self.emit_expression(given[1])
        if places is None:
            if number.type == INT:
                return SimpleValue(number)
            rounded = self.insert("aten::round", call.range, number)
            return SimpleValue(rounded if hint == FLOAT else self.insert("aten::Int", call.range, rounded))
        if number.type == INT:
            return SimpleValue(self.from_library("round_int", call.range, number, places))
        digits = constant_int(places)
        if digits is None or digits < 0:
            return SimpleValue(self.insert("python::round", call.range, number, places))
        template = self.graph.insert_constant(f"{{:.{digits}f}}", range=call.range)
        text = self.insert("aten::format", call.range, template, number)
        return SimpleValue(self.insert("aten::Float", call.range, text))

    def _rounded(self, call: Apply, written: Expr, number: Value, hint: Type | None) -> Value:
        """``round(number)``, which has been evaluated."""
        self.shared[id(written.tree)] = number
        try:
            found = self._round(call, hint)
        finally:
            del self.shared[id(written.tree)]
        assert found is not None
        return found.as_value(call.range, self.graph)

    def _of_emitted(self, call: Apply, first: Value) -> SugaredValue:
        """The call of the builtin, whose first argument has been emitted."""
        callee = self.emit_sugared(call.callee)
        rest = self.emit_arguments(call.inputs[1:])
        arguments = [CallArgument(first, range=call.inputs[0].range), *rest]
        return callee.call(Call(call.callee.range, self.graph, arguments))

    def _least(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        return self._extreme(call, "min")

    def _greatest(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        return self._extreme(call, "max")

    def _extreme(self, call: Apply, name: str) -> SugaredValue | None:
        """``min(xs)`` of strings, tuples and lists, for which there is no operator."""
        kinds = [item.tree.kind for item in call.inputs]
        is_made = kinds in ([ListComp.KIND], [GeneratorExpr.KIND])
        if call.attributes or not kinds or (not is_made and not _NO_VALUES.isdisjoint(kinds)):
            return None
        value = self.emit_expression(call.inputs[0])
        if len(call.inputs) == 1:
            value = items_of(self.graph, value, call.range)
        else:
            return self._extreme_of(call, name, [value, *map(self.emit_expression, call.inputs[1:])])
        type = value.type
        if isinstance(type, TensorType):
            rows = self.insert("aten::unbind", call.range, value)
            return SimpleValue(self.from_library(f"{name}_row", call.range, rows))
        element = type.key if isinstance(type, DictType) else type.element if isinstance(type, ListType) else None
        if isinstance(type, ListType) and self._may_be_tensor(type.element):
            return SimpleValue(self.from_library(f"{name}_row", call.range, value))
        if not isinstance(element, (StringType, TupleType, ListType)) and not (element and is_open_number(element)):
            return self._of_emitted(call, value)
        xs = value if isinstance(type, ListType) else self.insert("aten::keys", call.range, value)
        return SimpleValue(self.first_by(call.range, xs, xs, name))

    def _may_be_tensor(self, type: Type) -> bool:
        """Whether values of a type are Tensors, or Tensors and numbers, in a program of Python's."""
        return self.graph.none_checks is not None and (isinstance(type, TensorType) or bool(number_beside_tensor(type)))

    def _extreme_of(self, call: Apply, name: str, values: list[Value]) -> SugaredValue:
        """``min(a, b)``: of numbers of several types one of them, of others what the operator gives."""
        operator = ">" if name == "max" else "<"
        for index in range(1, len(values)):
            values[index], values[0] = self.present_operands(operator, values[index], values[0], call.range)
        types = [value.type for value in values]
        is_compared = is_mixed(types) or any(isinstance(type, (StringType, TupleType, ListType)) for type in types)
        if self.graph.none_checks is not None and is_compared:
            comparison = BinOp.create(call.range, "<", call.inputs[0], call.inputs[1])
            return SimpleValue(emit_extreme(self, name, values, comparison))
        return self._of_operands(call, *values)

    def _sorted_rows(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``sorted(x)`` of a Tensor; None of other things."""
        if call.attributes or len(call.inputs) != 1 or call.inputs[0].tree.kind in _NO_VALUES:
            return None
        value = self.emit_expression(call.inputs[0])
        if isinstance(value.type, TensorType):
            raise UnsupportedError(
                "sorted of a Tensor would be a list of its rows",
                call.range,
                hint="write x.sort().values, or sort a list: values: List[float] = x.tolist()",
            )
        return self._of_emitted(call, value)

    def _any(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        return self._of_rows(call, "any_of_rows")

    def _all(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        return self._of_rows(call, "all_rows")

    def _of_rows(self, call: Apply, function: str) -> SugaredValue | None:
        """``any(x)`` of a Tensor asks its rows, and gives a bool; None of other things."""
        if call.attributes or len(call.inputs) != 1:
            return None
        generator = self.generator_of(call.inputs[0], LAZY)
        if generator is not None:
            return SimpleValue(self._of_generator(call, generator, function))
        if call.inputs[0].tree.kind in _NO_VALUES - {ListComp.KIND}:
            return None
        value = self.emit_expression(call.inputs[0])
        if isinstance(value.type, ListType) and self._may_be_tensor(value.type.element):
            return SimpleValue(self.from_library(function, call.range, value))
        if not isinstance(value.type, TensorType):
            return self._of_emitted(call, value)
        rows = self.insert("aten::unbind", call.range, value)
        return SimpleValue(self.from_library(function, call.range, rows))

    def _of_generator(self, call: Apply, expr: GeneratorExpr, function: str) -> Value:
        """``any(x > 0 for x in xs)``, which ends with the first element that decides."""
        is_any = function == "any_of_rows"

        def decides() -> Value:
            truth = self.emit_condition(expr.element).value
            return truth if is_any else self.insert("aten::__not__", expr.range, truth)

        found = self.until_true(expr, decides)
        return found if is_any else self.insert("aten::__not__", call.range, found)

    def _int(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``int("ff", 16)``; other calls are none of this."""
        named = [item.value for item in call.attributes if item.name.name == "base"]
        given = [*call.inputs, *named]
        if len(given) != 2 or len(named) != len(call.attributes):
            return None
        text, base = (self.emit_expression(item) for item in given)
        return SimpleValue(self.from_library("int_of_text", call.range, text, base))

    def _sum(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``sum(xs, start)``"""
        named = [item.value for item in call.attributes if item.name.name == "start"]
        given = [*call.inputs, *named]
        if len(given) == 1 and not call.attributes:
            return self._sum_of_all(call, hint)
        if len(given) != 2 or len(named) != len(call.attributes):
            return None
        xs = self.unordered_list(call, given[0])
        start = self.emit_expression(given[1], xs.type.element if isinstance(xs.type, ListType) else None)
        if isinstance(xs.type, ListType) and start.type == INT and xs.type.element == FLOAT:
            first = self.insert("aten::Float", call.range, start)
            total = partial(self.from_library, "sum_from", call.range, xs, first)
            return SimpleValue(self._sum_if_any(call, xs, start, total, hint))
        return SimpleValue(self.from_library("sum_from", call.range, xs, start))

    def _sum_if_any(
        self, call: Apply, items: Value, start: Value, total: Callable[[], Value], hint: Type | None
    ) -> Value:
        """``total()``, a float, a complex or a Tensor, if there are items to add, else the int ``start``."""
        if hint == FLOAT or self.graph.none_checks is None or (_is_literal(items) and items.node.inputs):
            return total()
        is_empty = self.insert("aten::eq", call.range, self.insert("aten::len", call.range, items), 0)
        node, first, other = self.branch(call.range, is_empty, Refinements(), lambda: start, total)
        joined = join_values(first.type, unshaped(other.type))
        assert joined is not None
        return node.add_output(joined)

    def _sum_of_all(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``sum(xs)`` of Tensors, or over the rows of one; None where an operator does."""
        item = call.inputs[0]
        if item.tree.kind in ("starred", "set_comp"):
            return None
        found = self.emit_sugared(item)
        if isinstance(found, SimpleValue):
            xs = found.value
        else:
            xs = self.list_of(call.range, found.iterator(item.range, self.graph), None)
        if isinstance(xs.type, TupleType) and xs.type.elements:
            joined = _joined(xs.type.elements)
            if joined is not None and (joined == TENSOR or number_beside_tensor(joined) is not None):
                items = unpack_tuple(self.graph, xs, call.range)
                xs = self.insert_node("prim::ListConstruct", call.range, items, [ListType(joined)]).output
        if isinstance(xs.type, TensorType):
            xs = self.insert("aten::unbind", call.range, xs)
        if isinstance(xs.type, ListType) and isinstance(xs.type.element, TensorType):
            total = partial(self.from_library, "sum_of_tensors", call.range, xs)
            return SimpleValue(self._sum_if_any(call, xs, self.literal(0, call.range), total, hint))
        if isinstance(xs.type, ListType) and number_beside_tensor(xs.type.element) is not None:
            return SimpleValue(self.from_library("sum_from", call.range, xs, self.literal(0, call.range)))
        element = xs.type.element if isinstance(xs.type, ListType) else None
        if element is not None and {part.kind for part in union_members(element)} <= _REAL:
            if element not in (INT, FLOAT, BOOL):
                return SimpleValue(self.from_library("sum_of_numbers", call.range, xs))
        if element in (FLOAT, COMPLEX):
            start = self.literal(0, call.range)
            total = partial(self.insert, "aten::sum", call.range, xs)
            return SimpleValue(self._sum_if_any(call, xs, start, total, hint))
        return self._of_emitted(call, xs)

    def _pow(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``pow(a, b, m)``, and of two arguments what ``a ** b`` is."""
        if call.attributes or not 2 <= len(call.inputs) <= 3:
            return None
        numbers = [self.emit_expression(item) for item in call.inputs]
        if len(numbers) == 3:
            return SimpleValue(self.from_library("power_modulo", call.range, *numbers))
        return SimpleValue(self._power(call, self.present_operands("**", numbers[0], numbers[1], call.range), hint))

    def _power(self, call: Apply, numbers: Sequence[Value], hint: Type | None) -> Value:
        for index, number in enumerate(numbers):
            if number_beside_tensor(number.type) is not None:

                def emit(part: Value, index: int = index) -> Value:
                    return self._power(call, [*numbers[:index], part, *numbers[index + 1 :]], hint)

                return self.split(number, call.range, emit)
        base, exponent = numbers
        whole = None if hint == FLOAT else self._int_power(base, exponent, call.inputs[1], call.range)
        if whole is not None:
            return whole
        return self._of_operands(call, base, exponent).as_value(call.range, self.graph)

    def _divmod(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``divmod(a, b)`` of numbers that may be None."""
        if call.attributes or len(call.inputs) != 2:
            return None
        one, other = map(self.emit_expression, call.inputs)
        one, other = self.present_operands("divmod()", one, other, call.range)
        if self.graph.none_checks is not None and any(isinstance(item.type, TensorType) for item in (one, other)):
            names = f"'{class_name(one.type)}' and '{class_name(other.type)}'"
            raise TypeMismatchError(f"unsupported operand type(s) for divmod(): {names}", call.range)
        return self._of_operands(call, one, other)

    def _of_operands(self, call: Apply, *operands: Value) -> SugaredValue:
        """The call of the builtin, whose arguments have been emitted."""
        callee = self.emit_sugared(call.callee)
        pairs = zip(operands, call.inputs, strict=True)
        return callee.call(
            Call(call.callee.range, self.graph, [CallArgument(value, range=item.range) for value, item in pairs])
        )

    def _format_of(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``format(x, ".2f")``"""
        given = self._expect(call, 1, 2)
        values = [self.emit_expression(item) for item in given]
        template = self.graph.insert_constant("{:{}}" if len(values) == 2 else "{:}", range=call.range)
        return SimpleValue(self._formatted(call.range, template, *values))

    def _formatted(self, range: SourceRange, *given: Value) -> Value:
        args = shown("aten::format", [self.argument(item, range) for item in given], self.graph, range)
        return self.insert("aten::format", range, *(item.materialise(self.graph) for item in args))

    def _truth(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``bool(x)`` of what may be None, which is false, or of one of several types."""
        if call.attributes or len(call.inputs) != 1 or call.inputs[0].tree.kind in _NO_VALUES:
            return None
        value = self.emit_expression(call.inputs[0])
        if self.graph.none_checks is None or not isinstance(value.type, UnionBase):
            return self._of_emitted(call, value)
        return SimpleValue(self.to_bool(value, call.range))

    def _length(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``len(x)`` of what may be None, which an operator would take for one thing."""
        if call.attributes or len(call.inputs) != 1 or call.inputs[0].tree.kind in _NO_VALUES:
            return None
        known = self._length_known(call)
        if known is not None:
            return known
        value = self.emit_expression(call.inputs[0])
        return self._of_emitted(call, self.present(value, call.range, "object of type 'NoneType' has no len()"))

    def _repr(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        (item,) = self._expect(call, 1, 1)
        value = self.emit_expression(item)
        template = self.graph.insert_constant("{!r}", range=call.range)
        return SimpleValue(self._formatted(call.range, template, value))

    def _print(self, call: Apply, hint: Type | None) -> SugaredValue | None:
        """``print(…, sep=…)`` prints one string; the line end is what the operator adds."""
        if not call.attributes:
            return None
        options: dict[str, Expr] = {item.name.name: item.value for item in call.attributes}
        end = options.pop("end", None)
        between = options.pop("sep", None)
        ending = "\n" if end is None else StringLiteral(end.tree).text if end.tree.kind == StringLiteral.KIND else ""
        unknown = next(iter(options), None if ending.endswith("\n") else "end")
        if unknown is not None:
            raise UnsupportedError(f"print does not take '{unknown}' here", call.range)
        separator = self.literal_text(" ", call.range) if between is None else self.emit_expression(between)
        text: Value | None = None
        for item in call.inputs:
            value = CallArgument(self.emit_expression(item), range=item.range)
            part = GLOBALS["str"].call(Call(item.range, self.graph, [value])).as_value(item.range, self.graph)
            text = part if text is None else self._joined(call.range, text, separator, part)
        whole = self.literal_text("", call.range) if text is None else text
        whole = self._joined(call.range, whole, self.literal_text(ending[:-1], call.range))
        return GLOBALS["print"].call(Call(call.range, self.graph, [CallArgument(whole, range=call.range)], targets=0))

    def literal_text(self, text: str, range: SourceRange) -> Value:
        return self.graph.insert_constant(text, range=range)

    def _joined(self, range: SourceRange, first: Value, *others: Value) -> Value:
        for other in others:
            first = self.insert("aten::add", range, first, other)
        return first

    def _format(self, callee: NewStyleString, call: Apply) -> SugaredValue:
        """``"{name}".format(name=…)``: the fields are numbered where the template is known."""
        node = callee.template.node
        template = node.attributes.get("value") if node.kind == "prim::Constant" else None
        if not isinstance(template, str):
            raise UnsupportedError(
                "format takes keyword arguments only where its template is a string in the source",
                call.range,
                hint="number the fields instead: '{0}'",
            )
        args, named = self.emit_meanings(call)
        values = [CallArgument(item.as_value(call.range, self.graph), range=call.range) for item in args]
        values += [CallArgument(item.as_value(call.range, self.graph), range=call.range) for item in named.values()]
        numbered = self.graph.insert_constant(_numbered(template, len(args), list(named), call.range), range=call.range)
        return NewStyleString(numbered).call(Call(call.range, self.graph, values))


_COMPARED_ONE_BY_ONE: Final = (ListType, TupleType, DictType)
"""Elements of lists that no operator looks for."""

_NUMBERS: Final = ("BoolType", "IntType", "FloatType", "ComplexType", "NumberType")


def _is_literal(items: Value) -> bool:
    return items.node.kind == "prim::ListConstruct"


def _never_equal(one: Type, other: Type) -> bool:
    """Whether no values of the two types are equal: a string and a number, None and what cannot be None."""
    if isinstance(one, NoneType) or isinstance(other, NoneType):
        return not one.is_optional or not other.is_optional
    return STRING in (one, other) and (one.kind in _NUMBERS or other.kind in _NUMBERS)


def _compared_by_items(one: Type, other: Type) -> bool:
    """Whether the types are those of lists, and no operator compares these."""
    if not isinstance(one, ListType) or not isinstance(other, ListType):
        return False
    return one.element != other.element or isinstance(one.element, (ListType, TupleType, DictType))


def _is_optional_plain(type: Type) -> bool:
    """Whether values may be None, and else compare to a bool."""
    inner = without_none(type)
    return isinstance(type, UnionBase) and type.is_optional and not isinstance(inner, (TensorType, UnionBase))


def _numbered(template: str, positional: int, names: Sequence[str], range: SourceRange) -> str:
    """The template with numbers for names."""
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


_BUILTINS: Final[dict[str, Callable[[PythonOperatorEmitter, Apply, Type | None], SugaredValue | None]]] = {
    "divmod": PythonOperatorEmitter._divmod,
    "format": PythonOperatorEmitter._format_of,
    "int": PythonOperatorEmitter._int,
    "pow": PythonOperatorEmitter._pow,
    "round": PythonOperatorEmitter._round,
    "sum": PythonOperatorEmitter._sum,
    "bool": PythonOperatorEmitter._truth,
    "len": PythonOperatorEmitter._length,
    "repr": PythonOperatorEmitter._repr,
    "print": PythonOperatorEmitter._print,
    "min": PythonOperatorEmitter._least,
    "max": PythonOperatorEmitter._greatest,
    "any": PythonOperatorEmitter._any,
    "all": PythonOperatorEmitter._all,
    "sorted": PythonOperatorEmitter._sorted_rows,
}
"""Builtins of which some calls are put together of operators."""

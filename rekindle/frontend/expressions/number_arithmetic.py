"""Arithmetic on numbers whose type is known only at run time.

The type of the result follows from the operands: with a float it is a float, ``/`` of reals is a float too, and other
operators of reals give an int or a float::

    total : Union[float, int]      total + 0.5 : float         aten::add(aten::Float(total), 0.5)
                                   total + 1 : Union[float, int]     aten::add(Scalar, Scalar)
                                   total / 3 : float           aten::div(Scalar, Scalar)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from rekindle.frontend.expressions.operators import binary
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    TensorType,
    Type,
    UnionType,
    is_open_number,
    join_any,
    number_beside_tensor,
    number_members,
    union,
    unshaped,
)

if TYPE_CHECKING:
    from rekindle.errors import SourceRange
    from rekindle.frontend.emitter import Emitter
    from rekindle.ir.graph import Value
    from rekindle.syntax.views import BinOp

INT_OR_FLOAT: Final = union((INT, FLOAT))

_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "//", "%"})


def is_real(type: Type) -> bool:
    """Return whether values of ``type`` are bools, ints or floats."""
    members = number_members(type)
    return members is not None and NUMBER not in members and COMPLEX not in members


def emit_open_arithmetic(emitter: Emitter, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
    """Emit ``lhs operator rhs`` of two reals, the type of at least one of which is known only at run time; return None
    for other operands and operators."""
    types = (lhs.type, rhs.type)
    if operator not in _ARITHMETIC or not any(map(is_open_number, types)) or not all(map(is_real, types)):
        return None
    range = expr.range
    if FLOAT in types:
        floats = [as_float(emitter, value, range) for value in (lhs, rhs)]
        return binary(emitter, operator, floats[0], floats[1], expr)
    scalars = [emitter.as_number(value, range) for value in (lhs, rhs)]
    result = binary(emitter, operator, scalars[0], scalars[1], expr)
    return emitter.environment.cast(result, FLOAT if operator == "/" else INT_OR_FLOAT, range)


def as_float(emitter: Emitter, value: Value, range: SourceRange) -> Value:
    """Emit the conversion of a bool, an int or a float to a float."""
    if value.type == FLOAT:
        return value
    if value.type == INT or value.type == BOOL:
        return emitter.insert("aten::Float", range, value)
    return emitter.insert("aten::Float", range, emitter.as_number(value, range))


def emit_extreme(emitter: Emitter, name: str, values: Sequence[Value], expr: BinOp) -> Value:
    """Emit ``max(a, b, …)`` or ``min`` of numbers of several types, of Tensors and numbers, or of strings, lists or
    tuples. Return the result, which is one of the operands itself."""
    found, *others = values
    operator = ">" if name == "max" else "<"
    for value in others:
        better = emitter.to_bool(binary(emitter, operator, value, found, expr), expr.range)
        node, _, _ = emitter.branch(expr.range, better, RefinementSet(), _constant(value), _constant(found))
        joined = join_any(unshaped(value.type), unshaped(found.type))
        output = node.add_output(union((unshaped(value.type), unshaped(found.type))))
        found = output if output.type == joined else emitter.environment.cast(output, joined, expr.range)
    return found


def _constant(value: Value) -> Callable[[], Value]:
    return lambda: value


def is_mixed(types: Sequence[Type]) -> bool:
    """Return whether ``max`` of values of these types has a type that depends on the values: numbers of several types,
    or Tensors and numbers."""
    if any(number_beside_tensor(type) is not None for type in types):
        return True
    numbers = [type for type in types if number_members(type) is not None]
    if len(numbers) < len(types):
        return bool(numbers) and all(isinstance(type, TensorType) or type in numbers for type in types)
    return len(set(types)) > 1 or isinstance(types[0], UnionType) or types[0] == NUMBER

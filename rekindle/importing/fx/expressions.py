"""Import expressions of sizes: SymPy expressions, and Python expressions in guards."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import sympy  # type: ignore[import-untyped]

from rekindle.importing.fx.fx_importer import FxImporter, ImportedValue
from rekindle.ir.graph import Value


class Unreadable(Exception):
    """Raised for an unsupported expression; the message is the reason."""


_OF_TWO: Final = {
    "FloorDiv": "aten::floordiv",
    "CleanDiv": "aten::floordiv",
    "Mod": "aten::remainder",
    "PythonMod": "aten::remainder",
    "IntTrueDiv": "aten::div",
    "FloatTrueDiv": "aten::div",
    "Max": "prim::max",
    "Min": "prim::min",
}
"""Operators for functions of two numbers in SymPy, and in PyTorch's additions to it."""

_OF_ONE: Final = {"CeilToInt": "aten::ceil", "FloorToInt": "aten::floor", "ToFloat": "aten::Float", "Abs": "prim::abs"}

_RELATIONS: Final = {
    "Equality": "aten::eq",
    "Unequality": "aten::ne",
    "StrictLessThan": "aten::lt",
    "LessThan": "aten::le",
    "StrictGreaterThan": "aten::gt",
    "GreaterThan": "aten::ge",
}


def value_of_expression(reader: FxImporter, expression: Any, symbols: Mapping[sympy.Symbol, Value]) -> ImportedValue:
    """Insert nodes that compute a SymPy expression over ``symbols``; return the value, or a Python number for a
    constant.

    Raises:
        Unreadable: the expression has a symbol that is not in ``symbols``, or a function that is not supported.
    """
    if isinstance(expression, sympy.Symbol):
        if expression not in symbols:
            raise Unreadable(f"no argument determines {expression}")
        return symbols[expression]
    if expression.is_Integer:
        return int(expression)
    if expression.is_number and expression.is_real:
        return float(expression)
    args = [value_of_expression(reader, each, symbols) for each in expression.args]
    name = type(expression).__name__
    if isinstance(expression, (sympy.Add, sympy.Mul)):
        return _folded(reader, "aten::add" if isinstance(expression, sympy.Add) else "aten::mul", args)
    if isinstance(expression, sympy.Pow) and isinstance(args[1], int) and args[1] > 0:
        return _folded(reader, "aten::mul", [args[0]] * args[1])
    if name in _OF_TWO:
        return _folded(reader, _OF_TWO[name], args)
    if name in _OF_ONE or name in _RELATIONS:
        return reader.insert((_OF_ONE | _RELATIONS)[name], *args)
    raise Unreadable(f"{name} is not a known function")


def _folded(reader: FxImporter, kind: str, items: list[ImportedValue]) -> ImportedValue:
    first, *others = items
    for item in others:
        first = reader.insert(kind, first, item)
    return first


# -------------------------------------------------------------------------------------------------------------- guards

_BINARY: Final[dict[type, str]] = {
    ast.Add: "aten::add",
    ast.Sub: "aten::sub",
    ast.Mult: "aten::mul",
    ast.Div: "aten::div",
    ast.FloorDiv: "aten::floordiv",
    ast.Mod: "aten::remainder",
}
_COMPARISONS: Final[dict[type, str]] = {
    ast.Eq: "aten::eq",
    ast.NotEq: "aten::ne",
    ast.Lt: "aten::lt",
    ast.LtE: "aten::le",
    ast.Gt: "aten::gt",
    ast.GtE: "aten::ge",
}


def guard_value(reader: FxImporter, tree: ast.expr, names: Mapping[str, Value]) -> ImportedValue:
    """Import a guard, such as ``L['x'].size()[0] % 2 == 0``, or a subexpression of one: insert nodes that compute it,
    and return their result; a constant stays a Python value. ``names`` maps the spellings of arguments in guards,
    ``L['x']``, to values.

    Raises:
        Unreadable: the guard contains an expression that is not supported.
    """
    found = names.get(ast.unparse(tree))
    if found is not None:
        return found
    match tree:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return tree.value
        case ast.Attribute(value=ast.Name(id="math"), attr="inf" | "nan" as name):
            return float(name)
        case ast.Name(id="inf"):
            return math.inf
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = guard_value(reader, operand, names)
            return reader.insert("aten::neg", inner) if isinstance(inner, Value) else -inner
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return reader.insert("aten::__not__", guard_value(reader, operand, names))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            return _applied(reader, _BINARY[type(operator)], left, right, names)
        case ast.BoolOp(op=operator, values=parts):
            items = [guard_value(reader, part, names) for part in parts]
            return _folded(reader, "aten::__and__" if isinstance(operator, ast.And) else "aten::__or__", items)
        case ast.Compare(left=left, ops=operators, comparators=others):
            return _comparison(reader, [left, *others], [type(each) for each in operators], names)
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=owner, attr="size" | "stride" as name)), slice=index
        ):
            return reader.insert(f"aten::{name}", guard_value(reader, owner, names), ast.literal_eval(index))
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=index):
            return reader.insert("aten::size", guard_value(reader, owner, names), ast.literal_eval(index))
        case ast.Attribute(value=owner, attr="ndim"):
            return reader.insert("aten::dim", guard_value(reader, owner, names))
        case ast.Call(func=ast.Attribute(value=owner, attr="storage_offset" | "dim" | "numel" as name), args=[]):
            return reader.insert(f"aten::{name}", guard_value(reader, owner, names))
        case ast.Call(func=function, args=[left, right]) if _name(function) in _OF_TWO | _PYTHON:
            return _applied(reader, (_OF_TWO | _PYTHON)[_name(function)], left, right, names)
        case ast.Call(func=function, args=[only]) if _name(function) in _OF_ONE | _ROUNDING:
            return reader.insert((_OF_ONE | _ROUNDING)[_name(function)], guard_value(reader, only, names))
    raise Unreadable(f"{ast.unparse(tree)} is not known")


_PYTHON: Final = {"max": "prim::max", "min": "prim::min"}
_ROUNDING: Final = {"floor": "aten::floor", "ceil": "aten::ceil", "isnan": "aten::isnan"}


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _applied(
    reader: FxImporter, kind: str, left: ast.expr, right: ast.expr, names: Mapping[str, Value]
) -> ImportedValue:
    return reader.insert(kind, guard_value(reader, left, names), guard_value(reader, right, names))


def _comparison(
    reader: FxImporter, parts: list[ast.expr], operators: list[type], names: Mapping[str, Value]
) -> ImportedValue:
    """Import ``a <= b < c`` as the conjunction of its comparisons; return the result.

    Raises:
        Unreadable: an operator or an operand is not supported.
    """
    values = [guard_value(reader, part, names) for part in parts]
    held = []
    for left, operator, right in zip(values, operators, values[1:], strict=False):
        if operator not in _COMPARISONS:
            raise Unreadable(f"a comparison by {operator.__name__} is not known")
        if not isinstance(left, Value) and not isinstance(right, Value):
            held.append(reader.value(_PLAIN[operator](left, right)))
        else:
            held.append(reader.insert(_COMPARISONS[operator], left, right))
    return _folded(reader, "aten::__and__", held)


_PLAIN: Final[dict[type, Callable[[Any, Any], bool]]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}

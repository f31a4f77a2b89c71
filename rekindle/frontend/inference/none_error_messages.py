"""Python's error messages for uses of None, for run-time checks."""

from __future__ import annotations

from typing import Final

from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NUMBER,
    STRING,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    TensorType,
    Type,
    VarType,
    without_none,
)

TYPE_ERROR: Final = "builtins.TypeError"
ATTRIBUTE_ERROR: Final = "builtins.AttributeError"

_NO_INT: Final = "'NoneType' object cannot be interpreted as an integer"
_NO_INDEX: Final = "list indices must be integers or slices, not NoneType"

_OF_BUILTINS: Final = {
    "aten::len": "object of type 'NoneType' has no len()",
    "aten::Int": "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'",
    "aten::Float": "float() argument must be a string or a real number, not 'NoneType'",
    "aten::Complex": "complex() first argument must be a string or a number, not 'NoneType'",
    "prim::abs": "bad operand type for abs(): 'NoneType'",
    "aten::ord": "ord() expected string of length 1, but NoneType found",
    "aten::join": "can only join an iterable",
    **dict.fromkeys(("aten::hex", "aten::oct", "aten::bin", "aten::chr"), _NO_INT),
}
"""Messages of Python's own functions, by the kind of their operator."""

_OF_NUMBERS: Final = {
    "aten::round": "type NoneType doesn't define __round__ method",
    "aten::neg": "bad operand type for unary -: 'NoneType'",
    "aten::bitwise_not": "bad operand type for unary ~: 'NoneType'",
}
"""Messages for operators on numbers; for Tensors the message differs."""

_OF_INTS: Final = frozenset({"factorial", "gcd"})
"""Functions of ``math`` that take ints alone."""

_REAL: Final = (FLOAT, INT, NUMBER)

_ITERATED: Final = frozenset({"sum", "sorted", "any", "all", "list", "dict", "extend", "update", "min", "max", "add_"})

_KEPT: Final = frozenset({"el", "item", "key", "default_value", "v"})
"""Parameters of methods of lists and dicts that accept any object, None included."""

_TAKES_NONE: Final = frozenset(
    {"aten::eq", "aten::ne", "aten::Bool", "aten::strip", "aten::lstrip", "aten::rstrip", "aten::__contains__"}
)
"""Operators to which Python passes None for an argument that they do not declare Optional."""


def takes_none(schema: FunctionSchema, formal: Argument) -> bool:
    """Return whether Python accepts None for this argument, so that no check may raise."""
    type = formal.type
    if type.is_optional or isinstance(type, VarType):
        return True
    first = schema.arguments[0]
    if schema.name in _TAKES_NONE and formal is not first:
        return True
    if schema.name in ("aten::eq", "aten::ne", "aten::Bool"):
        return True
    return isinstance(first.type, (ListType, DictType)) and formal.name in _KEPT


def none_argument(name: str, schema: FunctionSchema, formal: Argument, *, is_method: bool) -> str:
    """Return the message of Python's TypeError for a call of ``name`` with None for the parameter ``formal`` of
    ``schema``. ``is_method`` states whether it is called as a method."""
    kind, basename = schema.name, name.rpartition("::")[2]
    wanted = without_none(formal.type)
    if kind in _OF_BUILTINS:
        return _OF_BUILTINS[kind]
    if kind in _OF_NUMBERS and not isinstance(wanted, TensorType):
        return _OF_NUMBERS[kind]
    if kind in ("aten::__getitem__", "aten::_set_item", "aten::Delete") and wanted == INT:
        return _NO_INDEX
    if basename in _ITERATED and isinstance(wanted, (ListType, DictType)):
        return "'NoneType' object is not iterable"
    if "::" in name and all(item.type in _REAL for item in schema.arguments):
        return _NO_INT if basename in _OF_INTS else "must be real number, not NoneType"
    arguments = list(schema.arguments)
    if (
        arguments
        and arguments[0].name == "self"
        and (is_method or isinstance(arguments[0].type, (ClassType, InterfaceType)))
    ):
        del arguments[0]
    said = "input" if formal.name == "self" else formal.name
    place = f" (position {arguments.index(formal) + 1})" if formal in arguments and not formal.kwarg_only else ""
    return f"{basename}(): argument '{said}'{place} must be {python_name(wanted)}, not NoneType"


def none_operand(operator: str, lhs: Type, rhs: Type, *, lhs_is_none: bool) -> str:
    """Return the message of Python's TypeError for ``lhs operator rhs`` with None as one operand: the left one if
    ``lhs_is_none``."""
    left = "NoneType" if lhs_is_none else class_name(lhs)
    right = class_name(rhs) if lhs_is_none else "NoneType"
    if operator.rstrip("=") in ("<", ">"):
        return f"'{operator}' not supported between instances of '{left}' and '{right}'"
    if operator == "in":
        return "argument of type 'NoneType' is not iterable"
    if not lhs_is_none and left in ("str", "list", "tuple") and operator in ("+", "*", "+="):
        if operator == "*":
            return "can't multiply sequence by non-int of type 'NoneType'"
        if operator == "+=" and left == "list":
            return "'NoneType' object is not iterable"
        return f'can only concatenate {left} (not "NoneType") to {left}'
    if operator in ("**", "**="):
        operator = "** or pow()" if operator == "**" else "**="
    return f"unsupported operand type(s) for {operator}: '{left}' and '{right}'"


_CLASS_NAMES: Final = {
    "IntType": "int",
    "FloatType": "float",
    "BoolType": "bool",
    "StringType": "str",
    "ComplexType": "complex",
    "ListType": "list",
    "DictType": "dict",
    "TupleType": "tuple",
    "TensorType": "Tensor",
    "DeviceObjType": "torch.device",
}


def class_name(type: Type) -> str:
    """Return the name of the Python class of values of ``type``; for an Optional, of those other than None."""
    type = without_none(type)
    if isinstance(type, ClassType):
        return type.basename
    if isinstance(type, DictType) and type.is_set:
        return "set"
    return _CLASS_NAMES.get(type.kind, type.annotation)


_PLURALS: Final[dict[Type, str]] = {INT: "ints", FLOAT: "floats", BOOL: "bools", STRING: "strings"}


def python_name(type: Type) -> str:
    """Return the name that PyTorch's errors have for a type: ``tuple of ints``."""
    if isinstance(type, ListType):
        many = "Tensors" if isinstance(type.element, TensorType) else _PLURALS.get(type.element)
        return f"tuple of {many}" if many else type.annotation
    return "Number" if type == NUMBER else class_name(type)

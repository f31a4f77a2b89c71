"""Tables of the operators in Python's expressions."""

from __future__ import annotations

from typing import Final

BINARY_KINDS: Final[dict[str, tuple[str, str]]] = {
    "+": ("aten::add", "__add__"),
    "-": ("aten::sub", "__sub__"),
    "*": ("aten::mul", "__mul__"),
    "/": ("aten::div", "__truediv__"),
    "//": ("aten::floordiv", "__floordiv__"),
    "%": ("aten::remainder", "__mod__"),
    "**": ("aten::pow", "__pow__"),
    "@": ("aten::matmul", "__matmul__"),
    "&": ("aten::__and__", "__and__"),
    "|": ("aten::__or__", "__or__"),
    "^": ("aten::__xor__", "__xor__"),
    "<<": ("aten::__lshift__", "__lshift__"),
    ">>": ("aten::__rshift__", "__rshift__"),
    "==": ("aten::eq", "__eq__"),
    "!=": ("aten::ne", "__ne__"),
    "<": ("aten::lt", "__lt__"),
    "<=": ("aten::le", "__le__"),
    ">": ("aten::gt", "__gt__"),
    ">=": ("aten::ge", "__ge__"),
    "in": ("aten::__contains__", "__contains__"),
}
"""The operator of each binary expression, and the corresponding method of classes."""

UNARY_KINDS: Final[dict[str, tuple[str, str]]] = {
    "unary_minus": ("aten::neg", "__neg__"),
    "unary_plus": ("aten::positive", "__pos__"),
    "~": ("aten::bitwise_not", "__invert__"),
}

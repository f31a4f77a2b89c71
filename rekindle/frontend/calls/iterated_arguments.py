"""Arguments over which Python's builtins iterate: a string is a list of its characters, and a number is an error.

An operator would accept a single number or string as a list of one item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import Cause, SourceRange, TypeMismatchError
from rekindle.frontend.calls.enum_members import plain_type, plain_value
from rekindle.frontend.inference.none_error_messages import class_name
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NUMBER,
    QSCHEME,
    STRING,
    EnumType,
    Type,
    UnionType,
)

_OF_ONE: Final = frozenset({"aten::sorted", "aten::any", "aten::all"})
ITERATES: Final = _OF_ONE | {"aten::sum", "prim::min", "prim::max"}
"""Python's builtins that iterate over their only argument."""
_NUMBERS: Final = frozenset({INT, FLOAT, BOOL, COMPLEX, NUMBER})
_OF_SEVERAL_CLASSES: Final = frozenset({ANY, ANY_LIST, ANY_TUPLE, ANY_ENUM, ANY_CLASS})
_WITHOUT_LENGTH: Final = frozenset({DEVICE, GENERATOR, QSCHEME})


def with_iterated(range: SourceRange, graph: Graph, kind: str, args: Sequence[NamedValue]) -> Sequence[NamedValue]:
    """Return the positional arguments of a call of Python's builtin ``kind``. A string that it iterates over is
    converted to a list of characters. In a program from an archive, return ``args``.

    Raises:
        TypeMismatchError: the builtin iterates over a number or a member of an enum that is neither a number nor a
            string, is ``len`` of such a member or of a value that may have no length, or has too many arguments.
    """
    if not graph.follows_python or not args:
        return args
    first = args[0]
    if kind == "aten::len" or kind in ITERATES:
        first, args = _plain(range, graph, args)
    if kind == "aten::len":
        _check_has_length(first.type, range)
    if kind in _OF_ONE and len(args) > 1 and (first.type in _NUMBERS or first.type == STRING):
        raise TypeMismatchError(f"{kind.partition('::')[2]} takes one argument, got {len(args)}", range)
    return with_items(range, graph, args) if kind in ITERATES and len(args) == 1 else args


def _check_has_length(type: Type, range: SourceRange) -> None:
    """Check that ``len`` accepts values of this type, which are not None.

    Raises:
        TypeMismatchError: it does not, or only those of some classes.
    """
    if type in _OF_SEVERAL_CLASSES or isinstance(type, UnionType):
        raise TypeMismatchError(
            f"the length of a value of type {type.annotation} depends on its class",
            range,
            hint="check it first: if isinstance(x, List[int])",
            cause=Cause.MISSING_REFINEMENT,
        )
    if type in _NUMBERS or type in _WITHOUT_LENGTH:
        raise TypeMismatchError(f"object of type '{class_name(type)}' has no len()", range)


def _plain(range: SourceRange, graph: Graph, args: Sequence[NamedValue]) -> tuple[NamedValue, Sequence[NamedValue]]:
    """Return the first of the arguments, and all of them, with the string or number in place of a first one that is a
    member of an enum, too.

    Raises:
        TypeMismatchError: the first is a member of an enum whose members are neither numbers nor strings.
    """
    first = args[0]
    if plain_type(first.type) is not None:
        first = NamedValue(plain_value(graph, first.materialize(graph), range), range=first.range)
    elif isinstance(first.type, EnumType):
        raise TypeMismatchError(f"a member of {first.type.annotation} is not iterable, and has no length", range)
    return first, [first, *args[1:]]


def with_items(range: SourceRange, graph: Graph, args: Sequence[NamedValue]) -> Sequence[NamedValue]:
    """Return the positional arguments of a call that iterates over the first one. If that is a string, its conversion
    to a list of characters is emitted. In a program from an archive, return ``args``.

    Raises:
        TypeMismatchError: the first argument is a number.
    """
    first = args[0]
    if graph.follows_python and first.type in _NUMBERS:
        raise TypeMismatchError(f"'{class_name(first.type)}' object is not iterable", first.range)
    if not graph.follows_python or first.type != STRING:
        return args
    return [NamedValue(items_of(graph, first.materialize(graph), range), range=first.range), *args[1:]]


def items_of(graph: Graph, value: Value, range: SourceRange) -> Value:
    """Return ``value``; for a string in a program from Python, emit and return the list of its characters."""
    if value.type != STRING or not graph.follows_python:
        return value
    return graph.insert("aten::list", [value], range=range)

"""Builtin functions that are written in TorchScript themselves: overloads that the dispatcher lacks.

They are tried after the operators of the same name, in order. Calls of those without loops are inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from string import Template

import torch

from rekindle.errors import LIBRARY, Source, SourceRange
from rekindle.frontend.calls import builtin_calls
from rekindle.frontend.functions import emit_function
from rekindle.frontend.signatures import declare_schema
from rekindle.frontend.sugared_values.base import EmptyResolver, SugaredValue
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.frontend.sugared_values.values import BuiltinFunction
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.scalar_types import DTYPE_NUMBERS
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def

_SCALAR_AND_TENSOR = Template("""
def mul(a: $scalar, b: Tensor) -> Tensor:
    return b * a

def add(a: $scalar, b: Tensor) -> Tensor:
    return b + a

def ne(a: $scalar, b: Tensor) -> Tensor:
    return b != a

def eq(a: $scalar, b: Tensor) -> Tensor:
    return b == a

def sub(a: $scalar, b: Tensor) -> Tensor:
    return torch.neg(b) + a

def div(a: $scalar, b: Tensor) -> Tensor:
    return torch.reciprocal(b) * a
""")

_ORDER_OF_SCALAR_AND_TENSOR = Template("""
def lt(a: $scalar, b: Tensor) -> Tensor:
    return b > a

def le(a: $scalar, b: Tensor) -> Tensor:
    return b >= a

def gt(a: $scalar, b: Tensor) -> Tensor:
    return b < a

def ge(a: $scalar, b: Tensor) -> Tensor:
    return b <= a
""")

# torch.jit takes the tensor for an int here, which fails for all but single elements; Python asks the tensor.
_BITS_OF_SCALAR_AND_TENSOR = Template("""
def __and__(a: $scalar, b: Tensor) -> Tensor:
    return b & a

def __or__(a: $scalar, b: Tensor) -> Tensor:
    return b | a

def __xor__(a: $scalar, b: Tensor) -> Tensor:
    return b ^ a
""")

_OTHERS_OF_SCALAR_AND_TENSOR = """
def __lshift__(a: int, b: Tensor) -> Tensor:
    return torch.bitwise_left_shift(a, b)

def __rshift__(a: int, b: Tensor) -> Tensor:
    return torch.bitwise_right_shift(a, b)

def floordiv(a: int, b: Tensor) -> Tensor:
    return torch.floor_divide(torch.zeros_like(b) + a, b)

def floordiv(a: float, b: Tensor) -> Tensor:
    return torch.floor_divide(torch.zeros_like(b) + a, b)
"""

_TUPLES = Template("""
def _$name(x: BroadcastingList$length[$scalar]) -> List[$scalar]:
    return x
""")

_FLOOR_DIVISION = Template("""
def floordiv(self: Tensor, other: $other) -> Tensor:
    return torch.floor_divide(self, other)
""")

_EXTREMES = """
def min(a: Tensor, b: Tensor) -> Tensor:
    return b if bool(b < a) else a

def max(a: Tensor, b: Tensor) -> Tensor:
    return b if bool(b > a) else a

def min(self: List[number]) -> number:
    if len(self) == 0:
        raise ValueError("min() arg is an empty sequence")
    least = self[0]
    for x in self:
        if x < least:
            least = x
    return least

def max(self: List[number]) -> number:
    if len(self) == 0:
        raise ValueError("max() arg is an empty sequence")
    greatest = self[0]
    for x in self:
        if x > greatest:
            greatest = x
    return greatest
"""

_OTHERS = """
def list_with_default(out_size: List[int], defaults: List[int]) -> List[int]:
    assert len(defaults) > len(out_size)
    return out_size

def list_with_default(out_size: List[Optional[int]], defaults: List[int]) -> List[int]:
    assert len(defaults) > len(out_size)
    sizes: List[int] = []
    for size, default in zip(out_size, defaults[len(defaults) - len(out_size):]):
        sizes.append(default if size is None else size)
    return sizes

def _assert(condition: Tensor, message: str) -> None:
    assert bool(condition), message

def _assert(condition: bool, message: str) -> None:
    assert condition, message

def __contains__(self: str, key: str) -> bool:
    return self.find(key, 0, len(self)) != -1

def trunc(x: float) -> int:
    return int(x)

def trunc(x: int) -> int:
    return x

def complex_conjugate(self: complex) -> complex:
    return complex(self.real, -self.imag)

def real(self: complex) -> float:
    return float(torch.real(torch.tensor(self, dtype=$complex128)))

def imag(self: complex) -> float:
    return float(torch.imag(torch.tensor(self, dtype=$complex128)))

def type(self: Tensor, dtype: int, non_blocking: bool = False, copy: bool = False) -> Tensor:
    return self.to(dtype, non_blocking, copy)
"""


def _texts() -> list[str]:
    lengths = {"single": 1, "pair": 2, "triple": 3, "quadruple": 4}
    return [
        *(_SCALAR_AND_TENSOR.substitute(scalar=scalar) for scalar in ("float", "int", "complex")),
        *(_ORDER_OF_SCALAR_AND_TENSOR.substitute(scalar=scalar) for scalar in ("float", "int")),
        *(_BITS_OF_SCALAR_AND_TENSOR.substitute(scalar=scalar) for scalar in ("int", "bool")),
        _OTHERS_OF_SCALAR_AND_TENSOR,
        *(
            _TUPLES.substitute(name=name, length=length, scalar=scalar)
            for scalar in ("float", "int")
            for name, length in lengths.items()
        ),
        *(_FLOOR_DIVISION.substitute(other=other) for other in ("number", "Tensor")),
        _OTHERS.replace("$complex128", str(DTYPE_NUMBERS[torch.complex128])),
        _EXTREMES,
    ]


class _Torch(SugaredValue):
    """``torch`` within the sources in this file: every attribute is an operator."""

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        return BuiltinFunction(f"aten::{name}")


class _BuiltinResolver(EmptyResolver):
    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        return _Torch() if name == "torch" else GLOBALS.get(name)


_DEFINITION = re.compile(r"^(?P<head>def (?P<name>\w+)(?:.*\n)+?(?<=:\n))(?:[ \t].*\n|\n)*", re.MULTILINE)
"""The text of one function: a signature, whose last line ends with a colon, and indented lines."""


def _functions_in(text: str, namespace: str) -> Iterator[tuple[str, re.Match[str], int]]:
    """Yield the functions in a source text: the kind of the operator that each extends, its match of
    :data:`_DEFINITION`, and the number of its first line, from 1."""
    for found in _DEFINITION.finditer(text):
        yield f"{namespace}::{found['name']}", found, text.count("\n", 0, found.start()) + 1


@lru_cache(maxsize=1)
def _definitions() -> dict[str, list[tuple[re.Match[str], int]]]:
    """Return the texts of the functions, with their first lines, by operator kind, in order."""
    found: dict[str, list[tuple[re.Match[str], int]]] = {}
    for text in _texts():
        for kind, part, first_line in _functions_in(text, "prim" if text is _EXTREMES else "aten"):
            found.setdefault(kind, []).append((part, first_line))
    return found


@cache
def _functions(kind: str) -> Sequence[GraphFunction]:
    return LazySequence.mapped(lambda found: _declared(kind, *found), _definitions()[kind])


def _declared(kind: str, text: re.Match[str], first_line: int) -> GraphFunction:
    """Return a function with its schema, which determines the calls that it fits. Its body is parsed when it is
    compiled."""
    resolver = _BuiltinResolver()

    def define(record: GraphFunction) -> None:
        (definition,) = parse_module(Source(text[0], LIBRARY, first_line))
        record.define(*emit_function(Def(definition.tree), resolver, name=kind))

    (declaration,) = parse_module(Source(f"{text['head']}    pass\n", LIBRARY, first_line))
    schema = declare_schema(Def(declaration.tree), resolver, name=kind)
    return GraphFunction(kind, _schema=schema, function_creator=define)


def read_functions(text: str, namespace: str = "aten") -> Iterator[tuple[str, GraphFunction]]:
    """Yield the functions in a text of TorchScript, each with the kind of the operator that it extends, in order.
    ``torch.x`` in their bodies refers to the operator ``x``.

    Bodies are compiled when their graph is first read.
    """
    for kind, part, first_line in _functions_in(text, namespace):
        yield kind, _declared(kind, part, first_line)


def find_builtin_functions(kind: str) -> Sequence[GraphFunction]:
    """Return the builtin functions that extend the operator ``kind``, in the order in which they are tried. The
    signature of each is parsed when it is first read."""
    return _functions(kind) if kind in _definitions() else ()


builtin_calls.find_builtin_functions = find_builtin_functions

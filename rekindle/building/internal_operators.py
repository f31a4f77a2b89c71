"""Operators that only graphs of native libraries hold."""

from __future__ import annotations

from typing import Any, Final

from torch import Tensor

from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.runtime.interpreter.futures import Future

COPY_INTO: Final = "rekindle::copy_into"
"""Copy the second tensor, of the same dtype, into the first, and return that."""

COPY_OUT: Final = "rekindle::copy_out"
"""Copy the second tensor, of the same dtype and sizes, into the first, and return that."""

SETTLED: Final = "rekindle::settled_future"
"""Return a Future whose value is the input."""

UNDEFINED: Final = "rekindle::undefined"
"""Return an undefined tensor, which is None in Python."""

LETTER_AT: Final = "rekindle::letter_at"
"""Return the code point of the character at an index of a string."""

REAL_PART: Final = "rekindle::real_part"
"""Return the real part of a complex number."""

IMAGINARY_PART: Final = "rekindle::imaginary_part"
"""Return the imaginary part of a complex number."""


def _copy_into(self: Tensor, src: Tensor) -> Tensor:
    return self.copy_(src)


def _copy_out(self: Tensor, src: Tensor) -> Tensor:
    if self.shape != src.shape or self.dtype != src.dtype:
        raise RuntimeError("an argument 'out' has another dtype or other sizes than the result")
    return self.copy_(src)


def _settled(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _undefined() -> None:
    return None


def _letter_at(text: str, index: int) -> int:
    return ord(text[index])


def _real_part(value: complex) -> float:
    return value.real


def _imaginary_part(value: complex) -> float:
    return value.imag


REGISTRY.register(Operator(parse_schema(f"{REAL_PART}(complex value) -> float"), _real_part))
REGISTRY.register(Operator(parse_schema(f"{IMAGINARY_PART}(complex value) -> float"), _imaginary_part))
REGISTRY.register(Operator(parse_schema(f"{COPY_INTO}(Tensor(a!) self, Tensor src) -> Tensor(a!)"), _copy_into))
REGISTRY.register(Operator(parse_schema(f"{COPY_OUT}(Tensor(a!) self, Tensor src) -> Tensor(a!)"), _copy_out))
REGISTRY.register(Operator(parse_schema(f"{SETTLED}(t value) -> Future(t)"), _settled, may_alias_inputs=True))
REGISTRY.register(Operator(parse_schema(f"{UNDEFINED}() -> Tensor"), _undefined))
REGISTRY.register(Operator(parse_schema(f"{LETTER_AT}(str text, int index) -> int"), _letter_at))

"""Scalar types: the element types of kernels, and the types in which arithmetic on them is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch


@dataclass(frozen=True, slots=True)
class ScalarType:
    """An element type: its name in the text form, its size in memory, its kind."""

    name: str
    size: int
    """In bytes, in memory."""
    is_float: bool = False
    is_signed: bool = True

    @property
    def bits(self) -> int:
        return self.size * 8

    def __str__(self) -> str:
        return self.name


F64: Final = ScalarType("f64", 8, is_float=True)
F32: Final = ScalarType("f32", 4, is_float=True)
F16: Final = ScalarType("f16", 2, is_float=True)
BF16: Final = ScalarType("bf16", 2, is_float=True)
I64: Final = ScalarType("i64", 8)
I32: Final = ScalarType("i32", 4)
I16: Final = ScalarType("i16", 2)
I8: Final = ScalarType("i8", 1)
U8: Final = ScalarType("u8", 1, is_signed=False)
BOOL: Final = ScalarType("bool", 1, is_signed=False)

OF_DTYPE: Final = {
    torch.float64: F64,
    torch.float32: F32,
    torch.float16: F16,
    torch.bfloat16: BF16,
    torch.int64: I64,
    torch.int32: I32,
    torch.int16: I16,
    torch.int8: I8,
    torch.uint8: U8,
    torch.bool: BOOL,
}
"""The dtypes that kernels know."""


def arithmetic_type(scalar: ScalarType) -> ScalarType:
    """Return the type in which PyTorch computes with elements of type ``scalar`` before it rounds the result."""
    return F32 if scalar in (F16, BF16) else scalar

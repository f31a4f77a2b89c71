"""The functions of the C library that the runtime calls."""

from __future__ import annotations

from rekindle.building.lowlevel import Address, Array, Byte, Int32, extern
from rekindle.building.lowlevel.types import not_python


@extern
def malloc(bytes: int) -> Address:
    not_python()


@extern
def calloc(count: int, bytes: int) -> Address:
    not_python()


@extern
def realloc(memory: Address, bytes: int) -> Address:
    not_python()


@extern
def free(memory: Address) -> None:
    not_python()


@extern
def aligned_alloc(alignment: int, bytes: int) -> Address:
    not_python()


@extern
def abort() -> None:
    not_python()


@extern
def memcpy(to: Address, source: Address, bytes: int) -> Address:
    not_python()


@extern
def memmove(to: Address, source: Address, bytes: int) -> Address:
    not_python()


@extern
def memcmp(a: Address, b: Address, bytes: int) -> Int32:
    not_python()


@extern
def memset(to: Address, byte: Int32, bytes: int) -> Address:
    not_python()


@extern
def strlen(text: Array[Byte]) -> int:
    not_python()


@extern
def snprintf(to: Address, bytes: int, form: Array[Byte], *arguments: object) -> Int32:
    not_python()


@extern
def strtod(text: Array[Byte], end: Address) -> float:
    not_python()


@extern
def putchar(character: Int32) -> Int32:
    not_python()


@extern
def fmod(a: float, b: float) -> float:
    not_python()


@extern
def pow(a: float, b: float) -> float:
    not_python()

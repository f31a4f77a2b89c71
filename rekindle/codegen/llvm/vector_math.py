"""Math functions of real numbers on vectors of any width.

They come from SLEEF, which torch ships, if the machine has registers for its vectors; else from the formulas of
:mod:`rekindle.codegen.llvm.polynomials`; else from the C library, which computes one number at a time. A vector
narrower than SLEEF's is padded, a wider one split, so that the result for an element does not depend on its position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from rekindle.codegen.llvm.polynomials import FORMULAS
from rekindle.codegen.llvm.symbols import find
from rekindle.codegen.llvm.target import Target, host_target
from rekindle.codegen.llvm.vector_ir_builder import VectorWriter, vector_type
from rekindle.errors import RekindleError

ACCURACY: Final[Mapping[str, str]] = {
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p"), "_u10"),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "atan2"), "_u10"),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), "_u10"),
    **dict.fromkeys(("erf", "lgamma", "cbrt", "pow"), "_u10"),
    "erfc": "_u15",
    "hypot": "_u05",
    "fmod": "_",
    "nextafter": "_",
}
"""Suffix of SLEEF's function names, which is the error in tenths of a unit in the last place."""

_OF_TWO: Final = frozenset({"atan2", "pow", "hypot", "fmod", "nextafter"})
_COMPOSED: Final = frozenset({"sigmoid"})
"""Functions that are composed of others."""


class UnsupportedFunction(RekindleError):
    """Raised if there is no vector function of a name."""


@dataclass(frozen=True, slots=True)
class VectorFunction:
    """A function on vectors. ``text`` is the LLVM IR that declares or defines it; it is called as ``@symbol``.
    ``source`` is where it comes from: ``sleef``, ``polynomial`` or ``libm``."""

    symbol: str
    text: str
    source: str


def is_known(name: str) -> bool:
    """Return whether there is a vector function ``name``, such as ``exp``, ``tanh`` or ``pow``, for floats and doubles
    on all machines."""
    return name in ACCURACY or name in _COMPOSED


def argument_count(name: str) -> int:
    """Return the number of arguments of a function: one, or two."""
    return 2 if name in _OF_TWO else 1


def vector_function(name: str, element: str, lanes: int, target: Target | None = None) -> VectorFunction:
    """Return the function ``name`` on vectors of ``lanes`` (1, or a power of two) elements of ``float`` or ``double``.

    Raises:
        UnsupportedFunction: there is none of this name, or ``element`` is another type.
    """
    if not is_known(name) or element not in ("float", "double"):
        raise UnsupportedFunction(f"there is no function '{name}' on vectors of {element}")
    return _vector_function(name, element, lanes, target or host_target())


def texts(functions: Iterable[VectorFunction]) -> str:
    """Return the LLVM IR that a module needs for ``functions``: each declaration and definition once."""
    return "\n".join(dict.fromkeys(part for function in functions for part in function.text.split("\n\n")))


@cache
def _vector_function(name: str, element: str, lanes: int, target: Target) -> VectorFunction:
    if name == "sigmoid" and (inner := _vector_function("exp", element, lanes, target)).source == "sleef":
        return _sigmoid(inner, element, lanes)
    width = _sleef_width(name, element, target)
    if width is not None:
        return _of_sleef(name, element, lanes, *width)
    if name in FORMULAS:
        return _polynomial(name, element, lanes, target)
    return _of_libm(name, element, lanes)


def _define(symbol: str, element: str, lanes: int, arguments: int, body: Iterable[str]) -> str:
    type = vector_type(element, lanes)
    parameters = ", ".join(f"{type} %x{index}" for index in range(arguments))
    lines = "\n".join(f"  {line}" for line in body)
    return f"define internal {type} @{symbol}({parameters}) alwaysinline {{\n{lines}\n}}"


# ---------------------------------------------------------------------------------------------------------------- SLEEF


def _sleef_width(name: str, element: str, target: Target) -> tuple[int, str] | None:
    """Return how many elements SLEEF's widest function for ``target`` takes, and its symbol; None if ``name`` has none
    that is accurate enough, or the library lacks it."""
    if name not in ACCURACY or not target.has_libraries:
        return None
    letter, size = ("f", 32) if element == "float" else ("d", 64)
    builds = []
    if target.has("avx512f"):
        builds.append((512, "avx512f"))
    if target.has("avx2") and target.has("fma"):
        builds.append((256, "avx2"))
    if target.has("neon"):
        builds.append((128, ""))
    for bits, build in builds:
        symbol = f"Sleef_{name}{letter}{bits // size}{ACCURACY[name]}{build}"
        if find(symbol) is not None:
            return bits // size, symbol
    return None


def _of_sleef(name: str, element: str, lanes: int, width: int, symbol: str) -> VectorFunction:
    arguments = argument_count(name)
    wide = vector_type(element, width)
    declaration = f"declare {wide} @{symbol}({', '.join([wide] * arguments)})"
    if lanes == width:
        return VectorFunction(symbol, declaration, "sleef")
    wrapper = f"rekindle.{name}.{element}.{lanes}"
    body = list(_narrowed(element, lanes, width, symbol, arguments))
    if lanes > width:
        body = list(_cut(element, lanes, width, symbol, arguments))
    return VectorFunction(wrapper, f"{declaration}\n\n{_define(wrapper, element, lanes, arguments, body)}", "sleef")


def _narrowed(element: str, lanes: int, width: int, symbol: str, arguments: int) -> Iterable[str]:
    """Yield the lines of one call on a wider vector. Its last lanes are copies of the first."""
    wide = vector_type(element, width)
    for index in range(arguments):
        if lanes == 1:
            yield f"%s{index} = insertelement {wide} poison, {element} %x{index}, i64 0"
            yield f"%w{index} = shufflevector {wide} %s{index}, {wide} poison, <{width} x i32> zeroinitializer"
        else:
            places = ", ".join(f"i32 {lane if lane < lanes else 0}" for lane in range(width))
            type = vector_type(element, lanes)
            yield f"%w{index} = shufflevector {type} %x{index}, {type} poison, <{width} x i32> <{places}>"
    yield f"%y = call {wide} @{symbol}({', '.join(f'{wide} %w{index}' for index in range(arguments))})"
    if lanes == 1:
        yield f"%r = extractelement {wide} %y, i64 0"
    else:
        places = ", ".join(f"i32 {lane}" for lane in range(lanes))
        yield f"%r = shufflevector {wide} %y, {wide} poison, <{lanes} x i32> <{places}>"
    yield f"ret {vector_type(element, lanes)} %r"


def _cut(element: str, lanes: int, width: int, symbol: str, arguments: int) -> Iterable[str]:
    """Yield the lines that call ``symbol`` for each part of ``width`` < ``lanes`` elements, concatenate the results
    pairwise, and return them."""
    wide, type = vector_type(element, width), vector_type(element, lanes)
    parts = []
    for part in range(lanes // width):
        for index in range(arguments):
            places = ", ".join(f"i32 {part * width + lane}" for lane in range(width))
            yield f"%w{index}.{part} = shufflevector {type} %x{index}, {type} poison, <{width} x i32> <{places}>"
        yield (
            f"%y{part} = call {wide} @{symbol}({', '.join(f'{wide} %w{index}.{part}' for index in range(arguments))})"
        )
        parts.append(f"%y{part}")
    while len(parts) > 1:
        joined = []
        places = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        for left, right in zip(parts[::2], parts[1::2], strict=True):
            half = vector_type(element, width)
            yield f"{left}.j{width} = shufflevector {half} {left}, {half} {right}, <{2 * width} x i32> <{places}>"
            joined.append(f"{left}.j{width}")
        parts, width = joined, 2 * width
    yield f"ret {type} {parts[0]}"


def _sigmoid(exp: VectorFunction, element: str, lanes: int) -> VectorFunction:
    symbol = f"rekindle.sigmoid.{element}.{lanes}"
    writer = VectorWriter(element, lanes)
    negated = writer.emit(f"fneg {writer.type} %x0")
    power = writer.emit(f"call {writer.type} @{exp.symbol}({writer.type} {negated})")
    result = writer.div(writer.splat(1.0), writer.add(power, writer.splat(1.0)))
    text = _define(symbol, element, lanes, 1, [*writer.lines, f"ret {writer.type} {result}"])
    return VectorFunction(symbol, f"{exp.text}\n\n{text}", exp.source)


# --------------------------------------------------------------------------------------------------------------- others


def _polynomial(name: str, element: str, lanes: int, target: Target) -> VectorFunction:
    symbol = f"rekindle.{name}.{element}.{lanes}"
    writer = VectorWriter("double", lanes, has_fma=target.has("fma"))
    type = vector_type(element, lanes)
    x = writer.emit(f"fpext {type} %x0 to {writer.type}") if element == "float" else "%x0"
    result = FORMULAS[name](writer, x)
    if element == "float":
        result = writer.emit(f"fptrunc {writer.type} {result} to {type}")
    text = _define(symbol, element, lanes, 1, [*writer.lines, f"ret {type} {result}"])
    return VectorFunction(symbol, "\n\n".join([*writer.intrinsics.values(), text]), "polynomial")


def _of_libm(name: str, element: str, lanes: int) -> VectorFunction:
    """Return the C library's function, called for each lane."""
    of_libm = f"{name}{'f' if element == 'float' else ''}"
    arguments = argument_count(name)
    declaration = f"declare {element} @{of_libm}({', '.join([element] * arguments)})"
    if lanes == 1:
        return VectorFunction(of_libm, declaration, "libm")
    type = vector_type(element, lanes)
    body = []
    result = "poison"
    for lane in range(lanes):
        for index in range(arguments):
            body.append(f"%a{index}.{lane} = extractelement {type} %x{index}, i64 {lane}")
        taken = ", ".join(f"{element} %a{index}.{lane}" for index in range(arguments))
        body.append(f"%y{lane} = call {element} @{of_libm}({taken})")
        body.append(f"%r{lane} = insertelement {type} {result}, {element} %y{lane}, i64 {lane}")
        result = f"%r{lane}"
    symbol = f"rekindle.{name}.{element}.{lanes}"
    text = _define(symbol, element, lanes, arguments, [*body, f"ret {type} {result}"])
    return VectorFunction(symbol, f"{declaration}\n\n{text}", "libm")

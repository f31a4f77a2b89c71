"""Lowering of operators on complex numbers, which are objects with a reference count, like strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rekindle.building.internal_operators import IMAGINARY_PART, REAL_PART
from rekindle.building.lowering.emitters import emits, qualified_name
from rekindle.building.lowering.representation import NotBuildable, is_object
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.runtime import complexes
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Complex
from rekindle.codegen.native.arithmetic import is_exact
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import BOOL, COMPLEX, FLOAT, INT

_PAIRS: Final = ("complex", "int_complex", "complex_int", "float_complex", "complex_float")
OF_TWO: Final[dict[str, Callable[..., Any]]] = {
    "aten::add": complexes.complex_add,
    "aten::sub": complexes.complex_sub,
    "aten::mul": complexes.complex_mul,
    "aten::div": complexes.complex_div,
    "aten::pow": complexes.complex_pow,
    "aten::eq": complexes.complex_equal,
    "aten::ne": complexes.complex_equal,
    "aten::log": complexes.complex_log,
}
_WITH_ERRORS: Final = ("aten::div", "aten::pow", "aten::log")


def _as_float(w: ProgramWriter, value: Value) -> str:
    if value.type == BOOL:
        return w.emit(f"uitofp i1 {w.name(value)} to double")
    return w.converted(w.name(value), value.type, FLOAT)


def _operand(w: ProgramWriter, value: Value, made: list[str], *, is_compared: bool) -> str:
    """Emit the conversion of a number to a complex; return its register. A slot for a newly created complex is appended
    to ``made``. With ``is_compared``, an int that a float cannot represent exactly is an error at run time.

    Raises:
        NotBuildable: the value is not a number.
    """
    if value.type == COMPLEX:
        return w.name(value)
    if value.type not in (INT, FLOAT, BOOL):
        raise NotBuildable(f"a {value.type} next to a complex number", value.node.range)
    if is_compared and value.type == INT:
        w.leave_unless_exact(is_exact(w, w.name(value)))
    slot = w.owned_slot()
    register = w.call(complexes.new_complex, _as_float(w, value), "0.0")
    w.line(f"store ptr {register}, ptr {slot}")
    made.append(slot)
    return register


@emits(
    *(f"aten::{name}.{kinds}" for name in ("add", "sub", "mul", "pow", "eq", "ne") for kinds in _PAIRS),
    *("aten::div.complex", "aten::log.complex_complex"),
    *(f"aten::log.{kinds}" for kinds in _PAIRS[1:]),
)
def compute(w: ProgramWriter, node: Node) -> None:
    made: list[str] = []
    is_compared = node.kind in ("aten::eq", "aten::ne")
    a, b = (_operand(w, value, made, is_compared=is_compared) for value in node.inputs)
    function = OF_TWO[node.kind]
    found = w.call_or_fail(function, "%context", a, b) if node.kind in _WITH_ERRORS else w.call(function, a, b)
    for slot in made:
        w.call(release, w.take(slot))
    w.define(node.output, w.emit(f"xor i1 {found}, true") if node.kind == "aten::ne" else found)


_NUMBERS: Final = ("int", "float", "bool")


@emits(*(f"aten::Complex.{a}_{b}" for a in _NUMBERS for b in _NUMBERS), "aten::Complex.Scalar")
def construct(w: ProgramWriter, node: Node) -> None:
    if len(node.inputs) == 1 and is_object(node.inputs[0].type):
        w.define(node.output, w.call(complexes.complex_of_number, w.name(node.inputs[0])))
        return
    if any(value.type not in (INT, FLOAT, BOOL) for value in node.inputs):
        raise NotBuildable("a complex number of a number whose type is known only at run time", node.range)
    parts = [_as_float(w, value) for value in node.inputs]
    w.define(node.output, w.call(complexes.new_complex, *parts, *(["0.0"] if len(parts) == 1 else [])))


@emits("aten::neg.complex")
def negate(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(complexes.complex_neg, w.name(node.input)))


@emits("prim::abs.complex")
def absolute(w: ProgramWriter, node: Node) -> None:
    slot = w.alloca("double")
    w.call_or_fail(complexes.complex_abs, "%context", w.name(node.input), slot)
    w.define(node.output, w.emit(f"load double, ptr {slot}"))


@emits("aten::angle.complex")
def angle(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(complexes.complex_angle, w.name(node.input)))


@emits("aten::polar.int", "aten::polar.float", "aten::polar.int_float", "aten::polar.float_int")
def polar(w: ProgramWriter, node: Node) -> None:
    parts = [_as_float(w, value) for value in node.inputs]
    w.define(node.output, w.call_or_fail(complexes.complex_rect, "%context", *parts))


_TESTS: Final[dict[str, Callable[..., Any]]] = {
    "aten::isnan": complexes.complex_is_nan,
    "aten::isinf": complexes.complex_is_infinite,
    "aten::isfinite": complexes.complex_is_finite,
}


@emits(*(f"{name}.complex" for name in _TESTS))
def test(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(_TESTS[node.kind], w.name(node.input)))


_FUNCTIONS: Final = (
    *("sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh"),
)


@emits(*(f"aten::{name}.complex" for name in _FUNCTIONS))
def function(w: ProgramWriter, node: Node) -> None:
    number = getattr(complexes, qualified_name(node).partition("::")[2].partition(".")[0].upper())
    w.define(node.output, w.call_or_fail(complexes.complex_function, "%context", w.name(node.input), str(number)))


@emits(REAL_PART, IMAGINARY_PART)
def part(w: ProgramWriter, node: Node) -> None:
    index = field_index(Complex, "real" if node.kind == REAL_PART else "imaginary")
    place = w.emit(f"getelementptr i64, ptr {w.name(node.input)}, i64 {index}")
    w.define(node.output, w.emit(f"load double, ptr {place}"))

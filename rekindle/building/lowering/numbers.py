"""Lowering of operators on numbers: those that native regions support too, and those of whole programs only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

from rekindle.building.lowering.complexes import OF_TWO, compute
from rekindle.building.lowering.control import kind_of, word_in_box
from rekindle.building.lowering.emitters import EMITTERS, arguments, emits, qualified_name
from rekindle.building.lowering.representation import NotBuildable, is_object, register_of
from rekindle.building.lowering.torch_calls import call_torch
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import mathematics
from rekindle.building.runtime.objects import ErrorCode, Kind
from rekindle.codegen.llvm.vector_ir_builder import hexadecimal
from rekindle.codegen.native.arithmetic import EMITTERS as ARITHMETIC, FUNCTIONS, SMALLEST
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import BOOL, COMPLEX, DEVICE, FLOAT, INT, NUMBER, Type, UnionType

_DIVISIONS: Final = ("aten::div", "aten::floordiv", "aten::remainder", "aten::fmod", "aten::divmod")
_ROUNDING: Final = ("aten::Int", "aten::floor", "aten::ceil", "aten::round")
_SINGULAR: Final = frozenset({"log", "log10", "log1p", "log2", "atanh", "sqrt", "acos", "asin", "acosh"})
"""Functions that are infinite or undefined for some numbers, for which Python raises ValueError."""


def arithmetic(w: ProgramWriter, node: Node) -> None:
    """Lower an operator on numbers, with the errors that Python raises."""
    set_reason(w, node)
    w.define(node.output, ARITHMETIC[qualified_name(node)](w, *arguments(w, node)))


def set_reason(w: ProgramWriter, node: Node) -> None:
    """Emit the checks that precede an arithmetic node, and set ``w.reason``: the error to raise if the arithmetic
    fails."""
    if node.kind in _DIVISIONS:
        if node.kind != "aten::div" and all(each.type == INT for each in node.inputs):
            left, right = (w.name(each) for each in node.inputs)
            is_smallest = w.emit(f"icmp eq i64 {left}, {SMALLEST}")
            overflows = w.emit(f"and i1 {is_smallest}, {w.emit(f'icmp eq i64 {right}, -1')}")
            w.fail_if(overflows, ErrorCode.INT_LIMIT, "a quotient beyond 64 bits")
        w.reason = (ErrorCode.ZERO_DIVISION_ERROR, "division by zero")
    elif node.kind in ("aten::__lshift__", "aten::__rshift__"):
        if all(each.type == INT for each in node.inputs):
            is_negative = w.emit(f"icmp slt i64 {w.name(node.inputs[1])}, 0")
            w.fail_if(is_negative, ErrorCode.VALUE_ERROR, "negative shift count")
        w.reason = (ErrorCode.INT_LIMIT, "a shift beyond 64 bits")
    elif node.kind in _ROUNDING and node.input.type == FLOAT:
        _check_whole(w, w.name(node.input))


def _check_whole(w: ProgramWriter, number: str) -> None:
    """Emit the checks of a conversion from float to int: NaN and infinity raise errors."""
    w.fail_if(_is_nan(w, number), ErrorCode.VALUE_ERROR, "cannot convert float NaN to integer")
    w.fail_if(_is_infinite(w, number), ErrorCode.OVERFLOW_ERROR, "cannot convert float infinity to integer")


def function(w: ProgramWriter, node: Node) -> None:
    """Lower a function of the C library, with the errors of Python's module ``math``."""
    name = node.kind.partition("::")[2]
    w.define(node.output, _function(w, name, w.converted(w.name(node.input), node.input.type, FLOAT)))


def _function(w: ProgramWriter, name: str, a: str) -> str:
    result = w.emit(f"call double @{'llvm.sqrt.f64' if name == 'sqrt' else name}(double {a})")
    is_nan, was_nan = _is_nan(w, result), _is_nan(w, a)
    wrong = w.emit(f"and i1 {is_nan}, {w.emit(f'xor i1 {was_nan}, true')}")
    w.fail_if(wrong, ErrorCode.VALUE_ERROR, "math domain error")
    too_large = w.emit(f"and i1 {_is_infinite(w, result)}, {_is_finite(w, a)}")
    if name in _SINGULAR:
        w.fail_if(too_large, ErrorCode.VALUE_ERROR, "math domain error")
    else:
        w.fail_if(too_large, ErrorCode.OVERFLOW_ERROR, "math range error")
    return result


def _is_nan(w: ProgramWriter, number: str) -> str:
    return w.emit(f"fcmp uno double {number}, {number}")


def _is_infinite(w: ProgramWriter, number: str) -> str:
    return w.emit(f"fcmp oeq double {w.emit(f'call double @llvm.fabs.f64(double {number})')}, 0x7FF0000000000000")


def _is_finite(w: ProgramWriter, number: str) -> str:
    return w.emit(f"fcmp olt double {w.emit(f'call double @llvm.fabs.f64(double {number})')}, 0x7FF0000000000000")


def power(w: ProgramWriter, node: Node) -> None:
    """Lower ``a ** b`` of floats."""
    w.define(node.output, _power(w, node, *_as_floats(w, node.inputs)))


def _power(w: ProgramWriter, node: Node, a: str, b: str) -> str:
    of_zero = w.emit(f"and i1 {w.emit(f'fcmp oeq double {a}, 0.0')}, {w.emit(f'fcmp olt double {b}, 0.0')}")
    if node.attributes.get("math"):  # the function of the module
        w.fail_if(of_zero, ErrorCode.VALUE_ERROR, "math domain error")
    else:
        w.fail_if(of_zero, ErrorCode.ZERO_DIVISION_ERROR, "0.0 cannot be raised to a negative power")
    result = w.emit(f"call double @pow(double {a}, double {b})")
    finite = w.emit(f"and i1 {_is_finite(w, a)}, {_is_finite(w, b)}")
    wrong = w.emit(f"and i1 {finite}, {_is_nan(w, result)}")
    w.fail_if(wrong, ErrorCode.VALUE_ERROR, "a negative number cannot be raised to a fractional power")
    too_large = w.emit(f"and i1 {finite}, {_is_infinite(w, result)}")
    w.fail_if(too_large, ErrorCode.OVERFLOW_ERROR, "the power of two floats is too large for a float")
    return result


for _name in ARITHMETIC:
    _kind, _, _overload = _name.partition(".")
    _base = _kind.partition("::")[2]
    _is_function = _overload in ("int", "float") and _base in (*FUNCTIONS, "sqrt")
    EMITTERS[_name] = function if _is_function else power if _base == "pow" else arithmetic


@emits("python::log2")
def binary_logarithm(w: ProgramWriter, node: Node) -> None:
    function(w, node)


@emits("aten::isnan.float", "aten::isinf.float", "aten::isfinite.float")
def test_float(w: ProgramWriter, node: Node) -> None:
    tests = {"aten::isnan": _is_nan, "aten::isinf": _is_infinite, "aten::isfinite": _is_finite}
    w.define(node.output, tests[node.kind](w, w.name(node.input)))


_OF_SCALARS: Final[dict[Type, str]] = {INT: "int", FLOAT: "float", BOOL: "bool"}


@emits("aten::Float.Scalar", "aten::Int.Scalar", "aten::Bool.Scalar")
def convert_scalar(w: ProgramWriter, node: Node) -> None:
    """Lower the conversion of a Scalar to int, float or bool. The Scalar may be boxed: a number whose type is known
    only at run time."""
    kind = node.kind.partition("::")[2]
    given = node.input.type
    if given in _OF_SCALARS:
        name = f"aten::{kind}.{_OF_SCALARS[given]}"
        w.define(node.output, ARITHMETIC[name](w, w.name(node.input)))
        return
    register = w.name(node.input)
    word = word_in_box(w, register)
    is_float = _is_float(w, node, register)
    as_float = w.emit(f"bitcast i64 {word} to double")
    if kind == "Float":
        w.define(
            node.output,
            w.emit(f"select i1 {is_float}, double {as_float}, double {w.emit(f'sitofp i64 {word} to double')}"),
        )
    elif kind == "Bool":
        truth = w.emit(f"fcmp une double {as_float}, 0.0")
        w.define(node.output, w.emit(f"select i1 {is_float}, i1 {truth}, i1 {w.emit(f'icmp ne i64 {word}, 0')}"))
    else:
        known = w.emit(f"select i1 {is_float}, double {as_float}, double 0.0")
        _check_whole(w, known)
        cut = ARITHMETIC["aten::Int.float"](w, known)
        w.define(node.output, w.emit(f"select i1 {is_float}, i64 {cut}, i64 {word}"))


@emits("prim::dtype", "prim::layout", "prim::device")
def property_of_tensor(w: ProgramWriter, node: Node) -> None:
    if node.kind == "prim::dtype":
        place = w.emit(f"getelementptr i64, ptr {w.name(node.input)}, i64 4")
        w.define(node.output, w.emit(f"load i64, ptr {place}"))
    else:
        w.define(node.output, "0" if node.kind == "prim::layout" else str(0xFFFFFFFF))


@emits("prim::type")
def type_of_device(w: ProgramWriter, node: Node) -> None:
    """Lower ``device.type``. It is ``"cpu"``, since the tensors of a library are on the CPU.

    Raises:
        NotBuildable: the operand is not a device.
    """
    if node.input.type != DEVICE:
        raise NotBuildable(f"the type of a {node.input.type}", node.range)
    w.define(node.output, w.parts.constants.string("cpu"))


@emits("prim::is_cpu")
def is_on_cpu(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, "true")


_UNTYPED: Final = (
    *("add", "sub", "mul", "div", "floordiv", "remainder", "pow"),
    *("lt", "le", "gt", "ge", "eq", "ne", "neg"),
)
_COMPARISONS: Final = ("lt", "le", "gt", "ge", "eq", "ne")
_OF_FLOATS: Final = ("div", "pow", "sqrt", "exp", "log")
"""Operators whose result is a float for ints too."""


@emits(
    *(f"aten::{name}" for name in _UNTYPED),
    *(f"aten::{name}.Scalar" for name in ("neg", "sqrt", "exp", "log", "floor", "ceil", "round")),
    *("aten::pow.Scalar_Scalar", "prim::min", "prim::max", "prim::abs.Scalar"),
)
def untyped(w: ProgramWriter, node: Node) -> None:
    """Lower an operator on Scalars, with one variant for each combination of types that boxed numbers may have at run
    time.

    Raises:
        NotBuildable: a number is complex, and the operator does not support that; or libraries do not have the
            operator.
    """
    if not all(value.type == COMPLEX or is_number(value.type) for value in node.inputs):
        call_torch(w, node)
        return
    if any(value.type == COMPLEX for value in node.inputs):
        if node.kind not in OF_TWO:
            raise NotBuildable(f"'{node.kind}' of a complex number", node.range)
        compute(w, node)
        return
    boxes = [w.name(value) if is_object(value.type) else None for value in node.inputs]
    if not any(boxes):
        result, type = _of_kinds(w, node, [*map(_static_kind, node.inputs)], _as_words(w, node.inputs))
        w.define(node.output, w.converted(result, type, node.output.type))
        return
    floats = [None if each is None else _is_float(w, node, each) for each in boxes]
    slot = w.owned_slot() if is_object(node.output.type) else w.alloca(register_of(node.output.type))
    done = w.fresh("computed")
    pairs = list(zip(boxes, node.inputs, strict=True))
    choices = [("int", "float") if box else (_static_kind(value),) for box, value in pairs]
    for kinds in product(*choices):
        other = w.fresh("other")
        for kind, is_float in zip(kinds, floats, strict=True):
            if is_float is not None:
                matches = w.fresh("matches")
                yes, no = (matches, other) if kind == "float" else (other, matches)
                w.line(f"br i1 {is_float}, label %{yes}, label %{no}")
                w.start_block(matches)
        words = [
            w.of_word(word_in_box(w, box), _TYPES[kind]) if box else _as_words(w, [value])[0]
            for (box, value), kind in zip(pairs, kinds, strict=True)
        ]
        result, type = _of_kinds(w, node, kinds, words)
        register = w.converted(result, type, node.output.type)
        w.line(f"store {register_of(node.output.type)} {register}, ptr {slot}")
        w.line(f"br label %{done}")
        w.start_block(other)
    w.line(f"br label %{done}")
    w.start_block(done)
    if is_object(node.output.type):
        w.define(node.output, w.take(slot))
    else:
        w.define(node.output, w.emit(f"load {register_of(node.output.type)}, ptr {slot}"))


_TYPES: Final = {"int": INT, "float": FLOAT}


def is_number(type: Type) -> bool:
    """Return whether all values of a type are ints, floats, bools or Scalars. A Scalar may be complex."""
    if isinstance(type, UnionType):
        return all(map(is_number, type.contained))
    return type in _OF_SCALARS or type == NUMBER


def _static_kind(value: Value) -> str:
    return _OF_SCALARS[value.type].replace("bool", "int")


def _as_words(w: ProgramWriter, values: Sequence[Value]) -> list[str]:
    """Return the registers of numbers; a bool is converted to an int."""
    return [w.emit(f"zext i1 {w.name(each)} to i64") if each.type == BOOL else w.name(each) for each in values]


def _is_float(w: ProgramWriter, node: Node, box: str) -> str:
    """Emit a test whether a boxed number is a float. At run time, a complex number is an error, and so is a bool in
    ``min`` and ``max``."""
    kind = kind_of(w, box)
    limit = Kind.FLOAT if node.kind in ("prim::min", "prim::max") else Kind.BOOL
    w.fail_if(
        w.emit(f"icmp sgt i64 {kind}, {int(limit)}"),
        ErrorCode.NOT_BUILT,
        f"'{node.kind}' of a number that is a bool or complex, and known only at run time",
    )
    return w.emit(f"icmp eq i64 {kind}, {int(Kind.FLOAT)}")


def _of_kinds(w: ProgramWriter, node: Node, kinds: Sequence[str], registers: Sequence[str]) -> tuple[str, Type]:
    """Emit an operator on ints and floats, whose types are given by ``kinds``; return the register and the type of its
    result.

    Raises:
        NotBuildable: native libraries do not have the operator for these types.
    """
    name = node.kind.partition("::")[2]
    if name in _OF_FLOATS and name != "div":
        given = [w.converted(each, _TYPES[kind], FLOAT) for each, kind in zip(registers, kinds, strict=True)]
        return _power(w, node, *given) if name == "pow" else _function(w, name, given[0]), FLOAT
    if name in ("min", "max") and len(set(kinds)) > 1:
        # The first unless the second is better, each as it is.
        raise NotBuildable(f"'{node.kind}' of an int and a float", node.range)
    qualified = f"{node.kind}.{kinds[0] if len(set(kinds)) == 1 else '_'.join(kinds)}"
    if qualified not in ARITHMETIC:
        raise NotBuildable(f"'{node.kind}' of numbers of types {', '.join(kinds)}", node.range)
    if kinds[0] == "float" and node.kind in _ROUNDING:
        _check_whole(w, registers[0])
    else:
        set_reason(w, node)
    result = ARITHMETIC[qualified](w, *registers)
    if name in _COMPARISONS:
        return result, BOOL
    if name in ("floor", "ceil"):
        return result, INT
    return result, FLOAT if "float" in kinds or name in ("div", "round") else INT


@emits("aten::divmod.int", "aten::divmod.float", "aten::divmod.int_float", "aten::divmod.float_int")
def divide_with_rest(w: ProgramWriter, node: Node) -> None:
    set_reason(w, node)
    overload = qualified_name(node).partition(".")[2]
    for value, name in zip(node.outputs, ("aten::floordiv", "aten::remainder"), strict=True):
        w.define(value, ARITHMETIC[f"{name}.{overload}"](w, *arguments(w, node)))


# --------------------------------------------------------------------------------------- functions of the module math


def _overloads(*names: str) -> tuple[str, ...]:
    return tuple(f"aten::{name}.{kinds}" for name in names for kinds in ("int", "float", "int_float", "float_int"))


def _as_floats(w: ProgramWriter, values: Sequence[Value]) -> list[str]:
    return [w.converted(w.name(value), value.type, FLOAT) for value in values]


def _call_for_result(w: ProgramWriter, node: Node, function: Callable[..., Any], *registers: str) -> None:
    """Emit a call of a runtime function that writes its result to memory and returns False after an error; define the
    result of the node."""
    slot = w.alloca("i64")
    w.call_or_fail(function, "%context", *registers, slot)
    w.define(node.output, w.of_word(w.emit(f"load i64, ptr {slot}"), node.output.type))


@emits(*_overloads("copysign", "atan2"), "python::nextafter")
def function_of_two(w: ProgramWriter, node: Node) -> None:
    """Lower a function of the C library with two arguments that raises no errors."""
    functions = {"copysign": mathematics.copysign, "atan2": mathematics.atan2, "nextafter": mathematics.nextafter}
    w.define(node.output, w.call(functions[node.kind.partition("::")[2]], *_as_floats(w, node.inputs)))


_WITH_ERRORS: Final[dict[str, Callable[..., Any]]] = {
    "fmod": mathematics.math_fmod,
    "mathremainder": mathematics.math_remainder,
    "log": mathematics.math_log,
    "gamma": mathematics.math_gamma,
    "lgamma": mathematics.math_lgamma,
    "exp2": mathematics.math_exp2,
}


@emits(
    *_overloads("fmod", "mathremainder"),
    *("aten::log.int_int", "aten::log.float_float", "aten::log.int_float", "aten::log.float_int"),
    *(f"aten::{name}.{kind}" for name in ("gamma", "lgamma") for kind in ("int", "float")),
    "python::exp2",
)
def function_with_errors(w: ProgramWriter, node: Node) -> None:
    function = _WITH_ERRORS[node.kind.partition("::")[2]]
    _call_for_result(w, node, function, *_as_floats(w, node.inputs))


@emits("python::cbrt")
def cube_root(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(mathematics.cbrt, w.name(node.input)))


@emits(*(f"aten::{name}.{kind}" for name in ("degrees", "radians") for kind in ("int", "float")))
def convert_angle(w: ProgramWriter, node: Node) -> None:
    factor = mathematics.TO_DEGREES if node.kind == "aten::degrees" else mathematics.TO_RADIANS
    w.define(node.output, w.emit(f"fmul double {_as_floats(w, node.inputs)[0]}, {hexadecimal(factor)}"))


@emits("aten::gcd.int", "aten::factorial.int", "aten::ldexp", "python::round")
def function_of_numbers(w: ProgramWriter, node: Node) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "aten::gcd": mathematics.math_gcd,
        "aten::factorial": mathematics.math_factorial,
        "aten::ldexp": mathematics.math_ldexp,
        "python::round": mathematics.round_to_digits,
    }
    _call_for_result(w, node, functions[node.kind], *arguments(w, node))


@emits("aten::frexp", "aten::modf")
def split_float(w: ProgramWriter, node: Node) -> None:
    slots = [w.alloca("i64"), w.alloca("i64")]
    function = mathematics.math_frexp if node.kind == "aten::frexp" else mathematics.math_modf
    w.call(function, w.name(node.input), *slots)
    for value, slot in zip(node.outputs, slots, strict=True):
        w.define(value, w.of_word(w.emit(f"load i64, ptr {slot}"), value.type))


@emits("python::fsum")
def exact_sum(w: ProgramWriter, node: Node) -> None:
    _call_for_result(w, node, mathematics.math_fsum, w.name(node.input))


@emits("python::norm")
def norm(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(mathematics.math_norm, w.name(node.input)))


@emits("aten::pow.int")
def power_of_ints(w: ProgramWriter, node: Node) -> None:
    _call_for_result(w, node, mathematics.power_of_ints, *arguments(w, node))

"""Elements in vector registers: their types there and in memory, constants, conversions.

Truth values are i1 in registers and bytes in memory. bfloat16 is i16 in both: conversions are made of integer
instructions, since those of some processors flush denormal numbers. A vector of one lane is a plain value.
"""

from __future__ import annotations

import math
import struct

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.llvm.vector_ir_builder import hexadecimal
from rekindle.codegen.loop_ir.scalar_types import BF16, BOOL, F16, F32, F64, I32, I64, U8, ScalarType

_NAMES = {F64: "double", F32: "float", F16: "half", BF16: "i16", BOOL: "i1"}


def element_type(scalar: ScalarType) -> str:
    """Return the type of one element in a register."""
    return _NAMES.get(scalar) or f"i{scalar.bits}"


def memory_type(scalar: ScalarType) -> str:
    """Return the type of one element in memory."""
    return "i8" if scalar is BOOL else element_type(scalar)


def vector(type: str, lanes: int) -> str:
    return type if lanes == 1 else f"<{lanes} x {type}>"


def suffix(type: str, lanes: int) -> str:
    """Return the suffix of LLVM's intrinsics for a type: ``v16f32``."""
    short = {"double": "f64", "float": "f32", "half": "f16"}.get(type, type)
    return short if lanes == 1 else f"v{lanes}{short}"


def splat(type: str, value: str, lanes: int) -> str:
    """Return a constant in all lanes, as an operand."""
    return value if lanes == 1 else f"splat ({type} {value})"


def literal(value: float, scalar: ScalarType) -> str:
    """Return a constant of type ``scalar`` in LLVM IR, rounded to the type."""
    if scalar is BOOL:
        return "true" if value else "false"
    if not scalar.is_float:
        return str(value)
    if scalar is BF16:
        return str(_bfloat16_bits(float(value)))
    if scalar is F16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', _half(value)))[0]:04X}"
    if scalar is F32 and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return hexadecimal(value)


def _half(value: float) -> float:
    try:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _bfloat16_bits(value: float) -> int:
    if math.isnan(value):
        return 0x7FC0
    bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def cast(f: FunctionBuilder, value: str, source: ScalarType, target: ScalarType, lanes: int) -> str:
    """Emit the conversion of ``value`` between scalar types, as C++ converts."""
    if source is target:
        return value
    if source is BF16:
        return cast(f, _from_bfloat16(f, value, lanes), F32, target, lanes)
    if target is BF16:
        return _to_bfloat16(f, cast(f, value, source, F32, lanes), lanes)
    if source is F16 and target is not F32:
        return cast(f, cast(f, value, F16, F32, lanes), F32, target, lanes)
    if target is F16 and source is not F32:
        return cast(f, cast(f, value, source, F32, lanes), F32, F16, lanes)
    if target is BOOL:
        return _truth(f, value, source, lanes)
    if source.is_float and not target.is_float and target.size < 4:
        wide = I64 if target is U8 else I32
        return cast(f, cast(f, value, source, wide, lanes), wide, target, lanes)
    own, wanted = vector(element_type(source), lanes), vector(element_type(target), lanes)
    instruction = _instruction(source, target)
    return value if instruction is None else f.emit_value(f"{instruction} {own} {value} to {wanted}")


def _instruction(source: ScalarType, target: ScalarType) -> str | None:
    if source.is_float and target.is_float:
        return "fpext" if target.size > source.size else "fptrunc"
    if source.is_float:
        return "fptosi"
    if target.is_float:
        return "sitofp" if source.is_signed else "uitofp"
    if source is BOOL:
        return "zext"
    if source.size == target.size:
        return None
    if source.size > target.size:
        return "trunc"
    return "sext" if source.is_signed else "zext"


def _truth(f: FunctionBuilder, value: str, source: ScalarType, lanes: int) -> str:
    element = element_type(source)
    if source.is_float:
        return f.emit_value(f"fcmp une {vector(element, lanes)} {value}, zeroinitializer")
    return f.emit_value(f"icmp ne {vector(element, lanes)} {value}, {splat(element, '0', lanes)}")


def _from_bfloat16(f: FunctionBuilder, value: str, lanes: int) -> str:
    short, whole, float_ = vector("i16", lanes), vector("i32", lanes), vector("float", lanes)
    wide = f.emit_value(f"zext {short} {value} to {whole}")
    bits = f.emit_value(f"shl {whole} {wide}, {splat('i32', '16', lanes)}")
    return f.emit_value(f"bitcast {whole} {bits} to {float_}")


def _to_bfloat16(f: FunctionBuilder, value: str, lanes: int) -> str:
    """Emit the rounding to bfloat16: to nearest, half to even. Every NaN becomes the same one."""
    short, whole, float_ = vector("i16", lanes), vector("i32", lanes), vector("float", lanes)
    if f.module.is_for_gpu:
        own = f.emit_value(f"fptrunc {float_} {value} to {vector('bfloat', lanes)}")
        return f.emit_value(f"bitcast {vector('bfloat', lanes)} {own} to {short}")
    bits = f.emit_value(f"bitcast {float_} {value} to {whole}")
    high = f.emit_value(f"lshr {whole} {bits}, {splat('i32', '16', lanes)}")
    odd = f.emit_value(f"and {whole} {high}, {splat('i32', '1', lanes)}")
    half = f.emit_value(f"add {whole} {odd}, {splat('i32', str(0x7FFF), lanes)}")
    rounded = f.emit_value(f"add {whole} {bits}, {half}")
    upper = f.emit_value(f"lshr {whole} {rounded}, {splat('i32', '16', lanes)}")
    narrow = f.emit_value(f"trunc {whole} {upper} to {short}")
    is_nan = f.emit_value(f"fcmp uno {float_} {value}, {value}")
    nan = splat("i16", str(0x7FC0), lanes)
    return f.emit_value(f"select {vector('i1', lanes)} {is_nan}, {short} {nan}, {short} {narrow}")

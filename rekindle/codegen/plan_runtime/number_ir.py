"""Arithmetic on registers of numbers. The interpreter takes over if the result of Python differs: for ints of more than
64 bits, divisors that are zero, and square roots of negative numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rekindle.codegen.plan_runtime.macros import handler


def _int_with_overflow(name: str) -> str:
    return handler(
        f"int_{name}",
        f"""
  %to = slot 0
  %pa = slot 1
  %pb = slot 2
  %a = load i64, ptr %pa
  %b = load i64, ptr %pb
  %pair = call {{i64, i1}} @llvm.s{name}.with.overflow.i64(i64 %a, i64 %b)
  %overflow = extractvalue {{i64, i1}} %pair, 1
  br i1 %overflow, label %odd, label %good
odd:
  leave
good:
  %result = extractvalue {{i64, i1}} %pair, 0
  store i64 %result, ptr %to
  next
""",
    )


def _int_division(name: str, result: str) -> str:
    """Return the handler of Python's ``//`` or ``%``: the quotient is rounded down, the remainder has the divisor's
    sign."""
    return handler(
        f"int_{name}",
        f"""
  %to = slot 0
  %pa = slot 1
  %pb = slot 2
  %a = load i64, ptr %pa
  %b = load i64, ptr %pb
  %after = add i64 %b, 1
  %is_odd = icmp ult i64 %after, 2
  br i1 %is_odd, label %odd, label %good
odd:
  leave
good:
  %quotient = sdiv i64 %a, %b
  %rest = srem i64 %a, %b
  %signs = xor i64 %rest, %b
  %differ = icmp slt i64 %signs, 0
  %exact = icmp eq i64 %rest, 0
  %down_1 = select i1 %exact, i1 false, i1 %differ
  %down = sext i1 %down_1 to i64
  %floor = add i64 %quotient, %down
  %add = select i1 %down_1, i64 %b, i64 0
  %modulo = add i64 %rest, %add
  store i64 %{result}, ptr %to
  next
""",
    )


def _binary(name: str, type: str, line: str, *, stored: str = "%result") -> str:
    return handler(
        name,
        f"""
  %to = slot 0
  %pa = slot 1
  %pb = slot 2
  %a = load {type}, ptr %pa
  %b = load {type}, ptr %pb
  {line}
  store {"i64" if stored == "%wide" else type} {stored}, ptr %to
  next
""",
    )


def _comparison(name: str, type: str, condition: str) -> str:
    instruction = "icmp" if type == "i64" else "fcmp"
    line = f"%bit = {instruction} {condition} {type} %a, %b\n  %wide = zext i1 %bit to i64"
    return _binary(name, type, line, stored="%wide")


_INT_CONDITIONS: Final[Mapping[str, str]] = {
    "eq": "eq",
    "ne": "ne",
    "lt": "slt",
    "le": "sle",
    "gt": "sgt",
    "ge": "sge",
}
_FLOAT_CONDITIONS: Final[Mapping[str, str]] = {
    "eq": "oeq",
    "ne": "une",
    "lt": "olt",
    "le": "ole",
    "gt": "ogt",
    "ge": "oge",
}

DECLARATIONS: Final = "\n".join(
    [
        *(f"declare {{i64, i1}} @llvm.s{name}.with.overflow.i64(i64, i64)" for name in ("add", "sub", "mul")),
        "declare double @llvm.sqrt.f64(double)",
    ]
)

HANDLERS: Final = (
    *(_int_with_overflow(name) for name in ("add", "sub", "mul")),
    _int_division("floordiv", "floor"),
    _int_division("mod", "modulo"),
    *(_comparison(f"int_{name}", "i64", condition) for name, condition in _INT_CONDITIONS.items()),
    *(_comparison(f"float_{name}", "double", condition) for name, condition in _FLOAT_CONDITIONS.items()),
    *(_binary(f"float_{name}", "double", f"%result = f{name} double %a, %b") for name in ("add", "sub", "mul")),
    handler(
        "float_truediv",
        """
  %to = slot 0
  %pa = slot 1
  %pb = slot 2
  %a = load double, ptr %pa
  %b = load double, ptr %pb
  %zero = fcmp oeq double %b, 0.0
  br i1 %zero, label %odd, label %good
odd:
  leave
good:
  %result = fdiv double %a, %b
  store double %result, ptr %to
  next
""",
    ),
    handler(
        "int_neg",
        """
  %to = slot 0
  %pa = slot 1
  %a = load i64, ptr %pa
  %pair = call {i64, i1} @llvm.ssub.with.overflow.i64(i64 0, i64 %a)
  %overflow = extractvalue {i64, i1} %pair, 1
  br i1 %overflow, label %odd, label %good
odd:
  leave
good:
  %result = extractvalue {i64, i1} %pair, 0
  store i64 %result, ptr %to
  next
""",
    ),
    handler(
        "float_neg",
        """
  %to = slot 0
  %pa = slot 1
  %a = load double, ptr %pa
  %result = fneg double %a
  store double %result, ptr %to
  next
""",
    ),
    handler(
        "int_to_float",
        """
  %to = slot 0
  %pa = slot 1
  %a = load i64, ptr %pa
  %result = sitofp i64 %a to double
  store double %result, ptr %to
  next
""",
    ),
    handler(
        "float_sqrt",
        """
  %to = slot 0
  %pa = slot 1
  %a = load double, ptr %pa
  %negative = fcmp olt double %a, 0.0
  br i1 %negative, label %odd, label %good
odd:
  leave
good:
  %result = call double @llvm.sqrt.f64(double %a)
  store double %result, ptr %to
  next
""",
    ),
    handler(
        "not",
        """
  %to = slot 0
  %pa = slot 1
  %a = load i64, ptr %pa
  %result = xor i64 %a, 1
  store i64 %result, ptr %to
  next
""",
    ),
    # Whether the words of two registers are equal, or (operand 3 is 1) are not.
    handler(
        "same_word",
        """
  %to = slot 0
  %pa = slot 1
  %pb = slot 2
  %negated = field 3
  %a = load i64, ptr %pa
  %b = load i64, ptr %pb
  %bit = icmp eq i64 %a, %b
  %wide = zext i1 %bit to i64
  %result = xor i64 %wide, %negated
  store i64 %result, ptr %to
  next
""",
    ),
    # Whether the object in register 1 is None, or (operand 2 is 1) is not.
    handler(
        "is_none",
        """
  %to = slot 0
  %from = slot 1
  %negated = field 2
  %object = load ptr, ptr %from
  %bit = icmp eq ptr %object, @_Py_NoneStruct
  %wide = zext i1 %bit to i64
  %result = xor i64 %wide, %negated
  store i64 %result, ptr %to
  next
""",
    ),
)

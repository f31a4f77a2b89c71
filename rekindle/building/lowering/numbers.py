"""Numbers: the arithmetic that native regions have, and what only whole programs need."""

from __future__ import annotations

from typing import Final

from rekindle.building.lowering.control import kind_of, word_in_box
from rekindle.building.lowering.emitters import EMITTERS, arguments, emits, qualified_name
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime.objects import ErrorCode, Kind
from rekindle.codegen.native.arithmetic import EMITTERS as ARITHMETIC
from rekindle.ir.graph import Node
from rekindle.ir.types import BOOL, FLOAT, INT, Type

_DIVISIONS: Final = ("aten::div", "aten::floordiv", "aten::remainder", "aten::fmod", "aten::divmod")
_DOMAIN: Final = frozenset(
    {
        *("acos", "acosh", "asin", "atanh", "log", "log10", "log1p", "log2", "sqrt", "exp", "expm1", "cosh", "sinh"),
        *("sin", "cos", "tan", "pow", "lgamma", "gamma", "factorial"),
    }
)


def arithmetic(w: ProgramWriter, node: Node) -> None:
    """Translate an operator of numbers."""
    name = qualified_name(node)
    if node.kind in _DIVISIONS:
        w.reason = (ErrorCode.ZERO_DIVISION_ERROR, "division by zero")
    elif name.partition(".")[0].partition("::")[2] in _DOMAIN:
        w.reason = (ErrorCode.VALUE_ERROR, "math domain error")
    elif node.kind in ("aten::Int", "aten::floor", "aten::ceil", "aten::round"):
        w.reason = (ErrorCode.OVERFLOW_ERROR, "a float that is no int of 64 bits cannot be converted to one")
    w.define(node.output, ARITHMETIC[name](w, *arguments(w, node)))


for _name in ARITHMETIC:
    EMITTERS[_name] = arithmetic


_OF_SCALARS: Final[dict[Type, str]] = {INT: "int", FLOAT: "float", BOOL: "bool"}


@emits("aten::Float.Scalar", "aten::Int.Scalar", "aten::Bool.Scalar")
def convert_scalar(w: ProgramWriter, node: Node) -> None:
    """A Scalar whose type is known, or a boxed one."""
    kind = node.kind.partition("::")[2]
    given = node.input.type
    if given in _OF_SCALARS:
        name = f"aten::{kind}.{_OF_SCALARS[given]}"
        w.define(node.output, ARITHMETIC[name](w, w.name(node.input)))
        return
    register = w.name(node.input)
    word = word_in_box(w, register)
    is_float = w.emit(f"icmp eq i64 {kind_of(w, register)}, {int(Kind.FLOAT)}")
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
        raise NotBuildable("an int of a number whose type is not known", node.range)


@emits("prim::dtype", "prim::layout", "prim::device")
def property_of_tensor(w: ProgramWriter, node: Node) -> None:
    if node.kind == "prim::dtype":
        place = w.emit(f"getelementptr i64, ptr {w.name(node.input)}, i64 4")
        w.define(node.output, w.emit(f"load i64, ptr {place}"))
    else:
        w.define(node.output, "0" if node.kind == "prim::layout" else str(0xFFFFFFFF))

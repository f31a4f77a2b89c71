"""Numbers: the arithmetic that native regions have, and what only whole programs need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.building.lowering.control import kind_of, word_in_box
from rekindle.building.lowering.emitters import EMITTERS, arguments, emits, qualified_name
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowering.torch_calls import call_torch
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
    set_reason(w, node)
    w.define(node.output, ARITHMETIC[qualified_name(node)](w, *arguments(w, node)))


def set_reason(w: ProgramWriter, node: Node) -> None:
    """Set the error that the arithmetic of a node raises."""
    name = qualified_name(node)
    if node.kind in _DIVISIONS:
        w.reason = (ErrorCode.ZERO_DIVISION_ERROR, "division by zero")
    elif name.partition(".")[0].partition("::")[2] in _DOMAIN:
        w.reason = (ErrorCode.VALUE_ERROR, "math domain error")
    elif node.kind in ("aten::Int", "aten::floor", "aten::ceil", "aten::round"):
        w.reason = (ErrorCode.OVERFLOW_ERROR, "a float that is no int of 64 bits cannot be converted to one")


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


_UNTYPED: Final = (
    "add",
    "sub",
    "mul",
    "div",
    "floordiv",
    "remainder",
    "pow",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "neg",
)


@emits(
    *(f"aten::{name}" for name in _UNTYPED),
    *(f"aten::{name}.Scalar" for name in ("pow", "neg", "sqrt", "exp", "log")),
    *("aten::pow.Scalar_Scalar", "prim::min.Scalar", "prim::max.Scalar", "prim::abs.Scalar"),
)
def untyped(w: ProgramWriter, node: Node) -> None:
    """An operator of Scalars whose types are known."""
    if any(value.type not in _OF_SCALARS for value in node.inputs):
        call_torch(w, node)
        return
    kinds = [_OF_SCALARS[value.type].replace("bool", "int") for value in node.inputs]
    registers = [
        w.emit(f"zext i1 {w.name(value)} to i64") if value.type == BOOL else w.name(value) for value in node.inputs
    ]
    name = f"{node.kind}.{kinds[0] if len(set(kinds)) == 1 else '_'.join(kinds)}"
    if name not in ARITHMETIC:
        raise NotBuildable(f"'{node.kind}' of numbers of types {', '.join(kinds)}", node.range)
    set_reason(w, node)
    result = ARITHMETIC[name](w, *registers)
    w.define(node.output, w.converted(result, _result_type(node, kinds), node.output.type))


def _result_type(node: Node, kinds: Sequence[str]) -> Type:
    """Return the type of an operator of numbers."""
    name = node.kind.partition("::")[2]
    if name in ("lt", "le", "gt", "ge", "eq", "ne"):
        return BOOL
    return FLOAT if "float" in kinds or name in ("div", "pow", "sqrt", "exp", "log") else INT


@emits("aten::divmod.int")
def divide_with_rest(w: ProgramWriter, node: Node) -> None:
    set_reason(w, node)
    for value, name in zip(node.outputs, ("aten::floordiv.int", "aten::remainder.int"), strict=True):
        w.define(value, ARITHMETIC[name](w, *arguments(w, node)))

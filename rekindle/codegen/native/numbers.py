"""Numbers of open type: it is only known at run time whether they are ints or floats.

Operators on Scalars have one case for each combination of types that their operands may have::

    %c : Scalar = aten::add(%a, %b)      br i1 %a.is_float, label %float, label %int
                                         int:    … aten::add.int, or aten::add.int_float
                                         float:  … aten::add.float_int, or aten::add.float
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from rekindle.codegen.native.arithmetic import COMPARISONS, EMITTERS, is_exact
from rekindle.codegen.native.native_types import NativeType, native_type_of
from rekindle.codegen.native.writer import Number, RegionWriter, known_kind, literal
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.types import NUMBER, Type
from rekindle.ops.python.values import is_instance

Operand = tuple[str, NativeType]
"""A register, and whether it is an int or a float."""

End = tuple[str, Sequence[str]]
"""The label of the block that a case ends in, and the registers of the result there."""

_REALS: Final = (NativeType.INT, NativeType.FLOAT)


def has_cases(node: Node) -> bool:
    """Return whether a node is an operator on Scalars that native code supports for all types that these may have."""
    operator = node.operator
    if operator is None or not all(argument.type == NUMBER for argument in operator.schema.arguments):
        return False
    kinds = [native_type_of(value.type) for value in node.inputs]
    options = [_REALS if kind is NativeType.NUMBER else (kind,) for kind in kinds]
    return bool(kinds) and all(_has_code(node, case) for case in itertools.product(*options))


def _has_code(node: Node, kinds: Sequence[NativeType | None]) -> bool:
    if any(kind not in _REALS for kind in kinds):
        return False
    name = _overload(node, [kind for kind in kinds if kind is not None])
    return name in EMITTERS and (native_type_of(node.output.type) is not NativeType.NUMBER or _result(name) in _REALS)


def _overload(node: Node, kinds: Sequence[NativeType]) -> str:
    """Return the qualified name of a node's operator for operands of known types: ``aten::add.int_float``."""
    names = [kind.name.lower() for kind in kinds]
    return f"{node.kind}.{names[0] if len(set(names)) == 1 else '_'.join(names)}"


def _result(name: str) -> NativeType | None:
    operator = REGISTRY.find(name)
    return None if operator is None else native_type_of(operator.schema.returns[0].type)


def dispatch(w: RegionWriter, node: Node) -> None:
    """Emit an operator of Scalars: one case for each of the types that its operands may have."""
    numbers = [w.number(value) for value in node.inputs]
    if any(number.kind is NativeType.FLOAT for number in numbers):
        numbers = [_as_float(w, number, exactly=node.kind in COMPARISONS) for number in numbers]
    ends: list[End] = []
    if all(number.kind is not NativeType.NUMBER for number in numbers):
        _emit_cases(w, node, [], numbers, ends)
        w.bind(node.output, ends[0][1])
        return
    joined = w.fresh("join")
    _emit_cases(w, node, [], numbers, ends, joined)
    w.start_block(joined)
    w.bind(node.output, w.meet(known_kind(node.output), ends))


def _as_float(w: RegionWriter, number: Number, *, exactly: bool) -> Number:
    """Emit the conversion of a number of open type to a float; return numbers of other types unchanged. If ``exactly``,
    the code leaves the region rather than round an int."""
    if number.kind is not NativeType.NUMBER:
        return number
    if exactly:
        w.leave_unless(w.emit(f"select i1 {number.is_float}, i1 true, i1 {is_exact(w, number.int)}"))
    return Number.of_float(number.float)


def _emit_cases(
    w: RegionWriter,
    node: Node,
    operands: Sequence[Operand],
    others: Sequence[Number],
    ends: list[End],
    joined: str | None = None,
) -> None:
    """Emit the cases in which the first inputs are ``operands``, for all types of the ``others``. Append the end of
    each to ``ends``; each branches to ``joined``, unless it is None."""
    if not others:
        ends.append(_emit_case(w, node, operands))
        if joined is not None:
            w.line(f"br label %{joined}")
        return
    number, *others = others
    cases = [(number.float, NativeType.FLOAT), (number.int, NativeType.INT)]
    if number.kind is not NativeType.NUMBER:
        taken = cases[number.kind is NativeType.INT]
        _emit_cases(w, node, [*operands, taken], others, ends, joined)
        return
    labels = w.fresh("float"), w.fresh("int")
    w.line(f"br i1 {number.is_float}, label %{labels[0]}, label %{labels[1]}")
    for label, taken in zip(labels, cases, strict=True):
        w.start_block(label)
        _emit_cases(w, node, [*operands, taken], others, ends, joined)


def _emit_case(w: RegionWriter, node: Node, operands: Sequence[Operand]) -> End:
    name = _overload(node, [kind for _, kind in operands])
    result = EMITTERS[name](w, *(register for register, _ in operands))
    if known_kind(node.output) is not NativeType.NUMBER:
        return w.block, (result,)
    kind = _result(name)
    assert kind is not None
    return w.block, w.number_of(result, kind)


# --------------------------------------------------------------------------------------------------------------- types


def has_cast(node: Node) -> bool:
    """Return whether a node is a ``prim::unchecked_cast`` or ``prim::isinstance`` of values that native code
    supports."""
    given, wanted = native_type_of(node.input.type), native_type_of(node.output.type)
    if given is None or wanted is None:
        return False
    if node.kind == "prim::isinstance":
        return given.fits(NativeType.NUMBER)
    return given.fits(wanted) or (given is NativeType.NUMBER and wanted in _REALS)


def cast(w: RegionWriter, node: Node) -> None:
    """Emit ``prim::unchecked_cast``. A cast to int or float leaves the region if the value does not have that type."""
    kind = known_kind(node.output)
    if kind not in _REALS:
        w.bind(node.output, w.registers(node.input, kind))
        return
    number = w.number(node.input)
    if number.kind is not kind:
        (w.leave_unless if kind is NativeType.FLOAT else w.leave_if)(number.is_float)
    w.names[node.output] = number.float if kind is NativeType.FLOAT else number.int


def test(w: RegionWriter, node: Node) -> None:
    """Emit ``prim::isinstance`` of a number."""
    types = node["types"]
    assert isinstance(types, list)
    of_int, of_float = (
        any(is_instance(sample, type) for type in types if isinstance(type, Type)) for sample in (0, 0.0)
    )
    number = w.number(node.input)
    if of_int == of_float:
        w.names[node.output] = literal(of_int)
    else:
        w.names[node.output] = number.is_float if of_float else w.emit(f"xor i1 {number.is_float}, true")


NUMBER_EMITTERS: Final[dict[str, Callable[[RegionWriter, Node], None]]] = {
    "prim::unchecked_cast": cast,
    "prim::isinstance": test,
}
"""By the kind of the node."""

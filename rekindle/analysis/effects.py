"""What a node does beyond computing its outputs, as far as it can be told from the node alone."""

from __future__ import annotations

from functools import cache

from rekindle.ir.graph import Node
from rekindle.ir.registry import Effects, Operator
from rekindle.ir.schema import AliasInfo
from rekindle.ir.types import (
    BoolType,
    ComplexType,
    DeviceType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TupleType,
    Type,
    UnionType,
)

_IMMUTABLE = (
    *(IntType, FloatType, ComplexType, BoolType, NumberType, StringType, NoneType, DeviceType),
    *(EnumType, FunctionType),
)

PASSES_ON = frozenset(
    {
        *("prim::TupleConstruct", "prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"),
        *("prim::ListConstruct", "prim::ListUnpack", "prim::DictConstruct"),
        *("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional", "prim::GetAttr"),
    }
)
"""Kinds that only make new values out of their inputs: the outputs may alias the inputs, nothing is written."""

FRESH = frozenset({"prim::Constant", "prim::Uninitialized", "prim::CreateObject", "prim::EmptyListLiteral"})
"""Kinds that make something that nothing else knows."""

LAZY = frozenset({"prim::awaitable"})
"""Kinds that hand their inputs to what runs later, if at all."""

CONTROL_FLOW = frozenset({"prim::If", "prim::Loop", "prim::With"})

_SIDE_EFFECTS = frozenset(
    {
        *("prim::Print", "prim::RaiseException", "prim::Enter", "prim::Exit", "prim::SetAttr"),
        *("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "prim::fork", "aten::wait"),
        *("prim::LoopContinuation", "prim::ReturnStmt", "prim::BreakStmt", "prim::ContinueStmt", "prim::Store"),
        *("aten::warn", "aten::manual_seed", "aten::save", "prim::TimePoint", "prim::BailOut", "prim::Guard"),
    }
)


def has_side_effects(node: Node) -> bool:
    """Whether the node must run though nobody uses its outputs, and not just because it writes to its inputs."""
    if node.kind in _SIDE_EFFECTS:
        return True
    if node.kind in PASSES_ON or node.kind in FRESH or node.kind in CONTROL_FLOW or node.kind in LAZY:
        return False
    operator = node.operator
    if operator is None:
        # Nothing is known of it, so that it may do anything.
        return True
    return operator.has_side_effects


def is_nondeterministic(node: Node) -> bool:
    """Whether the node may answer differently each time. What is not known may."""
    if node.kind in PASSES_ON or node.kind in FRESH:
        return False
    operator = node.operator
    return operator is None or operator.is_nondeterministic


def is_immutable(type: Type) -> bool:
    """Whether no value of this type, nor anything within it, can be written to."""
    if isinstance(type, (TupleType, OptionalType, UnionType)):
        return all(is_immutable(part) for part in type.contained)
    return isinstance(type, _IMMUTABLE)


def may_write(node: Node) -> bool:
    """Whether the node may write to one of its inputs."""
    if node.kind in PASSES_ON or node.kind in FRESH or node.kind in CONTROL_FLOW or node.kind in LAZY:
        return False
    operator = node.operator
    return operator is None or _may_write(operator)


@cache
def _may_write(operator: Operator) -> bool:
    if operator.effects in (Effects.CONSERVATIVE, Effects.SPECIAL):
        return True
    return operator.effects is Effects.FROM_SCHEMA and any(is_write(item.alias) for item in operator.schema.arguments)


def is_write(info: AliasInfo | None) -> bool:
    """Whether an annotation says that the value, or something in it, is written to."""
    return info is not None and (info.is_write or any(is_write(part) for part in info.contained))


def is_conservative(node: Node) -> bool:
    """Whether the node must be taken to write to all its inputs and to hand them to others."""
    if node.kind in PASSES_ON or node.kind in FRESH or node.kind in CONTROL_FLOW:
        return False
    operator = node.operator
    return operator is None or operator.effects in (Effects.CONSERVATIVE, Effects.SPECIAL)

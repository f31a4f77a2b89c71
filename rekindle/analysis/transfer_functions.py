"""Transfer functions of the type analysis: what follows for the outputs of a node from facts about its inputs.

The rules of :mod:`rekindle.ops.result_types` are those of operators. Nothing runs but operators on known numbers, to
fold constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch

from rekindle.analysis.autocast import ignores_autocast
from rekindle.analysis.constant_folding import may_fold
from rekindle.analysis.effects import CASTS, FRESH_VALUE_KINDS, GUARDS, has_side_effects, is_conservative
from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.registry import Operator, is_foreign
from rekindle.ir.types import (
    NONE,
    TENSOR,
    BoolType,
    ComplexType,
    DeviceType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
)
from rekindle.ops.result_types import result_facts
from rekindle.ops.result_types.facts import Constant, Every, Fact, Unknown

_IDENTITY_TESTS: Final = {"aten::__is__": False, "aten::__isnot__": True}
"""Results of identity tests of two values that differ."""

_VIEWS_ONLY: Final = frozenset({"prim::ConstantChunk"})
"""Kinds with alias rules of their own, whose results are views of their input only."""


@dataclass(slots=True)
class TransferFunctions:
    """The rules that derive facts about the outputs of nodes from facts about their inputs.

    ``grad_enabled``: whether gradients are recorded when the node runs; None if unknown. With ``any_modes`` facts also
    hold under autocast, and for any default dtype and device. ``is_steady``: nothing in the graph turns on autocast, or
    may.
    """

    grad_enabled: bool | None = None
    any_modes: bool = False
    is_steady: bool = True
    default_dtype: torch.dtype | None = field(init=False, default=None)
    default_device: torch.device | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not self.any_modes:
            self.default_dtype = torch.get_default_dtype()
            self.default_device = torch.get_default_device()

    def results(self, node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
        """Return what is known about each output of a node without blocks; an empty sequence if nothing is known."""
        kind = node.kind
        if kind == "prim::Constant":
            return [_constant(node)]
        if kind in ("prim::TupleConstruct", "prim::ListConstruct"):
            return [tuple(inputs)]
        if kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            count = len(node.outputs)
            items = [inputs[0].item] * count if isinstance(inputs[0], Every) else _items(inputs[0])
            known = items if len(items) == count else [None] * count
            return [_annotated_fact(output) or item for output, item in zip(node.outputs, known, strict=True)]
        if kind in ("prim::TupleIndex", "aten::__getitem__"):
            return [_annotated_fact(node.output) or _item(inputs[0], inputs[1])]
        if kind in CASTS or kind == "prim::profile":
            return [_annotated_fact(node.output) or inputs[0]]
        if kind in GUARDS:
            return [Constant(None) if node.output.type == NONE else node.output.type]  # type: ignore[list-item]
        if kind in _IDENTITY_TESTS and _is_tensor_beside_none(inputs):
            return [Constant(_IDENTITY_TESTS[kind])]
        operator = node.operator
        if operator is None or kind in FRESH_VALUE_KINDS or node.blocks or has_side_effects(node):
            return []
        if is_conservative(node) and kind not in _VIEWS_ONLY:
            return []
        arguments = [_argument(value.type, fact) for value, fact in zip(node.inputs, inputs, strict=True)]
        if all(_is_simple(output.type) for output in node.outputs):
            folded = _fold(node, operator, arguments)
            if folded is not None:
                return [folded]
        elif not self.is_steady or not all(_may_be_declared(output.type) for output in node.outputs):
            return []
        found = result_facts(
            operator.schema,
            arguments,
            default_dtype=self.default_dtype,
            default_device=self.default_device,
            attributes=node.attributes,
        )
        is_new = not operator.may_alias_inputs and not any(result.alias for result in operator.schema.returns)
        may_be_cast = self.any_modes and not ignores_autocast(operator)
        return [self.adjust(result, is_new, may_be_cast) for result in found]

    def adjust(self, result: Fact, is_new: bool, may_be_cast: bool) -> Fact:
        """Return ``result``, a fact about the result of an operator, without the properties that depend on the
        recording of gradients and on autocast. ``is_new``: the result is not one of the arguments, which would keep
        ``requires_grad``."""
        if isinstance(result, TensorType):
            if may_be_cast and result.dtype is not None and result.dtype.is_floating_point:
                result = replace(result, dtype=None)
            if result.requires_grad is False or self.grad_enabled:
                return result
            return replace(result, requires_grad=False if self.grad_enabled is False and is_new else None)
        if isinstance(result, Every):
            return Every(self.adjust(result.item, is_new, may_be_cast))
        if isinstance(result, tuple):
            return tuple(self.adjust(part, is_new, may_be_cast) for part in result)
        return result


def _is_tensor_beside_none(facts: Sequence[Fact]) -> bool:
    """Return whether one of two values is a tensor, and the other one None."""
    is_none = [isinstance(fact, Constant) and fact.value is None for fact in facts]
    is_tensor = [isinstance(fact, TensorType) and not fact.undefined for fact in facts]
    return len(facts) == 2 and any(is_none) and any(is_tensor)


# ---------------------------------------------------------------------------------------------------- constant folding


def _fold(node: Node, operator: Operator, arguments: Sequence[Fact]) -> Fact:
    """Return the result of an operator on known numbers, strings and lists of them; None if it cannot be computed
    or is too large."""
    if len(node.outputs) != 1 or operator.is_nondeterministic or is_foreign(node.kind):
        return None
    values = [_value(value.type, argument) for value, argument in zip(node.inputs, arguments, strict=True)]
    if any(value is _NOTHING for value in values) or not may_fold(operator, values):
        return None
    if any(isinstance(leaf, (str, int)) and _is_large(leaf) for leaf in _flat(values)):
        return None
    try:
        result = operator.operation_of(node)(*values)
    except Exception:
        return None
    return Constant(result) if _is_plain(result) else None


_NOTHING: Final = object()


def _value(type: Type, fact: Fact) -> Any:
    """Return the Python value if ``fact`` states a constant; ``_NOTHING`` otherwise."""
    if isinstance(fact, Constant):
        return fact.value
    if isinstance(fact, tuple):
        parts = type.contained if isinstance(type, TupleType) else type.contained[:1] * len(fact)
        values = [_value(part, inner) for part, inner in zip(parts, fact, strict=False)]
        if len(values) != len(fact) or any(value is _NOTHING for value in values):
            return _NOTHING
        return tuple(values) if isinstance(type, TupleType) else values
    return _NOTHING


def _is_large(leaf: int | str) -> bool:
    return len(leaf) > 1000 if isinstance(leaf, str) else abs(leaf) > 1 << 40


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(part) for part in value)
    return value is None or (isinstance(value, (bool, int, float, str)) and not _is_large_result(value))


def _is_large_result(value: Any) -> bool:
    return isinstance(value, (int, str)) and _is_large(value)


# ---------------------------------------------------------------------------------------------------- facts and types


def fact_of_input(value: Value) -> Fact:
    """Return what a rule may know about an input of a node: its type, and its value if it is a constant."""
    if value.type == NONE:
        return Constant(None)
    is_number = value.node.kind == "prim::Constant" and _is_simple(value.type)
    return _argument(value.type, Constant(value.to_python()) if is_number else fact_of_type(value.type))


def _constant(node: Node) -> Fact:
    try:
        found = node.output.to_python()
    except Exception:
        return None  # its value is not in the text
    return _fact_of_value(found)


def _fact_of_value(value: Any) -> Fact:
    if isinstance(value, torch.Tensor):
        return replace(TensorType.of(value), strides=None)
    if isinstance(value, (list, tuple)):
        return tuple(_fact_of_value(part) for part in value)
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.device)):
        return Constant(value)
    return None


def _annotated_fact(value: Value) -> Fact:
    """Return the tensor type that the graph itself states for a value; None if it states no property of a tensor."""
    return value.type if isinstance(value.type, TensorType) and value.type.is_refined else None


def _items(fact: Fact) -> Sequence[Fact]:
    if isinstance(fact, Constant) and isinstance(fact.value, (list, tuple)):
        return [Constant(part) for part in fact.value]
    return fact if isinstance(fact, tuple) else []


def _item(fact: Fact, index: Fact) -> Fact:
    if isinstance(fact, Every):
        return fact.item
    items = _items(fact)
    number = index.value if isinstance(index, Constant) else None
    return items[number] if isinstance(number, int) and -len(items) <= number < len(items) else None


def _argument(type: Type, fact: Fact) -> Fact:
    """Return what a rule may know about an argument; for a number whose value is unknown, its class."""
    if fact is not None:
        return fact
    if isinstance(type, TensorType):
        return TENSOR
    kinds = {IntType: "int", FloatType: "float", BoolType: "bool", ComplexType: "complex", NumberType: "number"}
    kind = kinds.get(type.__class__)
    return None if kind is None else Unknown(kind)


def _is_simple(type: Type) -> bool:
    """Return whether a value of this type is a bool, a string, a device, a number not declared complex, or a list or
    tuple of such."""
    if isinstance(type, (ListType, TupleType)):
        return all(map(_is_simple, type.contained))
    return isinstance(type, (IntType, FloatType, BoolType, NumberType, StringType, DeviceType))


def _may_be_declared(type: Type) -> bool:
    if isinstance(type, ListType):
        return isinstance(type.element, TensorType)
    return isinstance(type, TensorType) or (isinstance(type, OptionalType) and isinstance(type.element, TensorType))


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def fact_of_type(type: Type | None) -> Fact:
    if isinstance(type, TensorType):
        return type
    if isinstance(type, TupleType):
        return tuple(fact_of_type(part) for part in type.elements)
    return None

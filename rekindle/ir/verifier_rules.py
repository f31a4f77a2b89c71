"""Verification rules of single nodes: rules of the kinds that the IR itself defines, and conformance to schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch

from rekindle.ir.attributes import KEYWORDS, ConstantObject
from rekindle.ir.graph import AttributeValue, Block, Node, Value
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.types import (
    BOOL,
    INT,
    AnyType,
    Bindings,
    BoolType,
    ClassType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    match_variables,
    substitute,
)


class RuleBroken(Exception):
    """A violated rule of a node, without the node's name."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RuleBroken(message)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _check_count(found: Sequence[object], wanted: int, noun: str, of: str = "it") -> None:
    if len(found) != wanted:
        raise RuleBroken(f"{of} has {_count(len(found), noun)}, not {wanted}")


def _check_fits(value: Value, type: Type, role: str) -> None:
    if not value.type.is_subtype_of(type):
        raise RuleBroken(f"{role} is %{value.name} : {value.type}, not {type}")


# --------------------------------------------------------------------------------------------------------- control flow


def _check_if(node: Node) -> None:
    _check_count(node.inputs, 1, "input")
    _check_fits(node.input, BOOL, "its condition")
    _check_count(node.blocks, 2, "block")
    for index, block in enumerate(node.blocks):
        _check_count(block.inputs, 0, "input", f"block{index}")
        _check_results(node, index, block.outputs)


def _check_loop(node: Node) -> None:
    _require(len(node.inputs) >= 2, f"it has {_count(len(node.inputs), 'input')}, at least 2 are needed")
    trip_count, condition, *carried = node.inputs
    _check_fits(trip_count, INT, "its trip count")
    _check_fits(condition, BOOL, "its condition")
    _check_count(node.blocks, 1, "block")
    block = node.blocks[0]
    _check_count(node.outputs, len(carried), "output")
    _check_count(block.inputs, len(carried) + 1, "input", "block0")
    counter, *parameters = block.inputs
    _check_fits(counter, INT, "its counter")
    for start, parameter in zip(carried, parameters, strict=True):
        _check_fits(start, parameter.type, f"the first value of %{parameter.name}")
    _check_count(block.outputs, len(carried) + 1, "output", "block0")
    _check_fits(block.outputs[0], BOOL, "the condition that block0 returns")
    for parameter, result in zip(block.inputs[1:], block.outputs[1:], strict=True):
        _check_fits(result, parameter.type, f"the next value of %{parameter.name}")
    _check_results(node, 0, block.outputs[1:])


def _check_gradient(node: Node) -> None:
    _check_count(node.blocks, 1, "block")
    _check_count(node.blocks[0].inputs, 0, "input", "block0")
    _check_results(node, 0, node.blocks[0].outputs)


def _check_results(node: Node, index: int, results: Sequence[Value]) -> None:
    _check_count(results, len(node.outputs), "output", f"block{index}")
    for output, result in zip(node.outputs, results, strict=True):
        _check_fits(result, output.type, f"what block{index} returns for %{output.name}")


# ------------------------------------------------------------------------------------------------------------ constants


def _check_constant(node: Node) -> None:
    _check_count(node.inputs, 0, "input")
    _check_count(node.outputs, 1, "output")
    type = node.output.type
    if isinstance(type, FunctionType):
        return
    value = node.attributes.get("value")
    if value is None:
        fits = type.is_optional or isinstance(type, UnionType)
        _require(fits, f"it has no value, but its type is {type}")
    elif not _is_constant_of(value, type):
        raise RuleBroken(f"its type is {type}, but its value is a {_spell(value)}")


def _is_constant_of(value: AttributeValue, type: Type) -> bool:
    if isinstance(type, OptionalType):
        return _is_constant_of(value, type.element)
    if isinstance(type, UnionType):
        return any(_is_constant_of(value, member) for member in type.members)
    if isinstance(type, AnyType):
        return True
    wanted = _ATTRIBUTES.get(type.kind, ConstantObject)
    if isinstance(type, BoolType):
        return isinstance(value, int) and value in (0, 1)
    return isinstance(value, wanted)


_ATTRIBUTES: Final[dict[str, tuple[type, ...] | type]] = {
    IntType.kind: int,
    FloatType.kind: (float, int),
    ComplexType.kind: (complex, float, int),
    NumberType.kind: (complex, float, int),
    StringType.kind: str,
    DeviceType.kind: str,
    NoneType.kind: (),
    TensorType.kind: (torch.Tensor, ConstantObject),
}
"""How the constants of a type are kept; those of all others are objects."""


def _spell(value: AttributeValue) -> str:
    inner = value.value if isinstance(value, ConstantObject) else value
    return type(inner).__name__


# ----------------------------------------------------------------------------------------------------------- containers


def _check_list(node: Node) -> None:
    _check_count(node.outputs, 1, "output")
    type = node.output.type
    if not isinstance(type, ListType):
        raise RuleBroken(f"it makes {type}, not a list")
    for index, item in enumerate(node.inputs):
        _check_fits(item, type.element, f"item {index}")


def _check_dict(node: Node) -> None:
    _check_count(node.outputs, 1, "output")
    type = node.output.type
    if not isinstance(type, DictType):
        raise RuleBroken(f"it makes {type}, not a dict")
    _require(len(node.inputs) % 2 == 0, f"it has {_count(len(node.inputs), 'input')}: a key lacks its value")
    for index, item in enumerate(node.inputs):
        role = f"{'value' if index % 2 else 'key'} {index // 2}"
        _check_fits(item, type.value if index % 2 else type.key, role)


def _check_tuple(node: Node) -> None:
    _check_count(node.outputs, 1, "output")
    type = node.output.type
    if not isinstance(type, TupleType):
        raise RuleBroken(f"it makes {type}, not a tuple")
    _check_count(node.inputs, len(type.elements), "input")
    for index, (item, element) in enumerate(zip(node.inputs, type.elements, strict=True)):
        _check_fits(item, element, f"element {index}")


def _check_unpacking(node: Node) -> None:
    _check_count(node.inputs, 1, "input")
    type = node.input.type
    if not isinstance(type, TupleType):
        raise RuleBroken(f"it unpacks %{node.input.name} : {type}, which is not a tuple")
    _check_count(node.outputs, len(type.elements), "output")
    for output, element in zip(node.outputs, type.elements, strict=True):
        if not _are_related(output.type, element):
            raise RuleBroken(f"its output is %{output.name} : {output.type}, but the tuple holds {element} there")


def _check_attribute(node: Node) -> None:
    _require(len(node.inputs) >= 1, "it has no object")
    receiver, *_ = node.inputs
    owner, name = receiver.type, node.attributes.get("name")
    # A class that was read from text has no attributes that are known.
    if isinstance(owner, ClassType) and owner.attributes and isinstance(name, str):
        _require(name in owner.attributes, f"{owner} has no attribute '{name}'")


RULES: Final[dict[str, Callable[[Node], None]]] = {
    "prim::If": _check_if,
    "prim::Loop": _check_loop,
    "prim::GradOf": _check_gradient,
    "prim::Constant": _check_constant,
    "prim::ListConstruct": _check_list,
    "prim::DictConstruct": _check_dict,
    "prim::TupleConstruct": _check_tuple,
    "prim::TupleUnpack": _check_unpacking,
    "prim::GetAttr": _check_attribute,
    "prim::SetAttr": _check_attribute,
}
"""The kinds that have a rule of their own."""


# -------------------------------------------------------------------------------------------------------------- schemas


def check_call(node: Node) -> None:
    """Check that the inputs of ``node`` fit an overload of its kind, and its outputs the results.

    A kind without an operator is allowed in ``prim``, and in a namespace of which no operator is known. A call with
    keyword inputs is not checked: it was compiled while its operator was unknown, and is resolved when it runs.

    Raises:
        RuleBroken: no overload fits, or the operator that is set does not.
    """
    chosen = None if node._operator is None else node.operator
    if chosen is not None:
        _check_chosen(node, chosen)
        return
    if KEYWORDS in node.attributes:
        return
    overloads = REGISTRY.overloads(node.kind)
    if not overloads:
        namespace = node.kind.partition("::")[0]
        is_free = namespace == "prim" or not REGISTRY.knows_namespace(namespace)
        _require(is_free, f"there is no operator '{node.kind}'")
        return
    fitting = [operator for operator in overloads if operator.matches(node)]
    if not fitting:
        raise RuleBroken(_explain(node, overloads))
    # Overloads may differ in their results alone: those that return the value of an enum do.
    reasons = [_why_not_outputs(node, operator) for operator in fitting]
    if None not in reasons:
        raise RuleBroken(reasons[0] or "")


def _check_chosen(node: Node, chosen: Operator) -> None:
    if chosen.name != node.kind:
        raise RuleBroken(f"it is set to call {chosen.schema}")
    if not chosen.matches(node):
        other = REGISTRY.resolve(node)
        fits = "" if other is None else f", but its inputs fit {other.schema}"
        raise RuleBroken(f"it is set to call {chosen.schema}{fits}: {_why_not(chosen, node)}")
    reason = _why_not_outputs(node, chosen)
    if reason is not None:
        raise RuleBroken(reason)


def _explain(node: Node, overloads: Sequence[Operator]) -> str:
    given = ", ".join(str(value.type) for value in node.inputs)
    reasons = [f"    {operator.schema}\n        {_why_not(operator, node)}" for operator in overloads]
    return "\n".join([f"its inputs ({given}) fit no overload:", *reasons])


def _why_not(operator: Operator, node: Node) -> str:
    """Return why the inputs of ``node`` do not fit ``operator``."""
    schema, inputs = operator.schema, node.inputs
    if len(inputs) != len(schema.arguments) and not (schema.is_vararg and len(inputs) >= len(schema.arguments)):
        return f"it takes {_count(len(schema.arguments), 'input')}, not {len(inputs)}"
    bindings: Bindings = {}
    for argument, value in zip(schema.arguments, inputs, strict=False):
        why = match_variables(argument.type, value.type, bindings)
        if why is not None:
            return f"argument '{argument.name}': {why}"
    for argument, value in zip(schema.arguments, inputs, strict=False):
        formal = substitute(argument.type, bindings)
        if formal is None or not value.type.is_subtype_of(formal):
            return f"argument '{argument.name}': %{value.name} : {value.type} is not {formal or argument.type}"
    return "it fits"


def _why_not_outputs(node: Node, operator: Operator) -> str | None:
    """Return the reason why the outputs of ``node`` are not those of ``operator``; None if they are."""
    schema = operator.schema
    if schema.is_varret or node.kind in _SAY_THEMSELVES:
        return None
    if len(node.outputs) != len(schema.returns):
        return f"it has {_count(len(node.outputs), 'output')}, not {len(schema.returns)}"
    bindings: Bindings = {}
    for argument, value in zip(schema.arguments, node.inputs, strict=False):
        match_variables(argument.type, value.type, bindings)
    for output, result in zip(node.outputs, schema.returns, strict=True):
        type = substitute(result.type, bindings)
        if type is not None and not _are_related(output.type, type):
            return f"its output is %{output.name} : {output.type}, but {schema} returns {type}"
    return None


_SAY_THEMSELVES: Final = frozenset(("prim::unchecked_cast",))
"""Kinds whose output types are declared by the node, whatever the schema declares."""


def _are_related(a: Type, b: Type) -> bool:
    """Return whether one type is a refinement of the other, or they are equal."""
    return a.is_subtype_of(b) or b.is_subtype_of(a)


def block_name(block: Block) -> str:
    """Return the name of a block by its index in its node, such as ``block1``."""
    owner = block.owning_node
    return "the graph" if owner is None else f"block{list(owner.blocks).index(block)}"

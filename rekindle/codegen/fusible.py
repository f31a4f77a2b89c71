"""Fusibility of nodes, as far as the graph alone determines it."""

from __future__ import annotations

from typing import Final

import torch

from rekindle.analysis.constants import is_constant, value_of
from rekindle.codegen.operators import (
    COMPOSITES,
    JOINS,
    LOOKUPS,
    POOLS,
    PRODUCTS,
    ROWS,
    RULES,
    VIEWS,
    PointwiseOp,
    ResultDtype,
)
from rekindle.codegen.operators.concat import MAX_PARTS
from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import BOOL, COMPLEX, FLOAT, INT, NUMBER, TENSOR, OptionalType, TensorType

NUMBERS = (INT, FLOAT, BOOL, NUMBER)
DEVICE_TYPES: Final = ("cpu", "cuda")
"""The types of devices that kernels are made for."""
_COMPLEX: Final = "kernels do not know complex numbers"


def qualified_name(node: Node) -> str | None:
    """Return the name of a node's operator with its overload, such as ``aten::add.Tensor``; None if no operator is
    known."""
    if node.kind == "prim::ConstantChunk":
        return node.kind
    schema = node.schema
    return None if schema is None else schema.qualified_name


def rule_of(node: Node) -> PointwiseOp | None:
    """Return the rule that computes the elements of an elementwise ``node``; None for other nodes."""
    name = qualified_name(node)
    return None if name is None else RULES.get(name)


def is_view(node: Node) -> bool:
    """Return whether ``node`` is a view operator, whose outputs are, or may be, views of its first input."""
    return qualified_name(node) in VIEWS


def is_row_operator(node: Node) -> bool:
    """Return whether ``node`` computes along rows, as reductions and scans do, or reduces windows."""
    name = qualified_name(node)
    return name in ROWS or name in POOLS


def is_product(node: Node) -> bool:
    """Return whether ``node`` is a matrix product, or a composite operator that contains one."""
    name = qualified_name(node)
    return name in PRODUCTS or (name in COMPOSITES and COMPOSITES[name].multiplies)


def is_ordered(node: Node) -> bool:
    """Return whether ``node`` is a scan, or returns the index of an extreme: its result depends on the order of
    elements."""
    return any(rule.is_ordered for rule in ROWS.get(qualified_name(node) or "", ()))


def is_left_to_libraries(node: Node, device_type: str) -> bool:
    """Return whether PyTorch may compute ``node`` although kernels support its operator: products, and on GPUs scans
    and indices of extremes. Whether it computes a product on a CPU depends on the size."""
    return is_product(node) or (device_type != "cpu" and is_ordered(node))


def is_composite(node: Node) -> bool:
    """Return whether ``node`` is computed as several simpler operators."""
    return qualified_name(node) in COMPOSITES


def is_lookup(node: Node) -> bool:
    """Return whether ``node`` is a gather: it reads elements at the indices in a tensor."""
    return qualified_name(node) in LOOKUPS


def computes(node: Node) -> bool:
    """Return whether kernels can compute the operator of ``node``: elementwise, along rows or windows, or composite.
    Views, concatenations, gathers, matrix products proper, and operators that may return their input are excluded."""
    rule = rule_of(node)
    return is_row_operator(node) or is_composite(node) or (rule is not None and not rule.may_be_self)


def is_computed(node: Node) -> bool:
    """Return whether kernels can compute ``node`` in its graph: :func:`computes`, and :func:`refusal` has no reason
    against it."""
    return computes(node) and refusal(node) is None


def may_alias_input(node: Node) -> bool:
    """Return whether an output of ``node`` may be its first input, or a view of it."""
    name = qualified_name(node)
    rule = None if name is None else RULES.get(name)
    is_new = any(name in known for known in (ROWS, JOINS, LOOKUPS, POOLS, PRODUCTS, COMPOSITES))
    return not is_new and (rule is None or rule.may_be_self)


def refusal(node: Node) -> str | None:
    """Return why ``node`` cannot be part of a kernel; None if the graph alone gives no reason."""
    if node.blocks:
        return "it has blocks"
    if node.kind == "prim::ListConstruct":
        return None if _is_list_of_parts(node) or _is_list_of_index(node) else "it makes a list"
    name = qualified_name(node)
    if name is None:
        return "no operator of this kind is known"
    rule = RULES.get(name)
    if rule is None and not any(name in known for known in (VIEWS, ROWS, JOINS, LOOKUPS, POOLS, PRODUCTS, COMPOSITES)):
        return "kernels do not know this operator"
    for value in (*node.inputs, *node.outputs):
        if isinstance(value.type, TensorType):
            reason = _of_type(value.type)
            if reason is not None:
                return reason
        elif value.type == COMPLEX:
            return _COMPLEX
    if name in ROWS or name in POOLS or name in COMPOSITES:
        return _of_rows(node)
    if name in JOINS:
        return _of_join(node)
    if name in PRODUCTS:
        return _of_product(node)
    if name in LOOKUPS:
        return _of_lookup(node)
    if rule is None:
        return _of_view(node)
    schema = node.schema
    assert schema is not None
    return _of_arguments(node, schema, rule)


def _of_type(type: TensorType) -> str | None:
    if type.device is not None and type.device.type not in DEVICE_TYPES:
        return f"kernels are made for CPUs and CUDA, and a tensor is on {type.device}"
    if type.dtype is not None and type.dtype.is_complex:
        return _COMPLEX
    if type.undefined:
        return "a tensor is undefined"
    return None


def _of_view(node: Node) -> str | None:
    for value in node.inputs[1:]:
        if not is_literal(value):
            return f"%{value.name} is not constant"
    return None


def is_join(node: Node) -> bool:
    """Return whether ``node`` concatenates tensors."""
    return qualified_name(node) in JOINS


def _is_list_of_parts(node: Node) -> bool:
    """Return whether ``node`` constructs a list of tensors that only concatenations or composite operators read."""
    are_tensors = all(isinstance(value.type, TensorType) for value in node.inputs)
    users = [use.user for use in node.output.uses]
    return bool(node.inputs) and are_tensors and all(is_join(user) or is_composite(user) for user in users)


def _of_join(node: Node) -> str | None:
    parts, *others = node.inputs
    if parts.node.kind != "prim::ListConstruct" or not _is_list_of_parts(parts.node):
        return "what it joins is not an unaliased list of known length"
    if len(parts.node.inputs) > MAX_PARTS:
        return f"it joins more than {MAX_PARTS} tensors"
    if not all(is_literal(value) and (literal(value) == [] or isinstance(literal(value), int)) for value in others):
        return "it joins along a dimension that is not constant, or gradients that do not exist"
    return None


def _is_list_of_index(node: Node) -> bool:
    """Return whether ``node`` constructs a list of one tensor that is only used as an index."""
    is_one = len(node.inputs) == 1 and isinstance(node.input.type, TensorType)
    return is_one and all(use.user.kind == "aten::index" and use.offset == 1 for use in node.output.uses)


_BITWISE: Final = frozenset(
    {
        *("aten::bitwise_not", "aten::bitwise_and", "aten::bitwise_or", "aten::bitwise_xor"),
        *("aten::__and__", "aten::__or__", "aten::__xor__"),
    }
)


def _is_mask(index: Value) -> bool:
    """Return whether ``index`` is a mask, which selects the elements where it is true, rather than positions. A
    bitwise operation on values of unknown dtype is assumed to be one, as it nearly always is; another value of unknown
    dtype is not."""
    pending, seen = [index], {index}
    found: set[bool | None] = set()
    while pending and False not in found:
        value = pending.pop()
        operands = _operands_of_its_dtype(value)
        found.update([] if operands else [_is_truth(value)])
        pending += [each for each in operands if each not in seen]
        seen.update(operands)
    if False in found or None not in found:
        return False not in found
    return index.node.kind in _BITWISE


def _operands_of_its_dtype(value: Value) -> list[Value]:
    """Return the operands from which ``value`` gets its dtype by promotion; empty if it gets it otherwise."""
    if not isinstance(value.type, TensorType) or value.type.dtype is not None:
        return []
    node = value.node
    rule = rule_of(node)
    if is_view(node) or (rule is not None and rule.result is ResultDtype.SELF):
        return [node.inputs[0]]
    schema = node.schema
    if rule is None or rule.result is not ResultDtype.COMMON or schema is None:
        return []
    numbers = rule.wrapped | rule.promoting
    return [
        operand
        for argument, operand in zip(schema.arguments, node.inputs, strict=True)
        if argument.name in numbers or (isinstance(operand.type, TensorType) and argument.name not in rule.conditions)
    ]


def _is_truth(value: Value) -> bool | None:
    """Return whether ``value`` is a tensor of bools or bytes, which are masks in indices; None if the graph does not
    determine it."""
    type = value.type
    if not isinstance(type, TensorType):
        return None if type == NUMBER else type == BOOL
    if type.dtype is not None:
        return type.dtype in (torch.bool, torch.uint8)
    name = qualified_name(value.node) or ""
    rules = ROWS.get(name) or ((RULES[name],) if name in RULES else ())
    result = rules[value.offset].result if value.offset < len(rules) else ResultDtype.COMMON
    return {ResultDtype.TRUTH: True, ResultDtype.INDEX: False, ResultDtype.FLOAT: False}.get(result)


def _of_lookup(node: Node) -> str | None:
    rule = LOOKUPS[qualified_name(node) or ""]
    index = node.inputs[rule.index]
    if not isinstance(index.type, TensorType):
        if index.node.kind != "prim::ListConstruct" or not _is_list_of_index(index.node):
            return "its indices are not one tensor"
        index = index.node.input
    if _is_mask(index):
        return "its indices are truth values"
    others = [each for number, each in enumerate(node.inputs) if number not in (0, rule.index)]
    return None if all(map(is_literal, others)) else "its arguments are not constant"


def _of_product(node: Node) -> str | None:
    if node.kind == "aten::addmm" and not all(is_literal(value) and literal(value) == 1 for value in node.inputs[3:]):
        return "it scales what it adds"
    if len({value.type.dtype for value in node.inputs if isinstance(value.type, TensorType)} - {None}) > 1:
        return "its factors have several dtypes"
    return None


def _of_rows(node: Node) -> str | None:
    schema = node.schema
    assert schema is not None
    is_sum = schema.name == "aten::_grad_sum_to_size"
    if is_sum and is_literal(size := node.named_input("size")) and literal(size) is None:
        return "its result is its argument"
    for argument, value in zip(schema.arguments, node.inputs, strict=True):
        is_list = value.node.kind == "prim::ListConstruct" and _is_list_of_parts(value.node)
        if not is_list and not is_literal(value) and not isinstance(value.type, TensorType):
            return f"its argument '{argument.name}' is not constant"
    return None


def _of_arguments(node: Node, schema: FunctionSchema, rule: PointwiseOp) -> str | None:
    for argument, value in zip(schema.arguments, node.inputs, strict=True):
        if isinstance(value.type, TensorType):
            continue
        if is_literal(value):
            if argument.name in rule.optional:
                return "its result is its argument"
            if argument.name == "train" and literal(value):
                return "it draws random numbers"
            if argument.name == "training" and literal(value):
                return "it takes the statistics of the batch"
            continue
        if argument.name in rule.optional and value.type == OptionalType(TENSOR):
            continue
        if argument.name in rule.constants:
            return f"its argument '{argument.name}' is not constant"
        if value.type not in NUMBERS:
            return f"its argument '{argument.name}' is neither a tensor nor a number"
    return None


def is_literal(value: Value) -> bool:
    """Return whether ``value`` is a constant other than a tensor, or a list literal of such constants that is passed to
    operators alone that neither write to it nor return it."""
    if value.node.kind == "prim::ListConstruct":
        is_safe = all(_takes_lists_as_they_are(use.user) for use in value.uses)
        return is_safe and all(is_literal(item) for item in value.node.inputs)
    return is_constant(value) and not isinstance(value.type, TensorType)


def _takes_lists_as_they_are(node: Node) -> bool:
    if node.kind.startswith("aten::") and node.operator is not None:
        is_pure = all(argument.alias is None for argument in node.operator.schema.arguments)
        if is_pure and all(isinstance(output.type, TensorType) for output in node.outputs):
            return True
    name = qualified_name(node)
    return any(name in known for known in (RULES, ROWS, VIEWS, JOINS, LOOKUPS, POOLS, COMPOSITES))


def literal(value: Value) -> object:
    """Return the Python value of a literal: see :func:`is_literal`."""
    if value.node.kind == "prim::ListConstruct":
        return [literal(item) for item in value.node.inputs]
    return value_of(value.node)

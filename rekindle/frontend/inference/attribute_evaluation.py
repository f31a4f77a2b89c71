"""Evaluation of conditions on the current attributes of the compiled module.

A branch that the current attributes make unreachable need not compile. A part of it that cannot be compiled raises at
run time, if a later change of the attributes makes it reachable
(:func:`rekindle.frontend.statements.simple_statements.emit_unexpected`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.schema import MISSING
from rekindle.ir.types import ClassType

_COMPUTED: Final[dict[str, Callable[..., Any]]] = {
    "aten::eq": operator.eq,
    "aten::ne": operator.ne,
    "aten::lt": operator.lt,
    "aten::le": operator.le,
    "aten::gt": operator.gt,
    "aten::ge": operator.ge,
    "aten::__contains__": operator.contains,
    "aten::__not__": operator.not_,
    "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not,
    "aten::Bool": bool,
    "aten::len": len,
    "aten::find": str.find,
}


def evaluate_on_current_attributes(value: Value) -> object:
    """Return the Python value of ``value`` for the values that module attributes had when the module was compiled;
    MISSING if it cannot be evaluated. ``self.kind == "a"`` is True if that attribute was "a"."""
    node = value.node
    if node.kind == "prim::Constant":
        return node.attributes.get("value")
    if node.kind == "prim::GetAttr":
        return _attribute(node)
    if any(use.user.schema is not None and use.user.schema.is_mutable for use in value.uses):
        return MISSING  # what it is later on is not what it was made of
    if node.kind in ("prim::ListConstruct", "prim::TupleConstruct"):
        items = [evaluate_on_current_attributes(item) for item in node.inputs]
        return MISSING if MISSING in items else items
    if node.kind == "prim::If":
        taken = evaluate_on_current_attributes(node.input)
        if taken is MISSING or len(node.blocks) != 2:
            return MISSING
        return evaluate_on_current_attributes(node.blocks[0 if taken else 1].outputs[value.offset])
    compute = _COMPUTED.get(node.kind)
    if compute is None:
        return MISSING
    inputs = [evaluate_on_current_attributes(item) for item in node.inputs]
    if MISSING in inputs:
        return MISSING
    try:
        return compute(*inputs)
    except TypeError:
        return MISSING


def _attribute(node: Node) -> object:
    owner = node.input.type
    if not isinstance(owner, ClassType) or not owner.is_module:
        return MISSING
    slot = owner.attributes.get(node.get_string("name"))
    return MISSING if slot is None or slot.present is None else slot.present

"""Loops that are differentiated as a unit: no intermediate value escapes, and the results are new."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import CALLS, DEFERRED_SUBGRAPH_KINDS, has_side_effects
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.formula import formula_of, is_constant_operator
from rekindle.autodiff.reverse_mode.collected_lists import collected_lists
from rekindle.autodiff.reverse_mode.tape import STRUCTURE, is_constant_for_gradients, is_recomputable
from rekindle.ir.control_flow import LoopView, incoming_values
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import COMPLEX, NumberType, OptionalType, TensorType, Type

_CHANGE_ATTRIBUTES: Final = (
    CALLS | DEFERRED_SUBGRAPH_KINDS | {"prim::SetAttr", "prim::Enter", "prim::Exit", "prim::With"}
)


def hoist_attribute_reads(graph: Graph) -> bool:
    """Move reads of attributes out of loops, if the object is defined before the loop. Return whether the graph has
    changed. A graph that may change attributes, by calls or assignments, is left unchanged."""
    if any(node.kind in _CHANGE_ATTRIBUTES for node in graph.all_nodes()):
        return False
    changed = False
    for node in graph.find_nodes("prim::GetAttr"):
        loop = _loop_around(node)
        while loop is not None and not loop.contains(node.input.node):
            node.move_before(loop)
            changed = True
            loop = _loop_around(node)
    return changed


def _loop_around(node: Node) -> Node | None:
    """Return the loop whose body contains ``node`` directly; None if ``node`` is in a branch, or in no loop."""
    block = node.owning_block
    owner = None if block is None else block.owning_node
    return owner if owner is not None and owner.kind == "prim::Loop" else None


def is_differentiable_loop(loop: Node, aliases: AliasDb, requires_grad: Collection[Value]) -> bool:
    """Return whether ``loop`` can be differentiated as a unit. Gradients go back through it by formulas alone;
    running it again yields the same results or the same error; it writes to nothing; and its inputs and outputs are
    tensors and numbers that are never written to."""
    view = LoopView(loop)
    filled = {each.value: each.append for each in collected_lists(loop)}
    results = [*loop.outputs, *(append.inputs[1] for append in filled.values())]
    if not any(result in requires_grad for result in results):
        return False
    carried = [value for value in (*view.initial, *loop.outputs, *free_values(loop)) if value not in filled]
    if any(is_opaque_to_autograd(value.type) for value in carried):
        return False
    if not all(_is_new(value) for value in view.following if isinstance(value.type, TensorType)):
        return False
    appending = set(filled.values())
    nodes = [node for node in loop.inner_nodes() if node not in appending]
    if any(value.type == COMPLEX for node in nodes for value in node.inputs):
        return False
    if not all(_goes_back(node, requires_grad) for node in nodes):
        return False
    values = [value for node in (loop, *nodes) for value in (*node.inputs, *node.outputs)]
    return not any(may_contain_tensor(value.type) and aliases.has_writers(value) for value in values)


def _goes_back(node: Node, requires_grad: Collection[Value]) -> bool:
    """Return whether ``node`` may be in a differentiable loop."""
    if node.blocks:
        return node.kind in ("prim::If", "prim::Loop")
    if node.kind in STRUCTURE or node.kind == "prim::RaiseException":
        return True
    if has_side_effects(node) or not is_recomputable(node):
        return False
    if is_constant_for_gradients(node) or formula_of(node) is not None:
        return True
    if node.kind == "aten::__getitem__":
        return True
    return not any(value in requires_grad for value in node.inputs)


def free_values(loop: Node) -> Iterator[Value]:
    """Yield the values that the blocks of ``loop`` capture."""
    ends = [block.return_node for each in (loop, *loop.inner_nodes()) for block in each.blocks]
    for node in (*loop.inner_nodes(), *ends):
        for value in node.inputs:
            if not loop.contains(value.node):
                yield value


def _is_new(value: Value) -> bool:
    """Return whether the result ``value`` of an iteration is not a view of a value from outside of the loop: on all
    paths it is a loop-carried value, or an operator computes it as a new tensor."""
    node = value.node
    if node.kind == "prim::Param":
        return node.owning_block is not node.graph.block
    incoming = incoming_values(value)
    if incoming is not None:
        return all(map(_is_new, incoming))
    operator = node.operator
    if operator is None or node.blocks or (formula_of(node) is None and not is_constant_operator(node)):
        return False
    return not operator.may_alias_inputs and all(result.alias is None for result in operator.schema.returns)


def is_opaque_to_autograd(type: Type) -> bool:
    """Return whether values of this type can be neither inputs nor outputs of a differentiable graph: PyTorch's
    autograd does not see the tensors in them."""
    if isinstance(type, (TensorType, NumberType)):
        return False
    if isinstance(type, OptionalType):
        return not isinstance(type.element, TensorType) and is_opaque_to_autograd(type.element)
    return may_contain_tensor(type)

"""Freeze a module: replace reads of attributes with known values, which nothing writes to, by constants.

.. code-block:: text

    %lin : Linear = prim::GetAttr[name="lin"](%self)
    %w : Tensor = prim::GetAttr[name="weight"](%lin)            %self.lin.weight : Tensor = prim::Constant[value=…]()
    %y : Tensor = aten::linear(%x, %w, %none)         becomes   %y : Tensor = aten::linear(%x, %self.lin.weight, %none)

The values are keyed by the class of the module and the name of the attribute, so each module must have a class of its
own. The caller guarantees that nothing writes to these attributes: see :mod:`rekindle.analysis.attribute_writes`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import torch

from rekindle.analysis.attribute_writes import AttributeKey, nodes_within, slot_of
from rekindle.ir.attributes import infer_type
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.node import as_value_name
from rekindle.ir.types import ANY, BOOL, NONE, AnyType, ClassType, NumberType, TensorType, Type, UnionType, without_none
from rekindle.ops.python.tensor_classes import PARAMETER
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.rewriting.changes import may_change

_CLASS_TESTS: Final = ("python::is_instance", "python::is_exactly")


@dataclass(slots=True)
class Freezing:
    """Replace reads of the attributes in ``values`` by constants. The docstring of the module shows the IR before and
    after.

    Dead code, such as reads of submodules that are no longer used, is removed then.

    Example:
        >>> from rekindle.passes import Freezing, run_passes
        >>> graph = rekindle.script(torch.nn.Linear(2, 2)).graph.copy()
        >>> type = graph.inputs[0].type
        >>> run_passes(graph, [Freezing({(type, "weight"): torch.eye(2)})])
        True
        >>> [node["name"] for node in graph.find_nodes("prim::GetAttr")]
        ['bias']
        >>> graph.find_node("aten::linear").inputs[1].to_python()
        tensor([[1., 0.],
                [0., 1.]])
    """

    name: ClassVar[str] = "freezing"
    values: Mapping[AttributeKey, Any] = field(default_factory=dict)
    """The values of the attributes that become constants. ``can_be_constant`` must hold for each."""

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(nodes_within(graph)):
            if node.kind == "prim::GetAttr" and slot_of(node) in self.values and may_change("make a constant of", node):
                _answer_class_tests(node)
                _replace(node, self.values[slot_of(node)])
                changed = True
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed


def _answer_class_tests(node: Node) -> None:
    """Replace tests whether the parameter that ``node`` reads is an ``nn.Parameter`` by True: the constant that
    replaces it is a plain tensor."""
    type = node.input.type
    slot = type.attributes.get(node.get_string("name")) if isinstance(type, ClassType) else None
    if slot is None or slot.kind != "parameter":
        return
    for use in list(node.output.uses):
        if use.user.kind in _CLASS_TESTS and use.user.inputs[1].to_python() == PARAMETER:
            answer = node.graph.create_constant(True, BOOL, use.user.range)
            answer.insert_before(use.user)
            use.user.replace_with(answer.output)


def _replace(node: Node, value: Any) -> None:
    constant = node.graph.create_constant(value, constant_type(value, node.output.type), node.range)
    constant.callstack = node.callstack
    first = node.graph.return_node.next
    constant.insert_before(first if first is not node.graph.return_node else node)
    constant.output.set_name(_path(node.output))
    node.replace_with(constant.output)


def _path(value: Value) -> str:
    """Return the path of an attribute, such as ``self.layers.0.weight``, as a name that the text form allows."""
    names: list[str] = []
    while value.node.kind == "prim::GetAttr":
        names.append(value.node.get_string("name"))
        value = value.node.input
    return as_value_name(".".join((value.base_name or "self", *reversed(names))))


def can_be_constant(value: Any) -> bool:
    """Return whether ``value`` can be a constant of a program: a tensor, a bool, a number, a string, None, a device, a
    dtype, a member of an enum, and lists, dicts and tuples of such."""
    if isinstance(value, (list, tuple)):
        return all(can_be_constant(item) for item in value)
    if isinstance(value, dict):
        return all(can_be_constant(key) and can_be_constant(item) for key, item in value.items())
    simple = (bool, int, float, complex, str, torch.Tensor, torch.device, enum.Enum, torch.dtype)
    return value is None or isinstance(value, simple)


def constant_type(value: Any, declared: Type) -> Type:
    """Return the type of a constant that replaces an attribute declared as ``declared``: NoneType if ``value`` is None;
    else the declared type without None, narrowed to the member of a union that ``value`` has, and to the metadata of a
    tensor."""
    if value is None:
        return NONE
    type = without_none(declared)
    if isinstance(type, (UnionType, AnyType, NumberType)):
        type = infer_type(value) or ANY
    return TensorType.of(value) if isinstance(value, torch.Tensor) and isinstance(type, TensorType) else type

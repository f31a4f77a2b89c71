"""Running one operator, as a node of a graph would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import rekindle.ops  # noqa: F401  (registers the operators)
from rekindle.ir.graph import AttributeValue, Graph, Node
from rekindle.ir.operators.registry import REGISTRY, Operation, Operator
from rekindle.ir.types import TENSOR, Type
from rekindle.ops.python.values import type_of_value


def operator(name: str) -> Operator:
    """The operator called ``aten::add.int``."""
    found = REGISTRY.find(name)
    assert found is not None, f"there is no operator {name}"
    return found


def make_node(
    kind: str,
    arguments: Sequence[object],
    *,
    inputs: Sequence[Type] | None = None,
    outputs: Sequence[Type] = (TENSOR,),
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Node:
    """A node whose inputs are inputs of its graph, of the types of ``arguments`` unless ``inputs`` gives them."""
    graph = Graph()
    types = [type_of_value(item) for item in arguments] if inputs is None else inputs
    values = [graph.add_input(type=type) for type in types]
    return graph.insert_node(graph.create(kind, values, types=outputs, attributes=attributes))


def operation(name: str, arguments: Sequence[object] = (), **node: Any) -> Operation:
    found = operator(name)
    if found.operation is not None:
        return found.operation
    return found.operation_of(make_node(found.name, arguments, **node).set_operator(found))


def call(name: str, *arguments: object, **node: Any) -> Any:
    """The result of the operator ``name``. ``node`` is for what :func:`make_node` cannot derive from the arguments."""
    return operation(name, arguments, **node)(*arguments)

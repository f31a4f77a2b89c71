"""Operators with ``out`` arguments: compute the results, then copy them."""

from __future__ import annotations

from rekindle.building.internal_operators import COPY_OUT
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema import FunctionSchema


def write_to_arguments(graph: Graph) -> None:
    """Replace ``add(x, y, out=z)`` with ``copy_out(z, add(x, y))`` in ``graph``, if the operator has an overload
    without ``out``.

    PyTorch resizes tensors that it writes to, and libraries do not: the copy raises an error for other sizes,
    and for another dtype.
    """
    for node in list(graph.all_nodes()):
        schema = node.schema
        if schema is None or not any(argument.is_out for argument in schema.arguments):
            continue
        functional = _without_out(schema)
        if functional is not None:
            _replace(graph, node, functional)


def _without_out(schema: FunctionSchema) -> FunctionSchema | None:
    """Return the schema of the operator that takes the same arguments but ``out``; None if there is none."""
    wanted = [(argument.name, argument.type) for argument in schema.arguments if not argument.is_out]
    for operator in REGISTRY.overloads(schema.name):
        other = operator.schema
        if not other.is_mutable and [(each.name, each.type) for each in other.arguments] == wanted:
            return other if len(other.returns) == len(schema.returns) else None
    return None


def _replace(graph: Graph, node: Node, functional: FunctionSchema) -> None:
    count = len(functional.arguments)
    given, targets = node.inputs[:count], node.inputs[count:]
    with graph.inserting_before(node):
        types = [each.type for each in functional.returns]
        made = graph.insert_node(graph.create(functional.name, given, types=types, range=node.range))
        copies = [
            graph.insert_node(graph.create(COPY_OUT, [target, result], types=[value.type], range=node.range)).output
            for target, result, value in zip(targets, made.outputs, node.outputs, strict=True)
        ]
    node.replace_with(*copies)

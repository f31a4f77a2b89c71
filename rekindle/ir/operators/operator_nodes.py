"""Nodes that call operators, inserted where their arguments fit a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from rekindle.errors import SchemaError, SourceRange
from rekindle.ir import graph as _graph
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.schema_matching import MatchedSchema, argument, match_schemas
from rekindle.ir.types import TupleType, Type


def insert_operator_node(graph: Graph, operator: Operator, plan: MatchedSchema, range: SourceRange) -> Node:
    """Insert the call of ``operator`` that ``plan`` describes, and return its node.

    Raises:
        SchemaError: an ``out=`` overload cannot be distinguished from another one by the types of its inputs.
    """
    inputs = plan.inputs(graph, range)
    node = graph.create(operator.name, inputs, types=plan.return_types, range=range)
    if any(formal.is_out for formal in operator.schema.arguments):
        _check_recognisable(node, operator, range)
    node.set_operator(operator)
    return graph.insert_node(node)


def _check_recognisable(node: Node, operator: Operator, range: SourceRange) -> None:
    """Check that the kind determines the overload. ``aten::max(%x, %out)`` would be read as the larger of the two.

    Raises:
        SchemaError: the kind and the inputs determine another overload.
    """
    found = REGISTRY.resolve(node)
    if found is not None and found is not operator:
        raise SchemaError(
            f"'{operator.name}' with these arguments and out= cannot be distinguished from "
            f"{found.schema.qualified_name} "
            "in a graph",
            range,
            hint="leave out= away and copy the result: out.copy_(…)",
        )


def pack_outputs(graph: Graph, node: Node, schema: FunctionSchema | None = None) -> Value:
    """Return the only output of ``node``; if it has several or none, insert and return a tuple of them (a NamedTuple
    where the schema names its results)."""
    if len(node.outputs) == 1:
        return node.outputs[0]
    types = tuple(output.type for output in node.outputs)
    names = tuple(result.name for result in schema.returns) if schema is not None else ()
    type = _named_results(schema, types, names) if schema is not None and names and all(names) else TupleType(types)
    return graph.insert_node(graph.create("prim::TupleConstruct", node.outputs, types=[type], range=node.range)).output


def _named_results(schema: FunctionSchema, types: tuple[Type, ...], names: tuple[str, ...]) -> TupleType:
    """Return the type of the named results of an operator. PyTorch has classes for them: ``torch.return_types.max``."""
    found = getattr(torch.return_types, schema.name.rpartition("::")[2], None)
    fits = isinstance(found, type) and getattr(found, "__match_args__", None) == names
    return TupleType(types, None, names, (), found if fits else None)


def insert_call(
    graph: Graph, kind: str, args: Sequence[object], kwargs: Mapping[str, object], range: SourceRange
) -> Value:
    """Insert a call of the operator ``kind``, with the overload that fits the arguments; return its result.

    Raises:
        SchemaError: there is no such operator, or none of its overloads fits.
    """
    operators = REGISTRY.overloads(kind)
    if not operators:
        raise SchemaError(f"there is no operator '{kind}'", range)
    positional = [argument(item, range) for item in args]
    keywords = [argument(item, range, name) for name, item in kwargs.items()]
    schemas = LazySequence.mapped(_schema_of, operators)
    index, plan = match_schemas(kind, schemas, range, positional, keywords)
    return pack_outputs(graph, insert_operator_node(graph, operators[index], plan, range), plan.schema)


def _schema_of(operator: Operator) -> FunctionSchema:
    return operator.schema


_graph._insert_call = insert_call

"""Insertion of nodes by sugared values, and the queries of operators and values that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.node import as_value_name
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.redefinition import rely_on
from rekindle.ir.types import (
    INT,
    TENSOR,
    AnyType,
    DictType,
    FunctionType,
    ListType,
    OptionalType,
    TensorType,
    Type,
    UnionType,
)


def insert_get_attribute(range: SourceRange, graph: Graph, object: Value, name: str, type: Type) -> Value:
    """Insert ``prim::GetAttr[name=…](%object)``, and return its output. In a program from Python, record that the
    function being compiled depends on the type of the attribute."""
    if graph.follows_python:
        rely_on(object.type, name)
    node = graph.create("prim::GetAttr", [object], types=[type], attributes={"name": name}, range=range)
    # Items of containers are called by their numbers, which are the names of values without one.
    return graph.insert_node(node).output.set_name(as_value_name(name))


def insert_function_constant(range: SourceRange, graph: Graph, function: GraphFunction) -> Value:
    """Insert ``prim::Constant[name="f"]() : Function``, and return its output."""
    node = graph.create(
        "prim::Constant", types=[FunctionType(function)], attributes={"name": function.basename}, range=range
    )
    return graph.insert_node(node).output


def insert_method_call(
    range: SourceRange, graph: Graph, name: str, inputs: Sequence[Value], types: Sequence[Type]
) -> Value:
    """Insert ``prim::CallMethod[name=…](%self, …)``, and return its output."""
    node = graph.create("prim::CallMethod", inputs, types=types, attributes={"name": name}, range=range)
    return graph.insert_node(node).output


def is_method_operator(type: Type, name: str) -> bool:
    """Return whether ``aten::name`` has an overload that can be called as a method of a value of ``type``."""
    for operator in REGISTRY.overloads(f"aten::{name}"):
        arguments = operator.schema.arguments
        if not arguments:
            continue
        formal = arguments[0]
        if isinstance(type, TensorType):
            # Any operator with a tensor called self can be written as a method.
            if any(item.name == "self" and TENSOR.is_subtype_of(item.type) for item in arguments):
                return True
        elif formal.type.kind == type.kind or (
            formal.name == "self"
            and not isinstance(formal.type, (AnyType, OptionalType, UnionType))
            and type.is_subtype_of(formal.type)
        ):
            return True
    return False


def is_prim_method(type: Type, name: str) -> bool:
    """Return whether ``prim::name`` is a method of values of ``type``: ``type`` of tensors is one. (The emitter handles
    ``tolist``.)"""
    return isinstance(type, TensorType) and name == "type" and bool(REGISTRY.overloads(f"prim::{name}"))


def constant_int(value: Value) -> int | None:
    """Return the int that ``value`` is a constant of; None if it is not a constant int."""
    if value.node.kind == "prim::Constant" and value.type == INT:
        found = value.node.attributes.get("value")
        return found if isinstance(found, int) else None
    return None


def insert_empty(graph: Graph, type: Type, range: SourceRange) -> Value | None:
    """Insert the result of ``int()``, ``list()`` and the like for a type, and return it; None if the type has no such
    value."""
    if type.kind in _ZEROS:
        return graph.insert_constant(_ZEROS[type.kind], range=range)
    if isinstance(type, (ListType, DictType)):
        kind = "prim::ListConstruct" if isinstance(type, ListType) else "prim::DictConstruct"
        return graph.insert_node(graph.create(kind, types=[type], range=range)).output
    return None


def has_empty(type: Type) -> bool:
    """Return whether :func:`insert_empty` can insert a value of the type."""
    return type.kind in _ZEROS or isinstance(type, (ListType, DictType))


_ZEROS: Final = {"IntType": 0, "FloatType": 0.0, "BoolType": False, "StringType": ""}

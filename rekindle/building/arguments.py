"""Analysis of tensor arguments: whether a program may get a contiguous copy of the caller's tensor.

An argument is a tensor of the caller: none of the attributes of the module is the same tensor. So the analysis follows,
from the input on, the values that may be the argument, a view of it, or a container of either.
"""

from __future__ import annotations

from rekindle.codegen.fusion import KIND
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import BoolType, ClassType, FloatType, IntType, NoneType, StringType, TensorType

_NUMBERS = (BoolType, FloatType, IntType, NoneType, StringType)
LAYOUT_QUERIES = frozenset({"aten::stride", "aten::is_contiguous", "aten::as_strided", "aten::storage_offset"})
"""Kinds of operators that distinguish a tensor from a contiguous copy of it."""


def may_be_copied(graph: Graph, argument: Value) -> bool:
    """Return whether a contiguous copy of an argument is equivalent: the program neither writes to the argument nor
    queries its layout, and does not pass it to a subgraph or a call."""
    reached = _reached(graph, argument)
    return not any(
        _writes(node, reached) or _asks(node, reached) or _passes_on(node, reached) for node in graph.all_nodes()
    )


def _passes_on(node: Node, reached: set[Value]) -> bool:
    """Return whether a node passes one of the values ``reached`` to a call or a subgraph, which may do anything with
    it."""
    has_graph = node.kind in ("prim::CallFunction", "prim::CallMethod", "prim::Try", "prim::fork", "prim::awaitable")
    return has_graph and any(value in reached for value in node.inputs)


def _reached(graph: Graph, argument: Value) -> set[Value]:
    """Return the values that may be ``argument``, a view of it, or a container that holds one."""
    reached = {argument}
    while True:
        before = len(reached)
        for node in graph.all_nodes():
            _follow(node, reached)
        if len(reached) == before:
            return reached


def _follow(node: Node, reached: set[Value]) -> None:
    if node.blocks:
        for block in node.blocks:
            for value in block.outputs:
                if value in reached:
                    reached.update(each for each in (*node.outputs, *block.inputs) if not _is_number(each))
    if not any(value in reached for value in node.inputs) or _makes_new_tensors(node):
        return
    reached.update(each for each in node.outputs if not _is_number(each))
    for block in node.blocks:
        reached.update(each for each in block.inputs if not _is_number(each))
    if not node.blocks:  # a list that something is appended to
        reached.update(each for each in node.inputs if not _is_number(each) and _is_container(each))


def _makes_new_tensors(node: Node) -> bool:
    """Return whether it is known that no result of a node shares memory with its inputs."""
    if node.kind == KIND:
        return True
    operator = node.operator
    if operator is None or not operator.is_dispatched or operator.may_alias_inputs:
        return False
    return all(result.alias is None for result in operator.schema.returns) and not any(
        argument.alias is not None for argument in operator.schema.arguments
    )


def _writes(node: Node, reached: set[Value]) -> bool:
    schema = node.schema
    if schema is None:
        return False
    return any(
        argument.alias is not None
        and argument.alias.is_write
        and value in reached
        and isinstance(value.type, TensorType)
        for argument, value in zip(schema.arguments, node.inputs, strict=False)
    )


def _asks(node: Node, reached: set[Value]) -> bool:
    return node.kind in LAYOUT_QUERIES and any(value in reached for value in node.inputs)


def _is_number(value: Value) -> bool:
    return isinstance(value.type, _NUMBERS)


def _is_container(value: Value) -> bool:
    if isinstance(value.type, ClassType):
        return not value.type.is_module
    return value.type.kind in ("ListType", "DictType")

"""Pytrees of arguments and results: tuples, and dicts with known keys, are flattened to leaves with one gradient
each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rekindle.errors import DifferentiationError, SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import INT, STRING, TENSOR, DictType, ListType, OptionalType, TensorType, TupleType, Type

Pytree = Value | tuple["Pytree", ...] | dict[str, "Pytree"]


def leaves(tree: Pytree) -> Iterator[Value]:
    """Yield the values of a tree, in order."""
    if isinstance(tree, Value):
        yield tree
        return
    for part in tree.values() if isinstance(tree, dict) else tree:
        yield from leaves(part)


def unflatten_like(tree: Pytree, values: Sequence[Value]) -> Pytree:
    """Return a tree of the same structure whose leaves are the first items of ``values``."""
    each = iter(values)

    def filled(part: Pytree) -> Pytree:
        if isinstance(part, dict):
            return {key: filled(inner) for key, inner in part.items()}
        return next(each) if isinstance(part, Value) else tuple(filled(inner) for inner in part)

    return filled(tree)


def flatten(graph: Graph, value: Value) -> Pytree:
    """Return ``value`` as a tree; insert the nodes that flatten it."""
    if not isinstance(value.type, TupleType):
        return value
    if value.node.kind == "prim::TupleConstruct":
        elements = list(value.node.inputs)
    else:
        unpack = graph.create("prim::TupleUnpack", [value], types=list(value.type.elements))
        elements = list(graph.insert_node(unpack).outputs)
    return tuple(flatten(graph, element) for element in elements)


def taken_apart_like(graph: Graph, value: Value, like: Pytree) -> Pytree:
    """Return ``value`` as a tree of the same structure as ``like``; insert the nodes that flatten it."""
    if isinstance(like, Value):
        return value
    if isinstance(like, dict):
        return entries(graph, value, list(like))
    unpack = graph.create("prim::TupleUnpack", [value], types=list(value.type.contained))
    parts = zip(graph.insert_node(unpack).outputs, like, strict=True)
    return tuple(taken_apart_like(graph, part, other) for part, other in parts)


def entries(graph: Graph, value: Value, keys: Sequence[str]) -> Pytree:
    """Return the entries of a dict of tensors as a tree; insert the nodes that read them."""
    return {
        key: graph.insert_node(graph.create("aten::__getitem__", [value, graph.insert_constant(key)])).output
        for key in keys
    }


def type_of(tree: Pytree) -> Type:
    """Return the type of the value that a tree unflattens to."""
    if isinstance(tree, dict):
        return DictType(STRING, TENSOR)
    if isinstance(tree, Value):
        return TENSOR if isinstance(tree.type, TensorType) else tree.type
    return TupleType(tuple(type_of(part) for part in tree))


def unflatten(graph: Graph, tree: Pytree) -> Value:
    """Return a tree as one value of the graph; insert the nodes that construct it."""
    if isinstance(tree, Value):
        return tree
    if isinstance(tree, dict):
        items: list[Value] = []
        for key, part in tree.items():
            items += [graph.insert_constant(key), unflatten(graph, part)]
        return graph.insert_node(graph.create("prim::DictConstruct", items, types=[type_of(tree)])).output
    parts = [unflatten(graph, part) for part in tree]
    type = TupleType(tuple(part.type for part in parts))
    return graph.insert_node(graph.create("prim::TupleConstruct", parts, types=[type])).output


def check_differentiable(tree: Pytree, what: str, range: SourceRange | None = None) -> None:
    """Check that all leaves of a tree are tensors, tensors that may be None, or lists or dicts of tensors.

    Raises:
        DifferentiationError: a leaf is of another type. ``what`` names the tree in the message.
    """
    for leaf in leaves(tree):
        if not _has_gradient(leaf.type):
            among = "is" if isinstance(tree, Value) else "holds"
            raise DifferentiationError(
                f"{what} {among} a value of type {leaf.type}, of which there is no gradient",
                range,
                hint="gradients are of tensors, and of tuples, lists and dicts of tensors, or None instead of one",
            )


def _has_gradient(type: Type) -> bool:
    if isinstance(type, (ListType, OptionalType)):
        return isinstance(type.element, TensorType)
    if isinstance(type, DictType):
        return isinstance(type.value, TensorType) and type.key in (STRING, INT)
    return isinstance(type, TensorType)

"""Batch dimensions of arguments and results: a tree with the batch dimension of each leaf.

A tuple is flattened, and so is a list whose elements, or a dict whose entries, have batch dimensions of their own. Any
other list or dict is one leaf, whose tensors all have the same batch dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.errors import BatchingError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import (
    STRING,
    TENSOR,
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rekindle.transforms.vmap.batched_scalars import is_number
from rekindle.transforms.vmap.batching_rule import helper

Dims = int | None | Sequence[Any] | Mapping[str, Any]
"""A dimension, or None, or one of these for each element of a tuple or a list, or for each entry of a dict."""

LEAVES: Final[tuple[Type, ...]] = (TENSOR, ListType(TENSOR), OptionalType(TENSOR), DictType(STRING, TENSOR))
"""Types of values that can differ between the examples, whatever Python's class of a list or a dict."""


@dataclass(frozen=True, slots=True)
class DimTree:
    """The batch dimensions of a value of ``type``: for a leaf, ``dim``; otherwise ``parts``, which for a dict have
    these ``keys``."""

    type: Type
    dim: int | None = None
    parts: tuple[DimTree, ...] | None = None
    keys: tuple[str, ...] = ()

    def leaves(self) -> Iterator[DimTree]:
        """Yield the leaves, in order."""
        if self.parts is None:
            yield self
            return
        for part in self.parts:
            yield from part.leaves()


def dim_tree_of(type: Type, dims: Dims, option: str, what: str) -> DimTree:
    """Return the batch dimensions of ``what``, of type ``type``, as a tree, given ``dims`` passed as ``option``:
    ``"in_dims"`` or ``"out_dims"``.

    Raises:
        BatchingError: ``dims`` do not fit the structure or the types of ``what``.
    """
    if isinstance(dims, Mapping):
        if not DictType(STRING, TENSOR).accepts(type):
            raise BatchingError(f"{option} has a dict for {what}, which is a {type.annotation}")
        parts = [dim_tree_of(TENSOR, dim, option, f"the entry {key!r} of {what}") for key, dim in dims.items()]
        return DimTree(type, parts=tuple(parts), keys=tuple(dims))
    if isinstance(type, TupleType):
        return _of_tuple(type, dims, option, what)
    if isinstance(dims, Sequence):
        if not isinstance(type, ListType) or type.element != TENSOR:
            raise BatchingError(f"{option} has a tuple for {what}, which is a {type.annotation}")
        return DimTree(type, parts=tuple(dim_tree_of(TENSOR, dim, option, f"an element of {what}") for dim in dims))
    if option == "out_dims" and is_number(type):
        return DimTree(type, None if dims is None else 0)
    if dims is not None and not isinstance(type, TensorType) and not any(leaf.accepts(type) for leaf in LEAVES):
        raise BatchingError(
            f"{option} is {dims} for {what}, which is a {type.annotation}",
            hint="give None for what is the same for all examples" if option == "in_dims" else None,
        )
    return DimTree(type, dims)


def _of_tuple(type: TupleType, dims: Dims, option: str, what: str) -> DimTree:
    parts = type.contained
    each: list[Dims] = list(dims) if isinstance(dims, Sequence) else [dims] * len(parts)
    if len(each) != len(parts):
        raise BatchingError(f"{option} has {len(each)} entries for {what}, which has {len(parts)} elements")
    if not isinstance(dims, Sequence) and option == "in_dims":
        each = [dims if may_contain_tensor(part) else None for part in parts]
    forms = [dim_tree_of(part, dim, option, f"an element of {what}") for part, dim in zip(parts, each, strict=True)]
    return DimTree(type, parts=tuple(forms))


# ----------------------------------------------------------------------------------------------------------- in graphs


def elements(graph: Graph, value: Value, form: DimTree) -> list[Value]:
    """Return the leaves of ``value``; insert the nodes that flatten it."""
    if form.parts is None:
        return [value]
    pairs = zip(_parts(graph, value, form), form.parts, strict=True)
    return [leaf for part, each in pairs for leaf in elements(graph, part, each)]


def _parts(graph: Graph, value: Value, form: DimTree) -> Sequence[Value]:
    assert form.parts is not None
    if isinstance(form.type, DictType):
        graph.insert_graph(helper("check_entries"), [value, graph.insert_constant(len(form.keys))])
        keys = [graph.insert_constant(key) for key in form.keys]
        reads = [graph.create("aten::__getitem__", [value, key], types=[TENSOR]) for key in keys]
        return [graph.insert_node(read).output for read in reads]
    kind = "prim::ListUnpack" if isinstance(form.type, ListType) else "prim::TupleUnpack"
    return graph.insert_node(graph.create(kind, [value], types=[part.type for part in form.parts])).outputs


def unflatten(graph: Graph, form: DimTree, leaves: Iterator[Value]) -> Value:
    """Return the value with the next of ``leaves``; insert the nodes that construct it. Numbers among the leaves may
    have become tensors."""
    if form.parts is None:
        return next(leaves)
    parts = [unflatten(graph, part, leaves) for part in form.parts]
    if isinstance(form.type, DictType):
        keys = [graph.insert_constant(key) for key in form.keys]
        items = [item for pair in zip(keys, parts, strict=True) for item in pair]
        return graph.insert_node(graph.create("prim::DictConstruct", items, types=[form.type])).output
    if isinstance(form.type, ListType):
        return graph.insert_node(graph.create("prim::ListConstruct", parts, types=[form.type])).output
    type = form.type
    if any(not part.type.is_subtype_of(each.type) for part, each in zip(parts, form.parts, strict=True)):
        type = TupleType(tuple(part.type for part in parts))  # numbers that differ are tensors now
    return graph.insert_node(graph.create("prim::TupleConstruct", parts, types=[type])).output


def inputs(graph: Graph, form: DimTree, name: str) -> Value:
    """Add an input to ``graph`` for each leaf of ``form``, and return the value constructed of them."""
    return unflatten(graph, form, iter([graph.add_input(name, leaf.type) for leaf in list(form.leaves())]))


def fold_entries(graph: Graph) -> None:
    """Replace reads by constant keys, of dicts that the graph constructs and only reads, by the stored values."""
    for node in graph.find_nodes("prim::DictConstruct"):
        uses = list(node.output.uses)
        if any(use.user.kind != "aten::__getitem__" for use in uses):
            continue
        keys = [key.to_python() if key.node.kind == "prim::Constant" else None for key in node.inputs[::2]]
        known = dict(zip(keys, node.inputs[1::2], strict=True))
        for use in uses:
            _, key = use.user.inputs
            found = known.get(key.to_python()) if key.node.kind == "prim::Constant" else None
            if found is not None:
                use.user.replace_with(found)

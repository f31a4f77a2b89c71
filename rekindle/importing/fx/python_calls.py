"""What has no form in a program, in a function that is only ever called here: a call of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from rekindle.importing.fx.fx_importer import FxImporter, ImportedValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Value
from rekindle.ir.types import BOOL, FLOAT, INT, NONE, TENSOR, Type


def python_call(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """``prim::PythonOp`` that calls what ``node`` calls; the capture tells what it gives."""
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Value)]
    known, result_spec = pytree.tree_flatten(node.meta.get("val"))
    kept = [index for index, each in enumerate(known) if each is not None]
    types = [_type_of(known[index]) for index in kept]
    function = _caller(node.target, leaves, spec, places, kept)
    graph = reader.graph
    made = graph.create(
        "prim::PythonOp",
        [leaves[index] for index in places],
        types=types,
        attributes={"function": ConstantObject(function)},
        range=reader.range,
    )
    graph.insert_node(made)
    results: list[ImportedValue] = [None] * len(known)
    for index, output in zip(kept, made.outputs, strict=True):
        results[index] = output
    return pytree.tree_unflatten(results, result_spec)


def _caller(
    target: Any, leaves: Sequence[Any], spec: pytree.TreeSpec, places: Sequence[int], kept: Sequence[int]
) -> Callable[..., Any]:
    """A function of the values among ``leaves`` that calls ``target`` with all of them, and returns the leaves of what
    that gives whose numbers are ``kept``."""
    constants = [None if isinstance(leaf, Value) else leaf for leaf in leaves]

    def call(*values: Any) -> Any:
        given = list(constants)
        for index, value in zip(places, values, strict=True):
            given[index] = value
        args, kwargs = pytree.tree_unflatten(given, spec)
        results = pytree.tree_leaves(target(*args, **kwargs))
        wanted = tuple(results[index] for index in kept)
        return wanted[0] if len(wanted) == 1 else wanted

    call.__qualname__ = call.__name__ = getattr(target, "__name__", str(target))
    return call


def _type_of(known: Any) -> Type:
    if isinstance(known, torch.Tensor):
        return TENSOR
    if isinstance(known, (bool, torch.SymBool)):
        return BOOL
    if isinstance(known, (int, torch.SymInt)):
        return INT
    if isinstance(known, (float, torch.SymFloat)):
        return FLOAT
    return NONE

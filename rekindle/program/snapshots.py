"""The values of a module's attributes, copied, compared and made constants."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

import torch

from rekindle.analysis.attribute_writes import nodes_within
from rekindle.ir.attributes import map_items
from rekindle.ir.graph import Graph
from rekindle.program.modules.module import ScriptModule

_COMPRESSED_LAYOUTS: Final = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
"""Layouts of tensors that :func:`copy.deepcopy` cannot copy: they have no storage of their own."""


def snapshot(module: ScriptModule, memo: dict[int, Any]) -> ScriptModule:
    """Return a deep copy that shares no memory with ``module``; aliasing within the module is preserved in the copy.
    Tensors with autograd history are copied without it, and do not require grad. ``memo`` is that of
    :func:`copy.deepcopy`; the copies are recorded in it."""
    for part in module.modules():
        if isinstance(part, ScriptModule):
            for name in part.script_type.attributes:
                for tensor in _walk(getattr(part, name, None)):
                    if isinstance(tensor, torch.Tensor):
                        if tensor.requires_grad and not tensor.is_leaf:
                            memo[id(tensor)] = tensor.detach().clone()
                        elif tensor.layout in _COMPRESSED_LAYOUTS:
                            memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    return copy.deepcopy(module, memo)


def copy_constants(graph: Graph, memo: dict[int, Any]) -> None:
    """Replace the tensor constants of ``graph`` by detached copies, so that a traced program shares none with the code
    from which it was traced. ``memo`` is that of :func:`copy.deepcopy`; copies of leaves are recorded in it."""
    for node in nodes_within(graph):
        value = node.attributes.get("value")
        if node.kind == "prim::Constant" and isinstance(value, torch.Tensor):
            is_made = value.requires_grad and not value.is_leaf
            node.attributes["value"] = value.detach().clone() if is_made else copy.deepcopy(value, memo).detach()


def objects_in(value: Any) -> set[int]:
    """Return the ids of the mutable objects in ``value``: the storages of its tensors, its lists, its objects."""
    return {_identity(item) for item in _walk(value)}


def as_constant(value: Any, known: dict[int, Any]) -> Any:
    """Return ``value`` as a constant: with detached tensors, which share the memory of the originals. ``known`` has
    earlier constants by the id of the original, so that shared tensors stay shared; new ones are added."""
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            known[id(value)] = value.detach()
        return known[id(value)]
    return map_items(lambda item: as_constant(item, known), value)


def _walk(value: Any) -> Iterator[Any]:
    """Yield each object in ``value`` once, ``value`` included, except None, numbers, strings, tuples and modules.
    Tuples, lists, dicts and the attributes of objects are searched; modules and classes are not."""
    pending, seen = [value], set[int]()
    while pending:
        found = pending.pop()
        if id(found) in seen or isinstance(found, (type(None), bool, int, float, complex, str, torch.nn.Module)):
            continue
        seen.add(id(found))
        if isinstance(found, tuple):
            pending += found
            continue
        yield found
        if isinstance(found, list):
            pending += found
        elif isinstance(found, dict):
            pending += [*found.keys(), *found.values()]
        elif not isinstance(found, torch.Tensor) and hasattr(found, "__dict__") and not isinstance(found, type):
            pending += vars(found).values()


def _identity(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        try:
            return int(value.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):
            return id(value)  # sparse, or opaque
    return id(value)

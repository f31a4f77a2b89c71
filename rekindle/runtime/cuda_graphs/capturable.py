"""Graphs whose calls may be replayed."""

from __future__ import annotations

from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_bool
from rekindle.analysis.effects import CALLS, CONTROL_FLOW, INLINE_SUBGRAPH_KINDS, has_side_effects, is_nondeterministic
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import BOOL, FLOAT, INT, STRING, NoneType, TensorType

_MODE_QUERIES: Final = frozenset(
    {
        *("aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", "aten::get_autocast_dtype"),
        "aten::is_grad_enabled",
    }
)
"""Queries of modes that are part of the kind of a call."""
_IDENTITY_QUERIES: Final = frozenset(
    {
        *("prim::grad", "aten::is_leaf", "aten::_version", "aten::output_nr", "aten::data_ptr", "aten::retains_grad"),
        *("aten::storage_offset", "aten::as_strided", "aten::is_pinned", "aten::is_inference", "aten::is_set_to"),
    }
)
"""Operators whose result for a tensor may differ from that for a copy of it."""
_COMPARISONS: Final = frozenset({"aten::__is__", "aten::__isnot__", "aten::hash", "prim::id"})
"""Operators that compare objects, unless they are None, numbers or texts."""
_WAITS_BY_DTYPE: Final = frozenset({"aten::index", "aten::tensor_split"})
"""Operators for which the host waits for values only of some dtypes; CUDA refuses to capture those."""


def refusal_of(graph: Graph) -> str | None:
    """Return the reason why calls of ``graph`` must not be replayed; None if they may be.

    A replay repeats the work of the GPU in the captured call, but not the work of the host. Values that the host
    computes from equal arguments are equal; so only side effects of the host, and values that it reads from elsewhere,
    would be lost.
    """
    for node in graph.all_nodes_with_subgraphs():
        reason = _refusal(node)
        if reason is not None:
            return f"{node.kind}{_place(node)} {reason}"
    aliases = AliasDb(graph)
    if aliases.written & aliases.outliving_memory:
        return "it writes to an argument or an attribute"
    return None


def _refusal(node: Node) -> str | None:
    if node.kind == "prim::RaiseException" or (node.kind in CONTROL_FLOW and node.kind != "prim::With"):
        return None  # which path a call takes depends on its arguments alone
    if node.kind in CALLS:
        return "calls what is not known"
    if node.kind in ("prim::Enter", "prim::With") or node.kind.startswith("cuda::"):
        return "may change the stream"
    if node.kind not in INLINE_SUBGRAPH_KINDS and has_side_effects(node):
        return "has an effect on the host"
    is_tensor = [isinstance(value.type, TensorType) for value in node.inputs]
    if node.kind in _IDENTITY_QUERIES or (node.kind in _COMPARISONS and not _compares_values(node)):
        return "distinguishes a tensor from a copy of it"
    waits = node.has_trait(Trait.DATA_DEPENDENT) and node.kind not in _WAITS_BY_DTYPE
    if any(is_tensor) and (waits or node.kind == "prim::tolist"):
        return "waits for the values of a tensor"
    # What draws from the generator of its tensor's device does so in replays too, unless that is the CPU: a capture
    # tests whether its generator was used.
    if is_nondeterministic(node) and node.kind not in _MODE_QUERIES and not any(is_tensor[:1]):
        return "draws random numbers"
    schema = node.schema
    for argument, value in zip(() if schema is None else schema.arguments, node.inputs, strict=False):
        if argument.name == "non_blocking" and constant_bool(value) is not False:
            return "may copy without waiting"
        if argument.name == "generator" and not isinstance(value.type, NoneType):
            return "takes a generator"
    return None


def _compares_values(node: Node) -> bool:
    """Return whether a comparison of objects depends on their values alone."""
    types = [value.type for value in node.inputs]
    is_test_of_none = len(types) > 1 and any(isinstance(type, NoneType) for type in types)
    return is_test_of_none or all(type in (INT, FLOAT, BOOL, STRING) for type in types)


def _place(node: Node) -> str:
    return f" ({node.range.place})" if node.range.is_known else ""

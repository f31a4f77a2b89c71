"""Side effects of a node beyond computing its outputs, as far as the node alone determines them."""

from __future__ import annotations

from functools import cache
from typing import Final

from rekindle.analysis.mutability import is_immutable as is_immutable, may_contain_tensor
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operator
from rekindle.ir.operators.schema import AliasInfo

CONSTRUCTS: Final = frozenset({"prim::TupleConstruct", "prim::ListConstruct", "prim::DictConstruct"})
"""Kinds that make a container of their inputs."""

UNPACKS: Final = frozenset({"prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice", "prim::ListUnpack"})
"""Kinds that return elements or a part of a container."""

CASTS: Final = frozenset({"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional"})
"""Kinds whose result is their first input, of which more is known."""

GUARDS = frozenset({"prim::Guard", "prim::BailOut"})
"""Kinds that return their first input if it matches the type of their output. Otherwise a guard raises an error, and
a bailout runs a continuation, the rest of the program. The continuation may read the other inputs, and all that the
caller can reach."""

FORWARDING_KINDS: Final = CONSTRUCTS | UNPACKS | CASTS | GUARDS | {"prim::GetAttr", "prim::profile"}
"""Kinds that only make new values out of their inputs: the outputs may alias the inputs, nothing is written."""

FRESH_VALUE_KINDS = frozenset(
    {
        *("prim::Constant", "prim::Uninitialized", "prim::CreateObject", "prim::EmptyListLiteral"),
        "prim::BailoutTemplate",
    }
)
"""Kinds that only create a value, which aliases none of their inputs."""

DEFERRED_SUBGRAPH_KINDS = frozenset({"prim::fork", "prim::awaitable"})
"""Kinds that pass their inputs to their subgraph, which runs later or in parallel with the nodes after them."""

OWN_GRAPH = DEFERRED_SUBGRAPH_KINDS | {"prim::Try"}
"""Kinds with a separate graph, whose inputs correspond to those of the node."""

WAITS = frozenset({"aten::wait", "prim::awaitable_wait"})
"""Kinds that wait for the result of a deferred subgraph."""

INLINE_SUBGRAPH_KINDS = frozenset(
    {
        *("prim::DifferentiableGraph", "prim::FusionGroup", "prim::CudaFusionGroup", "prim::TensorExprGroup"),
        *("prim::StaticSubgraph", "prim::FunctionalGraph", "prim::NativeRegion"),
    }
)
"""Kinds that run their subgraph as if its nodes were inlined."""

CONTROL_FLOW = frozenset({"prim::If", "prim::Loop", "prim::With", "prim::GradOf"})

CALLS: Final = frozenset({"prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "prim::IgnoredPythonOp"})
"""Kinds that run a function, whose effects the node does not determine."""


_SIMPLE: Final = FORWARDING_KINDS | FRESH_VALUE_KINDS | CONTROL_FLOW | DEFERRED_SUBGRAPH_KINDS
"""Kinds without effects of their own; the nodes in their blocks may have effects."""


def has_side_effects(node: Node) -> bool:
    """Return whether the node must run even if its outputs are unused, for a reason other than a write to its inputs or
    the nodes in its blocks."""
    if node.kind in GUARDS or node.kind == "prim::fork":
        return True
    if node.kind in _SIMPLE:
        return False
    if node.kind in INLINE_SUBGRAPH_KINDS:
        return any(has_side_effects(inner) for inner in node.get_graph("Subgraph").all_nodes())
    operator = node.operator
    if operator is None:
        # Nothing is known of it, so that it may do anything.
        return True
    return operator.has_side_effects


def is_nondeterministic(node: Node) -> bool:
    """Return whether equal inputs may yield different results. Unknown operators may."""
    if node.kind in FORWARDING_KINDS or node.kind in FRESH_VALUE_KINDS:
        return False
    if node.kind in INLINE_SUBGRAPH_KINDS:
        return any(is_nondeterministic(inner) for inner in node.get_graph("Subgraph").all_nodes())
    operator = node.operator
    return operator is None or operator.is_nondeterministic


def may_write(node: Node) -> bool:
    """Return whether the node, without its blocks, may write to one of its inputs."""
    if node.kind in _SIMPLE:
        return False
    if node.kind in INLINE_SUBGRAPH_KINDS:
        return any(may_write(inner) for inner in node.get_graph("Subgraph").all_nodes())
    operator = node.operator
    return operator is None or _may_write(operator)


@cache
def _may_write(operator: Operator) -> bool:
    if operator.effects in (AliasAnalysisKind.CONSERVATIVE, AliasAnalysisKind.SPECIAL) or operator.hidden_writes:
        return True
    return operator.effects is AliasAnalysisKind.FROM_SCHEMA and any(
        is_write(item.alias) for item in operator.schema.arguments
    )


def is_write(info: AliasInfo | None) -> bool:
    """Return whether an annotation marks the value, or something in it, as written to."""
    return info is not None and (info.is_write or any(is_write(part) for part in info.contained))


def is_conservative(node: Node) -> bool:
    """Return whether the node must be assumed to write to all its inputs and to store them where other code finds
    them."""
    if (
        node.kind in FORWARDING_KINDS
        or node.kind in FRESH_VALUE_KINDS
        or node.kind in CONTROL_FLOW
        or node.kind in INLINE_SUBGRAPH_KINDS
    ):
        return False
    operator = node.operator
    return operator is None or operator.effects in (AliasAnalysisKind.CONSERVATIVE, AliasAnalysisKind.SPECIAL)


_MODES: Final = (
    CALLS
    | {"prim::Enter", "prim::Exit", "prim::Try", "aten::set_grad_enabled"}
    | {"cuda::set_stream", "cuda::_set_device", "cuda::_exchange_device", "cuda::_maybe_exchange_device"}
    | {"cuda::synchronize", "python::cuda_nvtx_range_push", "python::cuda_nvtx_range_pop"}
)


def writes_modes(node: Node) -> bool:
    """Return whether the node, without its blocks, may change a global mode that other nodes read implicitly: the
    recording of gradients, autocast, the default dtype, the current device and stream. Unknown operators may."""
    if node.kind in _SIMPLE or node.kind in INLINE_SUBGRAPH_KINDS:
        return False
    return node.kind in _MODES or node.operator is None


def reads_modes(node: Node) -> bool:
    """Return whether the node may depend on a global mode (see :func:`writes_modes`): it takes or returns tensors, or
    is nondeterministic."""
    if node.kind in FORWARDING_KINDS or node.kind in FRESH_VALUE_KINDS:
        return False
    return is_nondeterministic(node) or any(may_contain_tensor(value.type) for value in (*node.inputs, *node.outputs))

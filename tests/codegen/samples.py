"""Single operators as graphs, from the samples of PyTorch's database of operators."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusible import qualified_name
from rekindle.codegen.operators import JOINS, LOOKUPS, POOLS, PRODUCTS, ROWS, RULES
from rekindle.errors import RekindleError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import TENSOR, ListType

DTYPES = (
    *(torch.float32, torch.float64, torch.bfloat16, torch.float16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)


KNOWN = frozenset([*RULES, *ROWS, *JOINS, *LOOKUPS, *POOLS, *PRODUCTS])
"""The operators that kernels know, but for views."""

OTHERS = frozenset(
    {
        *("round.decimals_0", "round.decimals_3", "round.decimals_neg_3"),  # another overload
        *("nn.functional.batch_norm", "nn.functional.batch_norm.without_cudnn"),  # in another order of arguments
        "norm.nuc",  # another overload
        "to",  # the samples are of overloads that move tensors
        "where",  # the database has its arguments in another order
        *("nn.functional.dropout", "nn.functional.alpha_dropout"),  # which draw random numbers
        *("nn.functional.instance_norm", "nn.functional.threshold"),  # in another order of arguments
        "nn.functional.silu.complex",
    }
)
"""Entries with the names of operators that have rules, whose samples call others."""


@dataclass(slots=True)
class Case:
    """An operator on a sample: a graph of it alone, and its inputs."""

    name: str
    graph: Graph
    inputs: list[Any]


def _entries(known: Iterable[str]) -> list[str]:
    kinds = {name.removeprefix("aten::").partition(".")[0] for name in known}
    return sorted({_title(op) for op in op_db if _kind(op) in kinds} - OTHERS)


def names() -> list[str]:
    """The entries of the database whose operators kernels know."""
    return _entries(KNOWN)


def _title(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def _kind(op: Any) -> str:
    return str(op.aten_name).removeprefix("nn.functional.")


def cases(title: str, dtype: torch.dtype) -> Iterator[Case]:
    """The samples of an entry, in the order of the database, but those that are not one operator with a rule."""
    for op in op_db:
        if _title(op) == title and op.supports_dtype(dtype, "cpu"):
            torch.manual_seed(0)
            for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                made = _graph(_kind(op), [sample.input, *sample.args], _without_wrapper(sample.kwargs))
                if made is not None:
                    yield Case(title, *made)


def _without_wrapper(keywords: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a function of ``torch.nn.functional`` passes to the operator of its name."""
    left_out = {"return_indices": False, "stride": None}
    return {name: value for name, value in keywords.items() if name not in left_out or value is not left_out[name]}


OF_ROWS = frozenset(_entries([*ROWS, *JOINS, *LOOKUPS, *POOLS, *PRODUCTS]))
"""Entries whose operators work on more than one element at a time."""


def in_other_places(case: Case) -> Case:
    """The same with tensors whose last dimension is the outermost in memory, with gaps between the elements."""
    return Case(case.name, case.graph, [_with_gaps(each) for each in case.inputs])


def _with_gaps(tensor: Tensor) -> Tensor:
    if tensor.dim() == 0:
        return tensor
    moved = tensor.movedim(-1, 0)
    wide = torch.empty(*moved.shape[:-1], 2 * moved.shape[-1], dtype=tensor.dtype)
    return wide[..., ::2].copy_(moved).movedim(0, -1)


def with_special_numbers(case: Case) -> Case:
    """The same with a NaN, infinities and a zero among the elements of the first tensor."""
    return Case(case.name, case.graph, [_special(each) for each in case.inputs[:1]] + case.inputs[1:])


def _special(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    found = tensor.clone(memory_format=torch.contiguous_format)
    flat = found.view(-1)
    for place, number in enumerate((torch.nan, torch.inf, -torch.inf, 0.0)):
        flat[(place * 7 + 1) % flat.numel()] = number
    return found


def _graph(kind: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> tuple[Graph, list[Any]] | None:
    graph, inputs = Graph(), []

    def given(argument: Any) -> Any:
        if isinstance(argument, Tensor):
            inputs.append(argument.detach())
            return graph.add_input()
        if isinstance(argument, tuple | list):
            items = [given(each) for each in argument]
            if not any(isinstance(item, Value) for item in items):
                return items
            return graph.insert_node(graph.create("prim::ListConstruct", items, types=[ListType(TENSOR)])).output
        return argument

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = graph.insert(
                f"aten::{kind}", [given(each) for each in arguments], {k: given(v) for k, v in keywords.items()}
            )
    except RekindleError:
        return None
    if isinstance(result, Value) and result.node.kind == "prim::TupleConstruct":
        tuple_ = result.node
        result = list(tuple_.inputs)
        tuple_.destroy()
    if any(node.kind not in _CONSTANT and qualified_name(node) not in KNOWN for node in graph.nodes):
        return None
    for output in [result] if isinstance(result, Value) else result:
        graph.add_output(output)
    return graph, inputs


_CONSTANT = ("prim::Constant", "prim::ListConstruct")

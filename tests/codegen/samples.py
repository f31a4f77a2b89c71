"""Single operators as graphs, from the samples of PyTorch's database of operators."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusible import qualified_name
from rekindle.codegen.operators import RULES
from rekindle.errors import RekindleError
from rekindle.ir.graph import Graph, Value

DTYPES = (
    *(torch.float32, torch.float64, torch.bfloat16, torch.float16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)


OTHERS = frozenset(
    {
        *("max.reduction_no_dim", "max.reduction_with_dim", "min.reduction_no_dim", "min.reduction_with_dim"),
        *("round.decimals_0", "round.decimals_3", "round.decimals_neg_3"),  # another overload
        "to",  # the samples are of overloads that move tensors
        "where",  # the database has its arguments in another order
    }
)
"""Entries with the names of operators that have rules, whose samples call others."""


@dataclass(slots=True)
class Case:
    """An operator on a sample: a graph of it alone, and its inputs."""

    name: str
    graph: Graph
    inputs: list[Any]


def names() -> list[str]:
    """The entries of the database whose operators kernels know."""
    known = {name.removeprefix("aten::").partition(".")[0] for name in RULES}
    return sorted({_title(op) for op in op_db if _kind(op) in known} - OTHERS)


def _title(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def _kind(op: Any) -> str:
    return str(op.aten_name)


def cases(title: str, dtype: torch.dtype) -> Iterator[Case]:
    """The samples of an entry, in the order of the database, but those that are not one operator with a rule."""
    for op in op_db:
        if _title(op) == title and op.supports_dtype(dtype, "cpu"):
            torch.manual_seed(0)
            for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                made = _graph(_kind(op), [sample.input, *sample.args], sample.kwargs)
                if made is not None:
                    yield Case(title, *made)


def _graph(kind: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> tuple[Graph, list[Any]] | None:
    graph, inputs = Graph(), []

    def given(argument: Any) -> Any:
        if isinstance(argument, Tensor):
            inputs.append(argument.detach())
            return graph.add_input()
        return argument

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = graph.insert(
                f"aten::{kind}", [given(each) for each in arguments], {k: given(v) for k, v in keywords.items()}
            )
    except RekindleError:
        return None
    others = [node for node in graph.nodes if node.kind != "prim::Constant" and qualified_name(node) not in RULES]
    if not isinstance(result, Value) or others:
        return None
    graph.add_output(result)
    return graph, inputs

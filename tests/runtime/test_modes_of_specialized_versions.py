"""Versions that are specialized to types, called under other modes than the one in which they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import torch

import rekindle


def sine(x: torch.Tensor, y: torch.Tensor) -> str:
    if x.dtype == torch.int64 and torch.sin(x).dtype == torch.float32:
        return "float32"
    return "another"


def product(x: torch.Tensor, y: torch.Tensor) -> str:
    z = torch.matmul(y, y)
    if x.dtype == torch.int64 and y.dtype == torch.float32 and z.dtype == torch.float32:
        return "float32"
    return "another"


def made(x: torch.Tensor, y: torch.Tensor) -> str:
    if x.dtype == torch.int64 and torch.zeros(2).dtype == torch.float32:
        return "float32"
    return "another"


def composed(x: torch.Tensor, y: torch.Tensor) -> str:
    if x.dtype == torch.int64 and y.dtype == torch.float32 and torch.einsum("ij,jk->ik", y, y).dtype == torch.float32:
        return "float32"
    return "another"


def common(x: torch.Tensor, y: torch.Tensor) -> str:
    return "float32" if torch.result_type(2.5, 3) == torch.float32 else "another"


def made_like_others(x: torch.Tensor, y: torch.Tensor) -> str:
    total = torch.zeros(2, dtype=torch.float32, device=x.device)
    mask = torch.ones(2, dtype=total.dtype, device=total.device)
    other = torch.ones(2, device=mask.device)
    return f"{mask.dtype} {mask.device} {other.dtype} {(mask @ mask).dtype}"


@contextmanager
def doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def autocast() -> AbstractContextManager[object]:
    return torch.autocast("cpu")


@pytest.mark.parametrize("strategy", ["native", "simple", "profiling"])
@pytest.mark.parametrize("mode", [doubles, autocast])
@pytest.mark.parametrize("program", [sine, product, made, composed, common, made_like_others])
def test_what_follows_from_a_mode_is_not_folded(
    program: Callable[[torch.Tensor, torch.Tensor], str],
    mode: Callable[[], AbstractContextManager[object]],
    strategy: str,
) -> None:
    arguments = torch.arange(3), torch.ones(2, 2)
    before = rekindle.set_execution_strategy(strategy)
    try:
        compiled = rekindle.script(program)
        for _ in range(4):
            assert compiled(*arguments) == program(*arguments)
        with mode():
            for _ in range(2):
                assert compiled(*arguments) == program(*arguments)
        assert compiled(*arguments) == program(*arguments)
    finally:
        rekindle.set_execution_strategy(before)


def test_properties_of_tensors_that_are_made_like_others_are_known() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(2, dtype=torch.float32, device=x.device)
        return x + torch.ones(2, dtype=total.dtype, device=total.device)

    compiled = rekindle.script(masked)
    for _ in range(3):
        compiled(torch.ones(2))
    queries = [node.kind for node in rekindle.last_executed_graph().all_nodes() if node.kind.startswith("prim::d")]
    assert queries == []

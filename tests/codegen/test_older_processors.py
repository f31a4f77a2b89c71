"""Kernels for processors without today's vectors, which this one can run too: SSE2 alone, AVX2, AVX-512."""

from __future__ import annotations

import itertools

import pytest
import torch

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.llvm.target import LEVELS, VARIABLE, native_target
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.comparison import assert_as_eager
from tests.codegen.samples import cases, names
from tests.codegen.test_bounds import cases as layouts
from tests.codegen.test_functions import every
from tests.codegen.test_pointwise import check
from tests.codegen.test_rows import NAMES, graph_of, inputs_of

HERE = [level for level, features in LEVELS.items() if all(native_target().has(each) for each in features)]
"""The processors that can be simulated on this one."""


ROUNDED_ONCE = frozenset({"add", "sub", "rsub", "addcmul", "lerp"})
"""Where PyTorch, here, multiplies and adds at once, which older processors cannot."""


def is_old(level: str) -> bool:
    return level in ("x86-64", "x86-64-v2")


@pytest.fixture(params=HERE)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(VARIABLE, request.param)
    return str(request.param)


def test_layouts(level: str) -> None:
    for size in (1, 17, 100):
        for title, (text, inputs) in layouts(size).items():
            if title == "bytes":
                text = text.replace("float = prim::Constant[value=0.5]", "int = prim::Constant[value=2]")
            graph = parse_graph(text.lstrip())
            group = FusionExecutor(graph)
            torch.testing.assert_close(group(*inputs), callable_of(graph, "eager")(*inputs), equal_nan=True)
            assert group.failures == []


def test_operators(level: str) -> None:
    """A tenth of them, on a sample each."""
    for name in names()[HERE.index(level) :: 10]:
        if is_old(level) and name in ROUNDED_ONCE:
            continue
        for case in itertools.islice(cases(name, torch.float32), 1, 2):
            check(case, torch.float32)


def test_rows(level: str) -> None:
    for name in NAMES[::2]:
        inputs = inputs_of(name, (3, 70), torch.float32)
        graph = graph_of(name, 70)
        torch.testing.assert_close(FusionExecutor(graph)(*inputs), callable_of(graph, "eager")(*inputs))


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "log", "sigmoid", "log1p", "expm1"])
def test_functions(level: str, name: str) -> None:
    graph = parse_graph(f"graph(%x : Tensor):\n  %y : Tensor = aten::{name}(%x)\n  return (%y)\n")
    x = every(1_200_007)
    assert_as_eager(FusionExecutor(graph)(x), callable_of(graph, "eager")(x), 2)


def test_half_floats(level: str) -> None:
    """Without instructions for them, operators run one by one."""
    graph = graph_of("sum", 70)
    group = FusionExecutor(graph)
    (x,) = inputs_of("sum", (3, 70), torch.float16)
    torch.testing.assert_close(group(x), callable_of(graph, "eager")(x))
    assert group.failures == (["half floats, which this processor does not know"] if is_old(level) else [])

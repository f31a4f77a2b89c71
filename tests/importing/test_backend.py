"""What the backend of ``torch.compile`` is like: its name, options, graph breaks, reports."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.nn import functional as F

import rekindle
from rekindle.importing.compiled_graphs import compiled_graphs, graphs_of

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def bent(x: Tensor, scale: float = 2.0) -> Tensor:
    return torch.tanh(x) * scale + x.relu()


def test_the_entry_point_that_is_declared_is_the_backend() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("torch_dynamo_backends]\n")[2]
    name, _, value = declared.splitlines()[0].partition(" = ")
    assert EntryPoint(name, value.strip('"'), "torch_dynamo_backends").load() is rekindle.backend
    assert name == "rekindle"


def test_results_are_those_of_eager_once_kernels_run() -> None:
    compiled = torch.compile(bent, backend=rekindle.backend)
    for _ in range(4):
        x = torch.randn(64, 64)
        torch.testing.assert_close(compiled(x), bent(x))
    report = rekindle.report(compiled)
    assert [group.operators[0].kind for part in report.versions for group in part.groups] == ["aten::tanh"]
    assert "[0/0] graph_" in str(report)


def test_a_page_shows_the_graphs() -> None:
    compiled = torch.compile(bent, backend=rekindle.backend, options={"ahead_of_time": True})
    compiled(torch.randn(3, requires_grad=True)).sum().backward()
    text = str(rekindle.show(compiled))
    assert "forward_" in text
    assert "backward_" in text


def test_parts_around_a_graph_break_are_compiled() -> None:
    def f(x: Tensor) -> Tensor:
        y = torch.sin(x) * 2
        torch._dynamo.graph_break()
        return torch.cos(y) + x

    compiled = torch.compile(f, backend=rekindle.backend)
    x = torch.randn(5)
    torch.testing.assert_close(compiled(x), f(x))
    assert [part.title.partition("graph")[0] for part in rekindle.report(compiled).versions] == ["[0/0] ", "[1/0] "]


def test_sizes_that_change_become_arguments() -> None:
    def f(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0] * 2, -1).softmax(-1) / x.shape[0]

    compiled = torch.compile(f, backend=rekindle.backend, dynamic=True)
    for rows in (2, 3, 7):
        x = torch.randn(rows, 6)
        torch.testing.assert_close(compiled(x), f(x))
    (graph,) = graphs_of(compiled) or []
    (function,) = graph.functions
    assert "(int arg0_1, int arg1_1, Tensor arg2_1)" in str(function.schema)


def test_writes_to_arguments_and_buffers_are_seen() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            x.mul_(2)
            return x * self.calls

    model = Counter()
    compiled = torch.compile(model, backend=rekindle.backend)
    x = torch.ones(3)
    assert compiled(x).tolist() == [2, 2, 2]
    assert compiled(x).tolist() == [8, 8, 8]
    assert (x.tolist(), model.calls.item()) == ([4, 4, 4], 2)


def test_branches_of_torch_cond_become_an_if() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x - 1, (x,))

    compiled = torch.compile(f, backend=rekindle.backend)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(compiled(x), f(x))
    (graph,) = graphs_of(compiled) or []
    assert graph.functions[0].graph.find_node("prim::If") is not None


def test_what_has_no_form_in_a_program_is_left_to_python() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def f(q: Tensor) -> Tensor:
        return flex_attention(q, q, q).sin()

    compiled = torch.compile(f, backend=rekindle.backend)
    q = torch.randn(1, 1, 4, 8)
    wanted = F.scaled_dot_product_attention(q, q, q).sin()
    torch.testing.assert_close(compiled(q), wanted)
    kinds = {node.kind for graph in graphs_of(compiled) or [] for node in graph.functions[0].graph.all_nodes()}
    assert "aten::sin" in kinds


def test_without_optimization_operators_run_one_by_one() -> None:
    def plain(x: Tensor) -> Tensor:  # of its own: a report covers all versions of a function
        return torch.tanh(x) * 2 + x

    compiled = torch.compile(plain, backend=rekindle.backend, options={"optimize": False})
    x = torch.randn(5)
    torch.testing.assert_close(compiled(x), plain(x))
    assert rekindle.report(compiled).versions == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fuse": True}, "the backend 'rekindle' has no option 'fuse'; it has optimize, ahead_of_time"),
        ({"optimize": 1}, "the option 'optimize' of the backend 'rekindle' is True or False, not 1"),
    ],
)
def test_options_that_are_unknown_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(BackendCompilerFailed, match=re.escape(message)):
        torch.compile(bent, backend=rekindle.backend, options=options)(torch.ones(2))


def test_what_nobody_keeps_is_forgotten() -> None:
    gc.collect()  # graphs of earlier tests that only cycles keep
    before = len(compiled_graphs())
    torch.compile(bent, backend=rekindle.backend)(torch.ones(2))
    assert len(compiled_graphs()) == before + 1
    torch._dynamo.reset()
    assert len(compiled_graphs()) == before


def test_regions_without_gradients_stay_such() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            z = torch.sigmoid(x * y)
            with torch.enable_grad():
                w = x * 3
        return z * y + w

    compiled = torch.compile(f, backend=rekindle.backend)
    for _ in range(3):
        x, y = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
        wanted = torch.autograd.grad(f(x, y).sum(), (x, y))
        torch.testing.assert_close(torch.autograd.grad(compiled(x, y).sum(), (x, y)), wanted)
    assert [function.name.partition("_")[0] for graph in graphs_of(compiled) or [] for function in graph.functions] == [
        "graph"
    ]


def test_gradients_of_gradients() -> None:
    compiled = torch.compile(bent, backend=rekindle.backend)
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    found, wanted = (
        torch.autograd.grad(torch.autograd.grad(g(x).sum(), x, create_graph=True)[0].sum(), x) for g in (compiled, bent)
    )
    torch.testing.assert_close(found, wanted)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # Dynamo's own
@pytest.mark.parametrize("kind", ["autocast", "checkpoint", "autograd.Function"])
def test_what_changes_gradients_or_dtypes_goes_through_aot_autograd(kind: str) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, grad: Tensor) -> Tensor:
            return grad * 5

    def f(x: Tensor) -> Tensor:
        if kind == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                return (x @ x).float()
        if kind == "checkpoint":
            return torch.utils.checkpoint.checkpoint(bent, x, use_reentrant=False)
        return Twice.apply(x)

    compiled = torch.compile(f, backend=rekindle.backend)
    x = torch.randn(4, 4, requires_grad=True)
    wanted = torch.autograd.grad(f(x).sum(), x)
    torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x), wanted, rtol=1e-2, atol=1e-2)
    names = [function.name.partition("_")[0] for graph in graphs_of(compiled) or [] for function in graph.functions]
    assert set(names) == {"forward", "backward"}

"""Rules and passes that users add to the pipelines, and those that come with the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import rekindle
from rekindle.errors import VerificationError
from rekindle.ir.graph import Graph
from rekindle.runtime import user_passes
from rekindle.runtime.executor import STRATEGIES


def optimized(function: Any, *given: Any) -> str:
    """The graph that runs, with those within it."""
    return str(rekindle.script(function).graph_for(*given))


def doubled(x: Tensor) -> Tensor:
    return x * 2


@rekindle.rewrite(doubled)
def summed(x: Tensor) -> Tensor:
    return x + x


def program(x: Tensor) -> Tensor:
    return helper(x).sin()


def helper(x: Tensor) -> Tensor:
    return x * 2


X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is registered within is forgotten afterwards."""
    monkeypatch.setattr(user_passes, "_KNOWN", dict(user_passes._KNOWN))
    return


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_a_rule_joins_the_pipeline_and_leaves_it(strategy: str) -> None:
    before = rekindle.set_execution_strategy(strategy)
    try:
        function = rekindle.script(program)
        assert "aten::mul" in optimized(program, X)
        with rekindle.add_pass(summed) as added:
            assert repr(added) == "<the pass 'summed' at the start of the pipeline>"
            assert "aten::mul" not in optimized(program, X)
            assert torch.equal(function(X), program(X))
        assert "aten::mul" in optimized(program, X)
        added.remove()
    finally:
        rekindle.set_execution_strategy(before)


def test_a_function_of_graphs_is_a_pass() -> None:
    seen: list[int] = []

    def count(graph: Graph) -> None:
        seen.append(len(graph.find_nodes("aten::sin")))

    with rekindle.add_pass(count, at="end"):
        rekindle.script(program)(X)
    assert seen == [1]


@pytest.mark.usefixtures("registered")
def test_passes_with_options_by_name() -> None:
    @rekindle.register_pass
    @dataclass
    class ScaleBy:
        name: ClassVar[str] = "scale_by"
        factor: int = 3

        def run(self, graph: Graph) -> bool:
            with graph.inserting_before(graph.return_node) as build:
                graph.block.replace_output(0, build(graph.outputs[0]) * self.factor)
            return True

    assert "scale_by" in rekindle.known_passes()
    function = rekindle.script(program)
    with rekindle.add_pass("scale_by", at="end", factor=5):
        torch.testing.assert_close(function(X), program(X) * 5)
        with rekindle.add_pass("scale_by", at="end"):
            torch.testing.assert_close(function(X), program(X) * 15)
    assert torch.equal(function(X), program(X))
    with pytest.raises(ValueError, match=r"^there is a pass 'scale_by' already$"):
        rekindle.register_pass(ScaleBy)
    rekindle.register_pass(summed, name="sums")
    with rekindle.add_pass("sums"):
        assert "aten::mul" not in optimized(program, X)


def test_a_pass_that_breaks_the_graph_is_named() -> None:
    def breaks(graph: Graph) -> bool:
        first, *_, last = graph.nodes
        last.move_before(first)
        return True

    with (
        rekindle.add_pass(breaks),
        pytest.raises(
            VerificationError, match=r"^after the pass 'breaks': aten::sin: %\d+ is used before it is defined"
        ),
    ):
        rekindle.script(program)(X)


@pytest.mark.parametrize(
    ("add", "error", "message"),
    [
        (
            lambda: rekindle.add_pass(3),
            TypeError,
            "a value of class 'int' is not a pass: it has no name, or no run(graph)",
        ),
        (
            lambda: rekindle.add_pass(summed, at="middle"),
            ValueError,
            "there is no stage 'middle' in a pipeline; there are 'start' and 'end'",
        ),
        (
            lambda: rekindle.add_pass(summed, factor=1),
            TypeError,
            "options are for passes that are given by name; make the pass with its options instead",
        ),
        (
            lambda: rekindle.add_pass("fuse_attention", mask=True),
            TypeError,
            "the pass 'fuse_attention': got an unexpected keyword argument 'mask'",
        ),
        (
            lambda: rekindle.register_pass(Graph, name="graph"),
            TypeError,
            "the class Graph has no method run(graph)",
        ),
    ],
)
def test_misuse_is_named(add: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        add()
    assert str(caught.value) == message


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is below)
        rekindle.add_pass("fuse_everything")
    names = ", ".join(map(repr, rekindle.known_passes()))
    assert str(caught.value) == f"there is no pass 'fuse_everything'; there are {names}"


# ---------------------------------------------------------------------------------------------------------- the library


def attention_times(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return F.softmax(q @ k.transpose(-2, -1) * 0.5, dim=-1) @ v


def attention_over(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = torch.matmul(q / math.sqrt(q.size(-1)), k.transpose(-2, -1))
    return torch.matmul(scores.softmax(-1), v)


def attention_by_int(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return ((q @ k.transpose(-2, -1)) / 2).softmax(-1) @ v


def attention_plain(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v


def attention_masked(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1) / 2.0 + m).softmax(-1) @ v


def linear_by_hand(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return q @ v[0, 0].t() + torch.matmul(k, v[0, 0].t())


def rectified(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return torch.relu(q @ k.transpose(-2, -1))


def gelus(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    a = q * 0.5 * (1.0 + torch.erf(q / math.sqrt(2.0)))
    b = 0.5 * k * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (k + 0.044715 * torch.pow(k, 3.0))))
    return a + b + v * torch.sigmoid(v)


def gelus_with_ints(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    a = 0.5 * (q * (1 + torch.erf(q / math.sqrt(2))))
    return a + 0.5 * k * (1 + torch.tanh(math.sqrt(2 / math.pi) * (k + 0.044715 * k**3)))


def other_gelu(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return q * 0.5 * (1.0 + torch.erf(q / 1.5))


def norms(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    mean = q.mean(-1, keepdim=True)
    var = q.var(-1, unbiased=False, keepdim=True)
    a = (q - mean) / torch.sqrt(var + 1e-5)
    return a * m[0] + k * torch.rsqrt(k.pow(2).mean(-1, keepdim=True) + 1e-6)


def identities(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    a = q.to(q.dtype).contiguous().contiguous()
    return F.dropout(a, 0.3, False) + k.transpose(1, 2).transpose(1, 2).type_as(k) + v.detach().detach()


def quantised(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    a = torch.quantize_per_tensor(q, 0.1, 128, torch.quint8).dequantize()
    a = torch.quantize_per_tensor(a, 0.1, 128, torch.quint8).dequantize()
    b = torch.fake_quantize_per_tensor_affine(k, 0.1, 0, -128, 127)
    return a + torch.fake_quantize_per_tensor_affine(b, 0.1, 0, -128, 127)


ALL = "scaled_dot_product_attention"


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    ("function", "name", "options", "counts"),
    [
        (attention_times, "fuse_attention", {}, {ALL: 1, "softmax": 0, "matmul": 0}),
        (attention_over, "fuse_attention", {}, {ALL: 1, "softmax": 0}),
        (attention_by_int, "fuse_attention", {}, {ALL: 1, "softmax": 0}),
        (attention_plain, "fuse_attention", {}, {ALL: 1, "softmax": 0}),
        (attention_masked, "fuse_attention", {}, {ALL: 0, "softmax": 1}),
        (attention_masked, "fuse_attention", {"masks": True}, {ALL: 1, "softmax": 0}),
        (linear_by_hand, "fuse_linear", {}, {"linear": 2, "matmul": 0}),
        (rectified, "relu_in_place", {}, {"relu_": 1, "relu": 0}),
        (gelus, "fuse_activations", {}, {"gelu": 2, "silu": 1, "erf": 0}),
        (gelus_with_ints, "fuse_activations", {}, {"gelu": 2, "erf": 0, "tanh": 0}),
        (other_gelu, "fuse_activations", {}, {"gelu": 0, "erf": 1}),
        (norms, "fuse_norms", {}, {"layer_norm": 1, "rms_norm": 1, "var": 0, "rsqrt": 0}),
        (identities, "remove_identities", {}, {"to": 0, "contiguous": 1, "dropout": 0, "transpose": 0, "detach": 1}),
        (quantised, "remove_requantization", {}, {"quantize_per_tensor": 1, "fake_quantize_per_tensor_affine": 1}),
        (quantised, "remove_requantization", {"exact": False}, {"quantize_per_tensor": 0}),
    ],
)
def test_the_library(
    function: Callable[..., Tensor], name: str, options: dict[str, Any], counts: dict[str, int]
) -> None:
    generator = torch.Generator().manual_seed(1)
    given = [torch.randn(2, 3, 4, 4, generator=generator) for _ in range(3)]
    given.append(torch.randn(4, 4, generator=generator))
    compiled = rekindle.create_function(rekindle.script(function).graph, function.__name__)
    wanted = function(*given)
    before = rekindle.set_execution_strategy("simple")  # no kernels: operators are counted
    try:
        with rekindle.add_pass(name, at="end", **options):
            found = compiled(*given)
            graph = compiled.graph_for(*given)
    finally:
        rekindle.set_execution_strategy(before)
    have = [node.kind.partition("::")[2] for node in graph.all_nodes()]
    assert {kind: have.count(kind) for kind in counts} == counts
    if options.get("exact", True):
        torch.testing.assert_close(found, wanted)
    else:
        torch.testing.assert_close(found, wanted, atol=0.06, rtol=0)

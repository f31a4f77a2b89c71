"""Which operators are given a backward graph of their own: those that are fused, in the graph as calls run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rekindle
from benchmarks.learning import Block
from rekindle.autodiff.formula import Formula, operators_recorded
from rekindle.codegen import product_estimates
from rekindle.codegen.differentiation_profit import LARGE, DifferentiationProfit, launches_saved
from rekindle.codegen.fusible import is_computed
from rekindle.codegen.product_estimates import ProductEstimates, has_one_row
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.strategies import native_strategy


def groups(program: Callable[..., Any], *arguments: Any) -> list[list[str]]:
    """The operators of each differentiable graph of a call with these arguments."""
    graph: Graph = rekindle.script(program).graph_for(*arguments)
    found = [node.get_graph("Subgraph") for node in graph.all_nodes() if node.kind == "prim::DifferentiableGraph"]
    hidden = ("prim::Constant", "prim::ListConstruct")
    return [[node.kind.removeprefix("aten::") for node in each.nodes if node.kind not in hidden] for each in found]


def chain(x: Tensor) -> Tensor:
    return torch.tanh(torch.sigmoid(x) * 2.0)


def of_three(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.sigmoid(x * y + z)


class Scaled(nn.Module):
    """As torch_geometric's ``MessageNorm``: operators that fuse are separated by norms, whose order is not a
    constant."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor, message: Tensor, p: float = 2.0) -> Tensor:
        norm = x.norm(p=p, dim=-1, keepdim=True)
        return F.normalize(message, p=p, dim=-1) * norm * self.scale


def test_few_operators_on_small_tensors() -> None:
    small = torch.randn(8, 4, requires_grad=True)
    assert groups(chain, small) == [["sigmoid", "mul", "tanh"]]
    assert groups(of_three, small, small, small) == []
    assert groups(Scaled(), small, small) == []


def of_three_again(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.sigmoid(x * y + z)


def test_few_operators_on_large_tensors() -> None:
    large = torch.randn(LARGE // 4, 4, requires_grad=True)
    assert groups(of_three_again, large, large, large) == [["mul", "add", "sigmoid"]]


def around(x: Tensor) -> Tensor:
    first = torch.special.i1e(x)
    last = torch.sigmoid(torch.tanh(first * 2.0) + 1.0)
    return torch.special.i1e(last)


def test_what_no_kernel_computes_stays_outside() -> None:
    x = torch.randn(8, 4, requires_grad=True)
    assert groups(around, x) == [["mul", "tanh", "add", "sigmoid"]]


def viewed(x: Tensor) -> Tensor:
    part = torch.special.i1e(x.t())
    return torch.sigmoid(torch.tanh(part * 2.0) + 1.0)


def test_views_of_what_stays_outside_do_too() -> None:
    assert groups(viewed, torch.randn(8, 4, requires_grad=True)) == [["mul", "tanh", "add", "sigmoid"]]


def with_noise(x: Tensor) -> Tensor:
    kept = torch.sigmoid(torch.rand_like(x) * x)
    return torch.tanh(kept * torch.bernoulli(x.sigmoid()) + 1.0)


def energy(x: Tensor) -> Tensor:
    return torch.log10(torch.linalg.vector_norm(x, ord=2, dim=[-1]) ** 2) * 10.0


def test_literal_lists_are_in_the_graph() -> None:
    x = torch.randn(8, 4, requires_grad=True)
    graph = rekindle.script(energy).graph_for(x)
    (node,) = [node for node in graph.all_nodes() if node.kind == "prim::DifferentiableGraph"]
    assert [value.type.annotation for value in node.inputs] == ["Tensor"]


@pytest.mark.parametrize("program", [chain, around, viewed, energy, with_noise])
def test_results_and_gradients(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    count = program.__code__.co_argcount
    for _ in range(3):
        given = [torch.randn(8, 4, requires_grad=True) for _ in range(count)]
        found = []
        for each in (program, compiled):
            torch.manual_seed(0)
            result = each(*given)
            found.append((result, *torch.autograd.grad(result.sum(), given, allow_unused=True)))
        for mine, expected in zip(*found, strict=True):
            assert (mine is None) == (expected is None)
            if mine is not None:
                torch.testing.assert_close(mine, expected)


def test_launches_saved() -> None:
    graph = parse_graph(
        """graph(%x : Tensor, %y : Tensor, %0 : int):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::tanh(%1)
  %3 : Tensor = aten::special_i1e(%2)
  %4 : Tensor = aten::mul(%3, %y)
  %5 : Tensor = aten::relu(%x)
  %6 : Tensor = aten::sigmoid(%4)
  %7 : Tensor = aten::add(%6, %2, %0)
  return (%7, %5)
"""
    )
    nodes = [node for node in graph.nodes if node.kind != "prim::Constant"]
    assert launches_saved(nodes, set(nodes)) == 4
    assert launches_saved(nodes[:4], set(nodes)) == 1
    assert launches_saved(nodes, set()) == 0


@pytest.mark.parametrize("cell", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_operators_of_a_cell_are_counted_as_its_formula_has_them(cell: str) -> None:
    listed = "  %l : Tensor[] = prim::ListConstruct(%h, %c)\n" if cell == "lstm_cell" else ""
    results, given = ("%1 : Tensor, %2 : Tensor", "%l") if listed else ("%1 : Tensor", "%h")
    graph = parse_graph(
        f"""graph(%x : Tensor, %h : Tensor, %c : Tensor, %w : Tensor, %u : Tensor, %b : Tensor):
{listed}  {results} = aten::{cell}(%x, {given}, %w, %u, %b, %b)
  return (%1)
"""
    )
    node = graph.find_node(f"aten::{cell}")
    assert node is not None
    recorded = sorted(is_computed(each) for each in operators_recorded(node))
    assert DifferentiationProfit().counts(node) == recorded
    assert any(recorded)


def test_a_cell_is_outlined_before_its_formula_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Formula, word: str) -> None:
        raise AssertionError(f"{word} of {self.schema.qualified_name} is compiled")

    monkeypatch.setattr(Formula, "_part", fail)
    assert groups(nn.GRUCell(4, 4), torch.ones(2, 4), torch.ones(2, 4)) == [["gru_cell"]]


class Perceptron(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


@pytest.mark.usefixtures("kernels_are_faster")
def test_large_products_where_kernels_are_faster() -> None:
    class Own(Perceptron):
        pass

    assert groups(Own(64, 512), torch.randn(32, 64)) == [["linear", "relu", "linear"]]


@pytest.mark.usefixtures("blas_is_faster")
def test_large_products_where_blas_is_faster() -> None:
    class Own(Perceptron):
        pass

    assert groups(Own(64, 512), torch.randn(32, 64)) == []


@pytest.mark.usefixtures("kernels_are_faster")
def test_calls_with_one_row_have_a_version_of_their_own() -> None:
    class Own(Perceptron):
        pass

    compiled = rekindle.script(Own(64, 512))

    for rows in (1, 32, 1, 32):
        kinds = [node.kind for node in compiled.graph_for(torch.randn(rows, 64)).nodes]
        assert ("prim::DifferentiableGraph" in kinds) == (rows > 1)


@pytest.mark.usefixtures("kernels_are_faster")
@pytest.mark.parametrize(
    "arguments",
    [
        (torch.randn(32, 64, dtype=torch.bfloat16),),
        (torch.randn(0, 64),),
    ],
)
def test_other_dtypes_and_no_rows(arguments: tuple[Tensor]) -> None:
    class Own(Perceptron):
        pass

    model = Own(64, 512).to(arguments[0].dtype)
    compiled = rekindle.script(model)
    torch.testing.assert_close(compiled(*arguments), model(*arguments))
    if arguments[0].dtype == torch.bfloat16:
        assert groups(Own(64, 512).to(torch.bfloat16), *arguments) == []


def of_weights(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(F.linear(x, w, b))


@pytest.mark.usefixtures("kernels_are_faster")
def test_weights_may_be_arguments() -> None:
    w, b = torch.randn(256, 256, requires_grad=True), torch.randn(256, requires_grad=True)
    assert groups(of_weights, torch.randn(64, 256), w, b) == [["linear", "relu"]]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.of_class = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(torch.sigmoid(x) * 2.0)
        return self.of_class(torch.special.i1e(hidden))


def test_a_group_that_does_not_pay_is_split_at_its_products() -> None:
    """The product alone does not pay for what its weight and bias cost; what is before it does."""
    assert groups(Small(), torch.randn(8, 8, requires_grad=True)) == [["sigmoid", "mul", "tanh"]]


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.outer = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.outer(self.inner(self.norm(x)))


@pytest.mark.usefixtures("kernels_are_faster")
def test_equal_layers_have_equal_graphs() -> None:
    model = nn.Sequential(*(Layer(128) for _ in range(5)))
    found = groups(model, torch.randn(64, 128))
    assert found == [["layer_norm", *["linear", "tanh"] * 3, "linear", "add"]] * 5


def test_what_is_known_of_products() -> None:
    graph = parse_graph(
        """graph(%x : Tensor, %ids : Tensor, %w : Tensor, %one : int):
  %t : Tensor = aten::t(%w)
  %a : Tensor = aten::mm(%x, %t)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::mm(%b, %w)
  %d : Tensor = aten::mm(%b, %a)
  %e : Tensor = aten::addmm(%a, %b, %w, %one, %one)
  %f : Tensor = aten::mm(%w, %w)
  return (%c, %d, %e, %f)
"""
    )
    estimates = ProductEstimates([torch.randn(6, 4), torch.zeros(3, 5, dtype=torch.int64), torch.randn(10, 4), 1])
    products = {node.output.name: node for node in graph.nodes if node.kind in ("aten::mm", "aten::addmm")}
    found = {name: estimates.multiplications(node) for name, node in products.items()}
    assert found == {"a": 240, "c": 240, "d": None, "e": 240, "f": 400}
    assert [name for name, node in products.items() if estimates.is_in_kernel(node)] == ["a", "c", "e", "f"]
    assert not any(ProductEstimates().is_in_kernel(node) for node in products.values())
    assert [has_one_row([torch.randn(size), None, 3]) for size in ((1, 4), (4,), (), (2, 4), (0, 4))] == [
        *[True] * 3,
        False,
        True,
    ]


def test_rows_of_products_behind_scatters_branches_and_loops() -> None:
    graph = parse_graph(
        """graph(%x : Tensor, %edges : Tensor, %w : Tensor, %size : int[], %n : int, %maybe : Tensor?):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
  %messages : Tensor = aten::index_select(%x, %zero, %edges)
  %like : Tensor = aten::zeros_like(%x, %none, %none, %none, %none, %none)
  %new : Tensor = aten::new_zeros(%x, %size, %none, %none, %none, %none)
  %a : Tensor = aten::mm(%messages, %w)
  %added : Tensor = aten::index_add(%like, %zero, %edges, %messages, %zero)
  %b : Tensor = aten::mm(%added, %w)
  %unknown : Tensor = aten::index_add(%new, %zero, %edges, %messages, %zero)
  %c : Tensor = aten::mm(%unknown, %w)
  %is_flat : bool = aten::eq(%n, %zero)
  %either : Tensor = prim::If(%is_flat)
    block0():
      -> (%added)
    block1():
      -> (%messages)
  %d : Tensor = aten::mm(%either, %w)
  %other : Tensor = prim::If(%is_flat)
    block0():
      -> (%unknown)
    block1():
      -> (%messages)
  %e : Tensor = aten::mm(%other, %w)
  %optional : Tensor? = prim::If(%is_flat)
    block0():
      -> (%none)
    block1():
      -> (%added)
  %there : Tensor = prim::unchecked_cast(%optional)
  %f : Tensor = aten::mm(%there, %w)
  %looped : Tensor = prim::Loop(%n, %yes, %added)
    block0(%i : int, %carried : Tensor):
      %g : Tensor = aten::mm(%carried, %w)
      -> (%yes, %messages)
  %h : Tensor = aten::mm(%looped, %w)
  return (%a, %b, %c, %d, %e, %f, %h)
"""
    )
    estimates = ProductEstimates([torch.randn(5, 4), torch.zeros(20, dtype=torch.int64), torch.randn(4, 4)])
    products = [node for node in graph.all_nodes() if node.kind == "aten::mm"]
    found = {node.output.name: estimates.multiplications(node) for node in products}
    few, many = 5 * 16, 20 * 16
    assert found == {"a": many, "b": few, "c": None, "d": many, "e": None, "f": few, "g": few, "h": many}


def test_dropout_costs_a_launch() -> None:
    text = """graph(%x : Tensor, %p : float, %yes : bool):
  %1 : Tensor = aten::sigmoid(%x)
  %2 : Tensor = aten::NAME
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::exp(%3)
  return (%4)
"""
    for name, pays in (("relu(%1)", True), ("dropout(%1, %p, %yes)", False)):
        nodes = list(parse_graph(text.replace("NAME", name)).nodes)
        assert DifferentiationProfit()(nodes, set(nodes)) == pays
        assert DifferentiationProfit(LARGE)(nodes, set(nodes)) == pays


@pytest.mark.parametrize("captured", [False, True])
def test_graphs_on_a_gpu(monkeypatch: pytest.MonkeyPatch, captured: bool) -> None:
    """Products are in a graph where it is replayed. PyTorch's kernels for attention and cells draw random numbers of
    their own, or are as fast."""
    for module in (product_estimates, native_strategy):
        monkeypatch.setattr(module, "has_gpu_tensors", bool)
    monkeypatch.setattr(ProductEstimates, "_has_dtype", False)  # kernels of GPUs compute no products
    before = rekindle.set_cuda_graphs(captured)
    x = torch.randn(2, 8, 16)
    found = {kind for group in groups(Block(16, 2).train(), x) for kind in group}
    cell = groups(nn.LSTMCell(4, 4), torch.randn(2, 4))
    rekindle.set_cuda_graphs(before)
    assert "scaled_dot_product_attention" not in found
    assert ("linear" in found) == captured
    assert cell == ([["lstm_cell"]] if captured else [])

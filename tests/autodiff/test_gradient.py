"""Derivatives of graphs: what they keep, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import rekindle
from rekindle.autodiff import differentiate
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.types import TENSOR, TensorType
from rekindle.ir.verifier import verify
from tests.autodiff.graphs import graph_of
from tests.overview_programs import lstm_cell
from tests.support.golden import GoldenTexts


def product(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(x.mm(w.t()) + b)


def two_results(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.tanh(x.mm(w.t()) + b) * b
    return y, y.sigmoid() / (x.mm(w.t()) + 3)


def takes_apart(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    first, second = x.mm(w.t()).chunk(2, 0)
    return first * b, first * second


def same_twice(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return x.mm(x.t()) / (x * x + x)[:, :1] + b[:1]


PROGRAMS = [product, two_results, takes_apart, same_twice]


WANTED = [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]


def inputs() -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((4, 3), (5, 3), (5,))]


@pytest.mark.parametrize("program", [product, takes_apart, lstm_cell])
def test_graphs(program: Callable[..., Any], golden: GoldenTexts) -> None:
    graph = graph_of(program)
    gradient = differentiate(graph, [True] * len(graph.inputs))
    verify(gradient.forward)
    verify(gradient.backward)
    told = f"results: {gradient.results}, kept: {gradient.captures}, roots: {gradient.roots}"
    golden(f"autodiff/{program.__name__}", f"{text(gradient.forward)}\n# {told}\n\n{text(gradient.backward)}")


def text(graph: Graph) -> str:
    return print_graph(graph, ranges=False)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_and_their_gradients(program: Callable[..., Any]) -> None:
    run = DifferentiableOperation(graph_of(program))
    assert gradcheck(run, inputs(), nondet_tol=ROUNDING)
    assert gradgradcheck(run, inputs(), nondet_tol=ROUNDING)


ROUNDING = 1e-14
"""After some calls a kernel takes over from operators, and may round otherwise."""


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
)
def test_only_what_is_wanted_is_computed(program: Callable[..., Any], wanted: tuple[bool, ...]) -> None:
    graph = graph_of(program)
    arguments = [value.detach().requires_grad_(wants) for value, wants in zip(inputs(), wanted, strict=True)]
    expected = program(*arguments)
    found = DifferentiableOperation(graph)(*arguments)
    for mine, theirs in zip(flat(found), flat(expected), strict=True):
        assert torch.allclose(mine, theirs)
        assert mine.requires_grad == theirs.requires_grad
        if mine.requires_grad:
            asked = [value for value in arguments if value.requires_grad]
            ours = torch.autograd.grad(mine.sum(), asked, retain_graph=True, allow_unused=True)
            eager = torch.autograd.grad(theirs.sum(), asked, retain_graph=True, allow_unused=True)
            for a, b in zip(ours, eager, strict=True):
                assert (a is None) == (b is None)
                assert a is None or torch.allclose(a, b)


def flat(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def test_what_has_no_formula_is_left_to_autograd() -> None:
    def program(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return torch.special.i1e(x) * b[:3]

    run = DifferentiableOperation(graph_of(program))
    backward = differentiate(run.graph, [True, False, True]).backward
    assert 'value="aten::special_i1e"' in str(backward)
    arguments = inputs()
    assert gradcheck(run, arguments)
    assert gradgradcheck(run, arguments)


def test_sizes_are_kept_rather_than_tensors() -> None:
    gradient = differentiate(parse_graph(_SUM), [True, True])
    kept = [gradient.forward.outputs[source].type for source in gradient.captures if source >= 0]
    assert [str(type) for type in kept] == ["int[]?", "int[]?"]


_SUM = """graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %y, %1)
  return (%2)
"""


def of_relu(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.relu(x.mm(a)).mm(b)


def of_tanh(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(x.mm(a)).view(4, 4).mm(b)


def of_gelu(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x.mm(a)).mm(b)


def of_norm(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x.mm(a) + b, [4])


def of_sum(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(x.mm(a)).sum() * b


@pytest.mark.parametrize(
    ("program", "saved"),
    [
        (of_relu, {"aten::relu"}),
        (of_tanh, {"aten::tanh"}),
        (of_norm, {"aten::add", "aten::native_layer_norm"}),
        (of_gelu, {"aten::mm"}),
        (of_sum, {"aten::mm", "aten::sum"}),
    ],
)
def test_what_a_product_reads_is_saved(program: Callable[..., Any], saved: set[str]) -> None:
    """It is in memory for the product, so that the product before it is not saved beside it. Where the gradient of an
    activation needs the operand of the activation, that alone is saved."""
    found = differentiate(graph_of(program), [True, True, True])
    residuals = [value for value in found.forward.outputs[found.results :] if isinstance(value.type, TensorType)]
    assert {value.node.kind for value in residuals} == saved


def dropped_by(x: Tensor, p: float) -> Tensor:
    return torch.nn.functional.dropout(torch.tanh(x), p, True) * 2.0


def test_the_scale_of_a_mask_is_cast_where_there_is_one() -> None:
    """Elsewhere it is None, which a native plan cannot hold in the register of a float."""
    backward = differentiate(graph_of(dropped_by), [True, False]).backward
    casts = [node for node in backward.all_nodes() if node.kind == "prim::unchecked_cast"]
    assert {str(node.output.type) for node in casts} == {"Tensor", "float"}
    assert all(node.owning_block is not backward.block for node in casts)


def test_a_chain_that_is_longer_than_the_stack_is_recomputed() -> None:
    graph = Graph()
    x, y = graph.add_input(type=TENSOR), graph.add_input(type=TENSOR)
    found = x
    for _ in range(700):
        found = graph.insert("aten::sin", [graph.insert("aten::mul", [found, y])])
    graph.add_output(found)
    run = DifferentiableOperation(graph)
    leaves = [torch.rand(3, dtype=torch.double, requires_grad=True) for _ in range(2)]
    expected = leaves[0]
    for _ in range(700):
        expected = torch.sin(expected * leaves[1])
    for _ in range(3):
        grads = torch.autograd.grad(run(*leaves).sum(), leaves)
        torch.testing.assert_close(grads, torch.autograd.grad(expected.sum(), leaves, retain_graph=True))


def power_of_a_tensor(x: Tensor, y: Tensor) -> Tensor:
    return torch.float_power(x, y) + torch.float_power(x, 2.0) * torch.float_power(2.0, y)


def test_float_power_is_computed_in_float64() -> None:
    run = DifferentiableOperation(graph_of(power_of_a_tensor))
    for dtype in (torch.float32, torch.float64):
        leaves = [torch.rand(3, dtype=dtype, requires_grad=True) for _ in range(2)]
        for _ in range(3):
            found, expected = run(*leaves), power_of_a_tensor(*leaves)
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(
                torch.autograd.grad(found.sum(), leaves), torch.autograd.grad(expected.sum(), leaves)
            )


@pytest.mark.filterwarnings("ignore:Using a .* size:UserWarning")
@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("sizes", [((6, 5), (6, 5)), ((6, 1), (5,)), ((5,), (6, 5)), ((6, 1), (1, 6))])
def test_losses_of_sizes_that_broadcast_are_differentiated_as_in_eager_mode(
    loss: str, reduction: str, sizes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    """PyTorch's operators for losses broadcast too, but their derivatives divide by the number of elements of the first
    operand, and their batching rules pair elements by their position."""
    function = getattr(torch.nn.functional, loss)

    def alone(x: Tensor, y: Tensor) -> Tensor:
        return function(x, y, reduction=reduction)

    def within(x: Tensor, y: Tensor) -> Tensor:
        return function(torch.tanh(x) * 2, y * y, reduction=reduction)

    leaves = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    batches = [torch.stack([leaf.detach(), leaf.detach() + 1]) for leaf in leaves]
    for program in (alone, within):
        run = rekindle.script(program)
        for _ in range(3):
            torch.testing.assert_close(_with_gradients(run, leaves), _with_gradients(program, leaves))
            torch.testing.assert_close(torch.func.vmap(run)(*batches), torch.func.vmap(program)(*batches))


def _with_gradients(program: Callable[..., Tensor], leaves: list[Tensor]) -> list[Tensor]:
    """Return the result, and the first and second gradients of its sum."""
    result = program(*leaves)
    first = torch.autograd.grad(result.sum(), leaves, create_graph=True)
    square = torch.stack([(grad * grad).sum() for grad in first]).sum()
    second = torch.autograd.grad(square, leaves, allow_unused=True, materialize_grads=True)
    return [result, *first, *second]

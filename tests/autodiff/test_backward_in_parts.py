"""Programs with several results that are differentiated one after the other, as two losses of one step: what autograd
permits without ``retain_graph=True`` is permitted."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.autodiff.create_differentiable_graphs import KIND, SEPARABLE, CreateDifferentiableGraphs, separated
from rekindle.ir.text.parser import parse_graph
from rekindle.passes import CommonSubexpressionElimination
from tests.support.shares import rotating

CALLS = 4
Results = Sequence[Tensor]
Program = Callable[..., Results]


class TwoHeads(nn.Module):
    """Two losses with a common part; ``common`` names the kind of it."""

    def __init__(self, common: str) -> None:
        super().__init__()
        self.common = common
        self.w = nn.Parameter(torch.linspace(-1, 1, 4), requires_grad=common != "frozen")
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = x
        if self.common == "saves nothing":
            h = x + self.w
        elif self.common == "frozen":
            h = torch.tanh(x * self.w)
        elif self.common == "input":
            h = torch.tanh(x * 2)
        return (torch.tanh(self.a(h)) * 2).sum(), (torch.sigmoid(self.b(h)) * 3).exp().sum()


def gradients_in_turn(results: Results, sources: Sequence[Tensor]) -> list[list[Tensor | None]]:
    """Go back from each result in turn; return the gradients that have been accumulated after each."""
    found = []
    for result in results:
        if result.requires_grad:
            result.sum().backward()
        found.append([None if each.grad is None else each.grad.clone() for each in sources])
    return found


@pytest.mark.parametrize("common", ["nothing", "saves nothing", "frozen", "input"])
@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_two_losses(common: str, order: slice) -> None:
    module = TwoHeads(common)
    compiled = rekindle.script(module)
    x = torch.linspace(-2, 2, 12).view(3, 4)
    for _ in range(CALLS):
        found = []
        for each in (module, compiled):
            module.zero_grad()
            found.append(gradients_in_turn(each(x)[order], list(module.parameters())))
        torch.testing.assert_close(found[1], found[0])


def alike(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return torch.tanh(x @ w).sum(), torch.tanh(x @ w).exp().sum()


def test_equal_expressions_are_released_together() -> None:
    """A difference from eager that docs/differences.md lists."""
    compiled = rekindle.script(alike)
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    for _ in range(CALLS):
        first, second = compiled(x, w)
        first.backward(retain_graph=True)
        second.backward()
    first, second = compiled(x, w)
    first.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        second.backward()


def not_differentiable(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.tanh(x * 2 + 1) * 3, (x // 3) * 2 - y


def test_a_result_without_derivative_spoils_no_other() -> None:
    compiled = rekindle.script(not_differentiable)
    x, y = (torch.linspace(-2, 2, 4).requires_grad_() for _ in range(2))
    for _ in range(CALLS):
        expected, found = (torch.autograd.grad(each(x, y)[0].sum(), x) for each in (not_differentiable, compiled))
        torch.testing.assert_close(found, expected)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        compiled(x, y)[1].sum().backward()


def test_groups_and_their_attribute() -> None:
    """Of what two results share, and what each has alone, there is one graph where the first saves tensors."""
    heads = """
        %a : Tensor = aten::tanh(%h)
        %aa : Tensor = aten::mul(%a, %a)
        %b : Tensor = aten::sigmoid(%h)
        %bb : Tensor = aten::mul(%b, %b)
        %r : (Tensor, Tensor) = prim::TupleConstruct(%aa, %bb)
        return (%r)"""
    for common, count, is_separable in (
        ("%h : Tensor = aten::exp(%x)", 1, True),
        ("%h : Tensor = aten::neg(%x)", 2, False),
        ("%h : Tensor = aten::detach(%x)", 0, False),
    ):
        graph = parse_graph(f"graph(%x : Tensor):\n        {common}{heads}")
        CreateDifferentiableGraphs().run(graph)
        groups = graph.find_nodes(KIND)
        assert len(groups) == count
        assert all((SEPARABLE in group.attributes) == is_separable for group in groups)


def test_separated_graphs() -> None:
    graph = parse_graph(
        """
        graph(%x : Tensor, %v : Tensor, %w : Tensor):
            %h : Tensor = aten::exp(%x)
            %a : Tensor = aten::mul(%h, %v)
            %b : Tensor = aten::mul(%h, %w)
            return (%a, %b)"""
    )
    assert separated(graph, (True, True, True)) is None
    found = separated(graph, (False, True, True))
    assert found is not None
    assert len(found.find_nodes(KIND)) == 2
    assert not graph.find_nodes(KIND)


# --------------------------------------------------------------------------------------------------------------- random

UNARY = (
    *("torch.tanh({0})", "{0} * 2", "{0} + 1", "torch.exp({0} * 0.1)", "-{0}", "{0}.transpose(0, 1)", "{0}.sum(0)"),
    *("{0}.relu()", "{0}[0]", "{0}.view(-1)", "{0} // 3", "F.layer_norm({0}, [{0}.size(-1)])", "{0}.detach()"),
    *("F.dropout({0}, 0.5, True)", "torch.softmax({0}, -1)"),
)
BINARY = (
    *("{0} * {1}", "{0} + {1}", "{0} - {1}", "{0} @ {1}"),
    *("torch.where({0} > 0, {0}, {1})", "torch.maximum({0}, {1})"),
)
STATEMENTS = (
    "{2} = {0} * 1\n{2}.add_(1)",
    "{2} = {0}\nfor i in range(3):\n    {2} = torch.tanh({2} * 2) + {0}",
    "if bool({0}.sum() > 0):\n    {2} = {0} * 3\nelse:\n    {2} = torch.tanh({0})",
)
PROGRAMS = rotating(600, 15)


def random_program(choices: random.Random) -> str:
    names = ["x", "y", "w", "v"]
    lines = []
    for number in range(choices.randint(4, 14)):
        operands = choices.choice(names[-5:]), choices.choice(names), f"t{number}"
        kind = choices.choices((UNARY, BINARY, STATEMENTS), (5, 4, 2))[0]
        text = choices.choice(kind).format(*operands)
        lines.append(text if kind is STATEMENTS else f"t{number} = {text}")
        names.append(f"t{number}")
    results = choices.sample(names[4:], choices.randint(2, 4))
    body = textwrap.indent("\n".join(lines), "    ")
    return f"def program(x: Tensor, y: Tensor, w: Tensor, v: Tensor):\n{body}\n    return {', '.join(results)}\n"


def outcome(program: Program, choices: random.Random) -> tuple[list[Tensor], list[list[Tensor | None]]]:
    torch.manual_seed(0)
    inputs = [torch.randn(4, 4).requires_grad_(choices.random() < 0.6) for _ in range(4)]
    results = list(program(*inputs))
    order = choices.sample(results, len(results))
    return [each.detach().clone() for each in results], gradients_in_turn(order, inputs)


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    # equal expressions are computed once: what two results compute alike is then released by the first
    monkeypatch.setattr(CommonSubexpressionElimination, "run", lambda self, graph: False)
    compared = 0
    for seed in PROGRAMS:
        text = random_program(random.Random(seed))
        scope = {"torch": torch, "F": F, "Tensor": Tensor}
        exec(text, scope)
        program: Program = scope["program"]  # type: ignore[assignment]
        try:
            expected = outcome(program, random.Random(seed))
        except (IndexError, RuntimeError):
            continue  # sizes that do not fit, or a result that autograd cannot go back from after another
        compiled = rekindle.CompilationUnit(text).program
        for _ in range(CALLS):
            found = outcome(compiled, random.Random(seed))
            where = f"seed {seed}:\n{text}"
            torch.testing.assert_close(found, expected, rtol=2e-4, atol=1e-5, equal_nan=True, msg=where)
        compared += 1
    assert compared > len(PROGRAMS) // 5

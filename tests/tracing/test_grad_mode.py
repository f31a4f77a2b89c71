"""Regions without gradients in code that is traced are regions of the program."""

import copy
import io

import pytest
import torch
from torch import nn

import rekindle
from rekindle.tracing.recording.recorder import TracerWarning
from tests.support.equality import assert_same
from tests.versions.differences import RELEASE


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def regions(graph) -> list[str]:
    """The regions of a graph as text: ``no_grad( … )``."""
    found = []
    for node in graph.nodes:
        if node.kind == "prim::Enter":
            found.append(node.input.type.name.rpartition(".")[2] + "(")
        elif node.kind == "prim::Exit":
            found.append(")")
        elif node.kind.startswith("aten::"):
            found.append(node.kind[6:])
    return found


def assert_needs_gradients_as(function, traced, *inputs):
    """Whatever the mode that both are called in, the same results need gradients."""
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            expected, actual = function(*inputs), traced(*inputs)
            assert torch.is_grad_enabled() == enabled
        assert_same(actual, expected)
        assert [x.requires_grad for x in actual] == [x.requires_grad for x in expected]


def nested(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        c = x * 4
    return a, b, c, x * 5


@pytest.mark.parametrize("enabled", [True, False])
def test_regions_are_kept_whatever_the_mode_of_the_recording(enabled):
    x = torch.randn(2, requires_grad=True)
    with torch.set_grad_enabled(enabled):
        traced = rekindle.trace(nested, (x,))
    assert regions(traced.graph) == ["no_grad(", "mul", "enable_grad(", "mul", ")", "mul", ")", "mul"]
    assert_needs_gradients_as(nested, traced, x)


def test_a_region_in_which_nothing_happens_is_left_out():
    def function(x):
        with torch.no_grad():
            pass
        return x + 1

    assert regions(rekindle.trace(function, (torch.ones(2),)).graph) == ["add"]


def test_modes_that_are_set_otherwise():
    def function(x):
        torch.set_grad_enabled(False)
        a = x * 2
        b = x * 3
        torch.set_grad_enabled(True)
        with torch.inference_mode():
            x.size(0)
            c = x + 4
        with torch.set_grad_enabled(False):
            d = x * 5
        return a, b, c.sum(), d, x * 6

    x = torch.randn(2, requires_grad=True)
    traced = rekindle.trace(function, (x,))
    assert regions(traced.graph) == ["no_grad(", "mul", "mul", ")", "no_grad(", "add", ")"] + (
        ["no_grad(", "mul", ")", "sum", "mul"]
    )


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 3)
        self.head = nn.Linear(3, 3)

    @torch.no_grad()
    def features(self, x):
        return self.trunk(x)

    def forward(self, x):
        with torch.no_grad():
            y = self.trunk(x)
        return self.head(self.features(x)), y


def test_a_part_without_gradients():
    module = Frozen()
    traced = rekindle.trace(module, (torch.randn(2, 3),))
    assert_needs_gradients_as(module, traced, torch.randn(5, 3))
    assert regions(traced.graph) == ["no_grad(", ")", "no_grad(", ")"]
    assert regions(traced.trunk.graph) == ["linear"]


class FrozenInside(nn.Sequential):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


def test_a_region_stands_in_the_method_that_enters_it():
    module = nn.Sequential(FrozenInside(nn.Linear(3, 3)), nn.Linear(3, 3))
    traced = rekindle.trace(module, (torch.randn(2, 3),))
    assert regions(traced.graph) == []
    assert regions(traced[0].graph) == ["no_grad(", ")"]
    x = torch.randn(4, 3)
    traced(x).sum().backward()
    assert module[0][0].weight.grad is None
    assert module[1].weight.grad is not None


def test_an_error_ends_the_regions_of_the_program():
    def function(x):
        with torch.no_grad():
            return x.view(-1, 4) + 1

    traced = rekindle.trace(function, (torch.ones(4),))
    with pytest.raises(RuntimeError, match="invalid for input of size 3"):
        traced(torch.ones(3))
    assert torch.is_grad_enabled()


class TriesTheOther(nn.Module):
    def __init__(self):
        super().__init__()
        self.wrong = FrozenInside(nn.Linear(3, 3), nn.Linear(4, 4))
        self.right = nn.Linear(3, 3)

    def forward(self, x):
        try:
            return (self.wrong(x),)
        except RuntimeError:
            return (self.right(x),)


def test_an_error_that_the_code_catches_ends_its_regions():
    module = TriesTheOther()
    traced = rekindle.trace(module, (torch.randn(2, 3),))
    assert_needs_gradients_as(module, traced, torch.randn(5, 3))


def test_torch_jit_reads_the_regions():
    traced = rekindle.trace(nested, (torch.randn(2),))
    theirs = torch.jit.load(io.BytesIO(traced.save_to_buffer()))
    x = torch.randn(3, requires_grad=True)
    assert [y.requires_grad for y in theirs(x)] == [False, True, False, True]
    assert_same(theirs(x), nested(x))


# ----------------------------------------------------------------------------------------------- gradients in the code


def force(x, scale):
    x = x.detach().requires_grad_()
    energy = (scale * x**3).sum() / x.size(0)
    (gradient,) = torch.autograd.grad(energy, x, create_graph=True)
    return energy, -gradient


def test_gradients_that_the_code_takes():
    scale = torch.tensor(2.0, requires_grad=True)
    traced = rekindle.trace(force, (torch.randn(2, 3), scale))
    assert "aten::grad" in [node.kind for node in traced.graph.nodes]
    x = torch.randn(5, 2)
    assert_same(traced(x, scale), force(x, scale))
    # The gradient of a gradient.
    traced(x, scale)[1].sum().backward()
    mine, scale.grad = scale.grad, None
    force(x, scale)[1].sum().backward()
    assert_same(mine, scale.grad)


def test_several_gradients_some_of_which_are_none():
    def function(x, y):
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        dx, dy = torch.autograd.grad([(x * 2).sum(), (x * x).sum()], [x, y], allow_unused=True)
        assert dy is None
        return dx

    traced = rekindle.trace(function, (torch.randn(2), torch.randn(2)))
    x = torch.randn(5)
    assert_same(traced(x, x), function(x, x))


def test_backward_within_the_code():
    def function(x):
        y = x.detach().clone().requires_grad_()
        (y**2).sum().backward()
        return y.grad

    traced = rekindle.trace(function, (torch.randn(2, 3),))
    x = torch.randn(4)
    assert_same(traced(x), function(x))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 5


@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_backward_method_is_left_out_and_that_is_told(requires_grad):
    """Whether the example requires grad says nothing of the calls that follow."""
    example = torch.ones(2, requires_grad=requires_grad)
    with pytest.warns(TracerWarning, match="the backward method of Doubled was left out: gradients are those of what"):
        traced = rekindle.trace(Doubled.apply, (example,))
    assert len(traced.report) == 1
    x = torch.ones(2, requires_grad=True)
    traced(x).sum().backward()
    assert_same(x.grad, torch.full((2,), 2.0))


def test_a_backward_method_is_not_told_of_where_no_gradients_are_recorded():
    with torch.no_grad():
        assert len(rekindle.trace(Doubled.apply, (torch.ones(2),)).report) == 0


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointed_parts(use_reentrant):
    if RELEASE < (2, 12) and not use_reentrant:
        pytest.skip("checkpoint calls torch.empty(…, requires_grad=True) there, which is not recorded")

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=use_reentrant)

    module = Checkpointed()
    traced = rekindle.trace(module, (torch.randn(2, 3, requires_grad=True),))
    twin = copy.deepcopy(module)
    x = torch.randn(5, 3, requires_grad=True)
    assert_same(traced(x), twin(x))
    traced(x).sum().backward()
    twin(x).sum().backward()
    assert_same(module.part[0].weight.grad, twin.part[0].weight.grad)

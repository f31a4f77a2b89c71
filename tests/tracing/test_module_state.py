"""Traces of modules that change their own attributes: the trace changes them too, or says that it does not."""

import warnings

import pytest
import torch
from torch import nn

import rekindle
from rekindle.tracing.check import TracingCheckError
from rekindle.tracing.recording.recorder import TracerWarning
from tests.support.equality import assert_same


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def assert_state_follows(make, *runs, **options):
    """A traced module answers and keeps state as a module that was never traced, run by run. The first run is that of
    the tracing."""
    module, untouched = make(), make()
    untouched.load_state_dict(module.state_dict())
    traced = rekindle.trace(module, runs[0], **options)
    untouched(*runs[0])
    assert_same(dict(module.state_dict()), dict(untouched.state_dict()))
    assert_same(dict(traced.state_dict()), dict(untouched.state_dict()))
    for inputs in (*runs, *runs):
        assert_same(traced(*inputs), untouched(*inputs))
        assert_same(dict(traced.state_dict()), dict(untouched.state_dict()))
    return traced


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps = self.steps + 1
        return x * self.steps


def test_a_replaced_buffer_is_set():
    traced = assert_state_follows(Counter, (torch.ones(2),), (torch.ones(3),))
    assert [node.kind for node in traced.graph.nodes if node.kind.startswith("prim::")][-1] == "prim::SetAttr"
    assert len(traced.report) == 0


class KeepsOld(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Counter()

    def forward(self, x):
        old = self.part.steps
        y = self.part(x)
        return y + self.part(x), old, old + 1


def test_what_an_attribute_was_can_be_used_after_it_is_replaced():
    assert_state_follows(KeepsOld, (torch.ones(2),), (torch.ones(3),))


class Average(nn.Module):
    """Keeps averages in a part, with a method that is not forward; the part of a part is replaced too."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(Counter(), nn.Linear(3, 3))
        self.register_buffer("mean", torch.zeros(3))
        self.scale = 1.0

    def update(self, x):
        self.mean = 0.5 * self.mean + 0.5 * x.detach().mean(0)
        self.inner[0].steps = self.inner[0].steps.clone() * 2

    def forward(self, x):
        x = self.inner(x)
        self.update(x)
        return x - self.mean


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.average = Average()

    def forward(self, x):
        self.average.update(x)
        return self.average(x) + self.average.mean


def test_attributes_that_methods_of_parts_replace():
    assert_state_follows(Outer, (torch.randn(2, 3),), (torch.randn(4, 3),))


class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.Dropout(0.0), nn.BatchNorm1d(3))
        self.register_buffer("seen", torch.zeros(2, dtype=torch.int64))

    def forward(self, x):
        self.seen[0] += 1
        self.seen.add_(x.size(0))
        return self.net(x)


def test_batch_norm_and_writes_in_place():
    assert_state_follows(Training, (torch.randn(4, 2, 8),), (torch.randn(3, 2, 9),))


def test_dropout_draws_as_eager_does():
    module = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Dropout1d(0.3), nn.AlphaDropout(0.2))
    x, other = torch.randn(2, 4), torch.randn(5, 4)
    traced = rekindle.trace(module, (x,))
    for given in (x, other, x):
        torch.manual_seed(3)
        expected = module(given)
        torch.manual_seed(3)
        assert_same(traced(given), expected)


class Sized(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = 0

    def forward(self, x):
        self.last = x.size(0)
        return x + self.last


def test_a_size_that_is_kept_is_set():
    module = Sized()
    traced = rekindle.trace(module, (torch.ones(2),))
    assert type(module.last) is int
    assert (module.last, traced.last) == (2, 2)
    traced(torch.ones(5))
    assert (module.last, traced.last) == (2, 5)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.history = []
        self.cache = None

    def forward(self, x):
        self.calls += 1
        self.history.append(x)
        self.cache = x * 2
        return x + 1


def test_what_is_kept_in_plain_attributes_is_reported():
    module = Plain()
    with pytest.warns(TracerWarning) as caught:
        traced = rekindle.trace(module, (torch.ones(2),))
    assert [str(fact) for fact in traced.report] == [
        "state: what the code puts into the attribute 'calls' of Plain was 1",
        "state: what the code puts into the attribute 'history' of Plain was a value of class 'list'",
        "state: what the code puts into the attribute 'cache' of Plain was a tensor float32[2]",
    ]
    assert str(caught[0].message) == (
        "the code changes the attribute 'calls' of Plain (it is 1 now), and the trace does not: keep tensors that "
        "change in buffers, which the trace replaces as the code does"
    )
    assert len(caught) == 3
    # As after one run of the code: checks leave nothing.
    assert (module.calls, len(module.history)) == (1, 1)
    assert_same(module.cache, torch.full((2,), 2.0))


def test_a_buffer_that_appears_in_the_first_run_makes_the_second_differ():
    class Lazy(nn.Module):
        def forward(self, x):
            if not hasattr(self, "scale"):
                self.register_buffer("scale", x.mean())
            return x * self.scale

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TracingCheckError, match="gave different programs"):
            rekindle.trace(Lazy(), (torch.ones(2),))


def test_state_of_several_methods():
    class Two(Counter):
        def reset(self, x):
            self.steps = x.sum()
            return self.steps

    module = Two()
    traced = rekindle.trace_module(module, {"reset": torch.ones(3), "forward": torch.ones(2)})
    assert module.steps.item() == traced.steps.item() == 4
    traced.reset(torch.ones(5))
    assert_same(traced(torch.ones(2)), torch.full((2,), 6.0))
    assert traced.steps.item() == 6
    assert module.steps.item() == 4


def test_an_error_leaves_plain_numbers():
    class Fails(nn.Module):
        def forward(self, x):
            self.last = x.size(0)
            raise ValueError("no")

    module = Fails()
    with pytest.raises(ValueError, match=r"^no$"):
        rekindle.trace(module, (torch.ones(2),))
    assert type(module.last) is int

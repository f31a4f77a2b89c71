"""Loops over ``torch.nn``'s recurrent cells, as programs write them: results and gradients beside eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.autodiff import differentiable_graph

WIDTH = 6


class OfCell(nn.Module):
    """A cell whose state is a tensor, over the first dimension."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        states: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            states.append(h)
        return torch.stack(states)


class OfLSTMCell(nn.Module):
    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH, bias=bias)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        states: list[Tensor] = []
        c = torch.zeros_like(h)
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            states.append(h)
        return torch.stack(states), c


class StateInTuple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        state = (h, h.cos())
        states: list[Tensor] = []
        for each in x.unbind(0):
            state = self.cell(self.project(each), state)
            states += [state[0] * 2.0]
        return torch.stack(states, 1), state[1]


class Ragged(nn.Module):
    """Rows whose sequence has ended keep their state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        lengths = torch.arange(1, x.size(1) + 1)
        states: list[Tensor] = []
        for t in range(x.size(0)):
            following = self.cell(x[t], h)
            h = torch.where((t < lengths).unsqueeze(1), following, h)
            states.append(h)
        return torch.stack(states), h


class Truncated(nn.Module):
    """Truncated back-propagation through time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        c = torch.zeros_like(h)
        states: list[Tensor] = []
        for t in range(x.size(0)):
            if t % 3 == 2:
                h, c = h.detach(), c.detach()
            h, c = self.cell(x[t], (h, c))
            states.append(h)
        return torch.stack(states)


class WithDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        states: list[Tensor] = []
        for t in range(x.size(0)):
            h = F.dropout(self.cell(x[t], h), 0.3, True)
            states.append(h)
        return torch.stack(states)


class TeacherForcing(nn.Module):
    """The next input is what the target says or what was predicted, which a number in a tensor decides."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        predicted = x[0]
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            given = x[t] if bool(x[t, 0, 0] > 0) else predicted
            h = self.cell(given, h)
            predicted = self.out(h)
            outputs.append(predicted)
        return torch.stack(outputs)


class Stopping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        states: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            states.append(h)
            if bool(h.sum() > 1.5):
                break
        return torch.stack(states)


class Layers(nn.Module):
    """Two layers, whose states are in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(WIDTH, WIDTH) for _ in range(2)])

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        states = [h, h * 0.5]
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            given = x[t]
            for i, cell in enumerate(self.cells):
                given = cell(given, states[i])
                states[i] = given
            outputs.append(given)
        return torch.stack(outputs), states[0]


class BothWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.there = nn.GRUCell(WIDTH, WIDTH)
        self.back = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        first: list[Tensor] = []
        second: list[Tensor] = []
        g = h
        for t in range(x.size(0)):
            h = self.there(x[t], h)
            first.append(h)
        for t in range(x.size(0)):
            g = self.back(x[x.size(0) - 1 - t], g)
            second.append(g)
        return torch.cat([torch.stack(first), torch.stack(second).flip(0)], 2)


class Attending(nn.Module):
    """A decoder that attends to its inputs, and feeds an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, WIDTH)
        self.cell = nn.GRUCell(2 * WIDTH, WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        tokens = torch.arange(4 * x.size(1)).view(4, -1) % 5
        keys = x.transpose(0, 1)
        outputs: list[Tensor] = []
        for t in range(tokens.size(0)):
            weights = torch.softmax(torch.bmm(keys, self.query(h).unsqueeze(2)).squeeze(2), 1)
            context = torch.bmm(weights.unsqueeze(1), keys).squeeze(1)
            h = self.cell(torch.cat([self.embedding(tokens[t]), context], 1), h)
            outputs.append(h)
        return torch.stack(outputs)


class LastStateAlone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        c = h.new_zeros([x.size(1), WIDTH])
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
        return h


class LayersInLists(nn.Module):
    """Two layers of LSTM cells, whose states are in lists that a comprehension makes."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(WIDTH, WIDTH) for _ in range(2)])
        self.out = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        hs = [torch.zeros_like(h) for _ in range(len(self.cells))]
        cs = [h.sin() for _ in range(len(self.cells))]
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            given = x[t]
            for i, cell in enumerate(self.cells):
                hs[i], cs[i] = cell(given, (hs[i], cs[i]))
                given = hs[i]
            outputs.append(self.out(given))
        return torch.stack(outputs, 1), torch.stack(hs)


class BatchFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        c = torch.zeros_like(h)
        outputs: list[Tensor] = []
        for t in range(x.size(1)):
            h, c = self.cell(torch.relu(self.project(x[:, t, :])), (h, c))
            outputs.append(h.unsqueeze(1))
        return torch.cat(outputs, 1)


class WithoutState(nn.Module):
    """The first iteration has no state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        state: Tensor | None = None
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            state = self.cell(x[t], state)
            outputs.append(state)
        return torch.stack(outputs) * h.sum()


class Zoneout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        c = torch.zeros_like(h)
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            following, cell = self.cell(x[t], (h, c))
            h, c = 0.1 * h + 0.9 * following, 0.2 * c + 0.8 * cell
            outputs.append(h)
        return torch.stack(outputs)


class LastOfList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            outputs.append(h)
        return outputs[-1], torch.stack(outputs).mean(0)


class IntoTensor(nn.Module):
    """States are written to their places in a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        outputs = torch.zeros_like(x)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            outputs[t] = h
        return outputs


class Greedy(nn.Module):
    """Each iteration is given what the one before thinks most likely."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 5)
        self.embedding = nn.Embedding(5, WIDTH)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        token = torch.zeros(x.size(1), dtype=torch.long)
        outputs: list[Tensor] = []
        for _ in range(x.size(0)):
            h = self.cell(self.embedding(token), h)
            scores = self.out(h)
            token = scores.argmax(1)
            outputs.append(F.log_softmax(scores, 1))
        return torch.stack(outputs)


def gru() -> nn.Module:
    return OfCell(nn.GRUCell(WIDTH, WIDTH))


def gru_without_biases() -> nn.Module:
    return OfCell(nn.GRUCell(WIDTH, WIDTH, bias=False))


def tanh_rnn() -> nn.Module:
    return OfCell(nn.RNNCell(WIDTH, WIDTH))


def relu_rnn() -> nn.Module:
    return OfCell(nn.RNNCell(WIDTH, WIDTH, nonlinearity="relu"))


def lstm_without_biases() -> nn.Module:
    return OfLSTMCell(bias=False)


WHOLE: Sequence[Callable[[], nn.Module]] = (
    *(gru, gru_without_biases, tanh_rnn, relu_rnn, OfLSTMCell, lstm_without_biases, StateInTuple, Ragged, Truncated),
    *(BothWays, Attending, LastStateAlone, Stopping, Layers, LayersInLists, BatchFirst, WithoutState, Zoneout),
)
"""Models whose loops are differentiated as a whole."""
OTHERS: Sequence[Callable[[], nn.Module]] = (WithDropout, TeacherForcing, LastOfList, IntoTensor, Greedy)

MODELS = [*WHOLE, *OTHERS]


def made(model: Callable[[], nn.Module]) -> tuple[nn.Module, Any]:
    """A model and the same compiled, with parameters of their own."""
    torch.manual_seed(0)
    eager = model().double()
    return eager, rekindle.script(copy.deepcopy(eager))


def inputs(length: int = 5, batch: int = 3, seed: int = 1) -> list[Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(length, batch, WIDTH).double(), torch.randn(batch, WIDTH).double()]


def total(found: Any) -> Tensor:
    parts = found if isinstance(found, tuple) else (found,)
    return torch.stack([(part * part.sin()).sum() for part in parts]).sum()


def step(model: Any, given: Sequence[Tensor], wanted: Sequence[Tensor] | None = None) -> list[Tensor]:
    """The results, and the gradients of the inputs and parameters that require one."""
    values = [each.detach().requires_grad_() for each in given]
    torch.manual_seed(5)
    found = model(*values)
    leaves = [each for each in (*values, *model.parameters()) if each.requires_grad] if wanted is None else wanted
    gradients = torch.autograd.grad(total(found), leaves, allow_unused=True)
    results = list(found) if isinstance(found, tuple) else [found]
    return [*results, *(torch.zeros(()) if each is None else each for each in gradients)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_gradients(model: Callable[[], nn.Module]) -> None:
    eager, compiled = made(model)
    for length, batch, seed in ((5, 3, 1), (5, 3, 2), (5, 3, 3), (2, 1, 4), (70, 4, 5), (5, 2, 6), (1, 3, 7)):
        given = inputs(length, batch, seed)
        torch.testing.assert_close(step(compiled, given), step(eager, given))
    graph = compiled.graph_for(*given)
    assert bool(graph.find_nodes("prim::Loop")) == (model in OTHERS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_without_gradients_after_some(model: Callable[[], nn.Module]) -> None:
    eager, compiled = made(model)
    for _ in range(3):
        step(compiled, inputs())
        with torch.no_grad():
            torch.manual_seed(5)
            expected = eager(*inputs())
            torch.manual_seed(5)
            torch.testing.assert_close(compiled(*inputs()), expected)
        torch.testing.assert_close(step(compiled, inputs()), step(eager, inputs()))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_gradients_of_gradients(model: Callable[[], nn.Module]) -> None:
    answers = []
    for function in made(model):
        values = [each.requires_grad_() for each in inputs()]
        leaves = [*values, *function.parameters()]
        for _ in range(2):
            torch.manual_seed(5)
            first = torch.autograd.grad(total(function(*values)), leaves, create_graph=True, allow_unused=True)
            penalty = torch.stack([each.square().sum() for each in first if each is not None]).sum()
            second = torch.autograd.grad(penalty, leaves, allow_unused=True)
        answers.append([each for each in (*first, *second) if each is not None])
    torch.testing.assert_close(*answers)


@pytest.mark.parametrize("model", [gru, OfLSTMCell, Attending, Layers], ids=lambda model: model.__name__)
def test_some_parameters_are_frozen(model: Callable[[], nn.Module]) -> None:
    eager, compiled = made(model)
    for frozen in ([0], [1, 2], [0, 1, 2, 3], []):
        for function in (eager, compiled):
            for index, parameter in enumerate(function.parameters()):
                parameter.requires_grad_(index not in frozen)
        for _ in range(2):
            torch.testing.assert_close(step(compiled, inputs()), step(eager, inputs()))


def test_sequences_of_many_lengths_share_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    specialized: list[object] = []
    specialize = differentiable_graph.specialize_forward

    def noted(*args: Any) -> Any:
        specialized.append(args)
        return specialize(*args)

    monkeypatch.setattr(differentiable_graph, "specialize_forward", noted)

    class Other(OfLSTMCell):
        """A class of its own, whose graph no other test has run."""

        def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
            states: list[Tensor] = []
            c = torch.cos(h)
            for t in range(x.size(0)):
                h, c = self.cell(x[t], (h, c))
                states.append(h)
            return torch.stack(states), c

    eager, compiled = made(Other)
    for length in (*range(2, 14), *range(2, 14)):
        given = inputs(length)
        torch.testing.assert_close(step(compiled, given), step(eager, given))
    assert 1 <= len(specialized) <= 2


def test_gradients_are_added_to_those_that_are_there() -> None:
    answers = []
    for function in made(OfLSTMCell):
        for seed in range(3):
            found = function(*inputs(seed=seed))
            total(found).backward(retain_graph=True)
            total(found).backward()
        answers.append([parameter.grad for parameter in function.parameters()])
    torch.testing.assert_close(*answers)


def test_sequences_without_elements() -> None:
    eager, compiled = made(BatchFirst)
    given = inputs()
    for _ in range(3):
        step(compiled, given)
    for function in (eager, compiled):
        with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
            function(given[0][:0], given[1])


def test_autocast() -> None:
    torch.manual_seed(0)
    eager = gru()
    compiled = rekindle.script(copy.deepcopy(eager))
    given = [each.float() for each in inputs()]
    for _ in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            answers = [step(function, given) for function in (compiled, eager)]
        torch.testing.assert_close(*answers)


SIZES = [
    ((2, 3, 6), (1, 6)),
    ((2, 1, 6), (3, 6)),
    ((2, 3, 5), (3, 6)),
    ((2, 3, 6), (3, 1)),
    ((2, 6), (6,)),
    ((2, 3, 6), (6,)),
    ((2, 3, 6), (2, 3, 6)),
    ((2, 3, 6), (3, 6, 6)),
    ((2, 6, 6), (6,)),
    ((2, 6, 6, 6), (6, 6, 6)),
    ((2, 6), (3, 6)),
]


def outcome(function: Any, values: Sequence[Tensor]) -> Any:
    """The result of a call, or the exception that it raises."""
    try:
        return function(*values)
    except (IndexError, RuntimeError, ValueError) as error:
        return error


@pytest.mark.parametrize("model", [gru, tanh_rnn, OfLSTMCell], ids=lambda model: model.__name__)
@pytest.mark.parametrize("records", [True, False])
def test_sizes_that_do_not_fit_raise_as_in_eager(model: Callable[[], nn.Module], records: bool) -> None:
    eager, compiled = made(model)
    for _ in range(3):
        step(compiled, inputs())
    with torch.set_grad_enabled(records):
        for x, h in SIZES:
            values = torch.randn(x).double(), torch.randn(h).double()
            expected, found = outcome(eager, values), outcome(compiled, values)
            assert type(found) is type(expected)
            if isinstance(expected, Exception):
                assert str(expected) in str(found)
            else:
                torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("records", [True, False])
def test_a_second_state_that_would_be_broadcast_is_refused(records: bool) -> None:
    cell = nn.LSTMCell(4, 4)
    compiled = rekindle.script(cell)
    x, h = torch.randn(3, 4), torch.randn(3, 4)
    with torch.set_grad_enabled(records):
        for size, message in (
            ((3, 1), "hidden1 has inconsistent hidden_size: got 1, expected 4"),
            ((1, 4), "Input batch size 3 doesn't match hidden1 batch size 1"),
        ):
            for _ in range(3):
                compiled(x, (h, h))
                with pytest.raises(RuntimeError) as raised:
                    compiled(x, (h, torch.randn(size)))
                assert message in str(raised.value)


def checked(x: Tensor, w: Tensor, n: int) -> Tensor:
    parts: list[Tensor] = []
    for t in range(n):
        if x.dim() != 2:
            raise ValueError(f"expected a matrix, got {x.dim()} dimensions")
        x = torch.tanh(F.linear(x, w)) + t
        parts.append(x)
    return torch.stack(parts)


def test_loops_that_may_raise_are_differentiated_as_a_whole() -> None:
    compiled = rekindle.script(checked)
    for _ in range(3):
        values = [torch.randn(3, 3).double().requires_grad_() for _ in range(2)]
        found = [torch.autograd.grad(function(*values, 4).square().sum(), values) for function in (compiled, checked)]
        torch.testing.assert_close(*found)
    assert not compiled.graph_for(*values, 4).find_nodes("prim::Loop")
    with pytest.raises(ValueError, match="expected a matrix, got 1 dimensions"):
        compiled(torch.randn(3, requires_grad=True), values[1].float(), 4)

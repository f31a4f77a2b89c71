"""Modules as functions of their parameters: batches of examples, ensembles of models, gradients for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import BatchingError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x)).tanh())


def nets(count: int) -> list[Net]:
    torch.manual_seed(0)
    found = [Net().eval() for _ in range(count)]
    for index, net in enumerate(found):
        assert net.norm.running_mean is not None
        net.norm.running_mean += index
    return found


def parameters_of(net: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in net.named_parameters()}


def test_a_batch_of_examples() -> None:
    (net,) = nets(1)
    x = torch.randn(5, 2, 3)
    batched = rekindle.vmap(net, (None, 0))
    torch.testing.assert_close(batched(parameters_of(net), x), torch.func.vmap(net)(x))
    assert not batched.report.looped
    assert str(batched.schema).startswith("vmap_Net(Dict(str, Tensor) parameters, Tensor x)")


def test_an_ensemble() -> None:
    models = nets(3)
    parameters, _ = torch.func.stack_module_state(models)
    for model in models:
        model.norm.running_mean = models[0].norm.running_mean  # buffers are constants
    x = torch.randn(2, 3)
    expected = torch.stack([model(x) for model in models])
    stacked = {name: value.detach() for name, value in parameters.items()}
    batched = rekindle.vmap(models[0], (0, None))
    torch.testing.assert_close(batched(stacked, x), expected)
    assert not batched.report.looped
    each = torch.randn(3, 2, 3)
    expected = torch.stack([model(one) for model, one in zip(models, each, strict=True)])
    torch.testing.assert_close(rekindle.vmap(models[0])(stacked, each), expected)


def test_an_ensemble_with_buffers_of_its_own() -> None:
    models = nets(3)
    parameters, buffers = torch.func.stack_module_state(models)
    state = {name: value.detach() for name, value in (parameters | buffers).items() if "tracked" not in name}
    x = torch.randn(2, 3)
    batched = rekindle.vmap(models[0], (dict.fromkeys(state, 0), None))
    torch.testing.assert_close(batched(state, x), torch.stack([model(x) for model in models]))


def test_some_parameters_differ() -> None:
    (net,) = nets(1)
    state = parameters_of(net)
    biases = torch.randn(4, 2)
    x = torch.randn(2, 3)
    batched = rekindle.vmap(net, ({"last.bias": 0}, None))
    expected = torch.stack([torch.func.functional_call(net, {"last.bias": bias}, (x,)) for bias in biases])
    torch.testing.assert_close(batched(state | {"last.bias": biases}, x), expected)


class Loss(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.net(x), y)


def test_gradients_for_each_example() -> None:
    (net,) = nets(1)
    loss = Loss(net)
    state = parameters_of(loss)
    x, y = torch.randn(5, 2, 3), torch.randn(5, 2, 2)

    def of_one(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(loss, parameters, (x, y))
        return found

    expected = torch.func.vmap(torch.func.grad(of_one), (None, 0, 0))(state, x, y)
    batched = rekindle.vmap(rekindle.grad(loss), (None, 0, 0))
    torch.testing.assert_close(batched(state, x, y), expected)
    assert not batched.report.looped, str(batched.report)


def refused(make: Callable[[], Any]) -> str:
    with pytest.raises(BatchingError) as caught:
        make()
    return str(caught.value)


def test_names_that_there_are_not() -> None:
    (net,) = nets(1)
    assert refused(lambda: rekindle.vmap(net.last, ({"b": 0}, None))).splitlines() == [
        "in_dims names 'b', and 'Linear' has no parameter or buffer of that name",
        "Hint: it has 'weight', 'bias'",
    ]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


def test_modules_that_change_themselves() -> None:
    assert refused(lambda: rekindle.vmap(Counter(), (None, 0))).splitlines() == [
        "'Counter' writes to its attributes, or passes itself on, so that it is not a function of its parameters",
        "Hint: call eval(), or freeze the module, before",
    ]
    lines = refused(lambda: rekindle.vmap(Net(), (None, 0))).splitlines()
    assert lines[0] == "'Net' writes to a buffer, which is the same for all examples"
    assert lines[-1] == "Hint: call eval() before"


def test_other_entries_than_in_dims_names() -> None:
    def f(parts: dict[str, Tensor]) -> Tensor:
        return parts["a"] + parts["b"]

    batched = rekindle.vmap(f, ({"a": 0, "b": None},))
    a, b = torch.randn(3, 2), torch.randn(2)
    torch.testing.assert_close(batched({"a": a, "b": b}), a + b)
    with pytest.raises(ValueError, match=r"^vmap: a dict has 3 entries, and in_dims names 2$"):
        batched({"a": a, "b": b, "c": b})

"""Slices of containers of modules, and parameters at an index that is known only at run time."""

from typing import Any, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import rekindle
from rekindle.errors import UnsupportedError
from tests.frontend.outcomes import agrees


class Sliced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
        self.parts = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()])

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
        first = self.layers[0](x)
        rest = self.layers[1:](first)
        for layer in self.layers[1:]:
            first = layer(first)
        for part in self.parts[1:]:
            x = part(x)
        unchanged = self.layers[5:](x)
        return rest, first, x, unchanged + self.layers[:](x) + self.layers[::2][0](x).sum(), len(self.layers[1:])


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": nn.Parameter(torch.zeros(2))})

    def forward(self, x: Tensor, key: str) -> Tensor:
        for name in self.scales:
            x = x + self.scales[name]
        for name in self.scales.keys():
            x = x * self.scales[name]
        return x + self.scales[key] + self.scales["a"]


class Numbered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(2) * i) for i in range(3)])

    def forward(self, x: Tensor, i: int) -> Tensor:
        return x * self.scales[i] + self.scales[-1]


class Activated(nn.Module):
    def __init__(self, activation: Any) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(x) if callable(self.activation) else x


X = torch.tensor([[1.0, -2.0]])


def test_slices_of_containers() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        agrees(Sliced(), (X,), (X[:0],))


def test_parameters_by_name_and_by_index() -> None:
    with torch.no_grad():
        agrees(Named(), (X, "a"), (X, "b"), (X, "z"))
        agrees(Numbered(), (X, 0), (X, -1), (X, 3), (X, -4))


def test_gradients_of_parameters_by_index() -> None:
    module = Numbered()
    compiled = rekindle.script(module)
    found = []
    for each in (module, compiled):
        module.zero_grad()
        each(X, 1).sum().backward()
        found.append([None if p.grad is None else p.grad.tolist() for p in module.parameters()])
    assert found[0] == found[1]


@pytest.mark.parametrize("activation", [None, functional.relu, nn.Tanh(), 3])
def test_callable(activation: Any) -> None:
    agrees(Activated(activation), (X,))


def asks(x: Optional[Tensor], n: int) -> Tuple[bool, bool, bool, bool, bool]:
    local = lambda y: y  # noqa: E731
    return callable(x), callable(n), callable(local), callable(asks), callable(torch.relu)


def test_callable_of_values_and_functions() -> None:
    agrees(asks, (None, 1), (X, 1))


class SlicedList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Tanh(), nn.Tanh()])

    def forward(self, x: Tensor) -> Tensor:
        return self.parts[1:](x)


def test_a_slice_of_a_module_list_cannot_be_called() -> None:
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(SlicedList())
    assert str(caught.value).partition("\n")[0] == "a slice of a ModuleList cannot be called"

"""Values whose Python class is not the type of the IR: sizes and dtypes as Any, ``type(x) is int`` of bools, the view
``x[...]``, and ``x.grad``, which may be None."""

from __future__ import annotations

import copy
import io
from typing import Any, List, Optional, Union

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.frontend.outcomes import agrees, shown

X = torch.arange(6.0).reshape(2, 3)


def given(y: Any):
    return y


def given_and_declared(y: Any, *, n: int = 1) -> Any:
    return (y, n)


class Holder:
    def __init__(self) -> None:
        self.n = 1

    def given(self, y: Any):
        return y, self.n


def local_variable(x: Tensor):
    y: Any = x.shape
    d: Any = x.dtype
    t: Any = tuple(x.flatten().tolist())
    return y, d, t, isinstance(y, tuple), isinstance(y, list), isinstance(d, int), len(y), y[0]


def parameters(x: Tensor):
    return (
        *(given(x.shape), given(x.dtype), given(x.layout), given((1, 2)), given([3]), given({1: x.shape})),
        *(given_and_declared(x.shape), given_and_declared(x.dtype, n=2), Holder().given(x.shape)),
    )


def classes_of_dtypes(x: Tensor):
    d = x.dtype
    return (
        *(isinstance(d, int), isinstance(d, torch.dtype), isinstance(d, (str, torch.dtype))),
        *(isinstance(3, torch.dtype), isinstance(True, torch.dtype)),
        *(type(d) is int, type(d) is torch.dtype, isinstance(x.layout, int), isinstance(True, int)),
        *(torch.get_default_dtype(), torch.get_default_dtype() == d),
    )


def exactly_an_int(a: Any, b: Union[int, bool, str], c: Union[int, float, bool]):
    return (
        *(type(a) is int, type(a) in (int, float), type(a) is bool, type(a) in (int, bool), isinstance(a, int)),
        *(type(b) is int, type(b) is bool, type(c) is int, type(c) is bool),
    )


def all_of_it(x: Tensor):
    y = x[...]
    y += 1
    return y is x, x, x[0, 0][...], x[:, (0, 1)], x[(0, 1), 1]


def written_at_tuples(x: Tensor):
    x[:, (0, 1)] = 3
    x[...] += 1
    return x


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (local_variable, [(X,), (X.double(),)]),
        (parameters, [(X,), (X.double(),)]),
        (classes_of_dtypes, [(X,)]),
        (exactly_an_int, [(True, True, True), (1, 1, 1), (1.0, "a", 2.0)]),
        (all_of_it, [(X,)]),
        (written_at_tuples, [(X,)]),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_as_eager(program: Any, calls: list[tuple[Any, ...]]) -> None:
    agrees(program, *calls)


def gradient(x: Tensor):
    g = x.grad
    total: Optional[Tensor] = None
    if x.grad is not None:
        total = x.grad.sum()
    return g is None, x.grad is not None, g, total


def gradients(parameters: List[Tensor]):
    found: List[Tensor] = []
    for p in parameters:
        g = p.grad
        if p.grad is not None:
            found.append(p.grad)
        if g is not None:
            found.append(g)
    missing = [p.grad is None for p in parameters]
    return torch.stack(found + [p.grad for p in parameters if p.grad is not None]), missing, found


def used_without_a_check(p: Tensor):
    declared: Tensor = p.grad
    return torch.cat([p.grad, declared]), p.grad * 2, torch.stack(list({"a": p.grad}.values())), p.grad == None


class Descends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, rate: float) -> Tensor:
        with torch.no_grad():
            for p in self.parameters():
                if p.grad is not None:
                    p -= rate * p.grad
                    p.grad.zero_()
        return (self.weight * 2).sum()


def _loaded(compiled: Any) -> Any:
    file = io.BytesIO()
    rekindle.save(compiled, file)
    file.seek(0)
    return rekindle.load(file)


@pytest.mark.parametrize("strategy", ["simple", "profiling", "native"])
def test_a_gradient_may_be_none(strategy: str) -> None:
    with_gradient = torch.ones(2, requires_grad=True)
    (with_gradient * 3).sum().backward()
    before = rekindle.set_execution_strategy(strategy)
    try:
        compiled = rekindle.script(gradient)
        for _ in range(2):
            assert compiled(torch.ones(2)) == (True, False, None, None)
            is_none, is_there, found, total = compiled(with_gradient)
            assert (is_none, is_there, found is with_gradient.grad) == (False, True, True)
            assert total.item() == 6.0
    finally:
        rekindle.set_execution_strategy(before)


def test_gradients_are_tensors_where_they_are_used() -> None:
    with_gradient = torch.ones(2, requires_grad=True)
    (with_gradient * 3).sum().backward()
    collects, uses = rekindle.script(gradients), rekindle.script(used_without_a_check)
    for _ in range(2):
        given = [with_gradient, torch.ones(2)]
        assert shown(collects(given)) == shown(gradients(given))
        assert shown(uses(with_gradient)) == shown(used_without_a_check(with_gradient))


@pytest.mark.parametrize("is_loaded", [False, True])
def test_parameters_without_a_gradient_are_left(is_loaded: bool) -> None:
    eager = Descends()
    compiled = rekindle.script(copy.deepcopy(eager))
    if is_loaded:
        compiled = _loaded(compiled)
    for _ in range(3):
        for module in (eager, compiled):
            module(0.5).backward()
    assert torch.equal(eager.weight, compiled.weight)
    assert eager.weight.tolist() == [-1.0, -1.0, -1.0]

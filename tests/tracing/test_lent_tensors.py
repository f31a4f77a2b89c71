"""Traced code gets the caller's own tensors, and they are afterwards what they were."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import TracingError
from rekindle.tracing.recording.lent_tensors import LentTensors
from tests.support.equality import assert_same


def test_code_knows_its_arguments():
    """As a library does that keeps parameters in a registry, and is traced with them as arguments."""
    registry = {"w": torch.ones(2, requires_grad=True)}

    def scaled(x: Tensor, w: Tensor) -> Tensor:
        assert w is registry["w"]
        return x * registry["w"] + w

    x = torch.arange(2.0)
    traced = rekindle.trace(scaled, (x, registry["w"]))
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    traced(x, w).sum().backward()
    assert_same(traced(x, w).detach(), (x * w + w).detach())
    assert_same(w.grad, x + 1)


def test_a_branch_on_identity_is_that_of_the_example():
    known = torch.ones(2)
    function = lambda x: x + 1 if x is known else x - 1  # noqa: E731
    assert_same(rekindle.trace(function, (known,))(known), function(known))


def test_one_tensor_for_two_arguments():
    def difference(x: Tensor, y: Tensor) -> Tensor:
        return x * 2 - y

    for requires_grad in (False, True):
        x = torch.ones(2, requires_grad=requires_grad)
        traced = rekindle.trace(difference, (x, x))
        a, b = torch.tensor([5.0]), torch.tensor([3.0])
        assert_same(traced(a, b), difference(a, b))


def test_writes_are_taken_back():
    def writes(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        x.add_(1)
        x.resize_(1)
        y[0].zero_()
        y.requires_grad_()
        (y * 2).sum().backward()
        z.mul_(weight)
        return x + y.sum()

    weight = torch.nn.Parameter(torch.ones(2))
    x, y, z = torch.zeros(2), torch.ones(3, 2), torch.ones(2)
    view = x[:1]
    base = (weight * x).sum()  # keeps x for its gradient
    before = [(t.data_ptr(), t._version, t.shape) for t in (x, y, z)]
    with LentTensors() as lent:
        assert lent.lend(x) is x
        assert lent.lend(x) is not x
        assert [lent.lend(t) is t for t in (y, z)] == [True, True]
        writes(x, y, z)
        assert z.grad_fn is not None
        assert view.item() == 0
    assert [(t.data_ptr(), t._version, t.shape) for t in (x, y, z)] == before
    assert_same((x, y, z), (torch.zeros(2), torch.ones(3, 2), torch.ones(2)))
    assert [(t.requires_grad, t.grad, t.grad_fn) for t in (x, y, z)] == [(False, None, None)] * 3
    base.backward()
    assert_same(weight.grad, torch.zeros(2))


def test_what_an_error_leaves():
    def fails(x: Tensor) -> Tensor:
        x.add_(1)
        raise KeyError("no")

    x = torch.zeros(2)
    with pytest.raises(KeyError):
        rekindle.trace(fails, (x,))
    assert_same(x, torch.zeros(2))


class Labelled(Tensor):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, requires_grad=True) * 2,
        lambda: torch.ones(2, 2)[0],
        lambda: torch.ones(2).as_subclass(Labelled),
        lambda: torch.ones(2).to_sparse(),
        lambda: torch.ones(2, dtype=torch.complex64).conj(),
    ],
    ids=["result", "view", "subclass", "sparse", "conjugated"],
)
def test_copies_of_what_cannot_be_given_back(make):
    tensor = make()
    version = tensor._version
    with LentTensors() as lent:
        given = lent.lend(tensor)
        assert given is not tensor
        assert given.requires_grad == tensor.requires_grad
        with torch.no_grad():
            given.mul_(0)
    assert tensor._version == version
    assert tensor.to_dense().abs().sum() > 0


def test_a_parameter_of_the_module_stays_one():
    own = torch.nn.Linear(2, 2)
    traced = rekindle.trace(own, (own.weight,))
    assert traced.graph.find_node("aten::linear") is not None
    assert_same(traced(torch.ones(1, 2)), own(torch.ones(1, 2)))


def test_a_tensor_from_outside_that_requires_grad_is_refused():
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(TracingError) as raised:
        rekindle.trace(lambda x: x * weight, (torch.ones(2),))
    assert raised.value.message == (
        "a tensor that requires grad is used and is neither an input nor part of the traced module; as a constant it "
        "would get no gradient"
    )

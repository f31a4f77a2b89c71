"""Tensors that the code makes of numbers."""

import warnings

import pytest
import torch

import rekindle
from rekindle.errors import TracingError
from rekindle.tracing.recording.recorder import TracerWarning
from tests.support.equality import assert_same


def assert_traced(function, example, *others):
    """The trace agrees with the code, each time that it is called, on the example and on others."""
    traced = rekindle.trace(function, (example,), check_trace=False)
    for x in (example, *others) * 2:
        assert_same(traced(x), function(x))
    return traced


def kinds(traced):
    return [node.kind for node in traced.graph.nodes if node.kind != "prim::Constant"]


def test_constant_is_made_once_where_nobody_writes_to_it():
    traced = assert_traced(lambda x: x + torch.tensor([1.0, 2.0]), torch.ones(2))
    assert kinds(traced) == ["aten::add"]


def test_constant_that_is_written_to_is_made_anew():
    def counted(x):
        total = torch.tensor([0.0, 0.0])
        total += x
        return total * 2

    traced = assert_traced(counted, torch.ones(2))
    assert kinds(traced) == ["aten::clone", "aten::add_", "aten::mul"]


def test_constant_that_is_written_to_through_a_view_is_made_anew():
    def first(x):
        total = torch.tensor([0.0, 0.0])
        total[0] = x[0]
        return total * 2

    assert_traced(first, torch.ones(2), torch.zeros(3))


def test_constant_that_is_returned_is_the_callers():
    traced = rekindle.trace(lambda x: (x, torch.tensor([1.0])), (torch.ones(2),))
    traced(torch.ones(2))[1].add_(5)
    assert_same(traced(torch.ones(2))[1], torch.tensor([1.0]))


def test_new_tensor_of_numbers():
    assert_traced(lambda x: x + x.new_tensor([1, 2, 3]), torch.ones(2, 3), torch.ones(5, 3))
    assert_traced(lambda x: x.new_tensor(5.0, dtype=torch.float64), torch.ones(2))


def test_new_tensor_of_sizes():
    assert_traced(lambda x: x * x.new_tensor(x.shape), torch.ones(3, 2), torch.ones(5, 2))


def test_new_tensor_of_a_tensor_is_a_copy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch would rather have clone().detach()
        assert_traced(lambda x: x.new_tensor(x).add_(1) + x, torch.ones(2), torch.ones(3))


def test_new_with_sizes():
    assert_traced(lambda x: x.new(x.size(0), 2).fill_(3), torch.ones(3), torch.ones(5))
    assert_traced(lambda x: x.new(x.shape).zero_(), torch.ones(3), torch.ones(5))
    assert_traced(lambda x: x.new([1.0, 2.0]) + x, torch.ones(2), torch.zeros(2))


def test_strides_stay_computed():
    traced = assert_traced(
        lambda x: x.as_strided((x.size(0),), (x.stride(0),)) + x.stride()[1], torch.rand(2, 3), torch.rand(4, 5)
    )
    assert len(traced.report) == 0


def test_sizes_stay_sizes_in_functional():
    def resized(x):
        return torch.nn.functional.interpolate(x, scale_factor=1.5, recompute_scale_factor=True)

    assert_traced(resized, torch.rand(1, 1, 4, 4), torch.rand(2, 1, 6, 9))


def test_sym_int_keeps_a_size_that_int_would_fix():
    traced = assert_traced(lambda x: x[: torch.sym_int(x.size(0) * 0.5)], torch.rand(4), torch.rand(9))
    assert len(traced.report) == 0
    with pytest.warns(TracerWarning, match=r"int\(\) of a size was 4"):
        rekindle.trace(lambda x: x[: int(x.size(0))], (torch.rand(4),))


def test_int_outside_of_a_trace_is_left_alone():
    rekindle.trace(lambda x: x + 1, (torch.rand(2),))
    assert not hasattr(torch.nn.functional, "int")
    assert torch.sym_int(2.5) == 2


def test_python_on_each_element_is_refused():
    with pytest.raises(TracingError, match=r"Tensor\.apply_ runs Python on each element, which a trace cannot record"):
        rekindle.trace(lambda x: x.clone().apply_(abs), (torch.rand(2),))


@pytest.mark.parametrize("function", [lambda x: x + torch.tensor([x.sum(), 1.0]), lambda x: x.new_tensor([[x.max()]])])
def test_numbers_in_tensors_are_reported(function):
    with pytest.warns(TracerWarning, match="a tensor that is made of numbers in tensors"):
        traced = rekindle.trace(function, (torch.ones(2),), check_trace=False)
    assert [fact.kind.value for fact in traced.report] == ["number"]

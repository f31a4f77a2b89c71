"""Which error a call raises: the first one in the order of the program, though kernels gather operators across it."""

import traceback
import warnings

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import Tensor

import rekindle

LONG, SHORT = torch.linspace(0, 1, 8), torch.linspace(0, 1, 4)


def product_of_equal_sizes(x: Tensor, t: Tensor):
    y = torch.sigmoid(x)
    if y.size() != t.size():
        raise ValueError("sizes differ")
    return (y * t).tanh() + 1


def loss_of_equal_sizes(x: Tensor, t: Tensor):
    y = torch.sigmoid(x)
    if y.shape != t.shape:
        raise AssertionError("shapes differ")  # pytest rewrites assertions
    return F.mse_loss(y, t)


def library_check(x: Tensor, t: Tensor):
    return F.binary_cross_entropy(torch.sigmoid(x), t)


def check_in_a_loop(x: Tensor, t: Tensor):
    for _ in range(3):
        x = torch.sigmoid(x) + 1
        if len(x) != len(t):
            raise IndexError(f"{len(x)} and {len(t)}")
        x = x * t
    return x


def check_in_a_method_of_another(x: Tensor, t: Tensor):
    y = torch.exp(x)
    _require(y, t)
    return y / t - 1


def _require(y: Tensor, t: Tensor):
    if y.numel() != t.numel():
        raise KeyError("elements")


PROGRAMS = [
    product_of_equal_sizes,
    loss_of_equal_sizes,
    library_check,
    check_in_a_loop,
    check_in_a_method_of_another,
]


def _error(function, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (of any class)
        function(*arguments)
    return caught.value


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_first_error(program, requires_grad):
    x = LONG.clone().requires_grad_(requires_grad)
    expected = _error(program, x, SHORT)
    compiled = rekindle.script(program)
    for _ in range(4):
        torch.testing.assert_close(compiled(x, LONG), program(x, LONG))
        error = _error(compiled, x, SHORT)
        assert type(error) is type(expected)
        assert str(error) == str(expected)
        assert error.__context__ is None
        lines = [entry.line for entry in traceback.extract_tb(expected.__traceback__)[1:]]
        assert [entry.line for entry in traceback.extract_tb(error.__traceback__)][-len(lines) :] == lines


def prints_first(x: Tensor, t: Tensor):
    y = torch.sigmoid(x)
    print("sizes:", len(y), len(t))  # noqa: T201
    if len(y) > len(t) + 100:
        raise ValueError("too long")
    return (y * t).tanh()


def test_output_is_not_repeated(capsys):
    """Whether the program prints before the error depends on its order; it does not print twice."""
    compiled = rekindle.script(prints_first)
    for _ in range(4):
        error = _error(compiled, LONG, SHORT)
        assert type(error) is RuntimeError
        assert capsys.readouterr().out in ("", "sizes: 8 4\n")


def warns_first(x: Tensor, t: Tensor):
    y = torch.sigmoid(x)
    if len(y) != len(t):
        warnings.warn("lengths differ", stacklevel=2)
    if len(y) > len(t) + 100:
        raise ValueError("too long")
    return (y * t).tanh()


def test_warning_is_not_repeated():
    compiled = rekindle.script(warns_first)
    for _ in range(4):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            error = _error(compiled, LONG, SHORT)
        assert type(error) is RuntimeError
        assert len(given) <= 1


def counts_first(x: Tensor, t: Tensor, count: Tensor):
    count += 1
    y = torch.sigmoid(x)
    if len(y) > len(t) + 100:
        raise ValueError("too long")
    return (y * t).tanh()


def test_writes_are_not_repeated():
    compiled = rekindle.script(counts_first)
    count = torch.zeros(())
    for done in range(1, 5):
        error = _error(compiled, LONG, SHORT, count)
        assert type(error) is RuntimeError
        assert count.item() == done


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        y = self.dropout(self.norm(self.linear(x))).sigmoid()
        if y.shape != t.shape:
            raise ValueError("shapes differ")
        return F.binary_cross_entropy(y * 1.0, t)


def test_first_error_of_a_module_in_evaluation_mode():
    compiled = rekindle.script(Classifier().eval())
    for _ in range(4):
        compiled(torch.rand(3, 4), torch.rand(3, 4))
        error = _error(compiled, torch.rand(3, 4), torch.rand(3, 3))
        assert (type(error), str(error)) == (ValueError, "shapes differ")


def test_calls_that_draw_random_numbers_or_write_are_not_repeated():
    """Their error may be a later one than eager's."""
    compiled = rekindle.script(Classifier())
    for done in range(1, 5):
        error = _error(compiled, torch.rand(3, 4), torch.rand(3, 3))
        assert type(error) in (ValueError, RuntimeError)
        assert compiled.norm.num_batches_tracked.item() == done


def prints_before_the_error(x: Tensor, t: Tensor):
    y = torch.sigmoid(x) * 2
    print("sizes", len(y), len(t))  # noqa: T201
    return (y + t) * y


def prints_in_a_branch(x: Tensor, t: Tensor):
    y = torch.sigmoid(x) * 2
    if len(y) > 2:
        print("long", len(y))  # noqa: T201
    z = (y + t) * y
    print("not reached", len(z))  # noqa: T201
    return z


SEEN: list[int] = []


@rekindle.ignore
def seen(length: int) -> None:
    SEEN.append(length)


def calls_python_before_the_error(x: Tensor, t: Tensor):
    y = torch.sigmoid(x) * 2
    seen(len(y))
    return (y + t) * y


@pytest.mark.parametrize("program", [prints_before_the_error, prints_in_a_branch])
def test_what_is_printed_before_an_error_is_printed(program, capsys):
    run = rekindle.script(program)
    for _ in range(4):
        run(LONG, LONG)
    capsys.readouterr()
    with pytest.raises(RuntimeError, match="must match"):
        program(LONG, SHORT)
    expected = capsys.readouterr().out
    assert expected
    with pytest.raises(RuntimeError, match="must match"):
        run(LONG, SHORT)
    assert capsys.readouterr().out == expected


def test_python_is_called_before_an_error():
    run = rekindle.script(calls_python_before_the_error)
    for _ in range(4):
        run(LONG, LONG)
    SEEN.clear()
    with pytest.raises(RuntimeError, match="must match"):
        run(LONG, SHORT)
    assert SEEN == [8]


def test_errors_of_hooks_for_saved_tensors_are_not_searched_for():
    """Activation checkpointing ends the second forward pass by an exception in such a hook."""

    class Done(Exception):
        pass

    def saved(tensor):
        calls.append(tensor.shape)
        raise Done

    calls: list[torch.Size] = []
    f = rekindle.script(product_of_equal_sizes)
    x = LONG.clone().requires_grad_()
    for count in range(1, 4):
        with torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor), pytest.raises(Done):
            f(x, LONG)
        assert len(calls) == count


def test_checkpoints_of_programs_that_check_their_arguments():
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    compiled = rekindle.script(attention)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (expected,) = torch.autograd.grad(attention(x, x, x)[0].sum(), x)
    for _ in range(4):
        result, _ = torch.utils.checkpoint.checkpoint(compiled, x, x, x, use_reentrant=False)
        (found,) = torch.autograd.grad(result.sum(), x)
        torch.testing.assert_close(found, expected)

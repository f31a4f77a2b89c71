"""A differentiable graph within PyTorch's autograd: all that eager code can do around it."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, List

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import rekindle
from rekindle.autodiff import differentiable_graph, gradient
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from rekindle.autodiff.residuals.size_specialization import is_determined_by_sizes
from rekindle.autodiff.reverse_mode import reverse
from rekindle.ir import subgraph_execution
from tests.autodiff.graphs import graph_of


def program(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.tanh(x.mm(w.t()) + b)
    return h * b, torch.sigmoid(h) * 2


def single(x: Tensor, w: Tensor) -> Tensor:
    return torch.exp(x * w) * x


def run() -> Callable[..., Any]:
    return DifferentiableOperation(graph_of(program))


def run_single() -> Callable[..., Any]:
    return DifferentiableOperation(graph_of(single))


def leaves() -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(size, requires_grad=True) for size in ((4, 3), (5, 3), (5,))]


def pair() -> list[Tensor]:
    torch.manual_seed(4)
    return [torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)]


def assert_same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected)


def test_backward_adds_up_in_the_leaves() -> None:
    ours, theirs = leaves(), leaves()
    for function, inputs in ((run(), ours), (program, theirs)):
        for _ in range(3):
            first, second = function(*inputs)
            (first.sum() + (second * second).sum()).backward()
    assert_same([value.grad for value in ours], [value.grad for value in theirs])


def test_the_same_tensor_twice() -> None:
    x, y = pair()[0], pair()[0]
    run_single()(x, x).sum().backward()
    single(y, y).sum().backward()
    assert_same(x.grad, y.grad)


def test_hooks_see_the_gradients() -> None:
    seen: list[list[Tensor]] = []
    for function in (run(), program):
        inputs, found = leaves(), []
        middle = inputs[0] * 2
        middle.register_hook(lambda gradient, found=found: found.append(gradient))
        first, second = function(middle, *inputs[1:])
        first.register_hook(lambda gradient, found=found: found.append(gradient))
        (first * 3 + second).sum().backward()
        seen.append(found)
    assert_same(seen[0], seen[1])
    assert len(seen[0]) == 2


def test_going_back_twice() -> None:
    x, w = pair()
    y = run_single()(x, w).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError) as ours:
        y.backward()
    eager = single(*pair()).sum()
    eager.backward()
    with pytest.raises(RuntimeError) as theirs:
        eager.backward()
    assert str(ours.value) == str(theirs.value)


def test_third_derivatives() -> None:
    answers = []
    for function in (run_single(), single):
        x, w = pair()
        found = function(x, w).sum()
        for _ in range(3):
            (found,) = torch.autograd.grad(found.sum(), x, create_graph=True)
        answers.append(found.detach())
    assert_same(answers[0], answers[1])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_gradients(mode: Callable[[], Any]) -> None:
    inputs = leaves()
    with mode():
        first, _ = run()(*inputs)
        expected, _ = program(*inputs)
    assert not first.requires_grad
    assert first.is_inference() == expected.is_inference()
    assert_same(first, expected)


def test_an_output_without_a_gradient() -> None:
    for which in range(2):
        ours, theirs = leaves(), leaves()
        run()(*ours)[which].sum().backward()
        program(*theirs)[which].sum().backward()
        assert_same([value.grad for value in ours], [value.grad for value in theirs])


def test_results_that_have_no_gradient() -> None:
    def compares(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = torch.tanh(x * 2)
        return y, y > 0, torch.exp(w)

    x, w = pair()
    values, larger, other = DifferentiableOperation(graph_of(compares))(x, w.detach())
    assert (values.requires_grad, larger.requires_grad, other.requires_grad) == (True, False, False)
    values[larger].sum().backward()
    assert x.grad is not None


def test_who_requires_a_gradient_may_change() -> None:
    function = run()
    for wanted in ((True, False, False), (False, True, True), (False, False, False), (True, True, True)):
        ours = [value.detach().requires_grad_(wants) for value, wants in zip(leaves(), wanted, strict=True)]
        theirs = [value.detach().requires_grad_(wants) for value, wants in zip(leaves(), wanted, strict=True)]
        found, expected = function(*ours), program(*theirs)
        assert [value.requires_grad for value in found] == [value.requires_grad for value in expected]
        if any(wanted):
            (found[0].sum() + found[1].sum()).backward()
            (expected[0].sum() + expected[1].sum()).backward()
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine.grad, other.grad)


def test_sizes_may_change() -> None:
    function = run_single()
    for size in ((3,), (2, 3), (2, 1, 3), (1,), (0,), ()):
        for other in ((3,), (1,), ()):
            if size == (0,) and other == (3,):
                continue
            for _ in range(2):
                inputs = [torch.randn(size, requires_grad=True), torch.randn(other, requires_grad=True)]
                found = torch.autograd.grad(function(*inputs).sum(), inputs)
                assert_same(found, torch.autograd.grad(single(*inputs).sum(), inputs))


def raised_to(x: Tensor, gamma: float) -> Tensor:
    return (1.0 - x) ** gamma


def chosen_by(x: Tensor, gamma: float) -> Tensor:
    y = x.sin()
    if gamma > 1.0:
        y = y * x
    else:
        y = (y - gamma).abs() ** (gamma + 1)
    return y.exp()


def repeated_by(x: Tensor, gamma: float) -> Tensor:
    y = x.exp()
    for i in range(int(gamma)):
        y = y.sin() * (i + 1)
        if i * gamma > 1.0:
            y = y**gamma
    return y


def cut_by(x: Tensor, gamma: float) -> Tensor:
    y = x.sin()[: int(gamma * 2)]
    return (y * y).sum(0) * y.exp() ** gamma


def with_each(x: Tensor, factors: list[float]) -> Tensor:
    y = x.sin()
    for factor in factors:
        y = (y * factor + 1.1) ** factor
    return y


FLOATS = [2.0, 2.0, 1.5, 3.0, 0.0, 1.0, 0.5, 2.0]


@pytest.mark.parametrize("written", [raised_to, chosen_by, repeated_by, cut_by])
def test_floats_may_change(written: Callable[[Tensor, float], Tensor]) -> None:
    function = DifferentiableOperation(graph_of(written))
    x = (torch.arange(1, 10) / 10).reshape(3, 3).requires_grad_()
    for gamma in FLOATS:
        found, expected = function(x, gamma), written(x, gamma)
        assert_same(found, expected)
        assert found.requires_grad
        assert_same(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


def test_floats_in_lists_may_change() -> None:
    function = DifferentiableOperation(graph_of(with_each))
    x = (torch.arange(1, 10) / 10).requires_grad_()
    for factors in ([2.0], [2.0], [1.5, 2.0], [2.0, 1.5], [1.0]):
        found, expected = function(x, factors), with_each(x, factors)
        assert_same(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


def returned_by_a_loop(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    y = x.exp()
    z = y
    for i in range(n):
        y = y.sin() * (i + 1)
        if i > 1:
            y = y**n
        z = z * y
    return y, z


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_result_that_is_kept_or_another_result(n: int) -> None:
    function = DifferentiableOperation(graph_of(returned_by_a_loop))
    x = (torch.arange(1, 5) / 10).requires_grad_()
    for _ in range(2):
        found, expected = function(x, n), returned_by_a_loop(x, n)
        assert_same(found, expected)
        assert [value.requires_grad for value in found] == [True, True]
        for weights in ((1.0, 0.0), (0.0, 1.0), (2.0, 3.0)):
            gradients = [
                torch.autograd.grad(
                    sum(w * v.sum() for w, v in zip(weights, values, strict=True)), x, retain_graph=True
                )
                for values in (found, expected)
            ]
            assert_same(gradients[0], gradients[1])


def test_writing_to_what_was_kept() -> None:
    messages = []
    for function in (run_single(), single):
        x, w = pair()
        middle = x * 1
        y = function(middle, w)
        middle.add_(1)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
        messages.append(str(caught.value).partition(", which is output")[0])
    assert messages[0] == messages[1]


def test_writing_to_results_and_their_views() -> None:
    answers = []
    for function in (run(), program):
        inputs = leaves()
        first, second = function(*inputs)
        view = first[1:]
        view.mul_(2)
        second.add_(first)
        (first * 2 + second).sum().backward()
        answers.append([value.grad for value in inputs])
    assert_same(answers[0], answers[1])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    ours, theirs = leaves(), leaves()
    first, second = checkpoint(run(), *ours, use_reentrant=reentrant)
    (first.sum() + second.sum()).backward()
    (program(*theirs)[0].sum() + program(*theirs)[1].sum()).backward()
    assert_same([value.grad for value in ours], [value.grad for value in theirs])


def test_hooks_on_what_is_kept() -> None:
    packed: list[Tensor] = []

    def pack(value: Tensor) -> int:
        packed.append(value)
        return len(packed) - 1

    inputs = pair()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda index: packed[index]):
        y = run_single()(*inputs)
    found = torch.autograd.grad(y.sum(), inputs)
    assert len(packed) >= 2
    assert_same(found, torch.autograd.grad(single(*inputs).sum(), inputs))


def test_anomaly_mode() -> None:
    inputs = [torch.tensor([-1.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)]

    def root(x: Tensor, w: Tensor) -> Tensor:
        return torch.sqrt(x * w) * 1

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(True):
            y = DifferentiableOperation(graph_of(root))(*inputs)
            with pytest.raises(RuntimeError, match="returned nan values"):
                y.sum().backward()
    assert any("Error detected in DifferentiableGraphBackward" in str(warning.message) for warning in told)


def test_name_of_the_node() -> None:
    assert type(run_single()(*pair()).grad_fn).__name__ == "DifferentiableGraphBackward"


def test_nothing_is_kept_afterwards() -> None:
    gc.collect()
    gc.disable()
    try:
        function, inputs = run_single(), pair()
        for _ in range(3):
            middle = inputs[0] * 1
            y = function(middle, inputs[1])
            watched = [weakref.ref(middle), weakref.ref(y), weakref.ref(y.grad_fn)]
            y.sum().backward()
            del middle, y
            assert [ref() for ref in watched] == [None, None, None]
    finally:
        gc.enable()


def test_what_is_kept_goes_when_gradients_have_come() -> None:
    function, (x, w) = run_single(), pair()
    middle = x * 1
    y = function(middle, w).sum()
    watched = weakref.ref(middle)
    del middle
    y.backward()
    assert watched() is None


def test_threads() -> None:
    """Each thread has inputs of its own, drawn before it starts: the generator is one for all of them."""
    torch.manual_seed(3)
    drawn = [[torch.randn(size) for size in ((4, 3), (5, 3), (5,))] for _ in range(4)]

    def gradients(function: Callable[..., Any], values: list[Tensor]) -> list[Tensor]:
        inputs = [value.clone().requires_grad_() for value in values]
        first, second = function(*inputs)
        return list(torch.autograd.grad(first.sum() + second.sum(), inputs))

    function = run()
    answers: list[list[list[Tensor]]] = [[] for _ in drawn]

    def work(index: int) -> None:
        answers[index].extend(gradients(function, drawn[index]) for _ in range(20))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(drawn))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for values, found in zip(drawn, answers, strict=True):
        assert_same(found, [gradients(program, values)] * 20)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_autocast(dtype: torch.dtype) -> None:
    answers = []
    for function in (run(), program):
        inputs = leaves()
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            first, second = function(*inputs)
        (first.float().sum() + second.float().sum()).backward()
        answers.append([first.detach(), *(value.grad for value in inputs)])
    assert_same(answers[0], answers[1])


def test_complex_numbers_and_mixed_dtypes() -> None:
    for other in (torch.complex64, torch.float64):
        answers = []
        for function in (run_single(), single):
            x = pair()[0]
            w = pair()[1].detach().to(other).requires_grad_()
            function(x, w).abs().sum().backward()
            answers.append([x.grad, w.grad])
        assert_same(answers[0], answers[1])


def test_transforms_of_functions() -> None:
    function, (x, w) = run_single(), [value.detach() for value in pair()]
    assert_same(torch.func.grad(lambda x: function(x, w).sum())(x), torch.func.grad(lambda x: single(x, w).sum())(x))
    assert_same(torch.func.jvp(function, (x, w), (w, x)), torch.func.jvp(single, (x, w), (w, x)))
    assert_same(torch.func.vmap(function)(x, w), torch.func.vmap(single)(x, w))


def test_random_operators_have_one_mask() -> None:
    def drops(x: Tensor, w: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x * w, 0.5, True) * 2

    function = DifferentiableOperation(graph_of(drops))
    answers = []
    for each in (function, drops):
        torch.manual_seed(5)
        x = torch.full((100,), 1.0, requires_grad=True)
        w = torch.full((100,), 3.0, requires_grad=True)
        y = each(x, w)
        y.sum().backward()
        answers.append([y.detach(), x.grad, w.grad])
    assert_same(answers[0], answers[1])


def widened(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w) + w


def test_a_plan_for_sizes_is_made_when_they_are_met_again() -> None:
    operation = DifferentiableOperation(graph_of(widened))
    w = torch.randn(3, requires_grad=True)
    counts = []
    for rows in (4, 5, 4, 4, 5):
        x = torch.randn(rows, 3, requires_grad=True)
        found, expected = operation(x, w), widened(x, w)
        assert_same(torch.autograd.grad(found.sum(), [x, w]), torch.autograd.grad(expected.sum(), [x, w]))
        (derivative,) = operation._derivatives.values()
        counts.append(len(derivative._by_numbers))
    assert counts == [0, 0, 1, 1, 1]  # which serves all rows


def test_plans_for_sizes_with_a_list_without_elements() -> None:
    @rekindle.script
    def reduced(x: Tensor, dims: List[int]) -> Tensor:
        return (x.exp().sin() * x).sum(dims).tanh()

    x = torch.randn(3, 4, requires_grad=True)
    dims: list[int]
    for dims in ([], [0], [], [0], [], [0]):
        found, expected = reduced(x, dims), (x.exp().sin() * x).sum(dims).tanh()
        assert_same(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


def test_the_backward_graph_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def build(*arguments: Any, **keywords: Any) -> Any:
        built.append(arguments)
        return reverse.build_backward(*arguments, **keywords)

    monkeypatch.setattr(gradient, "build_backward", build)
    found = gradient.differentiate(graph_of(single), [True, True])
    first = str(found.backward)
    assert len(built) == 1
    again = gradient.differentiate(graph_of(single), [True, True])
    again._analysis.of_roots = None  # type: ignore[attr-defined]
    assert str(again.backward) == first
    assert len(built) == 3


def dropped(x: Tensor, w: Tensor) -> Tensor:
    return torch.nn.functional.dropout(torch.tanh(x * w), 0.25, True) * w


def dropped_by(x: Tensor, w: Tensor, p: float) -> Tensor:
    return torch.nn.functional.dropout(torch.tanh(x * w), p, True) * w


def test_graphs_with_dropout_are_specialized_on_sizes() -> None:
    """Whether there is a mask follows from the options, if they are constants; it may differ between sizes."""
    x, w = (torch.randn(40, 3, requires_grad=True) for _ in range(2))
    for function, options in ((dropped, [()]), (dropped_by, [(0.25,), (0.0,), (0.5,)])):
        operation = DifferentiableOperation(graph_of(function))
        for option in [*options, *options]:
            for rows in (40, 0, 7):
                values = [x[:rows], w[:rows], *option]
                results = []
                for each in (operation, function):
                    torch.manual_seed(1)
                    result = each(*values)
                    results.append((result, *torch.autograd.grad(result.sum(), [x, w])))
                assert_same(*results)
        (derivative,) = operation._derivatives.values()
        assert is_determined_by_sizes(derivative.gradient) == (function is dropped)


def attended(x: Tensor, w: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(torch.tanh(x * w), w, w, dropout_p=0.25) * w


def divided_by_size(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w) * (1.0 / float(x.size(0) + 1)) * w


def divided_by_element(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w) * (1.0 / float(w.detach().abs().sum() + 1)) * w


@pytest.mark.parametrize(
    ("function", "is_specialized"), [(attended, True), (divided_by_size, True), (divided_by_element, False)]
)
def test_numbers_that_follow_from_sizes(function: Callable[..., Tensor], is_specialized: bool) -> None:
    torch.manual_seed(2)
    x, w = (torch.randn(40, 3, requires_grad=True) for _ in range(2))
    operation = DifferentiableOperation(graph_of(function))
    for call, rows in enumerate([40, 0, 7, 40, 0, 7, 1, 1, 40]):
        values = [x[:rows] + call, w[:rows]]
        results = []
        for each in (operation, function):
            torch.manual_seed(1)
            result = each(*values)
            results.append((result, *torch.autograd.grad(result.sum(), [x, w])))
        assert_same(*results)
    (derivative,) = operation._derivatives.values()
    assert is_determined_by_sizes(derivative.gradient) == is_specialized


def test_inference_mode_wins_over_grad_mode() -> None:
    with torch.inference_mode(), torch.enable_grad():
        assert not run_single()(*pair()).requires_grad
        assert not single(*pair()).requires_grad


def test_gradients_that_eager_refuses() -> None:
    def loss(x: Tensor, target: Tensor) -> Tensor:
        return torch.nn.functional.soft_margin_loss(torch.tanh(x) * 2, target)

    messages = []
    for function in (DifferentiableOperation(graph_of(loss)), loss):
        with pytest.raises(RuntimeError) as caught:
            function(*pair())
        messages.append(str(caught.value).partition("\n")[0])
        x, target = pair()
        function(x, target.detach()).backward()
    assert messages == [messages[1]] * 2
    assert messages[0].startswith(
        "The function 'soft_margin_loss' is not differentiable with respect to argument 'target'"
    )


def test_gradients_of_parts_that_are_joined_again() -> None:
    """The gradients of ``chunk`` are a list that ``cat`` makes as a whole, and none of them is None."""

    def joined(x: Tensor) -> Tensor:
        k = x.sum(dim=0).sort(-1)[0]
        return torch.cat((0.1 * x).chunk(2, 0)) / k

    x, y = (torch.tensor([[0.5, 10.0, -0.5], [2.0, -1.25, 1.5]], requires_grad=True) for _ in range(2))
    DifferentiableOperation(graph_of(joined))(x).sum().backward()
    joined(y).sum().backward()
    assert_same(x.grad, y.grad)


def loss_and_probabilities(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.tanh(x * w) * 2
    return (h.log_softmax(-1) * w).sum(), h.softmax(-1)


def error_of_a_written_result(program: Callable[..., object]) -> AbstractContextManager[object]:
    """Return the expectation of autograd's error where PyTorch cannot read a saved tensor that was written to."""
    if program is loss_and_probabilities or hasattr(torch._C._autograd.SavedTensor, "unpack"):
        return nullcontext()
    return pytest.raises(RuntimeError, match="modified by an inplace operation")


def test_a_result_may_be_written_to_if_its_gradient_is_not_computed() -> None:
    compiled = rekindle.script(loss_and_probabilities)
    for _ in range(4):
        x, w = torch.randn(3, 4), torch.randn(3, 4)
        found = []
        for program in (loss_and_probabilities, compiled):
            leaves = x.clone().requires_grad_(), w.clone().requires_grad_()
            loss, probabilities = program(*leaves)
            with torch.no_grad():
                probabilities[:, 0] = 0
            with error_of_a_written_result(program):
                found.append(torch.autograd.grad(loss, leaves, retain_graph=True))
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                torch.autograd.grad(probabilities.sum(), leaves)
        torch.testing.assert_close(found[0], found[-1])


def gelu_by_hand(x: Tensor, w: Tensor) -> Tensor:
    h = x * w
    return 0.5 * h * (1 + torch.tanh(h * 0.8)) * w


def two_layers(x: Tensor, w: Tensor) -> Tensor:
    return gelu_by_hand(gelu_by_hand(x, w).cumsum(0), w)


def in_a_loop(x: Tensor, w: Tensor) -> Tensor:
    for _ in range(x.size(0)):
        x = torch.tanh(x * w) * torch.sigmoid(x)
    return x


@pytest.mark.parametrize(("function", "first"), [(gelu_by_hand, 1), (two_layers, 1), (in_a_loop, 1)])
def test_autograd_differentiates_first_calls(
    function: Callable[..., Tensor], first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call of each node compiles no gradient, not even of nodes with equal subgraphs; loops would save all
    intermediate values."""
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", True)
    compiled: list[Any] = []
    stored = differentiable_graph.stored_gradient

    def compile_gradient(*arguments: Any) -> Any:
        compiled.append(arguments)
        return stored(*arguments)

    monkeypatch.setattr(differentiable_graph, "stored_gradient", compile_gradient)
    scripted = rekindle.script(function)
    for call in range(4):
        results = []
        for each in (scripted, function):
            x, w = pair()
            result = each(x, w)
            (once,) = torch.autograd.grad(result.sum(), [w], create_graph=True)
            results.append((result, once, *torch.autograd.grad(once.sum(), [x, w])))
        assert_same(*results)
        assert bool(compiled) == (call >= first)
    assert "prim::DifferentiableGraph" in str(scripted.graph_for(*pair()))


def test_first_calls_under_checkpoint_save_what_the_second_run_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", True)

    def program(x: Tensor, w: Tensor) -> Tensor:
        return torch.sigmoid(torch.tanh(x * w) * x * w) * w

    scripted = rekindle.script(program)
    for _ in range(2):
        found = []
        for function in (scripted, program):
            x, w = pair()
            found.append(torch.autograd.grad(checkpoint(function, x, w, use_reentrant=False).sum(), [x, w]))
        assert_same(*found)


def test_failures_of_first_calls_are_those_of_autograd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing to a saved tensor is an error of the first call too."""
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", True)
    scripted = rekindle.script(single)
    for _ in range(3):
        x, w = pair()
        result = scripted(x, w).sum()
        with torch.no_grad():
            w.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()

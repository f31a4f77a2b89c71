"""`with rekindle.require_fused():` programs run in kernels as a whole, or an error lists what does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

import rekindle
from rekindle.errors import NotFusedError


@pytest.fixture(params=["native"])
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    before = rekindle.set_execution_strategy(request.param)
    yield request.param
    rekindle.set_execution_strategy(before)


def gate(x, w):
    y = x @ w
    return (torch.tanh(y) * torch.sigmoid(y)).t()


def refused(f: rekindle.Function, *args: torch.Tensor, allow: tuple[str, ...] = ()) -> str:
    """The error, without the name of this file."""
    with torch.no_grad(), pytest.raises(NotFusedError) as caught, rekindle.require_fused(allow=allow):
        f(*args)
    return str(caught.value).replace(__file__, "here.py")


def test_matrix_products_kernels_and_views(strategy: str) -> None:
    f = rekindle.script(gate)
    x, w = torch.randn(2, 3), torch.randn(3, 4)
    with torch.no_grad(), rekindle.require_fused():
        torch.testing.assert_close(f(x, w), gate(x, w))
        torch.testing.assert_close(f(x=x, w=w.double().float()), gate(x, w))


UNFUSED = """
def total(x):
    y = torch.cat((torch.logcumsumexp(x, 0), x))
    for i in range(3):
        y.add_(i)
    return y
"""


def unit(source: str) -> rekindle.CompilationUnit:
    return rekindle.CompilationUnit(source.lstrip())


def test_everything_that_is_not_fused(strategy: str) -> None:
    assert refused(unit(UNFUSED).total, torch.ones(3)) == (
        "'total' is not fused as a whole: this is outside of kernels\n"
        "\n"
        "aten::logcumsumexp: kernels do not know this operator\n"
        "    def total(x):\n"
        "        y = torch.cat((torch.logcumsumexp(x, 0), x))\n"
        "                       ^^^^^^^^^^^^^^^^^^\n"
        "Hint: write it with operators that fuse (docs/kernels.md), or allow it: "
        'require_fused(allow=["aten::logcumsumexp"])\n'
        "\n"
        "aten::cat: no operator beside it fuses with it\n"
        "    def total(x):\n"
        "        y = torch.cat((torch.logcumsumexp(x, 0), x))\n"
        "            ^^^^^^^^^\n"
        "Hint: kernels run it only beside operators that compute, or allow it: "
        'require_fused(allow=["aten::cat"])\n'
        "\n"
        "aten::add_ × 3: kernels do not know this operator\n"
        "    def total(x):\n"
        "        y = torch.cat((torch.logcumsumexp(x, 0), x))\n"
        "        for i in range(3):\n"
        "            y.add_(i)\n"
        "            ^^^^^^\n"
        "Hint: use the operator that does not work in place, aten::add, or allow it: "
        'require_fused(allow=["aten::add_"])'
    )


def test_what_is_allowed(strategy: str) -> None:
    f = unit(UNFUSED).total
    assert [each.what for each in blockers(f, torch.ones(3), "aten::logcumsumexp")] == ["aten::cat", "aten::add_"]
    with torch.no_grad(), rekindle.require_fused(allow=["aten::logcumsumexp", "aten::cat", "aten::add_"]):
        f(torch.ones(3))


def blockers(f: rekindle.Function, x: torch.Tensor, *allow: str) -> list[rekindle.errors.FusionBlocker]:
    with torch.no_grad(), pytest.raises(NotFusedError) as caught, rekindle.require_fused(allow=allow):
        f(x)
    return list(caught.value.blockers)


def test_nothing_has_run_when_the_program_cannot_be_fused(strategy: str) -> None:
    def f(x):
        x.add_(1)
        return x

    x = torch.zeros(2)
    text = refused(rekindle.script(f), x)
    assert x.tolist() == [0, 0]
    assert text.endswith(
        "\nHint: use the operator that does not work in place, aten::add, or allow it: "
        'require_fused(allow=["aten::add_"])'
    )


TANH = """
def f(x):
    return torch.tanh(x) * x
"""


def test_kernels_that_cannot_be_made_for_the_inputs(strategy: str) -> None:
    f = unit(TANH).f
    assert refused(f, torch.ones(2, dtype=torch.complex64)) == (
        "'f' is not fused as a whole: this is outside of kernels\n"
        "\n"
        "aten::tanh, aten::mul: a kernel was to run them, but no kernel can be made for such inputs: elements of "
        "torch.complex64\n"
        "    def f(x):\n"
        "        return torch.tanh(x) * x\n"
        "               ^^^^^^^^^^^^^^^^^\n"
        "Hint: compute with real and imaginary parts"
    )
    with torch.no_grad(), rekindle.require_fused():
        f(torch.ones(2))


def test_transforms_have_to_see_each_operator(strategy: str) -> None:
    f = unit(TANH).f
    with pytest.raises(NotFusedError) as caught, torch.no_grad(), rekindle.require_fused():
        torch.func.vmap(f)(torch.ones(2, 3))
    [blocker] = caught.value.blockers
    assert blocker.reason == (
        "a kernel was to run them, but modes, transforms, autocasting or PyTorch's tracer have to see each operator"
    )
    assert blocker.hint == "call it outside of the mode, the transform or torch.autocast"


@pytest.mark.parametrize("strategy", ["simple", "profiling"], indirect=True)
def test_strategies_without_kernels(strategy: str) -> None:
    assert refused(unit(TANH).f, torch.ones(2)) == (
        "'f' is not fused as a whole: this is outside of kernels\n"
        "\n"
        "aten::tanh: the strategy of execution makes no kernels\n"
        "    def f(x):\n"
        "        return torch.tanh(x) * x\n"
        "               ^^^^^^^^^^\n"
        'Hint: choose one that does, rekindle.set_execution_strategy("native"), or allow it: '
        'require_fused(allow=["aten::tanh"])\n'
        "\n"
        "aten::mul: the strategy of execution makes no kernels\n"
        "    def f(x):\n"
        "        return torch.tanh(x) * x\n"
        "               ^^^^^^^^^^^^^^^^^\n"
        'Hint: choose one that does, rekindle.set_execution_strategy("native"), or allow it: '
        'require_fused(allow=["aten::mul"])'
    )


def test_the_interpreter(strategy: str) -> None:
    f = unit("def f(x):\n    return x.tanh()\n").f
    with rekindle.optimized_execution(False):
        text = refused(f, torch.ones(2))
    assert text == (
        "'f' is not fused as a whole: this is outside of kernels\n"
        "\n"
        "aten::tanh: optimized_execution(False) has the interpreter run it as it was compiled\n"
        "    def f(x):\n"
        "        return x.tanh()\n"
        "               ^^^^^^\n"
        "Hint: call it outside of optimized_execution(False), or allow it: "
        'require_fused(allow=["aten::tanh"])'
    )


def test_backward_graphs_count_when_the_block_ends(strategy: str) -> None:
    f = unit("def f(x, w):\n    return torch.tanh(x)[1:] * torch.sigmoid(x)[1:] * w[1:]\n").f

    def train(*allow: str) -> None:
        x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        with rekindle.require_fused(allow=allow):
            f(x, w).sum().backward()

    train()  # the call that records sizes does not matter
    with pytest.raises(NotFusedError) as caught:
        train()
    assert [(each.what, each.reason) for each in caught.value.blockers] == [
        ("autodiff::slice_back", "kernels do not know this operator")
    ]
    train("autodiff::slice_back")


def test_a_trace_within(strategy: str) -> None:
    f = unit(UNFUSED).total
    with rekindle.require_fused():
        rekindle.trace(lambda x: f(x), torch.ones(3), check_trace=False)
        with pytest.raises(NotFusedError):
            f(torch.ones(3))


def test_calls_of_other_threads_and_after_the_block(strategy: str) -> None:
    f = unit(UNFUSED).total
    with rekindle.require_fused():
        thread = threading.Thread(target=f, args=(torch.ones(3),))
        thread.start()
        thread.join()
    f(torch.ones(3))
    with pytest.raises(NotFusedError), rekindle.require_fused(), rekindle.require_fused(allow=["aten::add"]):
        f(torch.ones(3))


def test_the_error_of_the_body_comes_first(strategy: str) -> None:
    with pytest.raises(KeyError), rekindle.require_fused():
        raise KeyError


def test_list_that_a_convolution_reads_too_is_constant() -> None:
    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)]
    module = rekindle.script(torch.nn.Sequential(*layers).eval())
    x = torch.rand(1, 3, 8, 8)
    with torch.no_grad(), rekindle.require_fused(allow=["aten::conv2d"]):
        result = module(x)
        assert torch.allclose(
            result, torch.relu(torch.conv2d(x, layers[0].weight, layers[0].bias)).mean((2, 3), keepdim=True)
        )

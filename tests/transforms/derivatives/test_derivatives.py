"""Derivatives of programs, beside those of ``torch.func``."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import rekindle
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from tests.support.golden import GoldenTexts
from tests.transforms.derivatives.programs import PROGRAMS, Program, branches_that_use_different_things, loop

NAMES = [program.__name__ for program in PROGRAMS]


def arguments(n: int = 3) -> tuple[Tensor, Tensor, int]:
    torch.manual_seed(5)
    x, y = torch.rand(2, 3, dtype=torch.float64).unbind()
    return x.clone(), y.clone(), n


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_value_and_gradient(program: Program) -> None:
    function = rekindle.value_and_grad(program, argnums=(0, 1))
    verify(function.graph)
    reference = torch.func.grad_and_value(program, argnums=(0, 1))
    value, gradients = function(*arguments(4))
    expected, value_there = reference(*arguments(4))
    torch.testing.assert_close((value, *gradients), (value_there, *expected))


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 50


@pytest.mark.parametrize("program", PROGRAMS[1::8], ids=NAMES[1::8])
def test_gradients_of_gradients(program: Program) -> None:
    gradient = rekindle.grad(program, argnums=(0, 1))

    def length(x: Tensor, y: Tensor, n: int) -> Tensor:
        a, b = gradient(x, y, n)
        return (a * a).sum() + (b * b).sum()

    def length_there(x: Tensor, y: Tensor, n: int) -> Tensor:
        a, b = torch.func.grad(program, argnums=(0, 1))(x, y, n)
        return (a * a).sum() + (b * b).sum()

    found = rekindle.grad(length, argnums=(0, 1))(*arguments())
    torch.testing.assert_close(found, torch.func.grad(length_there, argnums=(0, 1))(*arguments()))


@pytest.mark.parametrize("program", [branches_that_use_different_things, loop], ids=["branch", "loop"])
def test_graphs(program: Program, golden: GoldenTexts) -> None:
    function = rekindle.grad(program)
    graph = print_graph(function.graph, ranges=False)
    golden(f"transforms/grad_{program.__name__}", f"{graph}\n{function.code}")


@pytest.mark.parametrize("program", PROGRAMS[::9], ids=NAMES[::9])
def test_saved_and_loaded(program: Program) -> None:
    function = rekindle.grad(program, argnums=(0, 1))
    loaded = rekindle.load(io.BytesIO(function.save_to_buffer()))
    torch.testing.assert_close(loaded(*arguments()), function(*arguments()))


# ----------------------------------------------------------------------------------------- the other derivatives


def spiral(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.stack([x[1] * y[0], x[2] + i, (x[0] * x[1]).sin()]) if i % 2 == 0 else x * y
    return x[:2]


def test_vjp() -> None:
    x, y, n = arguments()
    cotangent = torch.tensor([0.5, -2.0], dtype=torch.float64)
    result, (by_x, by_y) = rekindle.vjp(spiral, argnums=(0, 1))(x, y, n, cotangent)
    expected, back = torch.func.vjp(lambda x, y: spiral(x, y, n), x, y)
    torch.testing.assert_close((result, by_x, by_y), (expected, *back(cotangent)))


def test_jvp() -> None:
    x, y, n = arguments()
    tangents = (torch.rand(3, dtype=torch.float64), torch.rand(3, dtype=torch.float64))
    found = rekindle.jvp(spiral, argnums=(0, 1))(x, y, n, tangents)
    torch.testing.assert_close(found, torch.func.jvp(lambda x, y: spiral(x, y, n), (x, y), tangents))


def test_jacobian() -> None:
    x, y, n = arguments()
    found = rekindle.jacrev(spiral, argnums=(1, 0))(x, y, n)
    torch.testing.assert_close(found, torch.func.jacrev(spiral, argnums=(1, 0))(x, y, n))


def test_hessian() -> None:
    x, y, n = arguments()
    found = rekindle.hessian(loop, argnums=(0, 1))(x, y, n)
    torch.testing.assert_close(found, torch.func.hessian(loop, argnums=(0, 1))(x, y, n))


def test_hessian_of_several_results() -> None:
    x, y, n = arguments()
    torch.testing.assert_close(rekindle.hessian(spiral)(x, y, n), torch.func.hessian(spiral)(x, y, n))


def two_results(x: Tensor, y: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    return (x * y).sum(), (x + y, y.exp())


def test_results_of_other_forms() -> None:
    x, y, _ = arguments()
    one, two = torch.ones([], dtype=torch.float64), torch.full([3], 2.0, dtype=torch.float64)
    result, by_y = rekindle.vjp(two_results, argnums=-1)(x, y, (one, (two, two)))
    torch.testing.assert_close(result, two_results(x, y))
    torch.testing.assert_close(by_y, x + 2 + 2 * y.exp())
    jacobian = rekindle.jacrev(two_results)(x, y)
    torch.testing.assert_close(jacobian, torch.func.jacrev(two_results)(x, y))


def test_something_else_beside_the_value() -> None:
    x, y, _ = arguments()
    gradient, rest = rekindle.grad(two_results, has_aux=True)(x, y)
    torch.testing.assert_close((gradient, rest), (y, (x + y, y.exp())))
    (value, rest), gradient = rekindle.value_and_grad(two_results, has_aux=True)(x, y)
    torch.testing.assert_close((value, gradient, rest), ((x * y).sum(), y, (x + y, y.exp())))
    value, gradient, rest = rekindle.vjp(two_results, has_aux=True)(x, y, torch.ones([], dtype=torch.float64))
    torch.testing.assert_close((value, gradient, rest), ((x * y).sum(), y, (x + y, y.exp())))


# ----------------------------------------------------------------------------------------------------- arguments


def of_containers(xs: list[Tensor], pair: tuple[Tensor, tuple[Tensor, int]]) -> Tensor:
    total = pair[0].sum()
    for x in xs[1:]:
        total = total + (x * pair[1][0]).sum()
    return total


def test_arguments_that_hold_tensors() -> None:
    x, y, _ = arguments()

    def program(xs: list[Tensor], pair: tuple[Tensor, Tensor]) -> Tensor:
        return of_containers(xs, (pair[0], (pair[1], 1)))

    found = rekindle.grad(program, argnums=(0, 1))([x, y, x * y], (x, y))
    torch.testing.assert_close(found, torch.func.grad(program, argnums=(0, 1))([x, y, x * y], (x, y)))


def test_defaults_and_names_stay() -> None:
    def program(x: Tensor, power: int = 3) -> Tensor:
        return x.pow(power).sum()

    gradient = rekindle.grad(program)
    assert str(gradient.schema) == "program_grad(Tensor x, int power=3) -> Tensor"
    x = arguments()[0]
    torch.testing.assert_close(gradient(x), 3 * x * x)
    torch.testing.assert_close(gradient(x, power=2), 2 * x)
    assert gradient.__doc__ == "The gradient of program."


def test_traced_programs() -> None:
    x, y, _ = arguments()
    traced = rekindle.trace(lambda x, y: (x * y).tanh().sum(), (x, y))
    torch.testing.assert_close(rekindle.grad(traced)(x, y), y * (1 - (x * y).tanh().pow(2)))


def test_what_is_computed_without_gradients() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x * 2
        return (x * y).sum()

    x = arguments()[0]
    torch.testing.assert_close(rekindle.grad(program)(x), 2 * x)


def cube(x: Tensor) -> Tensor:
    return x * x * x


def test_what_is_forked() -> None:
    def program(x: Tensor) -> Tensor:
        cubed = rekindle.fork(cube, x)
        return (rekindle.wait(cubed) * x).sum()

    x = arguments()[0]
    torch.testing.assert_close(rekindle.grad(program)(x), 4 * x**3)


def test_futures_go_where_values_go() -> None:
    """In lists, branches and iterations of loops, and to what is forked after them."""

    def both(x: Tensor, before: rekindle.Future[Tensor]) -> Tensor:
        return rekindle.wait(before) * x

    def program(x: Tensor, n: int) -> Tensor:
        futures = [rekindle.fork(cube, x * i) for i in range(n)]
        if n > 2:
            futures.append(rekindle.fork(both, x, futures[-1]))
        total = x.sum()
        for future in futures:
            total = total + rekindle.wait(future).sum()
        return total

    x = arguments()[0]
    torch.testing.assert_close(rekindle.grad(program)(x, 2), 1 + 3 * x**2)
    torch.testing.assert_close(rekindle.grad(program)(x, 3), 1 + 27 * x**2 + 32 * x**3)


def test_gradients_go_back_through_derivatives_too() -> None:
    """What a derivative computes is known to PyTorch's autograd."""
    x, y, n = arguments()
    gradient = rekindle.grad(loop)
    assert gradcheck(lambda x: gradient(x, y, n), x.requires_grad_())


def test_a_write_to_what_the_way_back_needs() -> None:
    """Eager refuses this: what ``exp`` gave is needed, and is overwritten."""

    def program(x: Tensor) -> Tensor:
        y = x.exp()
        y += 1
        return (y * y).sum()

    x = arguments()[0]
    torch.testing.assert_close(rekindle.grad(program)(x), 2 * (x.exp() + 1) * x.exp())


def test_nothing_is_computed_of_what_does_not_exist() -> None:
    def program(x: Tensor, n: int) -> Tensor:
        bad = (x - x).log()
        return bad.sum() if n > 1 else (x * 2).sum()

    x = arguments()[0]
    assert rekindle.grad(program)(x, 0).tolist() == [2.0, 2.0, 2.0]


def test_every_strategy() -> None:
    x, y, n = arguments()
    gradient = rekindle.grad(loop)
    expected = gradient(x, y, n)
    for strategy in ("native", "profiling", "simple"):
        before = rekindle.set_execution_strategy(strategy)
        try:
            again = rekindle.grad(loop)
            for _ in range(3):
                torch.testing.assert_close(again(x, y, n), expected)
        finally:
            rekindle.set_execution_strategy(before)


# -------------------------------------------------------------------------------------------------------- errors


def refusal(make: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(rekindle.errors.DifferentiationError) as caught:
        make(*args, **options)
    lines = [line for line in str(caught.value).splitlines() if not line.startswith("  File ")]
    return "\n".join(lines)


def test_refusals_of_arguments() -> None:
    def program(x: Tensor, n: int) -> Tensor:
        return x.sum() * n

    assert refusal(rekindle.grad, program, argnums=2) == (
        "there is no argument 2: 'program' takes 2\nHint: argnums counts from 0 to 1"
    )
    assert refusal(rekindle.grad, program, argnums=(0, -2)) == "argnums=(0, -2) names an argument twice"
    assert refusal(rekindle.grad, program, argnums=()) == "argnums=() names no argument"
    assert refusal(rekindle.grad, program, argnums=1) == (
        "argument 1 of 'program' is a value of type int, of which there is no gradient\n"
        "Hint: gradients are of tensors, and of tuples, lists and dicts of tensors, or None instead of one"
    )
    assert refusal(rekindle.grad, 3) == (
        "a value of class 'int' is not a function\n"
        "Hint: pass a function or a module, or one compiled by rekindle.script or rekindle.trace"
    )


def test_refusals_of_results() -> None:
    def number(x: Tensor) -> int:
        return x.size(0)

    def pair(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sum(), x

    assert refusal(rekindle.grad, number) == (
        "'number' returns int, not a tensor, which a gradient could be taken of\n"
        "        def number(x: Tensor) -> int:\n"
        "            return x.size(0)\n"
        "                   ^^^^^^\n"
        "Hint: return the tensor that is to be differentiated"
    )
    assert "with has_aux=True the first of two results is differentiated" in refusal(rekindle.grad, pair)

    def vector(x: Tensor) -> Tensor:
        return x * 2

    with pytest.raises(
        RuntimeError, match=r"a gradient is of a tensor without dimensions, and this has the sizes \[3\]"
    ):
        rekindle.grad(vector)(torch.ones(3))


def test_refusals_of_contexts() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.autocast("cpu"):
            y = x.sum()
        return y

    assert refusal(rekindle.grad, program) == (
        "gradients cannot go back through this context, a __torch__.torch.amp.autocast_mode.autocast\n"
        "        def program(x: Tensor) -> Tensor:\n"
        '            with torch.autocast("cpu"):\n'
        "                 ^^^^^^^^^^^^^^^^^^^^^\n"
        "Hint: leave the context out of what is differentiated; of contexts, no_grad and enable_grad are known"
    )


def test_refusals_of_gradients_within_a_context_without() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.no_grad():
            with torch.enable_grad():
                y = x * 2
        return y.sum()

    def in_a_branch(x: Tensor) -> Tensor:
        y = x
        with torch.no_grad():
            if x.dim() == 1:
                with torch.enable_grad():
                    y = x * 2
        return y.sum()

    assert refusal(rekindle.grad, program) == (
        "gradients cannot go back through enable_grad within no_grad\n"
        "        def program(x: Tensor) -> Tensor:\n"
        "            with torch.no_grad():\n"
        "                with torch.enable_grad():\n"
        "                     ^^^^^^^^^^^^^^^^^^^\n"
        "Hint: end the no_grad before, and begin another after it"
    )
    assert "enable_grad within no_grad" in refusal(rekindle.grad, in_a_branch)


def test_gradients_enabled_where_they_are_enabled() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x * 2
        with torch.no_grad():
            z = x * 3
        return (y * z).sum()

    x = torch.ones(2)
    assert torch.equal(rekindle.grad(program)(x), torch.func.grad(program)(x))


def test_refusals_of_writes() -> None:
    def to_an_argument(x: Tensor) -> Tensor:
        x.add_(1)
        return x.sum()

    def to_what_may_be_another(x: Tensor) -> Tensor:
        y = x * 2
        z = y.reshape(-1)
        y.mul_(2)
        return (y + z).sum()

    def to_what_a_row_may_be_of(x: Tensor, i: Tensor) -> Tensor:
        y = x * 2
        row = y[i]
        y[i] = 0.0
        return (row * y).sum()

    def without_a_form(x: Tensor) -> Tensor:
        y = x * 2
        y.resize_(2)
        return y.sum()

    assert refusal(rekindle.grad, to_an_argument) == (
        "gradients cannot go back through this write: the program writes to an argument\n"
        "        def to_an_argument(x: Tensor) -> Tensor:\n"
        "            x.add_(1)\n"
        "            ^^^^^^\n"
        "Hint: write to a clone of it"
    )
    line = inspect.getsourcelines(to_what_may_be_another)[1] + 4
    assert refusal(rekindle.grad, to_what_may_be_another) == (
        f"gradients cannot go back through this write: the value used in line {line} may or may not alias the "
        "tensor that is written to\n"
        "        def to_what_may_be_another(x: Tensor) -> Tensor:\n"
        "            y = x * 2\n"
        "            z = y.reshape(-1)\n"
        "            y.mul_(2)\n"
        "            ^^^^^^\n"
        "Hint: write to a clone without other references"
    )
    line = inspect.getsourcelines(to_what_a_row_may_be_of)[1] + 4
    assert refusal(rekindle.grad, to_what_a_row_may_be_of) == (
        f"gradients cannot go back through this write: the value used in line {line} may or may not alias the "
        "tensor that is written to\n"
        "        def to_what_a_row_may_be_of(x: Tensor, i: Tensor) -> Tensor:\n"
        "            y = x * 2\n"
        "            row = y[i]\n"
        "            y[i] = 0.0\n"
        "            ^^^^^^^^^^\n"
        "Hint: write to a clone without other references"
    )
    assert refusal(rekindle.grad, without_a_form) == (
        "gradients cannot go back through this write: there is no form of aten::resize_ that writes to nothing\n"
        "        def without_a_form(x: Tensor) -> Tensor:\n"
        "            y = x * 2\n"
        "            y.resize_(2)\n"
        "            ^^^^^^^^^\n"
        "Hint: compute a new value instead of writing to one"
    )


def test_containers_of_tensors_and_numbers() -> None:
    def of_a_list(x: Tensor, flag: bool):  # type: ignore[no-untyped-def]
        weight = x.sum() if flag else 2
        found = [weight, x.max()]
        return found[0] * x.sum()  # type: ignore[operator]

    assert refusal(rekindle.grad, of_a_list) == (
        "no gradient goes through a list, dict or tuple that holds Tensors and numbers\n"
        "        def of_a_list(x: Tensor, flag: bool):  # type: ignore[no-untyped-def]\n"
        "            weight = x.sum() if flag else 2\n"
        "            found = [weight, x.max()]\n"
        "            return found[0] * x.sum()  # type: ignore[operator]\n"
        "                   ^^^^^^^^^^^^^^^^^^\n"
        "Hint: hold Tensors alone: torch.tensor(number)"
    )


def test_writes_where_gradients_are_not_recorded() -> None:
    """They change values, and leave the way that gradients go: ``gaussian_nll_loss`` clamps the variance so."""

    def loss(x: Tensor, y: Tensor, n: int) -> Tensor:
        z = y.clone()
        with torch.no_grad():
            z.clamp_(min=0.5)
        return torch.nn.functional.gaussian_nll_loss(x, y * 2, z, full=True) * n

    x, y, n = arguments()
    found = rekindle.grad(loss, argnums=(0, 1))(x, y, n)
    torch.testing.assert_close(found, torch.func.grad(loss, argnums=(0, 1))(x, y, n))


def test_arguments_that_have_no_gradient() -> None:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.soft_margin_loss(x, y)

    with pytest.raises(rekindle.errors.DifferentiationError) as found:
        rekindle.grad(loss, argnums=1)
    assert str(found.value).splitlines()[0] == (
        "aten::soft_margin_loss is not differentiable with respect to its argument 'target'"
    )


def test_what_is_made_like_a_tensor_is_a_constant() -> None:
    def f(x: Tensor) -> Tensor:
        made = x.new_full([3], float("inf")) + x.new_zeros(3) + x.new_ones(3) + x.histc(3)
        return made.clamp(min=0).pow(2).sum() + x.sum()

    x = torch.rand(3)
    torch.testing.assert_close(rekindle.grad(f)(x), torch.ones(3))
    torch.testing.assert_close(rekindle.jvp(f)(x, x)[1], x.sum())
    assert rekindle.grad(f).graph.find_nodes("autodiff::backward_of_call") == []


def test_a_loop_whose_branches_use_different_elements() -> None:
    """Unrolled, the sum of gradients begins with one that does not exist."""

    def score(x: Tensor) -> Tensor:
        total = torch.zeros([], dtype=x.dtype)
        for i in range(2):
            if x[i] > 0:
                total = total + x[i]
            else:
                total = total - x[i].exp()
        return total

    gradient = rekindle.grad(score)
    for values in [(1.0, -1.0), (-1.0, 1.0), (-1.0, -2.0), (2.0, 1.0), (1.0, -3.0)]:
        x = torch.tensor(values, dtype=torch.float64)
        torch.testing.assert_close(gradient(x), torch.func.grad(score)(x))

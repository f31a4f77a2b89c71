"""Variables that not every path assigns: they raise where they are read without a value, as in Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import UndefinedNameError, UnsupportedError
from tests.frontend import unassigned
from tests.language.running import torch_loaded
from tests.support.calls import assert_calls_agree
from tests.support.golden import GoldenTexts

BOTH = ((True,), (False,))
FOUR = ((True, True), (True, False), (False, True), (False, False))
NUMBERS = tuple((n,) for n in (-6, -3, -1, 0, 1, 2, 3, 5, 7))
X = torch.tensor([1.0, -2.0, 3.0])

CALLS: dict[str, tuple[tuple[Any, ...], ...]] = {
    **dict.fromkeys(
        (
            "in_one_branch",
            "deleted_in_a_branch",
            "in_a_comprehension",
            "in_a_lambda",
            "of_a_local_function",
            "name_of_a_global",
            "caught",
            "augmented",
            "method_of_a_list",
            "with_a_target",
            "unpacked",
            "twice_deleted",
            "deleted_and_assigned",
            "generator_reads",
            "first_iterable_reads",
            "nested_function_reads",
            "assigned_by_a_nested_function",
        ),
        BOTH,
    ),
    **dict.fromkeys(("two_kinds_of_numbers", "of_two_types", "read_where_it_may_be_skipped"), FOUR),
    **dict.fromkeys(
        (
            "loop_variable_or_else",
            "walrus_in_a_condition",
            "deleted",
            "in_a_loop",
            "deleted_in_a_loop",
            "loop_that_runs",
            "of_the_iteration_before",
            "never_of_the_iteration_before",
            "breaks_of_an_endless_loop",
            "body_of_a_try",
            "in_a_handler",
            "branch_in_a_try",
            "in_a_try_within_a_try",
            "in_a_branch_that_is_left_out",
            "never_assigned_in_a_loop",
            "jumps_out_of_a_try",
            "iterations_with_a_try",
            "deleted_in_a_try",
            "of_two_types_by_handlers",
            "read_in_a_try",
            "before_and_in_a_try",
            "else_breaks",
            "matched",
            "continues",
            "known_in_the_loop_only",
            "of_objects",
            "in_while",
            "generic_functions",
            "asked_by_the_condition",
            "raises_otherwise",
            "two_types_by_a_break",
            "default_after_the_generator",
            "default_after_the_list",
            "default_of_the_largest",
            "generator_after_a_try",
            "kept_from_an_earlier_iteration",
            "changed_by_a_handler",
            "kept_in_nested_loops",
        ),
        NUMBERS,
    ),
    "endless_loop": ((),),
    "first_iteration_assigns": ((X, 0), (X, 1), (X, 3)),
    "same_condition_twice": ((True, X), (False, X)),
    "optional": ((True, X), (True, None), (False, X)),
    "final_reads": tuple((*n, [0]) for n in NUMBERS),
    "invariant_in_a_loop": ((0, False), (2, True), (2, False), (0, True)),
    "in_nested_loops": ((0, 0), (1, 0), (3, 3), (1, 1), (2, 2)),
    "dict_and_list": ((True, 2), (True, 0), (False, 0), (False, 1)),
    "loop_over_no_tensors": (([X],), ([],)),
    "read_after_other_work": ((torch.ones(2, 2), 0),),
    "loop_over_rows": ((X,), (X[:0],), (torch.ones(2, 2),)),
}


def test_each_program_is_called() -> None:
    programs = {
        name
        for name, item in vars(unassigned).items()
        if callable(item) and not isinstance(item, type) and item.__module__ == unassigned.__name__
    }
    assert {name for name in programs if not name.startswith("_")} - {"checked"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_as_eager(name: str) -> None:
    assert_calls_agree(getattr(unassigned, name), *CALLS[name])


def _graph(name: str) -> str:
    text = str(rekindle.script(getattr(unassigned, name)).graph)
    return "\n".join(line.partition(" # ")[0] for line in text.splitlines())


@pytest.mark.parametrize(
    "name", ["in_one_branch", "first_iteration_assigns", "deleted_in_a_loop", "loop_variable_or_else", "in_a_handler"]
)
def test_the_graph(name: str, golden: GoldenTexts) -> None:
    golden(f"frontend/unassigned/{name}", _graph(name))


@pytest.mark.parametrize(
    "name",
    ["endless_loop", "walrus_in_a_condition", "loop_that_runs", "breaks_of_an_endless_loop", "else_breaks"],
)
def test_no_flag_where_every_path_assigns(name: str) -> None:
    assert "UnboundLocalError" not in _graph(name)


class Layers(nn.Module):
    """The first iteration of a loop assigns what the others read."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4.0).reshape(2, 2))
        self.limit = 1.0

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            if i == 0:
                out = x @ self.weight
            else:
                out = out.tanh() @ self.weight
            if out.sum().item() > self.limit:
                first = i
        if n > 2:
            out = out * first
        return out


@pytest.mark.parametrize("strategy", ["simple", "profiling", "native"])
def test_gradients_flow_in_every_strategy(strategy: str) -> None:
    before = rekindle.set_execution_strategy(strategy)
    try:
        eager, module = Layers(), Layers()
        compiled = rekindle.script(module)
        for n in (1, 2, 3, 5, 1, 3):
            x = torch.ones(3, 2, requires_grad=True)
            y = torch.ones(3, 2, requires_grad=True)
            compiled(x, n).sum().backward()
            eager(y, n).sum().backward()
            assert x.grad is not None
            assert y.grad is not None
            torch.testing.assert_close(x.grad, y.grad)
            torch.testing.assert_close(compiled.weight.grad, eager.weight.grad)
        with pytest.raises(UnboundLocalError, match="variable 'out'"):
            compiled(x, 0)
    finally:
        rekindle.set_execution_strategy(before)


def chosen(x: Tensor, flag: bool) -> Tensor:
    if flag:
        y = x.sin()
    z = x * 2
    if flag:
        z = z * y
    return z


def test_transforms() -> None:
    compiled = rekindle.script(chosen)
    for flag in (True, False):
        expected = chosen(X, flag)
        found, tangent = rekindle.jvp(chosen)(X, flag, torch.ones(3))
        torch.testing.assert_close(found, expected)
        _, wanted = torch.func.jvp(lambda x, flag=flag: chosen(x, flag), (X,), (torch.ones(3),))
        torch.testing.assert_close(tangent, wanted)
        batched = rekindle.vmap(compiled, in_dims=(0, None))(X.reshape(3, 1), flag)
        torch.testing.assert_close(batched, torch.vmap(chosen, in_dims=(0, None))(X.reshape(3, 1), flag))


def half_chosen(x: Tensor, c: Tensor, flag: bool, deep: bool) -> Tensor:
    if flag:
        if deep:
            y = c
    else:
        y = x
    return x + y


def test_a_variable_that_is_the_same_for_all_examples() -> None:
    batched = rekindle.vmap(half_chosen, in_dims=(0, None, None, None))
    for flag, deep in ((True, True), (False, True), (False, False)):
        found = batched(X.reshape(3, 1), torch.ones(1), flag, deep)
        expected = torch.vmap(half_chosen, in_dims=(0, None, None, None))(X.reshape(3, 1), torch.ones(1), flag, deep)
        torch.testing.assert_close(found, expected)
    with pytest.raises(UnboundLocalError):
        batched(X.reshape(3, 1), torch.ones(1), True, False)


class Chosen(nn.Module):
    def __init__(self, flag: bool) -> None:
        super().__init__()
        self.flag = flag

    def forward(self, x: Tensor) -> Tensor:
        for i in range(3):
            if self.flag:
                y = x + i
        return y * i


def test_exports() -> None:
    program = rekindle.to_exported(rekindle.script(Chosen(True)), (X,))
    torch.testing.assert_close(program.module()(X), Chosen(True)(X))


def test_what_is_saved_runs_in_torch_jit() -> None:
    loaded = torch_loaded(rekindle.script(unassigned.in_a_loop))
    assert loaded(3) == unassigned.in_a_loop(3)
    with pytest.raises(torch.jit.Error, match="UnboundLocalError"):
        loaded(0)


def test_what_is_refused() -> None:
    def deletes_in_a_try(n: int):
        try:
            del n
        except ValueError:
            pass
        return 1

    with pytest.raises(UnsupportedError) as refused:
        rekindle.script(deletes_in_a_try)
    assert str(refused.value).partition("\n")[0] == (
        "'n' was assigned outside of this try block, and cannot be deleted in it"
    )


def test_a_global_is_not_taken_for_a_variable_of_the_function() -> None:
    def reads_before(n: int):
        total = nn + n  # noqa: F823
        nn = 1
        return total + nn

    with pytest.raises(UndefinedNameError) as refused:
        rekindle.script(reads_before)
    assert str(refused.value).partition("\n")[0] == (
        "'nn' is not defined here: no path to this place assigns it, but the function does elsewhere"
    )


def test_what_a_function_within_another_may_not_find() -> None:
    def returns_early(c: bool):
        if c:
            y = 1

        def g(d: bool):
            if d:
                return y
            return 0

        return g(c)

    with pytest.raises(UnsupportedError) as refused:
        rekindle.script(returns_early)
    assert str(refused.value).partition("\n")[0] == "the function 'g' reads 'y', which may not have been assigned here"

"""Drafts: what of a program Export IR can hold, and what a draft has in place of the rest."""
# ruff: noqa: T201 - the programs print, which is left out

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import DraftWarning, ExportError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own

X = torch.ones(3, 4)
WAY = "this goes as it does for the example, and raises where a call would go another way"


def draft(program: Any, *args: Any) -> tuple[torch.export.ExportedProgram, DraftWarning]:
    """The draft and its description."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = rekindle.to_exported(rekindle.script(program), args, draft=True)
    found = [each.message for each in caught if isinstance(each.message, DraftWarning)]
    assert len(found) == 1
    return made, found[0]


@torch.jit.ignore
def doubled(x: Tensor) -> Tensor:
    return x * 2


def prints_and_grows(x: Tensor) -> Tensor:
    print(x)
    while x.sum() < 100:
        x = torch.cat([x, x + 1])
    return doubled(x)


def test_a_draft_tells_what_it_is() -> None:
    program, told = draft(prints_and_grows, X)
    lines = str(told).splitlines()
    assert (
        "\n".join(line.split(", line")[0].replace(str(Path(__file__)), "here") for line in lines)
        == """\
the exported program is a draft, which differs from 'prints_and_grows' in 3 places.

1. this prints, and an exported program cannot
  File "here"
        print(x)
        ^^^^^
Hint: remove the call
In the draft: nothing is printed

2. this loop, whose trip count is data-dependent, changes the kind of what it carries: \
a tensor of shape [3, 4] before an iteration and [6, 4] after it
  File "here"
        while x.sum() < 100:
        ^^^^^^^^^^^^^^^^^^^^
Hint: give the variables before the loop values of the same kinds and shapes as it leaves, and write to a tensor \
of the full size instead of appending to a list
In the draft: this goes as it does for the example, and raises where a call would go another way

3. this calls Python, and an exported program cannot
  File "here"
        return doubled(x)
               ^^^^^^^
Hint: compile the function too: take the @ignore off it; or register it as an operator with torch.library
In the draft: Python is called while the draft is made: the operators that it calls then are in the draft, \
and nothing else of it"""
    )
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for module in (program.module(), torch.export.load(file).module()):
        for x in (X, X * 1.02):
            torch.testing.assert_close(module(x), prints_and_grows(x))
        with pytest.raises(RuntimeError, match="a draft follows only the path of its example"):
            module(X * 9)


def one_of(x: Tensor) -> Tensor:
    parts = [x, x + 1, x + 2]
    return parts[int(x.sum()) // 6]


def writes_to_either(x: Tensor) -> Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    y.add_(1)
    return x


@pytest.mark.parametrize(
    ("program", "in_draft", "other"),
    [
        (one_of, "the number is the example's, 2, and the draft raises where it is another one", X * 0),
        (writes_to_either, WAY, -X),
    ],
)
def test_other_ways_raise(program: Callable[[Tensor], Tensor], in_draft: str, other: Tensor) -> None:
    made, told = draft(program, X)
    assert [problem.in_draft for problem in told.problems] == [in_draft]
    module = made.module()
    assert torch.equal(module(X.clone()), program(X.clone()))
    with pytest.raises(RuntimeError):
        module(other)


@torch.jit.ignore
def by_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2)


def seldom(x: Tensor) -> Tensor:
    if x.sum() < 0:
        print("negative")
        return by_numpy(x)
    return x + 1


def test_ways_that_the_example_does_not_take_are_left_out() -> None:
    made, told = draft(seldom, X)
    assert [problem.in_draft for problem in told.problems] == ["nothing is printed", WAY]
    assert torch.equal(made.module()(X), X + 1)
    with pytest.raises(RuntimeError):
        made.module()(-X)


class Grows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.seen = torch.cat([self.seen, x])
        return self.seen.mean(0)


class Pair:
    def __init__(self, first: Tensor, second: int) -> None:
        self.first = first
        self.second = second


def as_object(x: Tensor) -> Pair:
    return Pair(x * 2, 3)


def appends(xs: List[Tensor]) -> int:
    xs.append(xs[0])
    return len(xs)


def tries(x: Tensor) -> Tensor:
    try:
        y = x + 1
    except RuntimeError:
        y = x
    return y


def in_low_precision(x: Tensor) -> Tensor:
    with torch.autocast("cpu"):
        return x @ x.t()


@pytest.mark.parametrize(
    ("program", "argument", "in_draft", "result"),
    [
        (Grows(), X, "the attribute stays as it was before the call", X.sum(0) / 4),
        (as_object, X, "a dict of its attributes is returned", {"first": X * 2, "second": 3}),
        (appends, [X], "the argument of the caller stays as it was", 2),
        (tries, X, "what is tried runs as if nothing could be caught", X + 1),
        (in_low_precision, X, "what is in it runs as if the statement were not there", X @ X.t()),
    ],
    ids=["state", "object", "argument", "try", "autocast"],
)
def test_what_is_left_out(program: Any, argument: Any, in_draft: str, result: Any) -> None:
    made, told = draft(program, argument)
    assert [problem.in_draft for problem in told.problems] == [in_draft]
    torch.testing.assert_close(made.module()(argument), result)


def gradient(x: Tensor) -> Tensor:
    print(x)
    found = torch.autograd.grad([x.sum()], [x])[0]
    assert found is not None
    return found


def test_there_is_not_always_a_draft() -> None:
    with pytest.raises(ExportError) as caught:
        rekindle.to_exported(rekindle.script(gradient), (X.clone().requires_grad_(),), draft=True)
    assert str(caught.value).startswith(
        "'gradient' cannot be exported, not even as a draft: this computes gradients while the program runs"
    )


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("total", torch.zeros(4))

    def forward(self, xs: Dict[str, Tensor]) -> Tensor:
        self.calls += 1
        self.total.add_(xs["x"].sum(0))
        print(self.calls)
        return doubled(self.total)


def test_the_run_of_the_example_changes_nothing() -> None:
    module = rekindle.script(Counts())
    generator = torch.get_rng_state()
    x = X.clone()
    with pytest.raises(ExportError):
        rekindle.to_exported(module, ({"x": x},))
    assert (module.calls, module.total.tolist()) == (0, [0.0] * 4)
    assert torch.equal(x, X)
    assert torch.equal(torch.get_rng_state(), generator)

"""What is forked becomes a graph of its own, which takes what it uses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import SchemaError, TypeMismatchError, UnsupportedError
from tests.support.messages import message_of


def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def _printed(function: Any) -> str:
    text = str(rekindle.script(function).graph)
    return "\n".join(line.partition(" # ")[0] for line in text.splitlines())


def test_what_is_used_is_taken_once_and_in_order() -> None:
    def program(x: Tensor, factor: float, unused: int) -> Tensor:
        return rekindle.wait(rekindle.fork(torch.addcmul, x, x, x, value=factor))

    assert _printed(program) == (
        """\
graph(%x.1 : Tensor,
      %factor.1 : float,
      %unused : int):
  %8 : Future[Tensor] = prim::fork_0(%x.1, %factor.1)
  %9 : Tensor = aten::wait(%8)
  return (%9)
with prim::fork_0 = graph(%x.1 : Tensor,
      %factor.1 : float):
  %2 : Tensor = aten::addcmul(%x.1, %x.1, %x.1, %factor.1)
  return (%2)"""
    )


def test_default_arguments_stand_within() -> None:
    def program(x: Tensor) -> Tensor:
        return rekindle.wait(rekindle.fork(scaled, x))

    (fork,) = rekindle.script(program).graph.find_nodes("prim::fork")
    assert len(fork.inputs) == 1
    constants = fork.get_graph("Subgraph").find_nodes("prim::Constant")
    assert sorted(str(node.output.type) for node in constants) == ["Function", "float"]


def test_both_spellings_mean_the_same() -> None:
    def ours(x: Tensor) -> Tensor:
        future = rekindle.fork(scaled, x, factor=3.0)
        return rekindle.wait(future)

    def theirs(x: Tensor) -> Tensor:
        future = torch.jit.fork(scaled, x, factor=3.0)
        return torch.jit.wait(future)

    assert _printed(ours) == _printed(theirs)


def test_programs_that_are_texts_fork() -> None:
    unit = rekindle.CompilationUnit(
        """
def twice(x):
    return x * 2

def program(x):
    futures = [torch.jit.fork(twice, x), torch.jit.fork(torch.neg, x)]
    return futures[0].wait() + futures[1].wait()
"""
    )
    assert torch.equal(unit.program(torch.ones(2)), torch.ones(2))


def _nothing() -> int:
    return rekindle.wait(rekindle.fork())


def _wrong_argument(x: Tensor) -> Tensor:
    return rekindle.wait(rekindle.fork(scaled, x, "much"))


def _no_callable(x: Tensor, n: int) -> Tensor:
    return rekindle.wait(rekindle.fork(n, x))


def _no_future(x: Tensor) -> Tensor:
    return rekindle.wait(x)


REFUSALS = {
    _nothing: (
        TypeMismatchError,
        """\
fork takes a function and its arguments
  File "FILE", line N
    def _nothing() -> int:
        return rekindle.wait(rekindle.fork())
                             ^^^^^^^^^^^^^^^""",
    ),
    _wrong_argument: (
        SchemaError,
        """\
'scaled' cannot be called with (Tensor, str): argument 'factor': expected float, got str.
It is declared as
  scaled(Tensor x, float factor=2.) -> Tensor
  File "FILE", line N
    def _wrong_argument(x: Tensor) -> Tensor:
        return rekindle.wait(rekindle.fork(scaled, x, "much"))
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    ),
    _no_callable: (
        UnsupportedError,
        """\
a value of type int cannot be called
  File "FILE", line N
    def _no_callable(x: Tensor, n: int) -> Tensor:
        return rekindle.wait(rekindle.fork(n, x))
                             ^^^^^^^^^^^^^^^^^^^""",
    ),
    _no_future: (
        SchemaError,
        """\
'aten::wait' cannot be called with (Tensor): argument 'self': expected a Future[t], got Tensor.
It is declared as
  aten::wait(Future(t) self) -> t
  File "FILE", line N
    def _no_future(x: Tensor) -> Tensor:
        return rekindle.wait(x)
               ^^^^^^^^^^^^^""",
    ),
}


@pytest.mark.parametrize("program", REFUSALS, ids=lambda program: program.__name__)
def test_refusals(program: Any) -> None:
    error, message = REFUSALS[program]
    assert message_of(error, lambda: rekindle.script(program)) == message

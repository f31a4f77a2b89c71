"""Batches within batches, gradients of batches, batches of gradients: beside torch.func."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir.verifier import verify
from rekindle.transforms.vmap.loop_fallbacks import loops_over_examples
from tests.transforms.vmap.programs import PROGRAMS, Program, Step

NAMES = {program.name: program for program in PROGRAMS}


@pytest.fixture(autouse=True)
def _simple() -> Any:
    """Kernels are tested elsewhere."""
    before = rekindle.set_execution_strategy("simple")
    yield
    rekindle.set_execution_strategy(before)


def test_there_are_many() -> None:
    assert len(NAMES) == len(PROGRAMS) >= 60
    within = [[step.word for step in program.steps] for program in PROGRAMS]
    assert sum(words.count("vmap") > 1 for words in within) >= 15
    assert (
        sum("grad" in words and words.index("vmap") > words.index("grad") for words in within if "vmap" in words) >= 30
    )


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # of torch.func
@pytest.mark.parametrize("name", NAMES)
def test_it_computes_what_torch_func_does(name: str) -> None:
    program = NAMES[name]
    torch.manual_seed(0)
    arguments = [made(each) for each in program.arguments]
    ours = rekindle.script(program.function)
    for step in program.steps:
        ours = _ours(step, ours)
    verify(ours.graph)
    if program.asks:
        with pytest.raises(RuntimeError):
            _theirs(program, torch.func.vmap)(*arguments)
        expected = _theirs(program, looped)(*arguments)
    else:
        expected = _theirs(program, torch.func.vmap)(*arguments)
    torch.testing.assert_close(ours(*arguments), expected, rtol=1e-4, atol=1e-5)
    kinds = {loop.kind for loop in loops_over_examples(ours.inlined_graph)}
    assert kinds == set(program.loops)


def made(argument: Any) -> Any:
    """An argument of what the table says: sizes are those of random numbers."""
    if isinstance(argument, dict):
        return {key: made(each) for key, each in argument.items()}
    if isinstance(argument, list):
        return [made(each) for each in argument]
    if isinstance(argument, tuple):
        if all(isinstance(size, int) for size in argument):
            return torch.randn(argument)
        return tuple(made(each) for each in argument)
    return argument


# ----------------------------------------------------------------------------------------------------------- both sides


def _ours(step: Step, f: Any) -> Any:
    if step.word == "vmap":
        return rekindle.vmap(f, step.in_dims, step.out_dims)
    if step.word == "sum":
        return rekindle.create_function(_summed(f, 1), f"sum_of_{f.name}")
    if step.word == "sum of squares":
        return rekindle.create_function(_summed(f, 2), f"squares_of_{f.name}")
    return getattr(rekindle, step.word)(f, step.argnums)


def _summed(f: Any, power: int) -> rekindle.Graph:
    graph = f.inlined_graph
    with graph.inserting_at_end(graph.block) as build:
        (output,) = graph.outputs
        graph.return_node.replace_input(0, (build(output) ** power).sum())
    return graph


def _theirs(program: Program, vmap: Callable[..., Any]) -> Callable[..., Any]:
    f: Callable[..., Any] = program.function
    for step in program.steps:
        f = _their_step(step, f, vmap)
    return f


def _their_step(step: Step, f: Callable[..., Any], vmap: Callable[..., Any]) -> Callable[..., Any]:
    number = step.argnums
    if step.word == "vmap":
        return vmap(f, step.in_dims, step.out_dims)
    if step.word in ("sum", "sum of squares"):
        power = 1 if step.word == "sum" else 2
        return lambda *args: (f(*args) ** power).sum()
    if step.word == "value_and_grad":
        return lambda *args: torch.func.grad_and_value(f, number)(*args)[::-1]
    if step.word in ("jvp", "vjp"):
        assert isinstance(number, int)
        return lambda *args: _along(step.word, f, number, *args)
    return getattr(torch.func, step.word)(f, number)


def _along(word: str, f: Callable[..., Any], number: int, *args: Any) -> tuple[Any, Any]:
    *given, direction = args

    def of_one(x: Tensor) -> Any:
        return f(*given[:number], x, *given[number + 1 :])

    if word == "jvp":
        return torch.func.jvp(of_one, (given[number],), (direction,))
    result, back = torch.func.vjp(of_one, given[number])
    return result, back(direction)[0]


def looped(f: Callable[..., Any], in_dims: Any, out_dims: Any) -> Callable[..., Any]:
    """What ``vmap`` means: a call for each example."""

    def run(*args: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        count = next(size for size in map(_size, args, dims) if size is not None)
        each = [f(*(_example(arg, dim, index) for arg, dim in zip(args, dims, strict=True))) for index in range(count)]
        return _joined(each, out_dims)

    return run


def _size(argument: Any, dim: Any) -> int | None:
    return argument.size(dim) if isinstance(argument, Tensor) and dim is not None else None


def _example(argument: Any, dim: Any, index: int) -> Any:
    return argument.select(dim, index) if isinstance(argument, Tensor) and dim is not None else argument


def _joined(each: list[Any], dim: Any) -> Any:
    if isinstance(each[0], tuple):
        return tuple(
            _joined(list(parts), dim if isinstance(dim, int) else dim[n]) for n, parts in enumerate(zip(*each))
        )
    return torch.stack(each, dim) if isinstance(each[0], Tensor) else torch.tensor(each)


@pytest.mark.parametrize(("inner", "outer"), [("different", "same"), ("same", "different"), ("different", "different")])
def test_random_numbers_of_batches_within_batches(inner: str, outer: str) -> None:
    def noise(x: Tensor) -> Tensor:
        return x + torch.rand([2])

    torch.manual_seed(0)
    batched = rekindle.vmap(rekindle.vmap(noise, randomness=inner), randomness=outer)  # type: ignore[arg-type]
    drawn = batched(torch.zeros(4, 3, 2))
    assert len(drawn[0].unique(dim=0)) == (3 if inner == "different" else 1)
    assert len(drawn[:, 0].unique(dim=0)) == (4 if outer == "different" else 1)

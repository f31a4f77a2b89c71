"""A variable that is a Tensor on some paths and a number on others is the one or the other, as in Python."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.frontend.tensor_or_number_programs import MATRIX, NO_ROWS, PROGRAMS, VECTOR


def outcome(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any, Any]:
    """What a call returns, with the dtypes of Tensors and the classes of numbers, or the class of the error that it
    raises; and the arguments after it."""
    arguments = copy.deepcopy(arguments)
    try:
        result = call(*arguments)
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        return type(error).__name__, None, described(arguments)
    return "", described(result), described(arguments)


def described(value: Any) -> Any:
    """A value that is equal to another one's where both are the same, classes and dtypes included."""
    if isinstance(value, Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value), [described(item) for item in value]
    if isinstance(value, dict):
        return [(key, described(item)) for key, item in value.items()]
    return type(value), value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for _ in range(3):
        for arguments in PROGRAMS[program]:
            assert outcome(compiled, arguments) == outcome(program, arguments), arguments


NOT_SAVED = {
    **dict.fromkeys(("tryit", "builtins_of_numbers", "a_bool_after_try"), "TorchScript has no try statement"),
    "shape": "TorchScript's sizes are lists",
}


@pytest.mark.parametrize(
    "program", [each for each in PROGRAMS if each.__name__ not in NOT_SAVED], ids=lambda program: program.__name__
)
def test_saved_programs(program: Callable[..., Any]) -> None:
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(program), buffer)
    buffer.seek(0)
    loaded = rekindle.load(buffer)
    for arguments in PROGRAMS[program]:
        assert outcome(loaded, arguments) == outcome(program, arguments), arguments


def declared_result(x: Tensor) -> Tensor:
    total = 0
    for v in x:
        total = total + v
    return total  # type: ignore[return-value]


def declared_variable(x: Tensor):  # type: ignore[no-untyped-def]
    total = 0
    for v in x:
        total = total + v
    declared: Tensor = total  # type: ignore[assignment]
    return declared


def argument_of_an_operator(x: Tensor):  # type: ignore[no-untyped-def]
    total = 0
    for v in x:
        total = total + v
    return torch.relu(total)  # type: ignore[arg-type]


def method(x: Tensor):  # type: ignore[no-untyped-def]
    total = 0.0
    for v in x:
        total = total + v
    return total.exp()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (
            declared_result,
            TypeError,
            "the function is declared to return Tensor, but returns a value of type int",
        ),
        (declared_variable, TypeError, "a Tensor is declared, but the value is of type int"),
        (argument_of_an_operator, TypeError, "relu(): argument 'input' (position 1) must be Tensor, not int"),
        (method, AttributeError, "'float' object has no attribute 'exp'"),
    ],
)
def test_a_number_where_a_tensor_is_needed(program: Callable[..., Any], error: type[Exception], message: str) -> None:
    compiled = rekindle.script(program)
    assert torch.equal(compiled(MATRIX), program(MATRIX))
    with pytest.raises(error) as caught:
        compiled(NO_ROWS)
    assert str(caught.value).splitlines()[0] == message


def test_what_a_program_cannot_do_with_a_number_raises() -> None:
    def f(x: Tensor, w: Tensor):  # type: ignore[no-untyped-def]
        total = 0
        for v in x:
            total = total + v
        return total @ w  # type: ignore[operator]

    compiled = rekindle.script(f)
    assert compiled(MATRIX, MATRIX[0]).item() == 16.0
    with pytest.raises(TypeError) as caught:
        compiled(NO_ROWS, VECTOR)
    assert str(caught.value).splitlines()[0] == "unsupported operand: a number, where a Tensor is needed"


def test_augmented_assignment_writes_to_the_tensor() -> None:
    def f(x: Tensor):  # type: ignore[no-untyped-def]
        last = 1
        for row in x:
            last = row
        last *= 10
        return last

    x, y = MATRIX.clone(), MATRIX.clone()
    assert torch.equal(rekindle.script(f)(x), f(y))
    assert torch.equal(x, y)
    assert x[1].tolist() == [30.0, 40.0]
    assert rekindle.script(f)(NO_ROWS) == 10


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.ema = 0.0
        self.losses = {"a": 0.0}
        self.history = [0]

    def forward(self, x: Tensor):
        self.ema = 0.9 * self.ema + 0.1 * x.mean()
        self.losses["a"] += x.sum()
        self.history.append(x.max())
        return self.ema, self.losses, self.history


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = 0

    def forward(self, x: Tensor):
        self.loss = x.pow(2).mean()
        return x * 2


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Part()
        self.other = Part()

    def forward(self, x: Tensor):
        before = self.one.loss
        return self.other(self.one(x)), before, self.one.loss + self.other.loss


@pytest.mark.parametrize("module", [Average, Parts])
def test_attributes_of_modules(module: Callable[[], nn.Module]) -> None:
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(module()), buffer)
    buffer.seek(0)
    eager, compiled, loaded = module(), rekindle.script(module()), rekindle.load(buffer)
    for _ in range(3):
        expected = described(eager(MATRIX))
        assert described(compiled(MATRIX)) == expected
        assert described(loaded(MATRIX)) == expected


def test_empty_lists_hold_what_is_added_to_them_alone() -> None:
    """A list without elements is one of Tensors until a use shows its elements; it then holds these alone."""

    def curves(n: int):
        found = {"loss": [], "rate": []}
        for i in range(n):
            found["loss"].append(i * 0.5)
        found["rate"] += [0.25]
        return found

    def rows(n: int):
        found = [[], []]
        found[0] += [n]
        found[1] += [2.5]
        return found

    def of_both(x: Tensor):
        found = {"a": [], "b": []}
        found["a"] += [x]
        found["b"] += [1.5]
        return found

    returned = [str(rekindle.script(function).schema.returns[0].type) for function in (curves, rows, of_both)]
    assert returned == ["Dict(str, float[])", "Union(float, int)[][]", "Dict(str, Union(Tensor, float)[])"]
    assert rekindle.script(rows)(3) == [[3], [2.5]]

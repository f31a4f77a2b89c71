"""Attributes of script classes, lists, dicts and tuples hold Python's numbers, whatever they begin with."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.frontend.number_classes import FLOATS, INPUTS, INTS, M2, PROGRAMS
from tests.frontend.number_containers import PROGRAMS as OF_CONTAINERS, direct


def shown(value: Any) -> str:
    """A value with the types of all numbers; of an object, its attributes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    return f"{type(value).__name__} {vars(value)!r}" if hasattr(value, "__dict__") else repr(value)


def outcome(call: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    given = copy.deepcopy(arguments)
    try:
        return shown(call(*given)) + " " + shown(given[1:])
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        return f"raises {type(error).__name__}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for _ in range(3):
        for x in INPUTS:
            assert outcome(compiled, (x,)) == outcome(program, (x,)), x


@pytest.mark.parametrize("program", OF_CONTAINERS, ids=lambda program: program.__name__)
def test_containers(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for _ in range(3):
        for x in INPUTS:
            assert outcome(compiled, (x,)) == outcome(program, (x,)), x


@pytest.mark.parametrize("value", [1, 0.5, True, -0.0, 2**60 + 1, float("nan")])
def test_unions_of_numbers(value: float) -> None:
    assert repr(rekindle.script(direct)(value, FLOATS)) == repr(direct(value, FLOATS))


class Total:
    def __init__(self):
        self.sum = 0


def counted(x: Tensor, total: Total):
    total.sum += len(x)
    return total.sum


def accumulated(x: Tensor, total: Total):
    total.sum += x[0].item()
    return total.sum


def test_functions_compiled_before_are_compiled_again() -> None:
    count = rekindle.script(counted)
    assert "int" in str(count.schema.returns[0])
    assert outcome(count, (FLOATS, Total())) == outcome(counted, (FLOATS, Total()))
    add = rekindle.script(accumulated)
    for x in INPUTS:
        mine, theirs = Total(), Total()
        for compiled, program in ((add, accumulated), (count, counted), (add, accumulated)):
            assert repr(compiled(x, mine)) == repr(program(x, theirs))
        assert repr(mine.sum) == repr(theirs.sum)


class Counts:
    def __init__(self, start: int):
        self.count = start
        self.last = None

    def add(self, n):
        self.count += n


def counts(n: int):
    c = Counts(0)
    for i in range(n):
        c.add(i)
    return c.count


def test_attributes_stay_typed_where_all_numbers_are_of_one_type() -> None:
    compiled = rekindle.script(counts)
    assert compiled(5) == 10
    assert str(compiled.schema) == "counts(int n) -> int"


def last_of(n: int):
    c = Counts(0)
    before = c.last
    if n > 2:
        c.last = n
    return before is None, c.last


def test_an_attribute_that_begins_as_none() -> None:
    compiled = rekindle.script(last_of)
    for n in (1, 3, 1):
        assert outcome(compiled, (n,)) == outcome(last_of, (n,))


class Averaged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.meter = M2()

    def forward(self, x: Tensor):
        for v in x:
            self.meter.update(v.item())
        return self.meter.avg, self.meter.sum, self.meter.count


def test_meters_in_modules() -> None:
    eager, compiled = Averaged(), rekindle.script(Averaged())
    for x in (*INPUTS, INTS):
        assert repr(compiled(x)) == repr(eager(x))


class Scaled:
    def __init__(self, factor, offset=0):
        self.factor = factor
        self.offset = offset

    def __call__(self, x: Tensor):
        return x * self.factor + self.offset


def scaled_by_tensor(x: Tensor):
    return Scaled(x)(x)


def scaled_by_numbers(x: Tensor):
    return [Scaled(factor)(x) for factor in (2, 3)], Scaled(0.5, 1)(x), Scaled(x[0].item(), 0.5)(x)


def test_parameters_of_init_are_what_programs_pass() -> None:
    """Each program compiles the class for what it passes; the other is compiled again when it is next called."""
    compiled = [(program, rekindle.script(program)) for program in (scaled_by_tensor, scaled_by_numbers)]
    for _ in range(3):
        for x in (FLOATS, INTS):
            for program, function in compiled:
                assert outcome(function, (x,)) == outcome(program, (x,))


def scaled_by_both(x: Tensor):
    return Scaled(2)(x) + Scaled(x)(x), Scaled(x).factor, Scaled(3).factor


class Named:
    def __init__(self, name):
        self.name = name


def in_one_program(x: Tensor):
    return Named("x").name, Named(x).name


def test_a_program_may_pass_a_tensor_and_a_number() -> None:
    compiled = rekindle.script(scaled_by_both)
    for x in (FLOATS, INTS):
        assert outcome(compiled, (x,)) == outcome(scaled_by_both, (x,))


def test_a_program_that_passes_what_has_no_type_in_common() -> None:
    with pytest.raises(rekindle.errors.SchemaError) as caught:
        rekindle.script(in_one_program)
    assert caught.value.message.startswith("'__init__' cannot be called with (Tensor): argument 'name': expected ")


class Redefined(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = 0.5

    def forward(self, n: int, x: float):
        self.total = n**2
        a = self.total
        self.total = round(x)
        b = self.total
        self.total = pow(2, n)
        return a, b, self.total


class Quotient(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, n: int, x: float):
        self.count = x
        self.count, rest = divmod(self.count, n)
        return self.count, rest


class OtherNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = [0.5]

    def forward(self, n: int, x: float):
        history = self.history
        history.append(n)
        history[0] = 2 * n
        return self.history, history[-1] + 1


@pytest.mark.parametrize("module", [Redefined, Quotient, OtherNames])
def test_attributes_keep_ints_and_pairs_of_numbers(module: Callable[[], nn.Module]) -> None:
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(module()), buffer)
    buffer.seek(0)
    loaded, compiled = rekindle.load(buffer), rekindle.script(module())
    expected = repr(module()(3, 7.75))
    assert (repr(compiled(3, 7.75)), repr(loaded(3, 7.75))) == (expected, expected)
    buffer.seek(0)
    assert repr(torch.jit.load(buffer)(3, 7.75)) == expected

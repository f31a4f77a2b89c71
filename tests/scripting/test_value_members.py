"""Methods and properties of the classes of NamedTuples and enums."""

from __future__ import annotations

import enum
from typing import NamedTuple

import pytest
import torch

import rekindle


class Box(NamedTuple):
    x: int
    y: int = 2

    def area(self, scale: int = 1) -> int:
        return self.x * self.y * scale

    def moved(self, by):
        return self._replace(x=self.x + by)

    @property
    def total(self):
        return self.x + self.y

    @staticmethod
    def square(side: int):
        return Box(side, side)


class Step(NamedTuple):
    loss: torch.Tensor
    count: int


class Level(enum.Enum):
    LOW = 1
    HIGH = 5

    @property
    def doubled(self) -> int:
        return self.value * 2

    def times(self, factor: int):
        return self.value * factor


def of_a_box(b: Box, k: int):
    moved = b.moved(k)
    replaced = b._replace(y=k, x=b.y)
    same = b._replace()
    return b.area(), moved.area(scale=k), b.total, b.square(k), replaced, same, b._asdict(), b._fields, b


def replaced_tensors(step: Step, x: torch.Tensor):
    after = step._replace(loss=step.loss + x, count=step.count + 1)
    after.loss.add_(1)
    return step, after


def of_a_level(level: Level):
    return level.doubled, level.times(3), [each.times(2) for each in Level]


def asked(b: Box, level: Level):
    return (
        hasattr(b, "area"),
        hasattr(b, "_replace"),
        hasattr(b, "volume"),
        hasattr(level, "times"),
        hasattr(level, "z"),
    )


@pytest.mark.parametrize(("box", "k"), [(Box(1), 3), (Box(4, 5), 0), (Box(-1, 2), -2)])
def test_members_of_named_tuples(box: Box, k: int) -> None:
    found, expected = rekindle.script(of_a_box)(box, k), of_a_box(box, k)
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


def test_replaced_fields_leave_the_others() -> None:
    step, x = Step(torch.zeros(2), 1), torch.ones(2)
    before, after = rekindle.script(replaced_tensors)(step, x)
    assert before.loss is step.loss
    assert before.count == 1
    assert isinstance(after, Step)
    assert after.count == 2
    assert after.loss.tolist() == [2.0, 2.0]
    assert step.loss.tolist() == [0.0, 0.0]


def larger(a: Box, b: Box):
    return max(a, b), min(a, b).x


def test_max_of_named_tuples_is_one_of_them() -> None:
    found = rekindle.script(larger)(Box(1), Box(3))
    assert found == (Box(3), 1)
    assert isinstance(found[0], Box)


def test_members_of_enums() -> None:
    compiled = rekindle.script(of_a_level)
    for level in Level:
        assert compiled(level) == of_a_level(level)


def test_hasattr_asks_the_class() -> None:
    assert rekindle.script(asked)(Box(1), Level.LOW) == asked(Box(1), Level.LOW)


def unknown_field(b: Box):
    return b._replace(z=1)


def several_types(step: Step):
    return step._asdict()


class Sum(NamedTuple):
    value: int

    def __add__(self, other):
        return Sum(self.value + other.value)


def added(a: Sum):
    return a + a


def _problem(function: object) -> str:
    with pytest.raises(rekindle.errors.CompileError) as caught:
        rekindle.script(function)
    return str(caught.value).partition("\n")[0]


def test_wrong_uses_are_rejected() -> None:
    assert _problem(unknown_field) == "'Box' cannot be called with (z: int, x: int, y: int): it has no argument 'z'."
    assert _problem(several_types).endswith(".Step' would be a dict with values of several types: Tensor, int")
    assert (
        _problem(added) == "the NamedTuple 'Sum' defines '__add__', and compiled code has the operators of tuples only"
    )

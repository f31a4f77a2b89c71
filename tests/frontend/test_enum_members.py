"""Members of enums that are numbers or strings too, and others."""

import enum
from typing import Any, Dict, List, Literal, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import SchemaError
from tests.frontend.outcomes import agrees


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Axis(enum.IntEnum):
    ROWS = 0
    COLUMNS = 1


class Mode(str, enum.Enum):
    TRAIN = "train"
    EVAL = "eval"


class Quiet(str, enum.Enum):
    A = "a"

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


def compared(axis: Axis, n: int) -> List[bool]:
    return [
        axis == n,
        n == axis,
        axis != n,
        axis == Axis.ROWS,
        axis < 1,
        n in (Axis.ROWS, Axis.COLUMNS),
        axis in (0, 5),
    ]


def calculated(axis: Axis) -> Tuple[int, int, float, int, int, int, bool, List[int]]:
    return axis + 1, axis * 2, axis / 2, -axis, abs(axis), max(axis, 5), bool(axis), [0] * axis


def indexed(axis: Axis, x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, int, int, str]:
    if axis:
        x = x + 1
    return x.sum(axis), x[axis], x[:, axis], x * axis, x.shape[axis], [10, 20][axis], {0: "a", 1: "b"}[axis]


def counted(axis: Axis) -> List[int]:
    return list(range(axis)) + [i for i in range(axis, 2)]


def texts(mode: Mode, s: str) -> List[bool]:
    either = [mode == "train", s == mode, mode != s, mode == Mode.TRAIN, mode in ("train", "x"), "tr" in mode]
    return [*either, mode < "f", mode.startswith("tr"), bool(mode), s in (Mode.TRAIN, Mode.EVAL)]


def methods_of_texts(mode: Mode) -> Tuple[str, str, int, List[str], str]:
    return mode + "_x", mode.upper(), len(mode), mode.split("a"), mode.name


def keys(mode: Mode, d: Dict[str, int]) -> Tuple[int, bool, int]:
    d[mode.value] = 3
    return d[mode], mode in d, d.get(mode, 7)


def in_lists(axes: List[Axis], axis: Axis, n: int) -> Tuple[bool, bool, bool]:
    return axis in axes, axis in [0, 7], n in axes


def plain(color: Color, n: int) -> List[bool]:
    either = [color == n, color != n, color == "x", n in (Color.RED, 1), color == Color.RED]
    return [*either, bool(color), color in (Color.RED, Color.BLUE)]


def of_literals(color: Literal[Color.RED, Color.BLUE], n: Literal[1, 2] = 1) -> Tuple[Color, str, int, int]:
    return color, color.name, color.value, n


CASES: List[Tuple[Any, Tuple[Tuple[Any, ...], ...]]] = [
    (compared, ((Axis.ROWS, 0), (Axis.COLUMNS, 0), (Axis.ROWS, 7))),
    (calculated, ((Axis.ROWS,), (Axis.COLUMNS,))),
    (indexed, ((Axis.ROWS, torch.ones(2, 3)), (Axis.COLUMNS, torch.ones(2, 3)))),
    (counted, ((Axis.ROWS,), (Axis.COLUMNS,))),
    (texts, ((Mode.TRAIN, "train"), (Mode.EVAL, "train"))),
    (methods_of_texts, ((Mode.TRAIN,), (Mode.EVAL,))),
    (keys, ((Mode.TRAIN, {}), (Mode.EVAL, {"train": 1}))),
    (in_lists, (([Axis.ROWS], Axis.ROWS, 0), ([Axis.ROWS], Axis.COLUMNS, 1), ([], Axis.ROWS, 0))),
    (plain, ((Color.RED, 1), (Color.BLUE, 1))),
    (of_literals, ((Color.RED,), (Color.BLUE, 2))),
]


@pytest.mark.parametrize(("function", "calls"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_members_of_enums(function: Any, calls: Tuple[Tuple[Any, ...], ...]) -> None:
    agrees(function, *calls)


def compares_by_a_method(quiet: Quiet) -> bool:
    return quiet == "a"


def test_an_operator_that_an_enum_defines_is_not_that_of_its_values() -> None:
    with pytest.raises(SchemaError):
        rekindle.script(compares_by_a_method)

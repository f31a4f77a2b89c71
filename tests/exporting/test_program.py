"""Programs of each kind, exported and held beside what they were made from; `tests.sweeps.exports` does so for all
probes."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest
import torch
from torch import Tensor

import rekindle
from tests.exporting.checking import compared, exported
from tests.exporting.probes import PROBES
from tests.oracle.programs.interfaces import InterfacePart, NamesLayers

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own

SAMPLE = (
    *("if.early_return", "if.lists", "for.dynamic_size", "for.long_break", "while.if_inside", "args.nested"),
    *("state.int_decides", "state.buffer_returned", "raise.nested", "fork.list", "class.in_branch", "nn.GRU"),
    *(
        "hard.none_before",
        "hard.append_and_break",
        "hard.bidirectional",
        "hard.ring_buffer",
        "hard.roots",
        "hard.backwards",
    ),
)


@pytest.mark.parametrize("name", SAMPLE)
def test_exported_programs_agree(name: str) -> None:
    probe = PROBES[name]
    assert compared(exported(probe).module(), rekindle.script(probe.make()), probe).verdict == "agrees"


def test_a_part_by_its_name() -> None:
    """Which part of a container an argument names is known while exporting, as every string is."""
    module = NamesLayers()
    program = rekindle.to_exported(rekindle.script(module), (torch.ones(3), "affine"))
    x = torch.arange(3.0)
    torch.testing.assert_close(program.module()(x, "affine"), module(x, "affine"))
    with pytest.raises(AssertionError, match=r"^Guard failed: name == 'affine'$"):
        program.module()(x, "one")


def test_a_part_that_is_an_interface() -> None:
    """The class that implements an interface is known while exporting; its parameters are inputs like others."""
    module = InterfacePart()
    program = rekindle.to_exported(rekindle.script(module), (torch.ones(3),))
    assert {*program.state_dict} == {*module.state_dict()}
    x = torch.arange(3.0)
    torch.testing.assert_close(program.module()(x), module(x))


def weighs(x: Tensor, y: Tensor, rest: List[Tensor]) -> Tensor:
    return x + 2 * y + 3 * rest[0]


def test_one_tensor_in_several_places_of_the_example() -> None:
    """The arguments stay apart: PyTorch's own exporter takes them for one."""
    x = torch.ones(3)
    program = rekindle.to_exported(rekindle.script(weighs), (x, x, [x]))
    assert program.module()(x, x * 5, [x * 7]).tolist() == [32.0] * 3
    theirs = torch.export.export(Weighs(), (x, x, [x]))
    assert theirs.module()(x, x * 5, [x * 7]).tolist() == [42.0] * 3


class Weighs(torch.nn.Module):
    def forward(self, x: Tensor, y: Tensor, rest: List[Tensor]) -> Tensor:
        return weighs(x, y, rest)


def test_an_argument_that_is_a_parameter_of_the_example() -> None:
    module = torch.nn.Linear(2, 2)
    program = rekindle.to_exported(rekindle.script(module), (module.weight,))
    x = torch.arange(4.0).reshape(2, 2)
    torch.testing.assert_close(program.module()(x), module(x))


def floored(x: Tensor) -> Tensor:
    f = float(x.sum())
    return x * math.floor(f)


def sine(x: Tensor) -> Tensor:
    f = float(x.sum())
    return x * math.sin(f)


def truncated(x: Tensor) -> Tensor:
    return x * int(x.sum().item() * 2.0)


def truncated_tensor(x: Tensor) -> Tensor:
    return x * int(x.sum())


def shifted(x: Tensor) -> Tensor:
    n = int(x.sum())
    return x * (1 << n)


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (floored, float("inf"), "OverflowError: cannot convert the float to an integer of 64 bits"),
        (truncated, float("-inf"), "OverflowError: cannot convert the float to an integer of 64 bits"),
        (truncated, float("nan"), "OverflowError: cannot convert the float to an integer of 64 bits"),
        (truncated_tensor, 1e19, "OverflowError: cannot convert the float to an integer of 64 bits"),
        (sine, float("inf"), "ValueError: math domain error"),
        (shifted, -1.0, "ValueError: negative shift count, or an integer of more than 64 bits"),
        (shifted, 64.0, "ValueError: negative shift count, or an integer of more than 64 bits"),
    ],
)
def test_math_of_a_data_dependent_number_raises_where_python_does(function: Any, given: float, message: str) -> None:
    exported_program = rekindle.to_exported(rekindle.script(function), (torch.ones(1),)).module()
    assert exported_program(torch.full([1], 2.0)).tolist() == function(torch.full([1], 2.0)).tolist()
    with pytest.raises(RuntimeError) as error:
        exported_program(torch.full([1], given))
    assert str(error.value).splitlines()[0] == message


def lesser(x: Tensor) -> Tensor:
    return x + min(1.0, float(x.sum()))


def lesser_of_sum(x: Tensor) -> Tensor:
    return x + min(float(x.sum()), 1.0)


def greater(x: Tensor) -> Tensor:
    return x + max(1.0, float(x.sum()))


@pytest.mark.parametrize("function", [lesser, lesser_of_sum, greater])
def test_the_lesser_and_the_greater_beside_nan_are_those_of_python(function: Any) -> None:
    """Of two numbers of which one is NaN, Python's min and max return the first."""
    exported_program = rekindle.to_exported(rekindle.script(function), (torch.ones(2),)).module()
    for given in ([1.0, 2.0], [-1.0, -2.0], [1.0, math.nan]):
        wanted = function(torch.tensor(given))
        torch.testing.assert_close(exported_program(torch.tensor(given)), wanted, equal_nan=True)


def signed(x: Tensor) -> Tensor:
    zero = 0.0
    if x.sum() > 0:
        zero = -0.0
    return x * math.copysign(1.0, zero)


def test_the_zero_of_a_branch_keeps_its_sign() -> None:
    """0.0 equals -0.0, and the exported program selects one of them all the same."""
    exported_program = rekindle.to_exported(rekindle.script(signed), (torch.ones(2),)).module()
    for given in (torch.ones(2), -torch.ones(2)):
        assert exported_program(given).tolist() == signed(given).tolist()


def by_float(x: Tensor, factor: float) -> Tensor:
    return x * factor


def by_complex(x: Tensor, factor: complex) -> Tensor:
    return x * factor


def by_optional(x: Tensor, factor: Optional[float]) -> Tensor:
    return x if factor is None else x * factor


def by_one_of_several(x: Tensor, factor: Union[float, str]) -> Tensor:
    return x * factor if isinstance(factor, float) else x


def by_first(x: Tensor, factors: Tuple[float, int]) -> Tensor:
    return x * factors[0]


def by_key(x: Tensor, factors: Dict[str, List[float]]) -> Tensor:
    return x * factors["a"][0]


@pytest.mark.parametrize(
    ("function", "argument", "dtype"),
    [
        (by_float, 2, torch.float32),
        (by_float, True, torch.float32),
        (by_complex, 2, torch.complex64),
        (by_optional, 2, torch.float32),
        (by_optional, None, torch.int64),
        (by_one_of_several, 2, torch.float32),
        (by_first, (2, 3), torch.float32),
        (by_key, {"a": [2]}, torch.float32),
    ],
)
def test_numbers_are_of_the_kind_that_is_declared(function: Any, argument: Any, dtype: torch.dtype) -> None:
    """An int passed for a float becomes one, as in a call of the compiled program, wherever the argument holds it."""
    program, x = rekindle.script(function), torch.tensor([1, 2])
    found = rekindle.to_exported(program, (x, argument)).module()(x, argument)
    assert found.dtype == dtype
    torch.testing.assert_close(found, program(x, argument))


def test_a_symbol_for_a_float_is_a_float() -> None:
    x = torch.tensor([1, 2])
    shapes = (None, torch.export.Dim.DYNAMIC)
    program = rekindle.to_exported(rekindle.script(by_float), (x, 5), dynamic_shapes=shapes)
    torch.testing.assert_close(program.module()(x, 6), torch.tensor([6.0, 12.0]))

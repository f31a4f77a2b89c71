"""Lists and dicts that functions return without declaring them: what callers put in determines the type of their
elements."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, List

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.support.calls import assert_calls_agree


def floats():
    return [0.5, 1.5]


def ints():
    made = [1, 2]
    made.append(3)
    return made


def totals():
    return {"loss": 0, "count": 0}


def means():
    return {"loss": 0.5}


def rows(x: Tensor):
    return [[0, 0], [1, 1]]


def either(c: bool):
    if c:
        return [1]
    return [2, 3]


def passed_on():
    made = ints()
    return made


def passed_on_at_once():
    return ints()


def given(values: List[int]):
    return values


def declared() -> List[int]:
    return [1, 2]


def into_floats(x: Tensor):
    a, b, c = floats(), floats(), floats()
    a = floats()
    a.append(x.item())
    b = floats()
    b[0] = x.item()
    c = floats()
    c += [x.item()]
    return a, b, c


def into_floats_by_other_methods(x: Tensor, n: int):
    a = floats()
    a.insert(0, x.item())
    b = floats()
    b.extend([x.item(), n])
    b.append(n)
    return a, b


def into_a_list_of_literals(x: Tensor):
    a = ints()
    a.append(x.item())
    b = a
    b[0] += x.item()
    return a


def into_a_dict(x: Tensor):
    d = totals()
    for row in x.reshape(-1):
        d["loss"] += row.item()
        d["count"] += 1
    return d, d.setdefault("best", x.item())


def into_rows(x: Tensor):
    m = rows(x)
    m[0][1] = x.item()
    return m


def by_either_return(x: Tensor):
    w = either(x.item() > 1)
    w.append(x.item())
    return w


def through_other_functions(x: Tensor):
    a = passed_on()
    a.append(x.item())
    b = passed_on_at_once()
    b.append(x.item())
    return a, b, ints()


def in_a_loop_and_a_branch(x: Tensor):
    w = ints()
    for i in range(2):
        if i > 0:
            w = floats()
        w.append(x.item())
    return w


def of_other_functions_in_branches(x: Tensor):
    w, v = ints(), [1]
    if x.item() > 2.6:
        w = floats()
        v = floats()
    return w, v


def of_either_function(x: Tensor):
    if x.item() > 2.6:
        w = floats()
    else:
        w = ints()
    return w, floats() if x.item() > 2.6 else ints()


def of_other_functions_in_loops(x: Tensor):
    w, d = ints(), totals()
    for i in range(3):
        if x.item() > 2.6 and i == 1:
            w = floats()
            d = means()
        else:
            w = [i]
    return w, d


def of_a_local_function(x: Tensor):
    def start():
        return [0]

    w = start()
    w.append(x.item())
    return w


class Meter:
    def __init__(self):
        self.n = 0

    def start(self):
        self.n += 1
        return [0, self.n]


def of_a_method(x: Tensor):
    meter = Meter()
    w = meter.start()
    w.append(x.item())
    return w, meter.start()


class Loss(nn.Module):
    def start(self):
        return {"loss": 0, "count": 0}

    def forward(self, x: Tensor):
        d = self.start()
        d["loss"] += x.item()
        d["count"] += 1
        return d


PROGRAMS: tuple[Callable[..., Any], ...] = (
    into_floats,
    into_a_list_of_literals,
    into_a_dict,
    into_rows,
    by_either_return,
    through_other_functions,
    in_a_loop_and_a_branch,
    of_other_functions_in_branches,
    of_either_function,
    of_other_functions_in_loops,
    of_a_local_function,
    of_a_method,
)
NUMBERS = torch.tensor(2.5), torch.tensor(3), torch.tensor(2**62 + 1)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_eager(program: Callable[..., Any]) -> None:
    assert_calls_agree(_alone(program), *((x,) for x in NUMBERS))


def _alone(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return the program of a new copy of this module: no other program has determined what its functions return."""
    spec = importlib.util.spec_from_file_location(f"{__name__}_{program.__name__}", __file__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return getattr(copy, program.__name__)


def test_methods_of_lists() -> None:
    assert_calls_agree(into_floats_by_other_methods, *((x, 4) for x in NUMBERS))


def test_methods_of_modules() -> None:
    compiled, eager = rekindle.script(Loss()), Loss()
    for x in NUMBERS:
        assert repr(compiled(x)) == repr(eager(x))


def test_a_function_that_was_compiled_before_is_compiled_again() -> None:
    first = rekindle.script(passed_on_at_once)
    assert repr(first()) == "[1, 2, 3]"
    assert repr(rekindle.script(through_other_functions)(NUMBERS[0])) == repr(through_other_functions(NUMBERS[0]))
    assert repr(first()) == "[1, 2, 3]"


def into_what_was_given(x: Tensor, values: List[int]):
    w = given(values)
    w.append(x.item())
    return w


def into_what_is_declared(x: Tensor):
    w = declared()
    w.append(x.item())
    return w


def test_a_declared_list_takes_what_it_declares() -> None:
    assert repr(rekindle.script(into_what_was_given)(NUMBERS[1], [1])) == "[1, 3]"
    assert repr(rekindle.script(into_what_is_declared)(NUMBERS[1])) == "[1, 2, 3]"
    for program, rest in ((into_what_was_given, ([1],)), (into_what_is_declared, ())):
        with pytest.raises(TypeError) as caught:
            rekindle.script(program)(NUMBERS[0], *rest)
        assert str(caught.value).splitlines()[0] == "expected an int, got 2.5"


def sizes_and_numbers(x: Tensor):
    other = ints()
    other.append(x.item())
    return torch.zeros(ints()), other


def test_one_function_makes_lists_of_one_type() -> None:
    """Of numbers, which are checked to be ints where they are sizes."""
    assert_calls_agree(_alone(sizes_and_numbers), *((x,) for x in NUMBERS))

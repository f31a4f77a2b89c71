"""Two programs are compared by what they return and raise."""

from __future__ import annotations

from typing import Any

import click
import pytest
import torch

from rekindle.building.native_library import LibraryError
from rekindle.cli.exit_codes import ProgramFailed
from rekindle.cli.program_calls import difference_of_outcomes, outcome, program_errors

RAISED, OTHER = ValueError("no"), RuntimeError("no, neither\nin line two")


@pytest.mark.parametrize(
    ("program", "other", "same_errors", "expected"),
    [
        (torch.ones(2), torch.ones(2), True, None),
        (torch.ones(2), torch.zeros(2), True, "float32[2]: 2 of 2 numbers differ, by up to 1"),
        (torch.ones(2), OTHER, False, "the other raises RuntimeError: no, neither"),
        (RAISED, torch.ones(2), False, "the program raises ValueError: no"),
        (RAISED, OTHER, False, None),
        (RAISED, OTHER, True, "the other raises RuntimeError: no, neither"),
        (RAISED, ValueError("yes"), True, None),
    ],
)
def test_outcomes_are_compared(program: Any, other: Any, same_errors: bool, expected: str | None) -> None:
    assert difference_of_outcomes(program, other, "the other", 0.1, same_errors=same_errors) == expected


def test_calls_do_not_share_tensors() -> None:
    x = torch.ones(2)
    assert torch.equal(outcome(lambda a, b: a.add_(b), [x], {"b": x}), torch.full((2,), 2.0))
    assert torch.equal(x, torch.ones(2))
    found = outcome([].pop, [])
    assert isinstance(found, IndexError)


@pytest.mark.parametrize(
    ("raised", "error", "message"),
    [
        (ZeroDivisionError("by zero\nhere"), ProgramFailed, "the program raised ZeroDivisionError: by zero"),
        (LibraryError("a library has no code for it"), ProgramFailed, "a library has no code for it"),
    ],
)
def test_errors_of_programs_end_the_command(raised: Exception, error: type[click.ClickException], message: str) -> None:
    with pytest.raises(error) as caught, program_errors("f(x)"):
        raise raised
    assert caught.value.message == message


def test_what_is_no_exception_of_a_program_is_not_caught() -> None:
    with pytest.raises(KeyboardInterrupt), program_errors("f(x)"):
        raise KeyboardInterrupt

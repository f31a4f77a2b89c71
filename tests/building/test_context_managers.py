"""``with`` statements of the program's own classes in native libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle


class Guard:
    """Writes down when it is entered and left."""

    def __init__(self, n: int, log: list[int]):
        self.n = n
        self.log = log

    def __enter__(self) -> int:
        self.log.append(self.n)
        return self.n

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.log.append(-self.n)


class RaisesAtTheEnd:
    def __init__(self, n: int):
        self.n = n

    def __enter__(self) -> int:
        return self.n

    def __exit__(self, type: Any, value: Any, traceback: Any):
        if self.n > 6:
            raise IndexError("in exit")


def guarded(x: Tensor, n: int) -> tuple[Tensor, list[int]]:
    log: list[int] = []
    try:
        with Guard(n, log):
            with Guard(n + 1, log) as inner:
                if inner > 4:
                    raise ValueError("too large")
                log.append(100)
            if n == 2:
                return x, log
    except ValueError:
        log.append(7)
    for i in range(2):
        with Guard(i, log):
            if i == 1 and n == 1:
                break
            log.append(x.size(0) // n)
    return x + 1, log


def indexed(n: int) -> int:
    with RaisesAtTheEnd(n) as index:
        values = [1, 2]
        return values[index] + 0


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_managers_are_left_on_every_path(n: int, tmp_path: Path) -> None:
    x = torch.ones(2)
    rekindle.build(rekindle.script(guarded), tmp_path, [(x, 1)], freestanding=True)
    found, log = rekindle.NativeLibrary(tmp_path)(x, n)
    expected, expected_log = guarded(x, n)
    assert log == expected_log
    torch.testing.assert_close(found, expected)


def test_an_error_that_leaves_a_manager_keeps_its_place(tmp_path: Path) -> None:
    rekindle.build(rekindle.script(indexed), tmp_path, [(1,)])
    library = rekindle.NativeLibrary(tmp_path)
    assert library(0) == 1
    with pytest.raises(IndexError) as error:
        library(3)
    assert str(error.value) == (
        "list index out of range\n  at test_context_managers.py, line 65: return values[index] + 0"
    )
    with pytest.raises(IndexError, match=r"^in exit\n"):
        library(8)


class Suppresses:
    def __enter__(self) -> int:
        return 0

    def __exit__(self, type: Any, value: Any, traceback: Any) -> bool:
        return True


class LooksAtTheError:
    def __init__(self) -> None:
        self.failed = False

    def __enter__(self) -> int:
        return 0

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.failed = type is not None


@pytest.mark.parametrize(
    ("manager", "reason"),
    [
        (Suppresses, "a context manager whose '__exit__' returns whether an exception is suppressed"),
        (LooksAtTheError, "a context manager whose '__exit__' uses the exception that it gets"),
    ],
)
def test_managers_that_depend_on_the_error_are_refused(manager: Any, reason: str, tmp_path: Path) -> None:
    def program(n: int) -> int:
        with manager() as start:
            return start + n

    with pytest.raises(rekindle.NotBuildable) as error:
        rekindle.build(rekindle.script(program), tmp_path, [(1,)])
    assert str(error.value).splitlines()[0] == reason

"""``with`` statements of the program's own classes in native libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

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


def with_autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.mm(x, x)


def with_autocast_of_other_devices(x: Tensor) -> Tensor:
    with torch.autocast("cuda"), torch.autocast("cpu", enabled=False):
        return torch.mm(x, x)


def with_profile(x: Tensor) -> Tensor:
    with torch.autograd.profiler.record_function("product"):
        return torch.mm(x, x)


def test_autocast_of_the_cpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rekindle.NotBuildable, match=r"^native libraries do not convert tensors within"):
        rekindle.build(rekindle.script(with_autocast), tmp_path, [(torch.ones(2, 2),)])


def with_gradients(x: Tensor) -> Tensor:
    with torch.set_grad_enabled(x.size(0) > 2), torch.no_grad(), torch.enable_grad():
        return torch.mm(x, x)


@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.parametrize("program", [with_autocast_of_other_devices, with_profile, with_gradients])
def test_managers_without_effect_on_the_cpu(program: Any, tmp_path: Path) -> None:
    x = torch.rand(2, 2)
    rekindle.build(rekindle.script(program), tmp_path, [(x,)])
    torch.testing.assert_close(rekindle.NativeLibrary(tmp_path)(x), program(x))


def enables_gradients(x: Tensor) -> bool:
    with torch.enable_grad():
        y = x * 2
    return y.requires_grad


def reads_the_mode(x: Tensor, flag: bool) -> bool:
    with torch.set_grad_enabled(flag):
        return torch.is_grad_enabled()


@pytest.mark.parametrize(("program", "args"), [(enables_gradients, ()), (reads_the_mode, (True,))])
def test_dependence_on_gradients_that_the_program_enables_is_refused(
    program: Any, args: tuple[Any, ...], tmp_path: Path
) -> None:
    with pytest.raises(rekindle.NotBuildable, match="enables gradients and depends on whether they are recorded"):
        rekindle.build(rekindle.script(program), tmp_path, [(torch.ones(2), *args)])


class AsksItsParameters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.bias = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x: Tensor) -> tuple[bool, bool, bool]:
        return self.weight.requires_grad, self.bias.requires_grad, (x * self.weight).requires_grad


def test_parameters_require_gradients_as_in_the_module(tmp_path: Path) -> None:
    rekindle.build(rekindle.script(AsksItsParameters()), tmp_path, [(torch.ones(2),)])
    assert rekindle.NativeLibrary(tmp_path)(torch.ones(2)) == (True, False, False)

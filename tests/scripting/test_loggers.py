"""Calls of loggers of Python's ``logging``."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Optional

import pytest
import torch
from torch import Tensor, nn

import rekindle

logger = logging.getLogger(__name__)


def warns(x: Tensor, n: int, mask: Optional[Tensor] = None) -> Tensor:
    if n > 2:
        logger.warning("%d rows, and %s", n, x.dtype)
    if mask is not None:
        logger.error(f"a mask of {mask.dim()} dimensions", extra={"rows": n}, exc_info=False)
        return x * mask
    logger.log(logging.INFO, "no mask")
    return x + 1


def _records(caplog: pytest.LogCaptureFixture, program, *arguments) -> list[tuple[str, int, str]]:
    caplog.clear()
    program(*arguments)
    return list(caplog.record_tuples)


def test_messages_are_those_of_python(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger.name)
    compiled = rekindle.script(warns)
    x = torch.randn(2, 3)
    for arguments in ((x, 1), (x, 3), (x, 3, x), (x, 1, x), (x, 3)):
        torch.testing.assert_close(compiled(*arguments), warns(*arguments))
        found = _records(caplog, compiled, *arguments)
        assert found == _records(caplog, warns, *arguments) != []


def test_the_level_when_the_program_runs_decides(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.randn(2, 3)
    caplog.set_level(logging.CRITICAL, logger.name)
    compiled = rekindle.script(warns)
    assert _records(caplog, compiled, x, 3) == []
    caplog.set_level(logging.WARNING, logger.name)
    assert [level for _, level, _ in _records(caplog, compiled, x, 3)] == [logging.WARNING]


def asks(x: Tensor) -> Tensor:
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("is enabled")
        x = x * 2
    return x + logger.getEffectiveLevel()


def test_questions_are_answered_when_the_program_runs(caplog: pytest.LogCaptureFixture) -> None:
    compiled = rekindle.script(asks)
    x = torch.randn(3)
    for level in (logging.DEBUG, logging.ERROR, logging.DEBUG):
        caplog.set_level(level, logger.name)
        torch.testing.assert_close(compiled(x), asks(x))


class WarnsOnce(logging.Logger):
    @functools.lru_cache(None)  # noqa: B019
    def warning_once(self, message: str) -> None:
        self.warning(message)


once = WarnsOnce("once")


class Attention(nn.Module):
    def __init__(self, falls_back: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.log = once
        self.falls_back = falls_back

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        if mask is not None:
            self.log.warning_once("falls back")
            once.warning_once("falls back")
            return self.linear(x) * mask
        return self.linear(x)


@pytest.mark.parametrize("is_training", [False, True])
def test_methods_that_programs_have_added_to_loggers(is_training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(once, "warning", said.append)
    module = Attention(True).train(is_training)
    compiled = rekindle.script(module)
    x = torch.randn(2, 4, requires_grad=is_training)
    for _ in range(4):
        for mask in (None, torch.randn(2, 4)):
            WarnsOnce.warning_once.cache_clear()
            said.clear()
            found, expected = compiled(x, mask), module(x, mask)
            torch.testing.assert_close(found, expected)
            if is_training:
                one, other = (torch.autograd.grad(each.sum(), [x, *module.parameters()]) for each in (found, expected))
                torch.testing.assert_close(one, other)
            assert said == ([] if mask is None else ["falls back"])


def uses_a_result(x: Tensor) -> Tensor:
    result = once.warning_once("a")
    return x if result is None else x + 1


class Named(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        logger.warning("%s", self)
        return x


def of_a_set(x: Tensor) -> Tensor:
    logger.warning("%s", {1, 2})
    return x


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (uses_a_result, "the type of what the method 'warning_once' of a logger returns is unknown"),
        (Named(), "a logger cannot be given an object of"),
        (of_a_set, "the method 'warning' of a logger would be given a dict in place of the Set[int]"),
    ],
)
def test_calls_that_would_differ_from_python_are_rejected(program, message: str) -> None:
    with pytest.raises(rekindle.errors.CompileError) as caught:
        rekindle.script(program)
    assert message in str(caught.value)


def test_archives_cannot_hold_calls_of_loggers(tmp_path: Path) -> None:
    with pytest.raises(rekindle.errors.SaveError) as caught:
        rekindle.save(rekindle.script(warns), tmp_path / "program.pt")
    assert "the program calls the Python function 'warning', which cannot be written as source" in str(caught.value)
    assert "an archive cannot hold calls of loggers" in str(caught.value)

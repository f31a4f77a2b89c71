"""Kernels are made on the first call, however little that pays."""

from typing import Any

import pytest

from rekindle.codegen import fusion_executor
from rekindle.codegen.fusion_executor import FusionExecutor


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_executor, "COMPILE_THRESHOLD_US", 0.0)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why groups ran operator by operator."""
    found: list[str] = []
    init = FusionExecutor.__init__

    def made(self: FusionExecutor, *arguments: Any, **keywords: Any) -> None:
        init(self, *arguments, **keywords)
        self.failures = found
        self.compile_eagerly()

    monkeypatch.setattr(FusionExecutor, "__init__", made)
    return found

"""Kernels are made on the first call, however little that pays."""

import pytest

from rekindle.codegen import fusion_executor


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_executor, "COMPILE_THRESHOLD_US", 0.0)

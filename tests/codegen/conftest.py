"""Kernels are made on the first call, however little that pays."""

import pytest

from rekindle.codegen import groups


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "PATIENCE", 0.0)

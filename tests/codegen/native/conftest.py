"""Regions are compiled on the first call, however little that pays."""

import pytest

from rekindle.codegen.native import region_executor


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_executor, "PATIENCE", 0.0)

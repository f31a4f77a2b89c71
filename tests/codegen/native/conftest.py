"""Regions are compiled on the first call, however little that pays."""

import pytest

from rekindle.codegen.native import operation


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "PATIENCE", 0.0)

"""Every training here runs under each strategy that trains."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rekindle


@pytest.fixture(autouse=True, params=["simple", "native"])
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the strategy that calls run under."""
    before = rekindle.set_execution_strategy(request.param)
    yield request.param
    rekindle.set_execution_strategy(before)

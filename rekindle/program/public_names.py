"""What programs show of themselves: whoever knows how fills the slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.errors import InternalError


def _nobody(name: str) -> Callable[..., Any]:
    raise InternalError("no name of rekindle was used yet")


public: Callable[[str], Callable[..., Any]] = _nobody
"""A slot: functions of the package by name, such as ``"show"``. :mod:`rekindle` fills it."""

"""Python classes as values of programs."""

from __future__ import annotations

from collections.abc import Callable

from rekindle.errors import SourceRange
from rekindle.frontend.sugared_values.base import SugaredValue

ClassHook = Callable[[type, SourceRange], SugaredValue | None]
CLASS_VALUE_HOOKS: list[ClassHook] = []
"""Hooks called in order for the sugared value of a Python class; None for an unsupported class. Other modules add to
it."""


def class_value(cls: type, range: SourceRange) -> SugaredValue | None:
    """Return the sugared value of ``cls`` from the first hook that supports the class; None if there is none."""
    for hook in CLASS_VALUE_HOOKS:
        found = hook(cls, range)
        if found is not None:
            return found
    return None

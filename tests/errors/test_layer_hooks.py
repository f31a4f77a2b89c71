"""Hooks between layers."""

from __future__ import annotations

import pytest

from rekindle.errors import InternalError
from rekindle.errors.layer_hooks import LayerHook


def test_a_hook_holds_what_the_higher_layer_provides() -> None:
    hook = LayerHook[int]("rekindle.archive")
    with pytest.raises(InternalError, match=r"rekindle\.archive was not imported"):
        hook.get()
    hook.provide(3)
    assert hook.get() == 3
    hook.provide(4)
    assert hook.get() == 4


def test_a_default_does_until_then() -> None:
    hook = LayerHook[int]("rekindle.archive", 2)
    assert hook.get() == 2
    hook.provide(0)
    assert hook.get() == 0

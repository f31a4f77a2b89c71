"""Hook: the public functions of the package, for objects of the layers below that offer them as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rekindle.errors.layer_hooks import LayerHook

public: Final = LayerHook[Callable[[str], Callable[..., Any]]]("rekindle")
"""Functions of the package by name, such as ``"show"``."""

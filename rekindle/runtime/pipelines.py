"""Pipelines: which passes run when, as data."""

from __future__ import annotations

from typing import Final

from rekindle.passes import CLEANUP_AFTER_EMISSION, Pass

CLEANUP: Final[tuple[Pass, ...]] = CLEANUP_AFTER_EMISSION
"""What every function goes through once, right after it was compiled: what it needs to look as TorchScript does."""

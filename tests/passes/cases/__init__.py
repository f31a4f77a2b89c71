"""Graphs before each pass, a file for each pass. The graphs after it are in ``tests/golden/passes``."""

from __future__ import annotations

import importlib
import pkgutil

CASES: dict[str, dict[str, str]] = {
    info.name: importlib.import_module(f"{__name__}.{info.name}").CASES for info in pkgutil.iter_modules(__path__)
}
"""By the name of the pass: a title, and the text of a graph."""

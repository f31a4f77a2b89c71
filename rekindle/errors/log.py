"""The compiler's log: what passes do, on Python's ``logging``, under loggers named after the package's modules.

The logger ``rekindle`` has the level WARNING unless the program has set one. The level of the root logger, which
``logging.basicConfig(level=logging.INFO)`` sets, therefore does not print the graph after each pass.
"""

from __future__ import annotations

import logging
from typing import Final

GRAPH_DUMP: Final = logging.INFO
"""Whole graphs, after a pass."""
GRAPH_UPDATE: Final = 15
"""Single changes to a graph."""
GRAPH_DEBUG: Final = logging.DEBUG
"""Level of messages that help to debug a pass."""

for _level, _name in ((GRAPH_UPDATE, "GRAPH_UPDATE"),):
    logging.addLevelName(_level, _name)

if logging.getLogger("rekindle").level == logging.NOTSET:
    logging.getLogger("rekindle").setLevel(logging.WARNING)

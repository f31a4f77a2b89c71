"""Which version of the format a program needs: the oldest in which its operators mean what they mean today.

Readers bring the operators of archives that say an older version up to date, so that a version that is too low would
change what the program does; one that is too high would keep older readers out for no reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rekindle.analysis.attribute_writes import nodes_within
from rekindle.ir.graph import Graph

LOWEST: Final = 3
"""What PyTorch has written since 1.6 for programs that need no more."""

_CHANGED: Final = {
    "aten::div": 4,
    "aten::div_": 4,
    "aten::full": 5,
    "aten::linspace": 8,
    "aten::logspace": 9,
    "aten::gelu": 10,
    "aten::gelu_": 10,
}
"""Operators whose meaning or schema changed, and in which version."""


def version_for(graphs: Iterable[Graph]) -> int:
    """The version of an archive that holds these graphs."""
    return max((_CHANGED.get(node.kind, LOWEST) for graph in graphs for node in nodes_within(graph)), default=LOWEST)

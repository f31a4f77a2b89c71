"""Every call of ``warn`` gets a number of its own, so that it can be told once, as in Python.

.. code-block:: text

    = aten::warn(%message, %level)    becomes    = aten::warn[warn_id=0](%message, %level)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Graph
from rekindle.rewriting.changes import may_change

_numbers = itertools.count()


@dataclass(slots=True)
class AnnotateWarns:
    """See the module. Numbers are unique within the process."""

    name: ClassVar[str] = "annotate_warns"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.find_nodes("aten::warn"):
            if "warn_id" not in node.attributes and may_change("number", node):
                node.set_attribute("warn_id", next(_numbers))
                changed = True
        return changed

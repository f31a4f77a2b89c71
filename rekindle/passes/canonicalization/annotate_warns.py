"""Number the calls of ``warn``, as ``torch.jit`` does. Nothing in this package reads the numbers.

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
    '''Number the calls of ``warn`` that have no number. The docstring of the module shows the IR before and after.
    No number is assigned twice within a process.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import AnnotateWarns, run_passes
        >>> graph = parse_graph("""
        ... graph(%m : str, %l : int):
        ...    = aten::warn(%m, %l)
        ...   return (%l)
        ... """)
        >>> run_passes(graph, [AnnotateWarns()])
        True
        >>> print(graph)
        graph(%m : str,
              %l : int):
           = aten::warn[warn_id=...](%m, %l)
          return (%l)
    '''

    name: ClassVar[str] = "annotate_warns"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.find_nodes("aten::warn"):
            if "warn_id" not in node.attributes and may_change("number", node):
                node.set_attribute("warn_id", next(_numbers))
                changed = True
        return changed

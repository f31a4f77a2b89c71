"""Insert a profiling node before each use of a tensor.

.. code-block:: text

    %y : Tensor = aten::relu(%x)                    %1 : Tensor = prim::profile(%x)
    %z : Tensor = aten::add(%y, %y, %one)           %y : Tensor = aten::relu(%1)
                                                    %2 : Tensor = prim::profile(%y)
                                        becomes     %z : Tensor = aten::add(%2, %2, %one)

Tensors that may be None are profiled too. Nodes that merely forward a value do not count as uses: branches and loops,
whose blocks are profiled themselves, and constructors of tuples, lists and dicts. Constants and forked graphs are not
profiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.effects import CONSTRUCTS, CONTROL_FLOW, DEFERRED_SUBGRAPH_KINDS, GUARDS
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import OptionalType, TensorType, Type
from rekindle.rewriting.changes import may_change

PROFILE: Final = "prim::profile"
PROFILED_TYPE: Final = "profiled_type"
"""Attribute of ``prim::profile``: the type of the values recorded so far, if any."""

_NO_USES: Final = (
    CONSTRUCTS
    | GUARDS
    | CONTROL_FLOW
    | DEFERRED_SUBGRAPH_KINDS
    | {PROFILE, "prim::SetAttr", "prim::Enter", "prim::Exit"}
)


@dataclass(slots=True)
class InsertProfiling:
    '''Insert a profiling node before each use of a tensor. The docstring of the module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import InsertProfiling, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = aten::relu(%x)
        ...   return (%1)
        ... """)
        >>> run_passes(graph, [InsertProfiling()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %3 : Tensor = prim::profile(%x)
          %1 : Tensor = aten::relu(%3)
          return (%1)
    '''

    name: ClassVar[str] = "insert_profiling"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.all_nodes():
            if node.kind not in _NO_USES:
                for value in dict.fromkeys(node.inputs):
                    changed |= may_be_profiled(value.type) and _profile(value, node)
        return changed


def may_be_profiled(type: Type) -> bool:
    """Return whether a value of this type is a tensor, or a tensor or None."""
    return isinstance(type.element if isinstance(type, OptionalType) else type, TensorType)


def _profile(value: Value, user: Node) -> bool:
    if value.node.kind == PROFILE or value.node.kind == "prim::Constant" or not may_change("profile", value):
        return False
    note = user.graph.create(PROFILE, [value], types=[value.type], range=user.range)
    note.callstack, note.scope = user.callstack, user.scope
    note.insert_before(user)
    operator = user.operator
    user.replace_input_with(value, note.output)
    user.set_operator(operator)  # the overload is resolved already
    return True

"""Replace profiling nodes with guards of the recorded types.

.. code-block:: text

    %1 : Tensor = prim::profile[profiled_type=Float(2, 3)](%x)     %1 : Float(2, 3) = prim::Guard(%x)
    %y : Tensor = aten::relu(%1)                               =>  %y : Tensor = aten::relu(%1)

The type of a guard holds for all later uses, so a guard checks only what cannot change: not the sizes of a tensor that
the program resizes, nor ``requires_grad`` of one that it writes to. If nothing was recorded, or nothing can be guarded,
the profiling node is removed without a guard. Strides are not guarded. ``requires_grad`` is guarded for inputs only:
for results of operators it depends on whether gradients are recorded in that call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from rekindle.analysis.type_propagation import InvariantTypeFacts
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import NONE, TensorType, Type
from rekindle.passes.speculation.insert_profiling import PROFILE, PROFILED_TYPE
from rekindle.rewriting.changes import may_change

GUARD = "prim::Guard"


@dataclass(slots=True)
class InsertGuards:
    '''Replace profiling nodes with guards of the recorded types. The docstring of the module shows the IR before and
    after.

    Without ``sizes``, guards check ranks only.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import InsertGuards, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = prim::profile[profiled_type=Float(2, 3)](%x)
        ...   %2 : Tensor = aten::relu(%1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [InsertGuards()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %4 : Float(2, 3) = prim::Guard(%x)
          %2 : Tensor = aten::relu(%4)
          return (%2)
    '''

    name: ClassVar[str] = "insert_guards"
    sizes: bool = True

    def run(self, graph: Graph) -> bool:
        changed = False
        notes = graph.find_nodes(PROFILE)
        steady = InvariantTypeFacts(graph) if notes else None
        for note in notes:
            assert steady is not None
            guarded = self._guarded_type(steady, note)
            if not may_change("remove" if guarded is None else "guard", note):
                continue
            replacement = note.input
            if guarded is not None:
                guard = graph.create(GUARD, [note.input], types=[guarded], range=note.range)
                guard.callstack, guard.scope = note.callstack, note.scope
                replacement = guard.insert_before(note).output
            put_in_place(note, replacement)
            changed = True
        return changed

    def _guarded_type(self, steady: InvariantTypeFacts, note: Node) -> Type | None:
        """Return the type that a guard checks; None if there is nothing to check."""
        seen = note.attributes.get(PROFILED_TYPE)
        if seen == NONE:
            return NONE if note.input.type != NONE else None
        if not isinstance(seen, TensorType):
            return None
        if not self.sizes:
            seen = seen.with_rank_only()
        if not _comes_from_outside(note.input):
            seen = replace(seen, requires_grad=None)
        guarded = steady.of(note.input, replace(seen, strides=None, undefined=None))
        declared = note.input.type
        return guarded if guarded.is_refined or not isinstance(declared, TensorType) else None


def _comes_from_outside(value: Value) -> bool:
    """Return whether ``value`` is an argument, or an attribute of one."""
    node = value.node
    return node.kind == "prim::GetAttr" or (node.kind == "prim::Param" and node.owning_block is value.graph.block)


def put_in_place(node: Node, value: Value) -> None:
    """Replace all uses of the only output of ``node`` by ``value``, and destroy the node. The overloads of the users
    stay the same."""
    users = [(use.user, use.user.operator) for use in node.output.uses]
    node.output.replace_all_uses_with(value)
    for user, operator in users:
        if operator is not None and operator.matches(user):
            user.set_operator(operator)
    node.destroy()

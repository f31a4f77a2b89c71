"""Infer dtypes, ranks, sizes and devices of tensors from those of the inputs.

.. code-block:: text

    graph(%x : Float(*, 4, device=cpu)):           graph(%x : Float(*, 4, device=cpu)):
      %2 : Tensor = aten::relu(%x)            ->     %2 : Float(*, 4, device=cpu) = aten::relu(%x)
      %3 : int = aten::dim(%2)                       %3 : int = aten::dim(%2)
      return (%3)                                    return (%3)

The pass alone makes nothing faster: it lets the peephole pass fold type queries. Branches whose conditions follow from
the known types are selected first, since the types of their results depend on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.type_propagation import decided_branches, propagate_types, refine_types
from rekindle.ir.graph import Graph
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import Type
from rekindle.ops.registration.traits import queries_of
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.constant_propagation import ConstantPropagation
from rekindle.passes.simplification.peephole import FOLDED_BY_TYPE
from rekindle.rewriting.changes import may_change

TYPE_QUERIES: Final = FOLDED_BY_TYPE & queries_of(Trait.READS_RANK, Trait.READS_DTYPE, Trait.READS_DEVICE)
"""Property queries that a peephole folds where dtype, device and rank of a tensor are known. Sizes are left out, which
hardly ever follow from these."""


@dataclass(frozen=True, slots=True)
class TypeRefinement:
    '''Infer dtypes, ranks, sizes and devices of tensors from those of the inputs. The docstring of the module shows the
    IR before and after.

    With ``only_if_queried``, graphs without type queries are not changed. With ``any_modes``, types are valid under
    autocast and for any default dtype and device, for graphs that run without a check of these.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import TypeRefinement, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Float(2, 4, device=cpu)):
        ...   %1 : Tensor = aten::relu(%x)
        ...   return (%1)
        ... """)
        >>> run_passes(graph, [TypeRefinement()])
        True
        >>> print(graph)
        graph(%x : Float(2, 4, device=cpu)):
          %1 : Float(2, 4, device=cpu) = aten::relu(%x)
          return (%1)
    '''

    name: ClassVar[str] = "type_refinement"

    only_if_queried: bool = False
    any_modes: bool = False

    def run(self, graph: Graph) -> bool:
        if self.only_if_queried and not any(node.kind in TYPE_QUERIES for node in graph.all_nodes()):
            return False
        inputs = [value.type for value in graph.inputs]
        decided = self._decide(graph, inputs)
        types = propagate_types(graph, inputs, every_branch=True, any_modes=self.any_modes)
        if not any(value.type != type for value, type in types.items()) or not may_change("refine types of", graph):
            return decided
        return refine_types(graph, types) or decided

    def _decide(self, graph: Graph, inputs: list[Type]) -> bool:
        """Replace each condition of a ``prim::If`` that the types determine by a constant, and propagate constants.
        Return whether any was replaced."""
        changed = False
        for node, first in decided_branches(graph, inputs, any_modes=self.any_modes):
            if may_change("decide", node):
                with graph.inserting_before(node):
                    node.replace_input(0, graph.insert_constant(first))
                changed = True
        if changed:
            run_nested(ConstantPropagation(), graph)
        return changed

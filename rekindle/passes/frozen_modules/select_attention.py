"""Replace attention with an operator that selects the fastest kernel.

.. code-block:: text

    %a : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %mask, %dropout, %causal, %scale, %gqa)

becomes

.. code-block:: text

    %a : Tensor = prim::attention(%q, %k, %v, %mask, %dropout, %causal, %scale, %gqa)

Attention that is written out, ``softmax(q @ k.transpose(-2, -1) / s, -1) @ v``, is computed by such an operator where
it is large; elsewhere the original operators run, which can be fused with their neighbors::

    %n : int = aten::numel(%q)
    %large : bool = aten::gt(%n, %limit)
    %a : Tensor = prim::If(%large)
      block0():
        %b : Tensor = prim::written_attention[divides=1](%q, %k, %v, %s)
        -> (%b)
      block1():
        …
        -> (%c)

What runs these kinds, and how it is chosen: :mod:`rekindle.codegen.attention.attention_operator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from rekindle.analysis.constants import constant_int, is_constant, value_of
from rekindle.analysis.effects import may_write
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import BOOL, FLOAT, INT, NoneType
from rekindle.rewriting.changes import may_change

ATTENTION: Final = "prim::attention"
WRITTEN: Final = "prim::written_attention"


@dataclass(slots=True)
class SelectAttention:
    '''Replace attention without dropout with an operator that selects the fastest kernel. The docstring of the module
    shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import SelectAttention, run_passes
        >>> graph = parse_graph("""
        ... graph(%q : Tensor, %k : Tensor, %v : Tensor):
        ...   %1 : NoneType = prim::Constant()
        ...   %2 : float = prim::Constant[value=0.]()
        ...   %3 : bool = prim::Constant[value=0]()
        ...   %4 : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %1, %2, %3, %1, %3)
        ...   return (%4)
        ... """)
        >>> run_passes(graph, [SelectAttention()])
        True
        >>> print(graph)
        graph(%q : Tensor,
              %k : Tensor,
              %v : Tensor):
          %1 : NoneType = prim::Constant()
          %2 : float = prim::Constant[value=0.]()
          %3 : bool = prim::Constant[value=0]()
          %8 : Tensor = prim::attention(%q, %k, %v, %1, %2, %3, %1, %3)
          return (%8)
    '''

    name: ClassVar[str] = "select_attention"
    min_elements: int = 1 << 14
    """Largest number of elements of the queries for which attention that is written out keeps its operators."""

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.find_nodes("aten::scaled_dot_product_attention")):
            if _has_no_dropout(node) and may_change("choose a kernel for", node):
                _replace(node)
                changed = True
        for node in list(graph.find_nodes("aten::matmul")):
            chain = _WrittenAttention.ending_in(node)
            if chain is not None and may_change("choose a kernel for", node):
                chain.branch(self.min_elements)
                changed = True
        return changed


def _has_no_dropout(node: Node) -> bool:
    dropout = node.named_input("dropout_p")
    return is_constant(dropout) and value_of(dropout.node) == 0.0


def _replace(node: Node) -> None:
    made = node.graph.create(ATTENTION, node.inputs)
    made.set_range(node.range)
    made.callstack = node.callstack
    made.insert_before(node)
    made.output.copy_metadata(node.output)
    made.output.type = node.output.type
    node.output.replace_all_uses_with(made.output)
    node.destroy()


@dataclass(slots=True)
class _WrittenAttention:
    """Operators that compute attention, in their order: a transposition, a product, a division or multiplication by a
    number, a softmax, a product. Each is used by the next one alone."""

    nodes: list[Node]

    @classmethod
    def ending_in(cls, product: Node) -> _WrittenAttention | None:
        """Match the operators of attention that end in ``product``; return None if they do not match."""
        softmax = product.inputs[0].node
        if softmax.kind != "aten::softmax" or not _is_usual_softmax(softmax):
            return None
        scaling = softmax.inputs[0].node
        if scaling.kind not in ("aten::div", "aten::mul") or scaling.inputs[-1].type not in (INT, FLOAT):
            return None
        scores = scaling.inputs[0].node
        if scores.kind != "aten::matmul":
            return None
        transposition = scores.inputs[1].node
        if transposition.kind != "aten::transpose" or not _swaps_last(transposition):
            return None
        nodes = [transposition, scores, scaling, softmax, product]
        if not all(_is_used_by(earlier, later) for earlier, later in pairwise(nodes)):
            return None
        return cls(nodes) if _nothing_is_written(transposition, product) and not _is_branch(product) else None

    def branch(self, min_elements: int) -> None:
        """Replace the operators by a branch on the size of the queries."""
        transposition, scores, scaling, _, product = self.nodes
        graph, range = product.graph, product.range
        query, scale = scores.inputs[0], scaling.inputs[1]
        with graph.inserting_before(product):
            count = graph.insert_node(graph.create("aten::numel", [query], types=[INT], range=range)).output
            limit = graph.insert_constant(min_elements)
            is_large = graph.insert_node(graph.create("aten::gt", [count, limit], types=[BOOL], range=range)).output
            choice = graph.insert_node(graph.create("prim::If", [is_large], outputs=1, range=range))
        choice.callstack = product.callstack
        large, small = choice.add_block(), choice.add_block()
        inputs = [query, transposition.inputs[0], product.inputs[1], scale]
        attributes = {"divides": int(scaling.kind == "aten::div")}
        if constant_int(transposition.inputs[1]) in (2, 3):
            attributes["counts_from_start"] = 1
        made = large.append(graph.create(WRITTEN, inputs, attributes=attributes, range=range))
        made.callstack = product.callstack
        large.add_output(made.output)
        choice.output.copy_metadata(product.output)
        choice.output.type = made.output.type = product.output.type
        product.output.replace_all_uses_with(choice.output)
        for node in self.nodes:
            node.move_before(small.return_node)
        small.add_output(product.output)


def _is_usual_softmax(node: Node) -> bool:
    dim, dtype = node.named_input("dim"), node.named_input("dtype")
    return constant_int(dim) == -1 and isinstance(dtype.type, NoneType)


def _swaps_last(node: Node) -> bool:
    """Return whether a transposition exchanges the last two dimensions, or dimensions 2 and 3, which are the last two
    of attention with heads."""
    dims: list[Value] = list(node.inputs[1:])
    return {constant_int(dim) for dim in dims} in ({-1, -2}, {2, 3})


def _is_used_by(node: Node, user: Node) -> bool:
    uses = node.output.uses
    return len(uses) == 1 and uses[0].user is user and node.owning_block is user.owning_block


def _is_branch(node: Node) -> bool:
    """Return whether a node is in a branch that this pass made."""
    block = node.owning_block
    choice = None if block is None else block.owning_node
    return (
        choice is not None
        and choice.kind == "prim::If"
        and any(inner.kind == WRITTEN for inner in choice.blocks[0].nodes)
    )


def _nothing_is_written(first: Node, last: Node) -> bool:
    """Return whether no node between two nodes of a block may write to memory, so that the first one may be moved to
    the last. Nodes with blocks count as writing."""
    between = False
    block = first.owning_block
    for node in () if block is None else block.nodes:
        if node is first:
            between = True
        elif node is last:
            return True
        elif between and (node.blocks or may_write(node)):
            return False
    return False

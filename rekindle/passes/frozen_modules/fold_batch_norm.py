"""Fold batch normalization into the preceding convolution or linear map.

.. code-block:: text

    %c : Tensor = aten::conv2d(%x, %w, %b, …)
    %n : Tensor = aten::batch_norm(%c, %gamma, %beta,         becomes     %n : Tensor = aten::conv2d(%x, %w2, %b2, …)
                      %mean, %var, %false, …, %eps, …)

Weights and statistics are constants, the statistics are not computed from the batch, and the convolution has no other
use. The result is the same up to rounding. If the new weights would not be finite, the graph is unchanged.

A convolution also accepts an image without a batch; a normalization then takes its rows for channels. Unless the graph
proves that there is a batch, a check is inserted that raises without one, as the normalization modules do. The result
of a linear map has its channels in the last dimension. This is dimension 1, which is normalized, only if the input is a
matrix. Unless that is known, the rank is tested at run time.

.. code-block:: text

    %d : int = aten::dim(%x)
    %flat : bool = aten::eq(%d, %2)
    %l : Tensor = prim::If(%flat)
      block0():
        %1 : Tensor = aten::linear(%x, %w2, %b2)
        -> (%1)
      block1():
        %2 : Tensor = aten::linear(%x, %w, %b)
        -> (%2)
    %n : Tensor = prim::If(%flat)
      block0():
        -> (%l)
      block1():
        %3 : Tensor = aten::batch_norm(%l, …)
        -> (%3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_bool, is_constant, value_of
from rekindle.analysis.rank_inference import Ranks, in_order, ranks_are_fixed
from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import BOOL, INT, STRING, NoneType
from rekindle.passes.frozen_modules.foldable import Foldable, fixed_tensor, foldable
from rekindle.rewriting.changes import may_change

_NOTE = "fused_bn"


@dataclass(slots=True)
class FoldBatchNorm:
    """Fold batch normalization into the preceding convolution or linear map. The docstring of the module shows the IR
    before and after.

    :class:`DeadCodeElimination` removes the old constants.

    Example:
        >>> from rekindle.passes import FoldBatchNorm, ForwardRankQueries, run_passes
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4)).eval()
        >>> graph = rekindle.freeze(rekindle.script(net), optimize_numerics=False).graph
        >>> graph.find_node("aten::batch_norm") is not None
        True
        >>> passes = [ForwardRankQueries(), FoldBatchNorm(is_frozen=True)]
        >>> run_passes(graph, passes), graph.find_node("aten::batch_norm")
        (True, None)
    """

    name: ClassVar[str] = "fold_batch_norm"
    is_frozen: bool = False
    """Whether the constants are private to the graph: no caller passes one of them to be written to."""

    def run(self, graph: Graph) -> bool:
        if not graph.find_nodes("aten::batch_norm"):
            return False
        aliases = AliasDb(graph, is_frozen=self.is_frozen)
        ranks = Ranks() if ranks_are_fixed(graph) else None
        changed = False
        for node in in_order(graph, ranks):
            if node.kind == "aten::batch_norm":
                changed |= _fold(node, aliases, ranks)
        return changed


def _fold(node: Node, aliases: AliasDb, ranks: Ranks | None) -> bool:
    x, *_ = node.inputs
    map = foldable(x, aliases)
    if map is None or map.node.owning_block is not node.owning_block:
        return False
    if constant_bool(node.named_input("training")) is not False:
        return False
    folded = _folded(node, map, aliases)
    if folded is None:
        return False
    rank = None if ranks is None else ranks.exactly(map.operand)
    if map.node.kind == "aten::linear" and rank is None:
        return _may_fold(node) and _branch(node, map, folded)
    if rank not in (None, map.spatial + 2) or not _may_fold(node):
        return False
    if rank is None:
        _insert_check(map)
        if ranks is not None:
            ranks.learn(map.operand, map.spatial + 2)
    map.replace(*folded, _NOTE)
    node.replace_with(map.node.output)
    return True


def _may_fold(node: Node) -> bool:
    return may_change("fold into what it normalizes", node)


def _insert_check(map: Foldable) -> None:
    """Insert a check before a convolution, which raises if the input has no batch dimension."""
    graph, node, rank = map.node.graph, map.node, map.spatial + 2
    with graph.inserting_before(node):
        dim = graph.insert_node(graph.create("aten::dim", [map.operand], types=[INT], range=node.range))
        wanted, text, kind = (
            graph.insert_constant(value)
            for value in (rank, f"expected {rank}D input (got {{}}D input)", "builtins.ValueError")
        )
        other = graph.create("aten::ne", [dim.output, wanted], types=[BOOL], range=node.range)
        check = graph.create("prim::If", [graph.insert_node(other).output], outputs=0, range=node.range)
        graph.insert_node(check)
    wrong = check.add_block()
    check.add_block()
    message = graph.create("aten::format", [text, dim.output], types=[STRING], range=node.range)
    wrong.append(message)
    wrong.append(graph.create("prim::RaiseException", [message.output, kind], outputs=0, range=node.range))


def _folded(node: Node, map: Foldable, aliases: AliasDb) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the weight and the bias, in float64, with which the map alone computes what the map and the normalization
    compute together; None if they are not known at compile time or not finite, or if the parameters of the
    normalization have another dtype, device or shape than one element for each channel of the map."""
    _, *parameters, _, _, eps, _ = node.inputs
    scale, shift, mean, variance = (fixed_tensor(value, aliases) for value in parameters)
    epsilon = value_of(eps.node) if is_constant(eps) else None
    if mean is None or variance is None or not isinstance(epsilon, float):
        return None
    for value, found in zip(parameters, (scale, shift), strict=False):
        if found is None and not isinstance(value.type, NoneType):
            return None
    given = [tensor for tensor in (scale, shift, mean, variance) if tensor is not None]
    if any(t.dtype != map.weight.dtype or t.device != map.weight.device for t in given):
        return None
    if any(t.shape != (map.channels,) for t in given):
        return None
    factor = torch.rsqrt(variance.to(torch.float64) + epsilon)
    if scale is not None:
        factor = factor * scale.to(torch.float64)
    bias = (map.shift() - mean.to(torch.float64)) * factor
    if shift is not None:
        bias = bias + shift.to(torch.float64)
    weight = map.scaled(factor)
    return (weight, bias) if map.fits(weight, bias) else None


def _branch(node: Node, map: Foldable, folded: tuple[torch.Tensor, torch.Tensor]) -> bool:
    graph, linear = node.graph, map.node
    with graph.inserting_before(linear):
        rank = graph.insert_node(graph.create("aten::dim", [map.operand], types=[INT], range=node.range))
        two = graph.insert_constant(2)
        flat = graph.insert_node(graph.create("aten::eq", [rank.output, two], types=[BOOL], range=node.range)).output
        mapped = graph.insert_node(graph.create("prim::If", [flat], outputs=1, range=linear.range))
    with graph.inserting_before(node):
        normalized = graph.insert_node(graph.create("prim::If", [flat], outputs=1, range=node.range))
    first, second = mapped.add_block(), mapped.add_block()
    copy = first.append(graph.create_clone(linear, lambda value: value))
    Foldable(copy, map.weight, map.bias, 0).replace(*folded, _NOTE)
    first.add_output(copy.output)
    linear.output.replace_all_uses_with(mapped.output)
    linear.move_before(second.return_node)
    second.add_output(linear.output)
    node.output.replace_all_uses_with(normalized.output)
    normalized.add_block().add_output(mapped.output)
    other = normalized.add_block()
    node.move_before(other.return_node)
    other.add_output(node.output)
    return True

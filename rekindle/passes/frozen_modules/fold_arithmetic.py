"""Fold additions and multiplications of constants after a convolution into its weights.

.. code-block:: text

    %c : Tensor = aten::conv2d(%x, %w, %b, …)
    %m : Tensor = aten::mul(%c, %scale)          becomes     %a : Tensor = aten::conv2d(%x, %w2, %b2, …)
    %a : Tensor = aten::add(%m, %shift, %1)

The other operand is a constant: a number, or a tensor with one entry for each channel, or a single one. It must not
make the result larger, nor of another dtype. A negation is a product with -1. Convolutions, transposed ones and linear
maps are treated alike. The result is the same up to rounding. Where the new weights would not be finite, nothing is
folded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import is_constant, value_of
from rekindle.analysis.rank_inference import Ranks, in_order, ranks_are_fixed
from rekindle.ir.graph import Graph, Node, Value
from rekindle.passes.frozen_modules.foldable import MAPS, Foldable, fixed_tensor, foldable
from rekindle.rewriting.changes import may_change

_Weights = tuple[torch.Tensor, torch.Tensor]


@dataclass(slots=True)
class FoldArithmetic:
    """Fold additions and multiplications of constants into the preceding convolution or linear map. The docstring of
    the module shows the IR before and after.
    :class:`DeadCodeElimination` removes the old constants.

    Example:
        >>> from rekindle.passes import FoldArithmetic, run_passes
        >>> class Doubled(torch.nn.Linear):
        ...     def forward(self, x):
        ...         return super().forward(x) * 2.0
        >>> graph = rekindle.freeze(rekindle.script(Doubled(3, 2).eval()), optimize_numerics=False).graph
        >>> [node.kind for node in graph.nodes if node.kind != "prim::Constant"]
        ['aten::linear', 'aten::mul']
        >>> run_passes(graph, [FoldArithmetic(is_frozen=True)]), graph.find_node("aten::mul")
        (True, None)
    """

    name: ClassVar[str] = "fold_arithmetic"
    is_frozen: bool = False
    """Whether the constants are private to the graph: no caller passes one of them to be written to."""

    def run(self, graph: Graph) -> bool:
        if not any(node.kind in MAPS for node in graph.all_nodes()):
            return False
        aliases = AliasDb(graph, is_frozen=self.is_frozen)
        ranks = Ranks() if ranks_are_fixed(graph) else None
        changed = False
        for node in in_order(graph, ranks):
            if node.kind in _FOLDS:
                changed |= _fold(node, aliases, ranks)
        return changed


def _fold(node: Node, aliases: AliasDb, ranks: Ranks | None) -> bool:
    for place in range(min(len(node.inputs), 2)):
        map = foldable(node.inputs[place], aliases)
        if map is None or map.node.owning_block is not node.owning_block:
            continue
        if node.kind == "aten::neg":
            other: torch.Tensor | None = torch.tensor([-1.0], dtype=torch.float64, device=map.weight.device)
        else:
            other = _channels(node.inputs[1 - place], map, aliases, ranks)
        folded = None if other is None else _FOLDS[node.kind](node, map, other, place == 0)
        if folded is None or not map.fits(*folded) or not may_change("fold into its operand", node):
            continue
        map.replace(*folded, "folded")
        node.replace_with(map.node.output)
        return True
    return False


def _channels(value: Value, map: Foldable, aliases: AliasDb, ranks: Ranks | None) -> torch.Tensor | None:
    """Return the constant ``value`` as a 1-D float64 tensor: one number for each channel of the map's result, or one
    for all. None if it is not a constant real number or tensor on the device of the weight, does not broadcast along
    the channels, or would change the dtype or the rank of the result."""
    if not is_constant(value):
        return None
    found = value_of(value.node)
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return torch.tensor([found], dtype=torch.float64, device=map.weight.device)
    tensor = fixed_tensor(value, aliases)
    if tensor is None or tensor.is_complex() or tensor.device != map.weight.device:
        return None
    if torch.result_type(tensor, map.weight) != map.weight.dtype:
        return None
    shape = list(tensor.shape)
    if len(shape) > map.spatial + 1:
        # With a dimension of its own for the batch it would give one to what has none.
        fewest = 0 if ranks is None else ranks.of(map.operand)[0]
        if len(shape) > fewest or any(size != 1 for size in shape[: -(map.spatial + 1)]):
            return None
    if map.spatial and any(size != 1 for size in shape[-map.spatial :]):
        return None
    if tensor.numel() not in (1, map.channels) or (tensor.numel() > 1 and len(shape) < map.spatial + 1):
        return None
    return tensor.reshape(-1).to(torch.float64)


def _times(node: Node, map: Foldable, other: torch.Tensor, is_first: bool) -> _Weights | None:
    return map.scaled(other), map.shift() * other


def _divided(node: Node, map: Foldable, other: torch.Tensor, is_first: bool) -> _Weights | None:
    if not is_first or len(node.inputs) != 2:
        return None  # something by the result, or one that rounds
    return map.scaled(1 / other), map.shift() / other


def _plus(node: Node, map: Foldable, other: torch.Tensor, is_first: bool) -> _Weights | None:
    alpha = _alpha(node)
    if alpha is None or (alpha != 1 and not is_first):
        return None
    return map.weight.to(torch.float64), map.shift() + alpha * other


def _minus(node: Node, map: Foldable, other: torch.Tensor, is_first: bool) -> _Weights | None:
    alpha = _alpha(node)
    if alpha is None:
        return None
    if is_first:
        return map.weight.to(torch.float64), map.shift() - alpha * other
    minus = torch.tensor([-float(alpha)], dtype=torch.float64, device=map.weight.device)
    return map.scaled(minus), other - alpha * map.shift()


def _minus_reversed(node: Node, map: Foldable, other: torch.Tensor, is_first: bool) -> _Weights | None:
    return _minus(node, map, other, not is_first)


def _alpha(node: Node) -> int | float | None:
    if len(node.inputs) != 3:
        return None
    _, _, alpha = node.inputs
    found = value_of(alpha.node) if is_constant(alpha) else None
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


_FOLDS: Final[dict[str, Callable[[Node, Foldable, torch.Tensor, bool], _Weights | None]]] = {
    "aten::mul": _times,
    "aten::neg": _times,
    "aten::div": _divided,
    "aten::add": _plus,
    "aten::sub": _minus,
    "aten::rsub": _minus_reversed,
}
"""By kind of operator, the function that returns the new weight and bias in float64; None if they are not known. The
last argument specifies whether the map is the first operand."""

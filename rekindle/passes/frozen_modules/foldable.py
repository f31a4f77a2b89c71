"""Convolutions and linear maps whose weights are constants, as the passes see them that fold something into these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_bool, constant_int, is_constant, value_of
from rekindle.analysis.rank_inference import CONVOLUTIONS
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import NoneType, TensorType


@dataclass(slots=True)
class Foldable:
    """A node that computes ``weight · x + bias``, channel by channel of the result."""

    node: Node
    weight: torch.Tensor
    bias: torch.Tensor | None
    spatial: int
    """Number of dimensions after the channels in the result: 0 for a linear map."""
    is_transposed: bool = False
    groups: int = 1

    @property
    def channels(self) -> int:
        return self.weight.shape[1] * self.groups if self.is_transposed else self.weight.shape[0]

    def scaled(self, factor: torch.Tensor) -> torch.Tensor:
        """Return the weight in float64, with each channel of the result multiplied by its ``factor``, or all by a
        single one."""
        weight = self.weight.to(torch.float64)
        factor = factor.to(torch.float64).expand(self.channels)
        if not self.is_transposed:
            return weight * factor.reshape(-1, *[1] * (weight.dim() - 1))
        # (in, out / groups, …): the channels of a group are adjacent
        groups = factor.reshape(self.groups, 1, -1, *[1] * self.spatial)
        scaled: torch.Tensor = weight.unflatten(0, (self.groups, -1)) * groups
        return scaled.flatten(0, 1)

    @property
    def operand(self) -> Value:
        """The operand of the map."""
        return self.node.named_input("input")

    def shift(self) -> torch.Tensor:
        """Return the bias in float64; zeros, if the map has none."""
        if self.bias is None:
            return torch.zeros(self.channels, dtype=torch.float64, device=self.weight.device)
        return self.bias.to(torch.float64)

    def fits(self, weight: torch.Tensor, bias: torch.Tensor) -> bool:
        """Return whether ``weight`` and ``bias`` are finite after conversion to the dtype of the map's own weight."""
        found = [tensor.to(self.weight.dtype) for tensor in (weight, bias)]
        return all(bool(torch.isfinite(tensor).all()) for tensor in found)

    def replace(self, weight: torch.Tensor, bias: torch.Tensor, note: str) -> None:
        """Replace the weight and bias of the node by constants; ``note`` is added to their names."""
        weight = weight.to(self.weight.dtype)
        if self.weight.dim() == 4 and self.weight.is_contiguous(memory_format=torch.channels_last):
            weight = weight.contiguous(memory_format=torch.channels_last)
        for index, tensor in ((1, weight), (2, bias.to(self.weight.dtype))):
            self.node.replace_input(index, _constant_like(self.node, index, tensor, note))


def _constant_like(node: Node, index: int, tensor: torch.Tensor, note: str) -> Value:
    graph, old = node.graph, node.inputs[index]
    made = graph.create_constant(tensor, TensorType.of(tensor), old.node.range)
    made.callstack = old.node.callstack
    made.insert_before(node)
    name = old.base_name or ("weight", "bias")[index - 1]
    made.output.set_name(name if name.endswith(note) else f"{name}_{note}")
    return made.output


_PLAIN: Final = {kind: "transpose" in kind for kind in CONVOLUTIONS}
"""Convolutions by name, each with whether it is transposed."""

MAPS: Final = frozenset({*_PLAIN, "aten::convolution", "aten::_convolution", "aten::linear"})
"""The kinds of nodes that may be foldable."""


def foldable(value: Value, aliases: AliasDb) -> Foldable | None:
    """Return the convolution or linear map that computes ``value``, if its weights are floating-point constants of one
    dtype, its options are known, and ``value`` has a single use and is not written to; else None. Without other users,
    no program observes that ``value`` changes.
    """
    node = value.node
    if node.kind not in MAPS or len(value.uses) != 1 or aliases.has_writers(value):
        return None
    _, weight_input, bias_input, *_ = node.inputs
    weight, bias = fixed_tensor(weight_input, aliases), fixed_tensor(bias_input, aliases)
    if weight is None or not (bias is not None or _is_none(bias_input)):
        return None
    if not weight.is_floating_point() or (bias is not None and bias.dtype != weight.dtype):
        return None
    if node.kind == "aten::linear":
        return Foldable(node, weight, bias, 0) if weight.dim() == 2 else None
    is_transposed = _PLAIN[node.kind] if node.kind in _PLAIN else constant_bool(node.named_input("transposed"))
    spatial = CONVOLUTIONS.get(node.kind, weight.dim() - 2)
    groups = constant_int(node.named_input("groups"))
    if is_transposed is None or groups is None or weight.dim() != spatial + 2:
        return None
    return Foldable(node, weight, bias, spatial, is_transposed, groups)


def fixed_tensor(value: Value, aliases: AliasDb) -> torch.Tensor | None:
    """Return the tensor of the constant ``value``, if nothing in the graph writes to it; else None. None also for a
    subclass of Tensor, and for a tensor that is sparse, quantized or requires a gradient."""
    if not is_constant(value) or aliases.has_writers(value):
        return None
    found = value_of(value.node)
    if type(found) is not torch.Tensor or found.layout is not torch.strided:
        return None
    return None if found.is_quantized or found.requires_grad else found


def _is_none(value: Value) -> bool:
    return isinstance(value.type, NoneType)

"""Rules that are useful from the start, as passes with options: ``rekindle.add_pass("fuse_attention")``.

They are written as any rule is (:func:`rekindle.rewrite`), and compiled when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.types import Number

from rekindle.ir.graph import Graph
from rekindle.ir.scalar_types import number_of
from rekindle.passes.frozen_modules.remove_dropout import RemoveDropout
from rekindle.passes.pass_manager import Pass, run_nested
from rekindle.rewriting.matching import Match
from rekindle.rewriting.rule import apply_to_fixpoint
from rekindle.runtime.user_passes import register_pass
from rekindle.transforms.rewriting.rewrite_rules import RewriteRule, rewrite

# ------------------------------------------------------------------------------------------------------------ attention


def _scores_times(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * scale, dim=-1), v)


def _query_times(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q * scale, k.transpose(-2, -1)), dim=-1), v)


def _scaled_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


def _scores_over(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / scale, dim=-1), v)


def _query_over(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q / scale, k.transpose(-2, -1)), dim=-1), v)


def _divided_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, scale=1.0 / scale)


def _scores_over_int(q: Tensor, k: Tensor, v: Tensor, scale: int) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / scale, dim=-1), v)


def _int_attention(q: Tensor, k: Tensor, v: Tensor, scale: int) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, scale=1.0 / float(scale))


def _unscaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)), dim=-1), v)


def _unscaled_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)


def _masked_times(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * scale + mask, dim=-1), v)


def _masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def _masked_over(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / scale + mask, dim=-1), v)


def _masked_divided_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0 / scale)


def _apply(rules: Sequence[RewriteRule], graph: Graph) -> bool:
    return apply_to_fixpoint([rule.rewrite for rule in rules], graph) > 0


@cache
def _attention() -> tuple[RewriteRule, ...]:
    return (
        rewrite(_scores_times, _query_times, name="attention")(_scaled_attention),
        rewrite(_scores_over, _query_over, name="attention, divided")(_divided_attention),
        rewrite(_scores_over_int, name="attention, divided by an int")(_int_attention),
        rewrite(_unscaled, name="attention, unscaled")(_unscaled_attention),
    )


@cache
def _attention_with_masks() -> tuple[RewriteRule, ...]:
    return (
        rewrite(_masked_times, name="attention, masked")(_masked_attention),
        rewrite(_masked_over, name="attention, masked and divided")(_masked_divided_attention),
    )


@register_pass
@dataclass(slots=True)
class FuseAttention:
    """``softmax(q @ k.transpose(-2, -1) * scale) @ v`` becomes ``scaled_dot_product_attention``.

    The operands must have at least two dimensions, which graphs seldom prove. With ``masks``, a mask that is added to
    the scores is accepted too; if it is minus infinity along a whole row, the result is then 0 instead of NaN.
    """

    name: ClassVar[str] = "fuse_attention"
    masks: bool = False

    def run(self, graph: Graph) -> bool:
        rules = (*_attention(), *(_attention_with_masks() if self.masks else ()))
        return _apply(rules, graph)


# ---------------------------------------------------------------------------------------------------------- linear maps


def _matmul_plus(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.matmul(x, weight.t()) + bias


def _addmm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, x, weight.t())


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight, bias)


def _plain_matmul(x: Tensor, weight: Tensor) -> Tensor:
    return torch.matmul(x, weight.t())


def _plain_linear(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, weight)


def _linear_plus(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight) + bias


def _is_vector(match: Match) -> bool | str:
    """Return True if the addend is a bias, a tensor known to have one dimension; else the reason for a rejection."""
    bias = match.type("bias")
    rank = getattr(bias, "dim", None)
    value = match.constant("bias")
    if isinstance(value, torch.Tensor):
        rank = value.dim()
    return True if rank == 1 else "the bias is not known to have one dimension"


@cache
def _linear_maps() -> tuple[RewriteRule, ...]:
    return (
        rewrite(_matmul_plus, _addmm, _linear_plus, name="linear", when=_is_vector)(_linear),
        rewrite(_plain_matmul, name="linear without bias")(_plain_linear),
    )


@register_pass
@dataclass(slots=True)
class FuseLinear:
    """``x @ weight.t() + bias`` and ``addmm(bias, x, weight.t())`` become ``linear(x, weight, bias)``, where ``bias``
    is known to have one dimension; ``x @ weight.t()`` becomes ``linear(x, weight)``."""

    name: ClassVar[str] = "fuse_linear"

    def run(self, graph: Graph) -> bool:
        return _apply(_linear_maps(), graph)


_MAPS: Final = {
    "linear": "%y : Tensor = aten::linear(%x, %w, %b)",
    "addmm": "%y : Tensor = aten::addmm(%b, %x, %w, %one, %one)",
    "matmul": "%y : Tensor = aten::matmul(%x, %w)",
    "conv2d": "%y : Tensor = aten::conv2d(%x, %w, %b, %stride, %padding, %dilation, %groups)",
    "conv1d": "%y : Tensor = aten::conv1d(%x, %w, %b, %stride, %padding, %dilation, %groups)",
}


def _map_then(call: str, activation: str) -> str:
    inputs = "%x : Tensor, %w : Tensor"
    if "%b" in call:
        inputs += ", %b : Tensor" if "addmm" in call else ", %b : Tensor?"
    if "%stride" in call:
        inputs += ", %stride : int[], %padding : int[], %dilation : int[], %groups : int"
    one = "  %one : int = prim::Constant[value=1]()\n" if "%one" in call else ""
    return f"graph({inputs}):\n{one}  {call}\n  %r : Tensor = {activation}(%y)\n  return (%r)\n"


@cache
def _rectified_maps() -> tuple[RewriteRule, ...]:
    return tuple(
        rewrite(_map_then(call, "aten::relu"), name=f"relu of {name}")(_map_then(call, "aten::relu_"))
        for name, call in _MAPS.items()
    )


@register_pass
@dataclass(slots=True)
class ReluInPlace:
    """``relu`` overwrites the result of a linear map, a matrix product or a convolution: one tensor less. Gradients are
    the same. Add it at the end of the pipeline, with ``at="end"``: earlier passes remove mutation. It is faster only
    where operators are not fused."""

    name: ClassVar[str] = "relu_in_place"

    def run(self, graph: Graph) -> bool:
        return _apply(_rectified_maps(), graph)


# -------------------------------------------------------------------------------------------------- written out by hand


def _silu_by_hand(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _silu(x: Tensor) -> Tensor:
    return F.silu(x)


def _gelu_by_hand(x: Tensor, root: float, one: Number) -> Tensor:
    return x * 0.5 * (one + torch.erf(x / root))


def _other_gelu_by_hand(x: Tensor, root: float, one: Number) -> Tensor:
    return 0.5 * x * (one + torch.erf(x / root))


def _gelu_by_halves(x: Tensor, root: float, one: Number) -> Tensor:
    return 0.5 * (x * (one + torch.erf(x / root)))


def _gelu(x: Tensor, root: float, one: Number) -> Tensor:
    return F.gelu(x)


def _gelu_by_tanh(x: Tensor, factor: float, one: Number, three: Number) -> Tensor:
    return 0.5 * x * (one + torch.tanh(factor * (x + 0.044715 * torch.pow(x, three))))


def _tanh_gelu(x: Tensor, factor: float, one: Number, three: Number) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _are_near(**wanted: float) -> Any:
    def condition(match: Match) -> bool | str:
        for name, number in wanted.items():
            found = match.constant(name)
            if not (isinstance(found, (int, float)) and math.isclose(found, number, rel_tol=1e-6)):
                return f"'{name}' is {found}, not {number:.7g}"
        return True

    return condition


@cache
def _activations() -> tuple[RewriteRule, ...]:
    gelus = (_gelu_by_hand, _other_gelu_by_hand, _gelu_by_halves)
    return (
        rewrite(_silu_by_hand, name="silu")(_silu),
        rewrite(*gelus, name="gelu", when=_are_near(root=math.sqrt(2), one=1))(_gelu),
        rewrite(_gelu_by_tanh, name="gelu by tanh", when=_are_near(factor=math.sqrt(2 / math.pi), one=1, three=3))(
            _tanh_gelu
        ),
    )


@register_pass
@dataclass(slots=True)
class FuseActivations:
    """Replace activations written as formulas by the operator: ``x * sigmoid(x)`` by ``silu(x)``; GELU by ``erf`` and
    by ``tanh``. The tensors must hold floats: the formulas accept ints, the operators do not."""

    name: ClassVar[str] = "fuse_activations"

    def run(self, graph: Graph) -> bool:
        return _apply(_activations(), graph)


def _layer_norm_by_hand(x: Tensor, eps: float) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    var = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps)


def _layer_norm_by_var(x: Tensor, eps: float) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps)


def _layer_norm(x: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, [x.size(-1)], eps=eps)


def _rms_norm_by_hand(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def _rms_norm(x: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, [x.size(-1)], eps=eps)


@cache
def _norms() -> tuple[RewriteRule, ...]:
    return (
        rewrite(_layer_norm_by_hand, _layer_norm_by_var, name="layer_norm")(_layer_norm),
        rewrite(_rms_norm_by_hand, name="rms_norm")(_rms_norm),
    )


@register_pass
@dataclass(slots=True)
class FuseNorms:
    """Replace normalizations of the last dimension written as formulas by ``layer_norm`` and ``rms_norm``. Weight and
    bias remain a product and a sum."""

    name: ClassVar[str] = "fuse_norms"

    def run(self, graph: Graph) -> bool:
        return _apply(_norms(), graph)


# ------------------------------------------------------------------------------------------------- what changes nothing


def _itself(x: Tensor) -> Tensor:
    return x


def _to_own_dtype(x: Tensor) -> Tensor:
    return x.to(x.dtype)


def _as_own_type(x: Tensor) -> Tensor:
    return x.type_as(x)


def _contiguous_twice(x: Tensor) -> Tensor:
    return x.contiguous().contiguous()


def _contiguous_once(x: Tensor) -> Tensor:
    return x.contiguous()


def _transposed_twice(x: Tensor, a: int, b: int) -> Tensor:
    return x.transpose(a, b).transpose(a, b)


def _transposed_back(x: Tensor, a: int, b: int) -> Tensor:
    return x.transpose(a, b).transpose(b, a)


def _t_twice(x: Tensor) -> Tensor:
    return x.t().t()


def _detached_twice(x: Tensor) -> Tensor:
    return x.detach().detach()


def _detached_once(x: Tensor) -> Tensor:
    return x.detach()


@cache
def _identities() -> tuple[RewriteRule, ...]:
    return (
        rewrite(_to_own_dtype, _as_own_type, name="a cast to the dtype that it has", shares_alike=True)(_itself),
        rewrite(_contiguous_twice, name="contiguous twice", shares_alike=True)(_contiguous_once),
        rewrite(_detached_twice, name="detached twice", shares_alike=True)(_detached_once),
        rewrite(_transposed_twice, _transposed_back, name="transposed twice")(_not_transposed),
        rewrite(_t_twice, name="t() twice")(_itself),
    )


def _not_transposed(x: Tensor, a: int, b: int) -> Tensor:
    return x


@register_pass
@dataclass(slots=True)
class RemoveIdentities:
    """Remove operators that return their argument or an earlier value: casts to a tensor's own dtype, dropout in
    evaluation mode, ``contiguous`` and ``detach`` twice, a transposition and its inverse."""

    name: ClassVar[str] = "remove_identities"

    def run(self, graph: Graph) -> bool:
        dropped = run_nested(RemoveDropout(), graph)
        return _apply(_identities(), graph) or dropped


# --------------------------------------------------------------------------------------------------------- quantisation


_QUANTIZED: Final = """graph(%x : Tensor, %scale : float, %zero : int, %dtype : int):
  %q : Tensor = aten::quantize_per_tensor(%x, %scale, %zero, %dtype)
  return (%q)
"""
_QUANTIZED_AGAIN: Final = """graph(%x : Tensor, %scale : float, %zero : int, %dtype : int):
  %q : Tensor = aten::quantize_per_tensor(%x, %scale, %zero, %dtype)
  %y : Tensor = aten::dequantize(%q)
  %r : Tensor = aten::quantize_per_tensor(%y, %scale, %zero, %dtype)
  return (%r)
"""
_THERE_AND_BACK: Final = """graph(%x : Tensor, %scale : float, %zero : int, %dtype : int):
  %q : Tensor = aten::quantize_per_tensor(%x, %scale, %zero, %dtype)
  %y : Tensor = aten::dequantize(%q)
  return (%y)
"""
_AS_IT_WAS: Final = """graph(%x : Tensor, %scale : float, %zero : int, %dtype : int):
  return (%x)
"""


def _fake_quantized_again(x: Tensor, scale: float, zero: int, low: int, high: int) -> Tensor:
    y = torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)
    return torch.fake_quantize_per_tensor_affine(y, scale, zero, low, high)


def _fake_quantized(x: Tensor, scale: float, zero: int, low: int, high: int) -> Tensor:
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)


def _of_eight_bits(match: Match) -> bool | str:
    """Return True if the dtype is known to have eight bits, else the reason for a rejection. With more bits, a float is
    too coarse to distinguish adjacent values."""
    is_narrow = match.constant("dtype") in (number_of(torch.qint8), number_of(torch.quint8))
    return True if is_narrow else "the dtype is not known to be one of eight bits"


def _in_few_steps(match: Match) -> bool | str:
    low, high = match.constant("low"), match.constant("high")
    is_narrow = isinstance(low, int) and isinstance(high, int) and -(2**15) <= low <= high < 2**16
    return True if is_narrow else "it is not known that there are few steps"


@cache
def _requantizations() -> tuple[RewriteRule, ...]:
    return (
        rewrite(_QUANTIZED_AGAIN, name="quantised again", when=_of_eight_bits)(_QUANTIZED),
        rewrite(_fake_quantized_again, name="fake-quantised again", when=_in_few_steps)(_fake_quantized),
    )


@cache
def _quantizations() -> tuple[RewriteRule, ...]:
    return (rewrite(_THERE_AND_BACK, name="quantised and back")(_AS_IT_WAS),)


@register_pass
@dataclass(slots=True)
class RemoveRequantization:
    """Remove a dequantisation followed by a quantisation with the same scale and zero point. With ``exact=False``, a
    quantisation followed by a dequantisation is removed, too, which changes the result by the rounding error."""

    name: ClassVar[str] = "remove_requantization"
    exact: bool = True

    def run(self, graph: Graph) -> bool:
        rules: Sequence[RewriteRule] = _requantizations() if self.exact else (*_requantizations(), *_quantizations())
        return _apply(rules, graph)


LIBRARY: Final[tuple[type[Pass], ...]] = (
    FuseAttention,
    FuseLinear,
    ReluInPlace,
    FuseActivations,
    FuseNorms,
    RemoveIdentities,
    RemoveRequantization,
)
"""The passes that apply the built-in rules."""

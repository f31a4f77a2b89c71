"""Elementwise operators and comparisons: operands are broadcast, their dtypes promoted."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import torch

from rekindle.ops.result_types import dtypes, sizes
from rekindle.ops.result_types.call import Call
from rekindle.ops.result_types.dtypes import always, first, floating, promoted, promotion
from rekindle.ops.result_types.facts import Constant
from rekindle.ops.result_types.rules import ALL, NEVER, SOME, Rules, each, several, tensor
from rekindle.ops.result_types.sizes import broadcasting

_SELF_OTHER = ("self", "other")

PROMOTED_SIZES: Final = broadcasting(*_SELF_OTHER)

_UNARY = tensor(first, sizes.first)
_FLOATING = tensor(floating(first), sizes.first)
_TEST = tensor(always(torch.bool), sizes.first, flow=NEVER)
_BINARY = tensor(promotion(*_SELF_OTHER), PROMOTED_SIZES, flow=ALL)
_BINARY_OF_INTS = tensor(promotion(*_SELF_OTHER), PROMOTED_SIZES, flow=NEVER)
_BINARY_FLOATING = tensor(floating(promotion(*_SELF_OTHER)), PROMOTED_SIZES, flow=ALL)
_COMPARISON = tensor(always(torch.bool), PROMOTED_SIZES, flow=NEVER)
_POLYNOMIAL = tensor(floating(promotion("x", "n")), broadcasting("x", "n"), flow=SOME)


def _division(call: Call) -> torch.dtype | None:
    """Return the dtype of a division: a floating dtype for true division of integers, an integer with a rounding
    mode. None if it is not known."""
    found = promotion(*_SELF_OTHER)(call)
    if found is None or not dtypes.is_integral(found):
        return found
    if call.is_none("rounding_mode"):
        return call.default_dtype
    return found if call.is_none("rounding_mode") is False else None


def _ldexp(call: Call) -> torch.dtype | None:
    """Return the dtype of ``ldexp``, that of ``self * 2.0 ** other``; None if ``other`` is an integer tensor, whose
    power may be promoted like a number."""
    other = call.tensor("other")
    if other.dtype is None or dtypes.is_integral(other.dtype):
        return None
    power = replace(other, dtype=promoted([Constant(2.0), other], call.default_dtype))
    return promoted([call.tensor("self"), power], call.default_dtype)


def _float_power(call: Call) -> torch.dtype | None:
    operands = [call.fact(name) for name in ("self", "exponent")]
    kinds = [promoted([operand], call.default_dtype) for operand in operands]
    if None in kinds:
        return None
    return torch.complex128 if any(kind is not None and kind.is_complex for kind in kinds) else torch.float64


def _square(call: Call) -> torch.dtype | None:
    return promoted([call.first, Constant(2)], call.default_dtype)


RULES: Final[Rules] = {
    **each(
        _UNARY,
        "neg negative positive ceil floor round trunc fix frac sgn sign relu relu6 hardtanh elu selu celu leaky_relu",
        "rrelu gelu silu mish softplus hardswish hardsigmoid hardshrink softshrink threshold log_sigmoid",
        "clone contiguous conj conj_physical _conj _conj_physical resolve_conj resolve_neg nan_to_num bitwise_not",
        "dropout alpha_dropout feature_dropout feature_alpha_dropout renorm lift lift_fresh lift_fresh_copy",
        "_neg_view alias alias_copy fill zero tril triu",
    ),
    **each(
        _FLOATING,
        "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh",
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid erf erfc erfinv lgamma digamma reciprocal logit i0",
        "sinc deg2rad rad2deg mvlgamma special_multigammaln special_entr special_erfcx special_i0 special_i0e",
        "special_i1 special_i1e special_log_ndtr special_ndtr special_ndtri special_digamma special_psi special_erf",
        "special_erfc special_erfinv special_exp2 special_expit special_expm1 special_gammaln special_log1p",
        "special_logit special_sinc",
    ),
    **each(
        tensor(floating(first), sizes.first, flow=SOME),
        "special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1",
        "special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1",
        "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0",
    ),
    "special_round": _UNARY,
    "detach": tensor(first, sizes.first, flow=NEVER),
    "abs": tensor(dtypes.real(first), sizes.first),
    "absolute": tensor(dtypes.real(first), sizes.first),
    "angle": tensor(dtypes.real(floating(first)), sizes.first),
    "real": tensor(dtypes.real(first), sizes.first),
    "imag": tensor(dtypes.real(first), sizes.first),
    "square": tensor(_square, sizes.first),
    "polygamma": tensor(floating(dtypes.of("self")), sizes.like("self"), flow=ALL),
    "special_polygamma": tensor(floating(dtypes.of("self")), sizes.like("self"), flow=ALL),
    "prelu": tensor(first, sizes.first),
    "frexp": several(tensor(first, sizes.first), tensor(always(torch.int32), sizes.first, flow=NEVER)),
    **each(_TEST, "isnan isinf isfinite isposinf isneginf isreal signbit logical_not"),
    # Two operands
    **each(
        _BINARY,
        "add sub mul subtract multiply rsub maximum minimum fmax fmin fmod remainder hypot logaddexp logaddexp2",
    ),
    **each(
        _BINARY_OF_INTS,
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ __lshift__",
        "__rshift__ gcd lcm",
    ),
    **each(tensor(promotion(*_SELF_OTHER), PROMOTED_SIZES, flow=SOME), "nextafter floor_divide"),
    **each(
        _BINARY_FLOATING,
        "atan2 arctan2 copysign xlogy special_xlogy special_xlog1py igamma igammac special_gammainc special_gammaincc",
    ),
    "special_zeta": tensor(floating(promotion(*_SELF_OTHER)), PROMOTED_SIZES, flow=SOME),
    **each(tensor(_division, PROMOTED_SIZES, flow=ALL), "div divide true_divide"),
    "ldexp": tensor(_ldexp, PROMOTED_SIZES, flow=ALL),
    "heaviside": tensor(first, broadcasting("self", "values"), flow=SOME),
    "pow": tensor(promotion("self", "exponent"), broadcasting("self", "exponent"), flow=ALL),
    "float_power": tensor(_float_power, broadcasting("self", "exponent"), flow=ALL),
    "complex": tensor(dtypes.to_complex(dtypes.of("real")), broadcasting("real", "imag"), flow=ALL),
    "polar": tensor(dtypes.to_complex(dtypes.of("abs")), broadcasting("abs", "angle"), flow=ALL),
    **each(
        _COMPARISON,
        "eq ne lt le gt ge greater greater_equal less less_equal not_equal isclose logical_and logical_or logical_xor",
    ),
    "isin": tensor(always(torch.bool), broadcasting("elements", "element"), flow=NEVER),
    # Three operands
    "clamp": tensor(promotion("self", "min", "max"), broadcasting("self", "min", "max"), flow=ALL),
    "clip": tensor(promotion("self", "min", "max"), broadcasting("self", "min", "max"), flow=ALL),
    "clamp_min": tensor(promotion("self", "min"), broadcasting("self", "min"), flow=ALL),
    "clamp_max": tensor(promotion("self", "max"), broadcasting("self", "max"), flow=ALL),
    "where": tensor(promotion("self", "other"), broadcasting("condition", "self", "other"), flow=ALL),
    "lerp": tensor(first, broadcasting("self", "end", "weight"), flow=ALL),
    **each(
        tensor(promotion("self", "tensor1", "tensor2"), broadcasting("self", "tensor1", "tensor2"), flow=ALL),
        "addcmul addcdiv",
    ),
    "masked_fill": tensor(first, broadcasting("self", "mask")),
    **{
        f"special_{name}": _POLYNOMIAL
        for name in (
            *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
            *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
            *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
        )
    },
}

"""Arithmetic, element by element."""

from __future__ import annotations

from typing import Final

from rekindle.ops.releases.v2_14 import CLAMP_EXCLUDES_LIMITS

_TEXT: Final = """
def sum_to(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return torch._grad_sum_to_size(grad, own.size_unless_equal(self, result))

def scaled(grad: Tensor, factor: number) -> Tensor:
    return grad if factor == 1 else grad * factor

backward add.Tensor(grad, self, other, alpha, result) -> self, other:
    return sum_to(grad, self, result), sum_to(scaled(grad, alpha), other, result)

backward add.Scalar(grad) -> self:
    return grad

backward sub.Tensor(grad, self, other, alpha, result) -> self, other:
    return sum_to(grad, self, result), sum_to(grad * -alpha, other, result)

backward sub.Scalar(grad) -> self:
    return grad

backward rsub.Tensor(grad, self, other, alpha, result) -> self, other:
    return sum_to(grad * -alpha, self, result), sum_to(grad, other, result)

backward rsub.Scalar(grad, alpha) -> self:
    return grad * -alpha

backward mul.Tensor(grad, self, other, result) -> self, other:
    return sum_to(grad * other, self, result), sum_to(grad * self, other, result)

backward mul.Scalar(grad, other) -> self:
    return grad * other

backward div.Tensor(grad, self, other, result) -> self, other:
    return sum_to(grad / other, self, result), sum_to(-grad * (self / other) / other, other, result)

backward div.Scalar(grad, other) -> self:
    return grad / other

backward neg(grad) -> self:
    return -grad

backward reciprocal(grad, result) -> self:
    return -grad * (result * result)

backward abs(grad, self) -> self:
    return grad * self.sgn()

backward exp(grad, result) -> self:
    return grad * result

backward exp2(grad, result) -> self:
    return grad * result * 0.6931471805599453

backward expm1(grad, result) -> self:
    return grad * (result + 1)

backward log(grad, self) -> self:
    return grad / self

backward log2(grad, self) -> self:
    return grad / (self * 0.6931471805599453)

backward log10(grad, self) -> self:
    return grad / (self * 2.302585092994046)

backward log1p(grad, self) -> self:
    return grad / (self + 1)

backward sqrt(grad, result) -> self:
    return grad / (result * 2)

backward rsqrt(grad, result) -> self:
    return grad * -0.5 * (result * result * result)

backward sin(grad, self) -> self:
    return grad * self.cos()

backward cos(grad, self) -> self:
    return grad * -self.sin()

backward tan(grad, result) -> self:
    return grad * (1 + result * result)

backward sinh(grad, self) -> self:
    return grad * self.cosh()

backward cosh(grad, self) -> self:
    return grad * self.sinh()

backward tanh(grad, result) -> self:
    return torch.tanh_backward(grad, result)

backward sigmoid(grad, result) -> self:
    return torch.sigmoid_backward(grad, result)

backward asin(grad, self) -> self:
    return grad * (1 - self * self).rsqrt()

backward acos(grad, self) -> self:
    return -grad * (1 - self * self).rsqrt()

backward atan(grad, self) -> self:
    return grad / (self * self + 1)

backward asinh(grad, self) -> self:
    return grad * (self * self + 1).rsqrt()

backward acosh(grad, self) -> self:
    return grad * (self * self - 1).rsqrt()

backward atanh(grad, self) -> self:
    return grad / (1 - self * self)

backward erf(grad, self) -> self:
    return grad * 1.1283791670955126 * (-self * self).exp()

backward erfc(grad, self) -> self:
    return grad * -1.1283791670955126 * (-self * self).exp()

backward positive(grad) -> self:
    return grad

backward sgn, sign, floor, ceil, trunc, round, round.decimals(grad) -> self:
    return torch.zeros_like(grad)

backward frac(grad) -> self:
    return grad

backward deg2rad(grad) -> self:
    return grad * 0.017453292519943295

backward rad2deg(grad) -> self:
    return grad * 57.29577951308232

backward div.Tensor_mode(grad, self, other, rounding_mode, result) -> self, other:
    if rounding_mode is None:
        grad_self = sum_to(grad / other, self, result)
        grad_other = sum_to(-grad * (self / other) / other, other, result)
    else:
        grad_self = sum_to(torch.zeros_like(grad), self, result)
        grad_other = sum_to(torch.zeros_like(grad), other, result)
    return grad_self, grad_other

backward div.Scalar_mode(grad, other, rounding_mode) -> self:
    return grad / other if rounding_mode is None else torch.zeros_like(grad)

backward fmod.Scalar, remainder.Scalar(grad) -> self:
    return grad

backward fmod.Tensor(grad, self, other, result) -> self, other:
    quotient = torch.div(self, other, rounding_mode="trunc")
    return sum_to(grad, self, result), sum_to(-grad * quotient, other, result)

backward remainder.Tensor(grad, self, other, result) -> self, other:
    quotient = torch.div(self, other, rounding_mode="floor")
    return sum_to(grad, self, result), sum_to(-grad * quotient, other, result)

def powered(grad: Tensor, self: Tensor, exponent: number) -> Tensor:
    if exponent == 0:
        return torch.zeros_like(grad)
    elif exponent == 2:
        return grad * (self * 2)
    else:
        return grad * (self.pow(exponent - 1) * exponent)

backward pow.Tensor_Scalar(grad, self, exponent) -> self:
    return powered(grad, self, exponent)

def log_where(base: Tensor, exponent: Tensor) -> Tensor:
    return torch.where(torch.logical_and(base == 0, exponent >= 0), torch.zeros_like(base), base.log())

backward pow.Tensor_Tensor(grad, self, exponent, result) -> self, exponent:
    zero = torch.zeros_like(grad)
    grad_self = grad * torch.where(exponent == 0, zero, exponent * self.pow(exponent - 1))
    grad_exponent = grad * torch.where(result == 0, zero, result * log_where(self, exponent))
    return sum_to(grad_self, self, result), sum_to(grad_exponent, exponent, result)

backward pow.Scalar(grad, self, exponent, result) -> exponent:
    if 0 < self and self < 1e300:
        return grad * (result * torch.log(float(self)))
    base = torch.scalar_tensor(self, dtype=result.dtype)
    return grad * torch.where(result == 0, torch.zeros_like(grad), result * log_where(base, exponent))

def halved_where_equal(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return torch.where(self == other, grad / 2, grad)

backward maximum(grad, self, other, result) -> self, other:
    half = halved_where_equal(grad, self, other)
    grad_self, grad_other = half.masked_fill(self < other, 0), half.masked_fill(self > other, 0)
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

backward minimum(grad, self, other, result) -> self, other:
    half = halved_where_equal(grad, self, other)
    grad_self, grad_other = half.masked_fill(self > other, 0), half.masked_fill(self < other, 0)
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

backward fmax(grad, self, other, result) -> self, other:
    first = torch.logical_or(self >= other, other.isnan())
    grad_self, grad_other = grad.masked_fill(first.logical_not(), 0), grad.masked_fill(first, 0)
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

backward fmin(grad, self, other, result) -> self, other:
    first = torch.logical_or(self <= other, other.isnan())
    grad_self, grad_other = grad.masked_fill(first.logical_not(), 0), grad.masked_fill(first, 0)
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

composite max.other(self, other):
    return torch.maximum(self, other)

composite min.other(self, other):
    return torch.minimum(self, other)

backward where.self(grad, condition, self, other, result) -> self, other:
    zero = torch.zeros_like(grad)
    grad_self, grad_other = torch.where(condition, grad, zero), torch.where(condition, zero, grad)
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

backward where.ScalarSelf(grad, condition, other, result) -> other:
    return sum_to(torch.where(condition, torch.zeros_like(grad), grad), other, result)

backward where.ScalarOther(grad, condition, self, result) -> self:
    return sum_to(torch.where(condition, grad, torch.zeros_like(grad)), self, result)

backward lerp.Scalar(grad, self, end, weight, result) -> self, end:
    return sum_to(grad * (1 - weight), self, result), sum_to(grad * weight, end, result)

backward lerp.Tensor(grad, self, end, weight, result) -> self, end, weight:
    grad_self, grad_end = grad * (1 - weight), grad * weight
    grad_weight = grad * (end - self)
    return sum_to(grad_self, self, result), sum_to(grad_end, end, result), sum_to(grad_weight, weight, result)

backward addcmul(grad, self, tensor1, tensor2, value, result) -> self, tensor1, tensor2:
    scaled_grad = scaled(grad, value)
    grad_first, grad_second = scaled_grad * tensor2, scaled_grad * tensor1
    return sum_to(grad, self, result), sum_to(grad_first, tensor1, result), sum_to(grad_second, tensor2, result)

backward addcdiv(grad, self, tensor1, tensor2, value, result) -> self, tensor1, tensor2:
    over = scaled(grad, value) / tensor2
    grad_second = -over * (tensor1 / tensor2)
    return sum_to(grad, self, result), sum_to(over, tensor1, result), sum_to(grad_second, tensor2, result)

backward atan2(grad, self, other, result) -> self, other:
    length = self * self + other * other
    over = grad / length.masked_fill(length == 0, float("inf"))
    return sum_to(over * other, self, result), sum_to(over * -self, other, result)

backward hypot(grad, self, other, result) -> self, other:
    return sum_to(grad * (self / result), self, result), sum_to(grad * (other / result), other, result)

backward logaddexp(grad, self, other, result) -> self, other:
    grad_self, grad_other = grad / (1 + (other - self).exp()), grad / (1 + (self - other).exp())
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

backward logaddexp2(grad, self, other, result) -> self, other:
    grad_self, grad_other = grad / (1 + (other - self).exp2()), grad / (1 + (self - other).exp2())
    return sum_to(grad_self, self, result), sum_to(grad_other, other, result)

backward xlogy.Tensor(grad, self, other, result) -> self, other:
    zero = torch.zeros_like(grad)
    grad_self = grad * torch.where(torch.logical_and(self == 0, other <= 0), zero, other.log())
    return sum_to(grad_self, self, result), sum_to(grad * self / other, other, result)

backward xlogy.Scalar_Self(grad, self, other) -> other:
    return grad * self / other

backward special_xlog1py(grad, self, other, result) -> self, other:
    zero = torch.zeros_like(grad)
    grad_self = grad * torch.where(torch.logical_and(self == 0, other <= -1), zero, other.log1p())
    return sum_to(grad_self, self, result), sum_to(grad * self / (other + 1), other, result)

backward copysign.Tensor(grad, self, other, result) -> self, other:
    grad_self = grad * (result / self).masked_fill(self == 0, 0)
    return sum_to(grad_self, self, result), sum_to(torch.zeros_like(grad), other, result)

backward copysign.Scalar(grad, self, result) -> self:
    return grad * (result / self).masked_fill(self == 0, 0)

backward nan_to_num(grad, self) -> self:
    return grad * self.isfinite()

backward erfinv(grad, result) -> self:
    return grad * 0.8862269254527579 * (result * result).exp()

backward lgamma(grad, self) -> self:
    return grad * self.digamma()

backward digamma(grad, self) -> self:
    return grad * torch.polygamma(1, self)

backward polygamma(grad, n, self) -> self:
    return grad * torch.polygamma(n + 1, self)

backward mvlgamma(grad, self, p) -> self:
    shifts = torch.arange(-p / 2.0 + 0.5, 0.5, 0.5, dtype=self.dtype, device=self.device)
    return grad * (self.unsqueeze(-1) + shifts).digamma().sum(-1)

backward i0(grad, self) -> self:
    return grad * torch.special_i1(self)

backward special_i0e(grad, self, result) -> self:
    return grad * (torch.special_i1e(self) - self.sgn() * result)

backward special_entr(grad, self) -> self:
    return grad * -(self.log() + 1)

backward special_ndtri(grad, result) -> self:
    return grad * 2.5066282746310002 * (result * result / 2).exp()

backward special_log_ndtr(grad, self, result) -> self:
    return grad / (result + self * self / 2).exp() * 0.3989422804014327

backward special_erfcx(grad, self, result) -> self:
    return (2.0 * self * result - 1.1283791670955126) * grad

composite special_ndtr(self):
    return torch.erfc(self * -0.7071067811865476) * 0.5

backward logit(grad, self, eps) -> self:
    back = grad / (self * (1 - self))
    if eps is not None:
        back = back.masked_fill(torch.logical_or(self < eps, self > 1 - eps), 0)
    return back

backward sinc(grad, self) -> self:
    x = self * 3.141592653589793
    return grad * ((x * x.cos() - x.sin()) / (x * self)).masked_fill(self == 0, 0)

composite square(self):
    return torch.pow(self, 2)

composite ldexp.Tensor(self, other):
    return self * torch.pow(2.0, other)

composite float_power.Tensor_Scalar(self, exponent):
    return torch.pow(self.to(dtype=7), exponent)

composite float_power.Tensor_Tensor(self, exponent):
    return torch.pow(self.to(dtype=7), exponent.to(dtype=7))

composite float_power.Scalar(self, exponent):
    return torch.pow(self, exponent.to(dtype=7))

backward angle(grad) -> self:
    return torch.zeros_like(grad)

backward resolve_conj, resolve_neg, conj_physical(grad) -> self:
    return grad

backward special_i1(grad, self, result) -> self:
    near = self == 0
    spread = self.masked_fill(near, 1)
    return grad * torch.where(near, torch.full_like(self, 0.5), torch.i0(self) - result / spread)

constant eq.Tensor, eq.Scalar, ne.Tensor, ne.Scalar, lt.Tensor, lt.Scalar, le.Tensor, le.Scalar,
    gt.Tensor, gt.Scalar, ge.Tensor, ge.Scalar, isnan, isinf, isfinite, isposinf, isneginf, signbit,
    logical_and, logical_or, logical_not, logical_xor, zeros_like, ones_like, full_like, empty_like,
    rand_like, randn_like, randint_like, randint_like.low_dtype, detach, new_full, new_zeros, new_ones, new_empty,
    new_empty_strided, histc, special_airy_ai, special_bessel_j0, special_bessel_j1, special_bessel_y0,
    special_bessel_y1, special_modified_bessel_i0, special_modified_bessel_i1, special_modified_bessel_k0,
    special_modified_bessel_k1, special_scaled_modified_bessel_k0, special_scaled_modified_bessel_k1,
    special_spherical_bessel_j0
"""

_LIMITS_INCLUDED: Final = """
backward clamp(grad, self, min, max) -> self:
    kept, zero = grad, torch.zeros_like(grad)
    if min is not None:
        kept = torch.where(self >= min, kept, zero)
    if max is not None:
        kept = torch.where(self <= max, kept, zero)
    return kept

backward clamp.Tensor(grad, self, min, max, result) -> self, min, max:
    zero = torch.zeros_like(grad)
    grad_self, grad_min, grad_max = grad, zero, zero
    if min is not None and max is not None:
        inside = torch.logical_and(self >= min, self <= max)
        grad_self = torch.where(inside, grad, zero)
        grad_min = own.sum_to(torch.where(torch.logical_and(min < max, self < min), grad, zero), min.size())
        grad_max = own.sum_to(torch.where(torch.logical_or(self > max, max < min), grad, zero), max.size())
    elif min is not None:
        grad_self = torch.where(self >= min, grad, zero)
        grad_min = own.sum_to(torch.where(self < min, grad, zero), min.size())
    elif max is not None:
        grad_self = torch.where(self <= max, grad, zero)
        grad_max = own.sum_to(torch.where(self > max, grad, zero), max.size())
    return sum_to(grad_self, self, result), grad_min, grad_max

backward clamp_min.Tensor(grad, self, min, result) -> self, min:
    zero = torch.zeros_like(grad)
    grad_self, grad_min = torch.where(self >= min, grad, zero), torch.where(self < min, grad, zero)
    return sum_to(grad_self, self, result), sum_to(grad_min, min, result)

backward clamp_max.Tensor(grad, self, max, result) -> self, max:
    zero = torch.zeros_like(grad)
    grad_self, grad_max = torch.where(self <= max, grad, zero), torch.where(self > max, grad, zero)
    return sum_to(grad_self, self, result), sum_to(grad_max, max, result)

backward clamp_min(grad, self, min) -> self:
    return torch.where(self >= min, grad, torch.zeros_like(grad))

backward clamp_max(grad, self, max) -> self:
    return torch.where(self <= max, grad, torch.zeros_like(grad))
"""

_LIMITS_EXCLUDED: Final = """
backward clamp(grad, self, min, max) -> self:
    kept, zero = grad, torch.zeros_like(grad)
    if min is not None:
        kept = torch.where(self > min, kept, zero)
    if max is not None:
        kept = torch.where(self < max, kept, zero)
    return kept

backward clamp.Tensor(grad, self, min, max, result) -> self, min, max:
    zero = torch.zeros_like(grad)
    grad_self, grad_min, grad_max = grad, zero, zero
    if min is not None and max is not None:
        half = torch.where(min < max, halved_where_equal(halved_where_equal(grad, self, min), self, max), grad)
        grad_self = half.masked_fill(torch.logical_or(self < min, self > max), 0)
        at_min = torch.logical_and(min < max, self == min)
        at_max = torch.logical_and(min < max, self == max)
        below, above = torch.logical_and(min <= max, self < min), torch.logical_and(min <= max, self > max)
        above = torch.logical_or(above, max < min)
        grad_min = own.sum_to(torch.where(torch.logical_or(at_min, below), half, zero), min.size())
        grad_max = own.sum_to(torch.where(torch.logical_or(at_max, above), half, zero), max.size())
    elif min is not None:
        half = halved_where_equal(grad, self, min)
        grad_self = half.masked_fill(self < min, 0)
        grad_min = own.sum_to(half.masked_fill(self > min, 0), min.size())
    elif max is not None:
        half = halved_where_equal(grad, self, max)
        grad_self = half.masked_fill(self > max, 0)
        grad_max = own.sum_to(half.masked_fill(self < max, 0), max.size())
    return sum_to(grad_self, self, result), grad_min, grad_max

backward clamp_min.Tensor(grad, self, min, result) -> self, min:
    half = halved_where_equal(grad, self, min)
    grad_self, grad_min = half.masked_fill(self < min, 0), half.masked_fill(self > min, 0)
    return sum_to(grad_self, self, result), sum_to(grad_min, min, result)

backward clamp_max.Tensor(grad, self, max, result) -> self, max:
    half = halved_where_equal(grad, self, max)
    grad_self, grad_max = half.masked_fill(self > max, 0), half.masked_fill(self < max, 0)
    return sum_to(grad_self, self, result), sum_to(grad_max, max, result)

backward clamp_min(grad, self, min) -> self:
    return torch.where(self > min, grad, torch.zeros_like(grad))

backward clamp_max(grad, self, max) -> self:
    return torch.where(self < max, grad, torch.zeros_like(grad))
"""

TEXT: Final = _TEXT + (_LIMITS_EXCLUDED if CLAMP_EXCLUDES_LIMITS else _LIMITS_INCLUDED)

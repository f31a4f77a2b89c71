"""Arithmetic, element by element."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
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

backward square(grad, self) -> self:
    return grad * (self * 2)

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

backward relu(grad, result) -> self:
    return torch.threshold_backward(grad, result, 0)
"""

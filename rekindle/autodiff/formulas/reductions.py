"""Sums, extremes, statistics, norms, and what runs along a dimension."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward sum(grad, self) -> self:
    return grad.expand(self.size())

def unreduced(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    if dim is None or keepdim:
        return grad.expand(self.size())
    elif len(dim) == 1 and self.dim() > 0:
        return grad.unsqueeze(dim[0]).expand(self.size())
    return own.unreduced(grad, self.size(), dim, keepdim)

backward sum.dim_IntList(grad, self, dim, keepdim) -> self:
    return unreduced(grad, self, dim, keepdim)

backward nansum(grad, self, dim, keepdim) -> self:
    return own.unreduced(grad, self.size(), dim, keepdim) * self.isnan().logical_not()

backward mean(grad, self) -> self:
    return grad.expand(self.size()) / self.numel()

backward mean.dim(grad, self, dim, keepdim, result) -> self:
    return unreduced(grad, self, dim, keepdim) / own.ratio(self.numel(), result.numel())

composite nanmean(self, dim, keepdim, dtype):
    return torch.nansum(self, dim, keepdim, dtype=dtype) / torch.sum(self.isnan().logical_not(), dim, keepdim)

def shared_among_equals(grad: Tensor, self: Tensor, result: Tensor, dim: Optional[List[int]]) -> Tensor:
    equal = self == result
    return grad * equal / own.summed(equal, dim)

def extreme_back(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    equal = (self == result).logical_or(self.isnan())
    return grad * equal / own.summed(equal, None)

backward max, min(grad, self, result) -> self:
    return extreme_back(grad, self, result)

backward amax, amin(grad, self, dim, keepdim, result) -> self:
    back = own.unreduced(grad, self.size(), dim, keepdim)
    return shared_among_equals(back, self, own.unreduced(result, self.size(), dim, keepdim), dim)

def existing(grad: Optional[Tensor]) -> Tensor:
    assert grad is not None
    return grad

def selected_back(grad: Optional[Tensor], self: Tensor, dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    return torch.value_selecting_reduction_backward(existing(grad), dim, indices, self.size(), keepdim)

backward max.dim, min.dim, median.dim, nanmedian.dim, mode(grad0, self, dim, keepdim, indices) -> self:
    return selected_back(grad0, self, dim, indices, keepdim)

backward kthvalue(grad0, self, dim, keepdim, indices) -> self:
    return selected_back(grad0, self, dim, indices, keepdim)

backward topk, sort(grad0, self, dim, indices) -> self:
    return selected_back(grad0, self, dim, indices, True)

backward sort.stable(grad0, self, dim, indices) -> self:
    return selected_back(grad0, self, dim, indices, True)

backward cummax, cummin(grad0, self, dim, indices) -> self:
    return torch.zeros_like(self).scatter_add(dim, indices, existing(grad0))

backward median, nanmedian(grad, self, result) -> self:
    return own.first_equal(grad, self, result)

backward aminmax(grad0, grad1, self, dim, keepdim, min, max) -> self:
    return own.extremes_back(grad0, grad1, self, dim, keepdim, min, max)

composite dist(self, other, p):
    return torch.norm(self - other, p)

def of_variance(
    grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool
) -> Tensor:
    back = own.unreduced(grad, self.size(), dim, keepdim)
    return back * ((self - own.mean_over(self, dim)) * own.variance_factor(self, dim, correction))

backward var.correction(grad, self, dim, correction, keepdim) -> self:
    return of_variance(grad, self, dim, correction, keepdim)

backward std.correction(grad, self, dim, correction, keepdim, result) -> self:
    # its transpose, for jvp, divides by this too
    return of_variance(grad / (result * 2).masked_fill(result == 0, float("inf")), self, dim, correction, keepdim)

composite var(self, unbiased):
    return torch.var(self, None, correction=1 if unbiased else 0)

composite var.dim(self, dim, unbiased, keepdim):
    return torch.var(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)

composite std(self, unbiased):
    return torch.std(self, None, correction=1 if unbiased else 0)

composite std.dim(self, dim, unbiased, keepdim):
    return torch.std(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)

composite var_mean(self, unbiased):
    return torch.var(self, None, correction=1 if unbiased else 0), self.mean()

composite std_mean(self, unbiased):
    return torch.std(self, None, correction=1 if unbiased else 0), self.mean()

composite var_mean.dim(self, dim, unbiased, keepdim):
    return torch.var(self, dim, correction=1 if unbiased else 0, keepdim=keepdim), torch.mean(self, dim, keepdim)

composite std_mean.dim(self, dim, unbiased, keepdim):
    return torch.std(self, dim, correction=1 if unbiased else 0, keepdim=keepdim), torch.mean(self, dim, keepdim)

composite var_mean.correction(self, dim, correction, keepdim):
    return torch.var(self, dim, correction=correction, keepdim=keepdim), torch.mean(self, dim, keepdim)

composite std_mean.correction(self, dim, correction, keepdim):
    return torch.std(self, dim, correction=correction, keepdim=keepdim), torch.mean(self, dim, keepdim)

backward prod(grad, self, result) -> self:
    return own.product_back(grad, self, None, False)

backward prod.dim_int(grad, self, dim, keepdim) -> self:
    return own.product_back(grad, self, dim, keepdim)

backward logsumexp(grad, self, dim, keepdim, result) -> self:
    back, whole = own.unreduced(grad, self.size(), dim, keepdim), own.unreduced(result, self.size(), dim, keepdim)
    return back * (self - whole).exp()

def norm_back(grad: Tensor, self: Tensor, p: Optional[number], result: Tensor, dim: Optional[List[int]],
              keepdim: bool) -> Tensor:
    if p is None or p == 2:
        if dim is None or keepdim:
            return grad * torch.masked_fill(self / result, result == 0, 0)
        elif len(dim) == 1 and self.dim() > 0:
            norm = result.unsqueeze(dim[0])
            return grad.unsqueeze(dim[0]) * torch.masked_fill(self / norm, norm == 0, 0)
    return own.norm_back(grad, self, p, result, dim, keepdim)

backward norm.Scalar(grad, self, p, result) -> self:
    return norm_back(grad, self, p, result, None, False)

backward norm.ScalarOpt_dim(grad, self, p, dim, keepdim, result) -> self:
    return norm_back(grad, self, p, result, dim, keepdim)

backward linalg_vector_norm(grad, self, ord, dim, keepdim, result) -> self:
    return norm_back(grad, self, ord, result, dim, keepdim)

backward cumsum(grad, dim) -> self:
    return grad.flip([dim]).cumsum(dim).flip([dim])

backward cumprod(grad, self, dim, result) -> self:
    return torch.cumprod_backward(grad, self, dim, result)

backward logcumsumexp(grad, self, dim, result) -> self:
    return own.logcumsumexp_back(grad, self, result, dim)

constant argmax, argmin, any, any.dim, all, all.dim, count_nonzero, count_nonzero.dim_IntList, argsort, nonzero,
    bucketize.Tensor, searchsorted.Tensor
"""

"""Batching rules of sums, extremes, norms and scans along a dimension that are not covered by the families."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch sum(self, dtype):
    return torch.sum(flat(self), [1], dtype=dtype)

batch mean(self, dtype):
    return torch.mean(flat(self), [1], dtype=dtype)

batch std(self, unbiased):
    return torch.std(flat(self), [1], unbiased)

batch var(self, unbiased):
    return torch.var(flat(self), [1], unbiased)

batch var_mean(self, unbiased):
    return torch.var_mean(flat(self), [1], unbiased)

batch std_mean(self, unbiased):
    return torch.std_mean(flat(self), [1], unbiased)

batch count_nonzero(self, dim):
    if dim is None:
        return torch.count_nonzero(flat(self), [1])
    return torch.count_nonzero(lifted(self), [inner(self, dim)])

batch norm.Scalar(self, p):
    return torch.norm(flat(self), p, [1])

batch norm.ScalarOpt_dtype(self, p, dtype):
    return torch.norm(flat(self), p, [1], False, dtype=dtype)

batch linalg_norm(self, ord, dim, keepdim, dtype):
    if dim is None:
        if ord is None:
            made = torch.linalg_vector_norm(flat(self), 2, [1], False, dtype=dtype)
            if keepdim:
                return torch.reshape(made, [batch_size] + [1] * (self.dim() - 1))
            return made
        check_rank(self, True, 1, 2, "linalg_norm: with 'ord' alone 'self' must have 1 to 2 dimensions")
        if self.dim() == 2:
            return torch.linalg_norm(self, ord, [1], keepdim, dtype=dtype)
        return torch.linalg_norm(self, ord, [1, 2], keepdim, dtype=dtype)
    return lowered(torch.linalg_norm(lifted(self), ord, inner_all(self, dim), keepdim, dtype=dtype), self)

batch linalg_norm.ord_str(self, ord, dim, keepdim, dtype):
    if dim is None:
        check_rank(self, True, 2, 2, "linalg_norm: with a name as 'ord' 'self' must have 2 dimensions")
        return torch.linalg_norm(self, ord, [1, 2], keepdim, dtype=dtype)
    return torch.linalg_norm(self, ord, inner_all(self, dim), keepdim, dtype=dtype)

batch linalg_matrix_norm(self, ord, dim, keepdim, dtype):
    return torch.linalg_matrix_norm(self, ord, inner_all(self, dim), keepdim, dtype=dtype)

batch linalg_matrix_norm.str_ord(self, ord, dim, keepdim, dtype):
    return torch.linalg_matrix_norm(self, ord, inner_all(self, dim), keepdim, dtype=dtype)

batch nuclear_norm(self, keepdim):
    return torch.linalg_matrix_norm(self, "nuc", [-2, -1], keepdim)

batch frobenius_norm.dim(self, dim, keepdim):
    return torch.frobenius_norm(self, inner_or_every(self, dim), keepdim)

batch nuclear_norm.dim(self, dim, keepdim):
    return torch.nuclear_norm(self, inner_all(self, dim), keepdim)

batch renorm(self, p, dim, maxnorm):
    where = inner(self, dim)
    others = [other for other in range(1, self.dim()) if other != where]
    norms = torch.linalg_vector_norm(self, p, others, True)
    return self * torch.where(norms > maxnorm, torch.reciprocal(norms + 1e-7) * maxnorm, torch.ones_like(norms))

batch aminmax(self, dim, keepdim):
    if dim is None:
        least, most = torch.aminmax(flat(self), dim=1)
        rank = self.dim() - 1 if keepdim else 0
        return with_dimensions(least, rank), with_dimensions(most, rank)
    least, most = torch.aminmax(lifted(self), dim=inner(self, dim), keepdim=keepdim)
    return lowered(least, self), lowered(most, self)

batch msort(self):
    return lowered(torch.sort(lifted(self), 1)[0], self)

batch sort(self, dim, descending):
    values, indices = torch.sort(lifted(self), inner(self, dim), descending)
    return lowered(values, self), lowered(indices, self)

batch diff(self, n, dim, prepend, append):
    return torch.diff(self, n, inner(self, dim), prepend, append)

batch trapz.dx(y, dx, dim):
    return torch.trapz(y, dx=dx, dim=inner(y, dim))

batch clamp.Tensor, clip.Tensor(self, min, max):
    own = self.dim() - 1
    rank, whole = own, self
    low, high = min, max
    if min is not None:
        rank = rank if rank > min.dim() - 1 else min.dim() - 1
        whole = as_promoted(whole, True, own, min, min.dim() - 1)
        low = as_promoted(min, True, min.dim() - 1, self, own)
    if max is not None:
        rank = rank if rank > max.dim() - 1 else max.dim() - 1
        whole = as_promoted(whole, True, own, max, max.dim() - 1)
        high = as_promoted(max, True, max.dim() - 1, self, own)
    return torch.clamp(
        padded(whole, True, rank), None if low is None else padded(low, True, rank),
        None if high is None else padded(high, True, rank)
    )

batch trapezoid.dx(y, dx, dim):
    return torch.trapezoid(y, dx=dx, dim=inner(y, dim))

batch cumulative_trapezoid.dx(y, dx, dim):
    return torch.cumulative_trapezoid(y, dx=dx, dim=inner(y, dim))

batch trapezoid.x(y, x, dim):
    a, b = aligned(y, True, x, True)
    if x.dim() == 2:
        return torch.trapezoid(torch.movedim(y, inner(y, dim), -1), b, dim=-1)
    return torch.trapezoid(a, b, dim=inner(y, dim))

batch _softmax_backward_data(grad_output, output, dim, input_dtype):
    made = torch._softmax_backward_data(lifted(grad_output), lifted(output), inner(output, dim), input_dtype)
    return lowered(made, output)

batch _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    made = torch._log_softmax_backward_data(lifted(grad_output), lifted(output), inner(output, dim), input_dtype)
    return lowered(made, output)

batch value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim):
    if len(sizes) == 0:
        return grad
    where = dim + 1 if dim >= 0 else dim + 1 + len(sizes)
    return torch.value_selecting_reduction_backward(grad, where, indices, [torch.size(grad, 0)] + sizes, keepdim)

batch glu(self, dim):
    return torch.glu(self, inner(self, dim))

batch searchsorted.Tensor(sorted_sequence, self, out_int32, right, side, sorter):
    values = torch.reshape(self, [batch_size, -1]) if sorted_sequence.dim() == 2 else self
    made = torch.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter)
    return torch.reshape(made, torch.size(self))
"""

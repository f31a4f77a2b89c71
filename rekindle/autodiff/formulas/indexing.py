"""Formulas of indexing, gather and scatter."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward select.int(grad, self, dim, index) -> self:
    return torch.select_backward(grad, self.size(), dim, index)

backward slice.Tensor(grad, self, dim, start, end, step) -> self:
    return own.slice_back(grad, self.size(), dim, start, end, step)

backward narrow(grad, self, dim, start, length) -> self:
    return own.narrow_back(grad, self.size(), dim, start, length)

backward index.Tensor(grad, self, indices) -> self:
    return own.index_back(grad, self.size(), indices)

backward index_put(grad, indices, values, accumulate) -> self, values:
    kept = grad if accumulate else own.put_zero(grad, indices)
    return kept, own.sum_to(own.indexed(grad, indices), values.size())

backward index_select(grad, self, dim, index) -> self:
    return torch.index_select_backward(grad, self.size(), dim, index)

backward gather(grad, self, dim, index) -> self:
    return torch.zeros_like(self).scatter_add(dim, index, grad)

backward scatter.src(grad, dim, index) -> self, src:
    return grad.scatter(dim, index, 0), grad.gather(dim, index)

backward scatter.value(grad, dim, index) -> self:
    return grad.scatter(dim, index, 0)

backward scatter_add(grad, dim, index) -> self, src:
    return grad, grad.gather(dim, index)

backward index_add(grad, dim, index, source, alpha) -> self, source:
    return grad, own.taken(scaled(grad, alpha), dim, index, source)

backward index_copy(grad, dim, index, source) -> self, source:
    return grad.index_fill(dim, index, 0), own.taken(grad, dim, index, source)

backward index_fill.int_Scalar(grad, dim, index) -> self:
    return grad.index_fill(dim, index, 0)

backward index_fill.int_Tensor(grad, dim, index) -> self, value:
    return grad.index_fill(dim, index, 0), grad.index_select(dim, index).sum()

backward masked_fill.Scalar(grad, self, mask) -> self:
    return own.sum_to(grad.masked_fill(mask, 0), self.size())

backward masked_fill.Tensor(grad, self, mask, result) -> self, value:
    return own.sum_to(grad.masked_fill(mask, 0), self.size()), own.masked_sum(grad, mask)

backward masked_select(grad, self, mask) -> self:
    return own.masked_back(grad, self, mask)

backward masked_scatter(grad, self, mask, source) -> self, source:
    kept = own.sum_to(grad.masked_fill(mask, 0), self.size())
    return kept, torch.masked_scatter_backward(grad, mask.expand(grad.size()), source.size())

backward take(grad, self, index) -> self:
    return own.take_back(grad, self, index)

backward put(grad, self, index, source, accumulate) -> self, source:
    kept = grad if accumulate else grad.put(index, torch.zeros_like(source))
    return kept, grad.take(index).reshape(source.size())

backward select_scatter(grad, dim, index) -> self, src:
    written = grad.select(dim, index)
    return torch.select_scatter(grad, torch.zeros_like(written), dim, index), written

backward slice_scatter(grad, dim, start, end, step) -> self, src:
    written = torch.slice(grad, dim, start, end, step)
    return torch.slice_scatter(grad, torch.zeros_like(written), dim, start, end, step), written

backward diagonal_scatter(grad, offset, dim1, dim2) -> self, src:
    written = grad.diagonal(offset, dim1, dim2)
    return torch.diagonal_scatter(grad, torch.zeros_like(written), offset, dim1, dim2), written

backward embedding(grad, weight, indices, padding_idx, scale_grad_by_freq, sparse) -> weight:
    return torch.embedding_backward(grad, indices, weight.size(0), padding_idx, scale_grad_by_freq, sparse)

constant one_hot

backward take_along_dim(grad, self, indices, dim) -> self:
    return own.take_along_back(grad, self, indices, dim)

backward scatter_reduce.two(grad, self, dim, index, src, reduce, include_self, result) -> self, src:
    return own.scatter_reduce_back(grad, self, dim, index, src, reduce, include_self, result)

backward index_reduce(grad, self, dim, index, source, reduce, include_self, result) -> self, source:
    return own.index_reduce_back(grad, self, dim, index, source, reduce, include_self, result)
"""

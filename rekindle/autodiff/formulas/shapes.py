"""Formulas of views, copies, casts, concatenation and splitting."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward view, reshape, _unsafe_view, flatten.using_ints, unflatten.int, squeeze, squeeze.dim,
    squeeze.dims, view_as, reshape_as, ravel, _reshape_alias(grad, self) -> self:
    return grad.reshape(self.size())

backward t(grad) -> self:
    return grad.t()

backward transpose.int(grad, dim0, dim1) -> self:
    return grad.transpose(dim0, dim1)

backward permute(grad, dims) -> self:
    return grad.permute(own.inverse_order(dims))

backward movedim.int(grad, source, destination) -> self:
    return torch.movedim(grad, destination, source)

backward movedim.intlist(grad, source, destination) -> self:
    return torch.movedim(grad, destination, source)

backward mT, numpy_T(grad, self) -> self:
    return own.turned(grad, self.dim())

backward unsqueeze(grad, dim) -> self:
    return grad.squeeze(dim)

backward expand, expand_as, broadcast_to(grad, self) -> self:
    return own.sum_to(grad, self.size())

backward contiguous, clone, alias, lift_fresh(grad) -> self:
    return grad

backward to.dtype, to.dtype_layout, to.device, type_as, to.other, _to_copy(grad, self) -> self:
    return grad.to(self.dtype)

backward cat(grad, tensors, dim) -> tensors:
    return own.cat_back(grad, own.sizes_of(tensors), dim)

backward stack(grad, dim) -> tensors:
    return torch.unbind(grad, dim)

backward split.Tensor, split.sizes, split_with_sizes, chunk, tensor_split.sections, tensor_split.indices,
    unsafe_chunk, unsafe_split.Tensor, unsafe_split_with_sizes(grads, dim, result) -> self:
    return own.rejoined(grads, result, dim)

backward unbind.int(grads, dim, result) -> self:
    return own.restacked(grads, result, dim)

composite permute_copy(self, dims):
    return self.permute(dims).clone(memory_format=0)

composite transpose_copy.int(self, dim0, dim1):
    return self.transpose(dim0, dim1).clone(memory_format=0)

composite t_copy(self):
    return self.t().clone(memory_format=0)

composite unsqueeze_copy(self, dim):
    return self.unsqueeze(dim).clone(memory_format=0)

composite squeeze_copy(self):
    return self.squeeze().clone(memory_format=0)

composite squeeze_copy.dim(self, dim):
    return self.squeeze(dim).clone(memory_format=0)

composite squeeze_copy.dims(self, dim):
    return torch.squeeze(self, dim).clone(memory_format=0)

composite view_copy(self, size):
    return self.reshape(size).clone(memory_format=0)

composite expand_copy(self, size):
    return self.expand(size).clone(memory_format=0)

composite diagonal_copy(self, offset, dim1, dim2):
    return self.diagonal(offset, dim1, dim2).clone(memory_format=0)

backward atleast_1d, atleast_2d, atleast_3d(grad, self) -> self:
    return grad.reshape(self.size())

backward hsplit.int, hsplit.array(grads, self, result) -> self:
    return own.rejoined(grads, result, 0 if self.dim() == 1 else 1)

backward vsplit.int, vsplit.array(grads, result) -> self:
    return own.rejoined(grads, result, 0)

backward dsplit.int, dsplit.array(grads, result) -> self:
    return own.rejoined(grads, result, 2)

backward mH, adjoint(grad, self) -> self:
    return own.turned(grad, self.dim())

backward diag(grad, self, diagonal) -> self:
    return own.diag_back(grad, self.size(), diagonal)

backward pad(grad, self, pad, mode) -> self:
    return own.pad_back(grad, self.size(), pad, mode)

backward meshgrid(grads, tensors) -> tensors:
    return own.meshgrid_back(grads, tensors, "ij")

backward meshgrid.indexing(grads, tensors, indexing) -> tensors:
    return own.meshgrid_back(grads, tensors, indexing)

backward broadcast_tensors(grads, tensors) -> tensors:
    return own.sums_to(grads, tensors)

composite msort(self):
    return torch.sort(self, 0)[0]

backward repeat_interleave.self_Tensor(grad, self, repeats, dim) -> self:
    return own.interleave_by(grad, self, repeats, dim)

backward real(grad) -> self:
    return grad

backward fill.Scalar(grad) -> self:
    return torch.zeros_like(grad)

backward fill.Tensor(grad) -> self, value:
    return torch.zeros_like(grad), grad.sum()

backward fft_fftshift(grad, dim) -> self:
    return torch.fft_ifftshift(grad, dim)

backward fft_ifftshift(grad, dim) -> self:
    return torch.fft_fftshift(grad, dim)

backward diagflat(grad, self, offset) -> self:
    return grad.diagonal(offset).reshape(self.size())

backward repeat(grad, self, repeats) -> self:
    return own.repeat_back(grad, self.size(), repeats)

composite tile(self, dims):
    return self.repeat(own.padded_repeats(self.dim(), dims))

backward repeat_interleave.self_int(grad, self, repeats, dim) -> self:
    return own.interleave_back(grad, self.size(), repeats, dim)

backward flip(grad, dims) -> self:
    return grad.flip(dims)

composite fliplr(self):
    return self.flip([1])

composite flipud(self):
    return self.flip([0])

backward roll(grad, shifts, dims) -> self:
    return grad.roll(own.negated(shifts), dims)

backward rot90(grad, k, dims) -> self:
    return grad.rot90(-k, dims)

backward tril(grad, diagonal) -> self:
    return grad.tril(diagonal)

backward triu(grad, diagonal) -> self:
    return grad.triu(diagonal)

backward diagonal(grad, self, offset, dim1, dim2) -> self:
    return own.diagonal_back(grad, self.size(), offset, dim1, dim2)

backward diag_embed(grad, offset, dim1, dim2) -> self:
    return grad.diagonal(offset, dim1, dim2)

backward constant_pad_nd(grad, pad) -> self:
    return torch.constant_pad_nd(grad, own.negated(pad))

backward unfold(grad, self, dimension, size, step) -> self:
    return torch.unfold_backward(grad, self.size(), dimension, size, step)

composite narrow_copy(self, dim, start, length):
    return self.narrow(dim, start, length).clone(memory_format=0)

composite narrow.Tensor(self, dim, start, length):
    return torch.narrow(self, dim, int(start), length)

backward alias_copy(grad) -> self:
    return grad

backward unfold_copy(grad, self, dimension, size, step) -> self:
    return torch.unfold_backward(grad, self.size(), dimension, size, step)

backward split_with_sizes_copy(grads, dim, result) -> self:
    return own.rejoined(grads, result, dim)

backward unbind_copy.int(grads, dim, result) -> self:
    return own.restacked(grads, result, dim)

backward tensor_split.tensor_indices_or_sections(grads, dim, result) -> self:
    return own.rejoined(grads, result, dim)

backward matrix_H(grad, self) -> self:
    return own.turned(grad, self.dim())

backward sum_to_size(grad, self) -> self:
    return grad.expand(self.size())

backward channel_shuffle(grad, groups) -> self:
    return torch.channel_shuffle(grad, own.ratio(grad.size(1), groups))

backward hstack(grad, tensors) -> tensors:
    return own.side_by_side_back(grad, own.sizes_of(tensors), "h")

backward vstack(grad, tensors) -> tensors:
    return own.side_by_side_back(grad, own.sizes_of(tensors), "v")

backward dstack(grad, tensors) -> tensors:
    return own.side_by_side_back(grad, own.sizes_of(tensors), "d")

backward column_stack(grad, tensors) -> tensors:
    return own.side_by_side_back(grad, own.sizes_of(tensors), "column")

backward block_diag(grad, tensors) -> tensors:
    return own.block_diag_back(grad, own.sizes_of(tensors))

backward diff(grad, self, n, dim, prepend, append) -> self, prepend, append:
    return own.diff_back(grad, self, n, dim, prepend, append)
"""

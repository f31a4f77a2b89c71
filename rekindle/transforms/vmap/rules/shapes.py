"""Batching rules of views, and of other operators that rearrange or repeat elements."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch view(self, size):
    return torch.view(self, [torch.size(self, 0)] + size)

batch view.dtype(self, dtype):
    return torch.view(self, dtype)

batch reshape(self, shape):
    return torch.reshape(self, [torch.size(self, 0)] + shape)

batch _unsafe_view(self, size):
    return torch.reshape(self, [torch.size(self, 0)] + size)

batch view_as, reshape_as(self, batched_self, other, batched_other):
    sizes = inner_sizes(other) if batched_other else torch.size(other)
    if batched_self:
        return torch.reshape(self, [batch_size] + sizes)
    return same_for_all(torch.reshape(self, sizes), batch_size)

batch expand(self, size, implicit):
    whole = with_dimensions(self, len(size))
    return torch.expand(whole, [torch.size(self, 0)] + size)

batch expand_as(self, other, batched_other):
    size = inner_sizes(other) if batched_other else torch.size(other)
    whole = with_dimensions(self, len(size))
    return torch.expand(whole, [torch.size(self, 0)] + size)

batch _grad_sum_to_size(self, size):
    return self if size is None else summed_to(self, size)

batch sum_to_size(self, size):
    return summed_to(self, size)

batch repeat(self, repeats):
    whole = with_dimensions(self, len(repeats))
    return torch.repeat(whole, [1] + repeats)

batch tile(self, dims):
    whole = with_dimensions(self, len(dims))
    return torch.repeat(whole, [1] * (self.dim() - len(dims)) + dims if self.dim() > len(dims) else [1] + dims)

batch permute(self, dims):
    return torch.permute(self, [0] + inner_all(self, dims))

batch transpose.int, transpose_copy.int(self, dim0, dim1):
    return lowered(torch.transpose(lifted(self), inner(self, dim0), inner(self, dim1)), self)

batch swapaxes(self, axis0, axis1):
    return lowered(torch.transpose(lifted(self), inner(self, axis0), inner(self, axis1)), self)

batch swapdims(self, dim0, dim1):
    return lowered(torch.transpose(lifted(self), inner(self, dim0), inner(self, dim1)), self)

batch t(self):
    return self if self.dim() < 3 else torch.transpose(self, 1, 2)

batch numpy_T(self):
    dims = [0]
    for dim in range(1, self.dim()):
        dims = dims + [self.dim() - dim]
    return torch.permute(self, dims)

batch mT(self):
    return torch.mT(self)

batch mH, adjoint(self):
    return torch.mH(self)

batch matrix_H(self):
    if self.dim() == 2:
        raise RuntimeError("matrix_H: 'self' must have 0 or 2 dimensions, got 1")
    return torch.mH(self) if self.dim() == 3 else torch.conj(self)

batch movedim.int, moveaxis.int(self, source, destination):
    return lowered(torch.movedim(lifted(self), inner(self, source), inner(self, destination)), self)

batch movedim.intlist, moveaxis.intlist(self, source, destination):
    return lowered(torch.movedim(lifted(self), inner_all(self, source), inner_all(self, destination)), self)

batch unsqueeze, unsqueeze_copy(self, dim):
    rank = self.dim()
    if dim < -rank or dim >= rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return torch.unsqueeze(self, dim + 1 if dim >= 0 else dim)

batch squeeze, squeeze_copy(self):
    return torch.squeeze(self, [dim for dim in range(1, self.dim()) if torch.size(self, dim) == 1])

batch squeeze.dim, squeeze_copy.dim(self, dim):
    return torch.squeeze(lifted(self), inner(self, dim))

batch squeeze.dims, squeeze_copy.dims(self, dim):
    return lowered(torch.squeeze(lifted(self), inner_all(self, dim)), self)

batch flatten.using_ints(self, start_dim, end_dim):
    whole = lifted(self)
    return torch.flatten(whole, inner(self, start_dim), inner(self, end_dim))

batch ravel(self):
    return torch.contiguous(flat(self))

batch unflatten.int(self, dim, sizes):
    return torch.unflatten(self, inner(self, dim), sizes)

batch select.int, select_copy.int(self, dim, index):
    return torch.select(self, inner(self, dim), index)

batch slice.Tensor, slice_copy.Tensor(self, dim, start, end, step):
    return torch.slice(self, inner(self, dim), start, end, step)

batch narrow, narrow_copy(self, dim, start, length):
    return torch.narrow(self, inner(self, dim), start, length)

batch unbind.int, unbind_copy.int(self, dim):
    return torch.unbind(self, inner(self, dim))

batch chunk(self, chunks, dim):
    return torch.chunk(self, chunks, inner(self, dim))

batch unsafe_chunk(self, chunks, dim):
    return torch.unsafe_chunk(self, chunks, inner(self, dim))

batch split.Tensor, split_copy.Tensor(self, split_size, dim):
    return torch.split(self, split_size, inner(self, dim))

batch split.sizes(self, split_size, dim):
    return torch.split(self, split_size, inner(self, dim))

batch split_with_sizes, split_with_sizes_copy(self, split_sizes, dim):
    return torch.split_with_sizes(self, split_sizes, inner(self, dim))

batch unsafe_split.Tensor(self, split_size, dim):
    return torch.unsafe_split(self, split_size, inner(self, dim))

batch unsafe_split_with_sizes(self, split_sizes, dim):
    return torch.unsafe_split_with_sizes(self, split_sizes, inner(self, dim))

batch tensor_split.sections(self, sections, dim):
    return torch.tensor_split(self, sections, inner(self, dim))

batch tensor_split.indices(self, indices, dim):
    return torch.tensor_split(self, indices, inner(self, dim))

batch hsplit.int(self, sections):
    return torch.tensor_split(self, sections, 1 if self.dim() == 2 else 2)

batch hsplit.array(self, indices):
    return torch.tensor_split(self, indices, 1 if self.dim() == 2 else 2)

batch vsplit.int(self, sections):
    return torch.tensor_split(self, sections, 1)

batch vsplit.array(self, indices):
    return torch.tensor_split(self, indices, 1)

batch dsplit.int(self, sections):
    return torch.tensor_split(self, sections, 3)

batch dsplit.array(self, indices):
    return torch.tensor_split(self, indices, 3)

batch cat, concat, concatenate(tensors, dim):
    # A tensor without elements and of one dimension may be among others of any shape.
    rank, whole = 0, tensors[0]
    for tensor in tensors:
        if tensor.dim() > rank:
            rank, whole = tensor.dim(), tensor
    kept = [tensor for tensor in tensors if tensor.dim() == rank or tensor.dim() != 2 or torch.size(tensor, 1) != 0]
    return torch.cat(kept, inner(whole, dim))

batch stack(tensors, dim):
    rank = tensors[0].dim()
    if dim < -rank or dim >= rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return torch.stack(tensors, dim + 1 if dim >= 0 else dim)

batch hstack(tensors):
    return torch.cat([lifted(each) for each in tensors], 1 if tensors[0].dim() <= 2 else 2)

batch vstack, row_stack(tensors):
    whole = [lifted(each) for each in tensors]
    return torch.cat([torch.unsqueeze(each, 1) if each.dim() == 2 else each for each in whole], 1)

batch dstack(tensors):
    whole = [lifted(each) for each in tensors]
    planes = [torch.unsqueeze(each, 1) if each.dim() == 2 else each for each in whole]
    return torch.cat([torch.unsqueeze(each, 3) if each.dim() == 3 else each for each in planes], 3)

batch column_stack(tensors):
    whole = [lifted(each) for each in tensors]
    return torch.cat([torch.unsqueeze(each, 2) if each.dim() == 2 else each for each in whole], 2)

batch atleast_1d(self):
    return lifted(self)

batch atleast_2d(self):
    whole = lifted(self)
    return torch.unsqueeze(whole, 1) if whole.dim() == 2 else whole

batch atleast_3d(self):
    whole = lifted(self)
    plane = torch.unsqueeze(whole, 1) if whole.dim() == 2 else whole
    return torch.unsqueeze(plane, 3) if plane.dim() == 3 else plane

batch flip(self, dims):
    return lowered(torch.flip(lifted(self), inner_all(self, dims)), self)

batch fliplr(self):
    return torch.flip(self, [2])

batch flipud(self):
    return torch.flip(self, [1])

batch roll(self, shifts, dims):
    if len(dims) == 0:
        return torch.reshape(torch.roll(flat(self), shifts, [1]), torch.size(self))
    if self.dim() == 1:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return lowered(torch.roll(lifted(self), shifts, inner_all(self, dims)), self)

batch rot90(self, k, dims):
    return torch.rot90(self, k, inner_all(self, dims))

batch diagonal, diagonal_copy(self, offset, dim1, dim2):
    return torch.diagonal(self, offset, inner(self, dim1), inner(self, dim2))

batch linalg_diagonal(A, offset, dim1, dim2):
    return torch.diagonal(A, offset, inner(A, dim1), inner(A, dim2))

batch diag_embed(self, offset, dim1, dim2):
    rank = self.dim() + 1
    first = dim1 + 1 if dim1 >= 0 else dim1 + rank
    second = dim2 + 1 if dim2 >= 0 else dim2 + rank
    return torch.diag_embed(self, offset, first, second)

batch diag(self, diagonal):
    return torch.diagonal(self, diagonal, 1, 2) if self.dim() == 3 else torch.diag_embed(self, diagonal)

batch diagflat(self, offset):
    return torch.diag_embed(flat(self), offset)

batch trace(self):
    return torch.sum(torch.diagonal(self, 0, 1, 2), 1)

batch unfold, unfold_copy(self, dimension, size, step):
    made = torch.unfold(lifted(self), inner(self, dimension), size, step)
    return torch.squeeze(made, 1) if self.dim() == 1 else made

batch alias_copy(self):
    return torch.clone(self)

batch permute_copy(self, dims):
    return torch.clone(torch.permute(self, [0] + inner_all(self, dims)))

batch t_copy(self):
    return torch.clone(self if self.dim() < 3 else torch.transpose(self, 1, 2))

batch view_copy(self, size):
    return torch.clone(torch.view(self, [torch.size(self, 0)] + size))

batch expand_copy(self, size):
    return torch.clone(torch.expand(with_dimensions(self, len(size)), [torch.size(self, 0)] + size))

batch meshgrid.indexing(tensors, indexing):
    rank = len(tensors)
    found: List[Tensor] = []
    sizes = [torch.size(lifted(each), 1) for each in tensors]
    for i in range(rank):
        line = torch.reshape(tensors[i], [batch_size] + [1] * i + [sizes[i]] + [1] * (rank - 1 - i))
        whole = torch.expand(line, [batch_size] + sizes)
        found.append(torch.transpose(whole, 1, 2) if indexing == "xy" and rank > 1 else whole)
    return found

def check_pad(self: Tensor, pad: List[int]) -> None:
    if len(pad) > 2 * (self.dim() - 1):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.dim() - 1}"
        )

batch constant_pad_nd(self, pad, value):
    check_pad(self, pad)
    return torch.constant_pad_nd(self, pad, value)

batch broadcast_to(self, size):
    whole = with_dimensions(self, len(size))
    return torch.expand(whole, [torch.size(self, 0)] + size)

batch broadcast_tensors(tensors):
    rank = 0
    for tensor in tensors:
        rank = max(rank, tensor.dim() - 1)
    return torch.broadcast_tensors([padded(tensor, True, rank) for tensor in tensors])

batch repeat_interleave.self_int(self, repeats, dim, output_size):
    if dim is None:
        return torch.repeat_interleave(flat(self), repeats, 1)
    return torch.repeat_interleave(lifted(self), repeats, inner(self, dim))

batch pixel_shuffle(self, upscale_factor):
    return torch.pixel_shuffle(self, upscale_factor)

batch pixel_unshuffle(self, downscale_factor):
    return torch.pixel_unshuffle(self, downscale_factor)

batch channel_shuffle(self, groups):
    whole = torch.channel_shuffle(torch.flatten(self, 0, 1), groups)
    return torch.unflatten(whole, 0, [torch.size(self, 0), torch.size(self, 1)])

batch view_as_complex, view_as_complex_copy(self):
    return torch.view_as_complex(self)

batch view_as_real, view_as_real_copy(self):
    return torch.view_as_real(self)
"""

"""What reads and writes elements by their indices."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch index_select(self, dim, index):
    whole = lifted(self)
    where = inner(self, dim)
    indices = lifted(index)
    for _ in range(where - 1):
        indices = torch.unsqueeze(indices, 1)
    while indices.dim() < whole.dim():
        indices = torch.unsqueeze(indices, -1)
    sizes = torch.size(whole)
    wanted = torch.slice(sizes, 0, where) + [torch.size(lifted(index), 1)] + torch.slice(sizes, where + 1)
    return lowered(torch.gather(whole, where, torch.expand(indices, wanted)), self)

batch gather(self, dim, index, sparse_grad):
    made = torch.gather(lifted(self), inner(self, dim), lifted(index), sparse_grad=sparse_grad)
    return torch.squeeze(made, 1) if index.dim() == 1 else made

batch scatter.src, scatter_add(self, dim, index, src):
    made = torch.SAME(lifted(self), inner(self, dim), lifted(index), lifted(src))
    return lowered(made, self)

batch scatter.value(self, dim, index, value):
    return lowered(torch.scatter(lifted(self), inner(self, dim), lifted(index), value), self)

batch scatter.reduce(self, dim, index, src, reduce):
    return lowered(torch.scatter(lifted(self), inner(self, dim), lifted(index), lifted(src), reduce=reduce), self)

batch scatter.value_reduce(self, dim, index, value, reduce):
    return lowered(torch.scatter(lifted(self), inner(self, dim), lifted(index), value, reduce=reduce), self)

batch scatter_reduce.two(self, dim, index, src, reduce, include_self):
    made = torch.scatter_reduce(
        lifted(self), inner(self, dim), lifted(index), lifted(src), reduce, include_self=include_self
    )
    return lowered(made, self)

batch take_along_dim(self, indices, dim):
    if dim is None:
        return torch.gather(flat(self), 1, flat(indices))
    a, b = aligned(self, True, indices, True)
    return torch.take_along_dim(a, b, inner(a, dim))

batch take(self, index):
    whole = flat(self)
    made = torch.gather(whole, 1, torch.remainder(flat(index), torch.size(whole, 1)))
    return torch.reshape(made, torch.size(index))

batch index.Tensor(self, batched_self, indices, batched_indices):
    rank, before, groups, last = 0, 0, 0, -2
    for i in range(len(indices)):
        each = indices[i]
        if each is None:
            if groups == 0:
                before = before + 1
        else:
            rank = max(rank, example_rank(each, batched_indices))
            if last != i - 1:
                groups = groups + 1
            last = i
    if not batched_indices:
        none: List[Optional[Tensor]] = [None]
        made = torch.index(self, none + indices)
        return torch.movedim(made, rank, 0) if groups > 1 else made
    source = self if batched_self else same_for_all(self, batch_size)
    every: List[Optional[Tensor]] = [
        torch.reshape(torch.arange(batch_size, device=source.device), [batch_size] + [1] * rank)
    ]
    for each in indices:
        if each is None:
            every.append(None)
        else:
            every.append(with_dimensions(each, rank))
    made = torch.index(source, every)
    if before > 0 and groups == 1:
        # What indices give stands in front, for the batch does; it belongs behind the dimensions that are kept.
        made = torch.movedim(made, [1 + i for i in range(rank)], [1 + before + i for i in range(rank)])
    return made

batch masked_fill.Tensor(self, mask, value):
    a, b = aligned(self, True, mask, True)
    return torch.where(b, torch.to(padded(value, True, a.dim() - 1), self.dtype), a)

batch embedding(weight, batched_weight, indices, batched_indices, padding_idx, scale_grad_by_freq, sparse):
    if not batched_weight:
        return torch.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    # The tables of all examples under each other, and indices that count from the start of an example's own.
    rows = torch.size(weight, 1)
    starts = torch.arange(0, batch_size * rows, rows, device=weight.device)
    if batched_indices:
        places = indices + torch.reshape(starts, [batch_size] + [1] * (indices.dim() - 1))
    else:
        places = indices + torch.reshape(starts, [batch_size] + [1] * (indices.dim()))
    return torch.embedding(torch.flatten(weight, 0, 1), places)

batch one_hot(self, num_classes):
    return torch.one_hot(self, num_classes)

batch index_fill.int_Scalar(self, dim, index, value):
    whole = lifted(self)
    where = inner(self, dim)
    mask = torch.zeros([batch_size, torch.size(whole, where)], dtype=11, device=self.device)
    marked = torch.scatter(mask, 1, torch.remainder(lifted(index), torch.size(whole, where)), True)
    shape = [1] * (whole.dim())
    shape[0], shape[where] = batch_size, torch.size(whole, where)
    return lowered(torch.masked_fill(whole, torch.reshape(marked, shape), value), self)

batch select_scatter(self, src, dim, index):
    return torch.select_scatter(self, src, inner(self, dim), index)

batch slice_scatter(self, src, dim, start, end, step):
    return torch.slice_scatter(self, src, inner(self, dim), start, end, step)

batch diagonal_scatter(self, src, offset, dim1, dim2):
    return torch.diagonal_scatter(self, src, offset, inner(self, dim1), inner(self, dim2))

batch select_backward(grad_output, input_sizes, dim, index):
    where = dim + 1 if dim >= 0 else dim + 1 + len(input_sizes)
    return torch.select_backward(grad_output, [torch.size(grad_output, 0)] + input_sizes, where, index)

batch slice_backward(grad_output, input_sizes, dim, start, end, step):
    where = dim + 1 if dim >= 0 else dim + 1 + len(input_sizes)
    return torch.slice_backward(grad_output, [torch.size(grad_output, 0)] + input_sizes, where, start, end, step)

batch isin.Tensor_Tensor(elements, batched_elements, test_elements, assume_unique, invert):
    tests = flat(test_elements)
    values = elements if batched_elements else same_for_all(elements, batch_size)
    shape = [batch_size] + [1] * (values.dim() - 1) + [torch.size(tests, 1)]
    found = torch.any(torch.unsqueeze(values, -1) == torch.reshape(tests, shape), -1)
    return torch.logical_not(found) if invert else found

batch bucketize.Tensor(self, boundaries, out_int32, right):
    made = torch.searchsorted(boundaries, torch.reshape(self, [batch_size, -1]), out_int32=out_int32, right=right)
    return torch.reshape(made, torch.size(self))
"""

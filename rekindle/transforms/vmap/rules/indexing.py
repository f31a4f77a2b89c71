"""Batching rules of indexing: reads and writes of elements by their indices."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch index_select(self, dim, index):
    whole = lifted(self)
    where = inner(self, dim)
    return lowered(torch.gather(whole, where, along_all(whole, where, index)), self)

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
    made = torch.gather(whole, 1, from_the_start(flat(index), torch.size(whole, 1)))
    return torch.reshape(made, torch.size(index))

def from_the_start(index: Tensor, size: int) -> Tensor:
    # Negative indices count from the end; those out of range stay out of range.
    return torch.where(index < 0, index + size, index)

# ``x[i, :, j]``: positions of the dimensions of an example. Indexed dimensions are replaced by those of the indices,
# at the first of them, or at the front if other dimensions are between them.

def index_rank(indices: List[Optional[Tensor]], batched: bool) -> int:
    rank = 0
    for each in indices:
        if each is not None:
            rank = max(rank, 1 if each.dtype == 11 else example_rank(each, batched))
    return rank

def kept_before(indices: List[Optional[Tensor]]) -> int:
    before = 0
    for each in indices:
        if each is not None:
            return before
        before = before + 1
    return before

def are_apart(indices: List[Optional[Tensor]]) -> bool:
    groups, last = 0, -2
    for i in range(len(indices)):
        if indices[i] is not None:
            if last != i - 1:
                groups = groups + 1
            last = i
    return groups > 1

def refuse_masks(indices: List[Optional[Tensor]]) -> None:
    for each in indices:
        if each is not None and each.dtype == 11:
            raise RuntimeError("vmap: a mask that differs between the examples takes a different number from each")

def with_own_example(
    indices: List[Optional[Tensor]], batched: bool, batch_size: int, device: Device
) -> List[Optional[Tensor]]:
    # The indices for a tensor with the examples in front.
    if not batched:
        none: List[Optional[Tensor]] = [None]
        return none + indices
    rank = index_rank(indices, batched)
    every: List[Optional[Tensor]] = [
        torch.reshape(torch.arange(batch_size, device=device), [batch_size] + [1] * rank)
    ]
    for each in indices:
        if each is None:
            every.append(None)
        else:
            every.append(with_dimensions(each, rank))
    return every

def taken_at(
    self: Tensor, batched_self: bool, indices: List[Optional[Tensor]], batched_indices: bool, batch_size: int
) -> Tensor:
    rank, apart = index_rank(indices, batched_indices), are_apart(indices)
    if not batched_indices:
        made = torch.index(self, with_own_example(indices, False, batch_size, self.device))
        return torch.movedim(made, rank, 0) if apart else made
    refuse_masks(indices)
    source = self if batched_self else same_for_all(self, batch_size)
    made = torch.index(source, with_own_example(indices, True, batch_size, source.device))
    before = kept_before(indices)
    if before > 0 and not apart:
        # The indexed dimensions are at the front, since the batch is; move them after the dimensions that are kept.
        made = torch.movedim(made, [1 + i for i in range(rank)], [1 + before + i for i in range(rank)])
    return made

def put_at(
    self: Tensor, indices: List[Optional[Tensor]], batched_indices: bool, values: Tensor, accumulate: bool,
    batch_size: int
) -> Tensor:
    rank, before, apart = index_rank(indices, batched_indices), kept_before(indices), are_apart(indices)
    if batched_indices and len(indices) == 1 and values.dim() == 1:
        mask = indices[0]
        if mask is not None and mask.dtype == 11:
            wide = torch.reshape(mask, torch.size(mask) + [1] * (self.dim() - mask.dim()))
            number = torch.reshape(values, [batch_size] + [1] * (self.dim() - 1))
            return torch.where(wide, self + number if accumulate else number, self)
    named = 0
    for each in indices:
        if each is not None:
            named = named + (example_rank(each, batched_indices) if each.dtype == 11 else 1)
    given = with_dimensions(values, self.dim() - 1 - named + rank)
    if not batched_indices:
        if apart:
            given = torch.movedim(given, 0, rank)
    else:
        refuse_masks(indices)
        if before > 0 and not apart:
            given = torch.movedim(given, [1 + before + i for i in range(rank)], [1 + i for i in range(rank)])
    places = with_own_example(indices, batched_indices, batch_size, self.device)
    return torch.index_put(self, places, torch.to(given, self.dtype), accumulate)

batch index.Tensor, _unsafe_index.Tensor(self, batched_self, indices, batched_indices):
    return taken_at(self, batched_self, indices, batched_indices, batch_size)

batch index_put, _unsafe_index_put(self, indices, batched_indices, values, accumulate):
    return put_at(self, indices, batched_indices, values, accumulate, batch_size)

batch index_put_(self, indices, batched_indices, values, accumulate):
    return torch.copy_(self, put_at(self, indices, batched_indices, values, accumulate, batch_size))

# ---- The same index for all that lies along a dimension.

def along_all(whole: Tensor, where: int, index: Tensor) -> Tensor:
    # ``index``, [batch, n], for each element of ``whole`` but those along ``where``.
    indices = lifted(index)
    sizes = torch.size(whole)
    wanted = torch.slice(sizes, 0, where) + [torch.size(indices, 1)] + torch.slice(sizes, where + 1)
    for _ in range(where - 1):
        indices = torch.unsqueeze(indices, 1)
    while indices.dim() < whole.dim():
        indices = torch.unsqueeze(indices, -1)
    return torch.expand(indices, wanted)

batch index_add(self, dim, index, source, alpha):
    whole, given = lifted(self), lifted(source)
    where = inner(self, dim)
    places = along_all(whole, where, index)
    if source.dim() < self.dim():
        raise RuntimeError(f"index_add: 'source' must have {self.dim() - 1} dimensions, as 'self', got 0")
    check_sizes_of_source(given, places)
    return lowered(torch.scatter_add(whole, where, places, given * alpha), self)

batch index_copy(self, dim, index, source):
    whole, given = lifted(self), lifted(source)
    where = inner(self, dim)
    places = along_all(whole, where, index)
    check_sizes_of_source(given, places)
    return lowered(torch.scatter(whole, where, places, given), self)

def check_sizes_of_source(source: Tensor, places: Tensor) -> None:
    if torch.size(source) != torch.size(places):
        raise RuntimeError(f"the sizes of the source are {inner_sizes(source)}, and not {inner_sizes(places)}")

batch masked_fill.Tensor(self, mask, value):
    a, b = aligned(self, True, mask, True)
    return torch.where(b, torch.to(padded(value, True, a.dim() - 1), self.dtype), a)

batch embedding(weight, batched_weight, indices, batched_indices, padding_idx, scale_grad_by_freq, sparse):
    if not batched_weight and not scale_grad_by_freq:
        return torch.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    # The tables of all examples under each other, and indices that count from the start of an example's own. Gradients
    # are scaled by the number of times that an index occurs in an example.
    tables = weight if batched_weight else same_for_all(weight, batch_size)
    rows = torch.size(tables, 1)
    starts = torch.arange(0, batch_size * rows, rows, device=weight.device)
    if batched_indices:
        places = indices + torch.reshape(starts, [batch_size] + [1] * (indices.dim() - 1))
    else:
        places = indices + torch.reshape(starts, [batch_size] + [1] * (indices.dim()))
    # An index out of range is none of another example's table.
    places = torch.masked_fill(places, torch.logical_or(indices < 0, indices >= rows), -1)
    made = torch.embedding(torch.flatten(tables, 0, 1), places, -1, scale_grad_by_freq)
    if padding_idx >= 0:  # the row of each table that gets no gradient
        return torch.where(torch.unsqueeze(indices == padding_idx, -1), torch.detach(made), made)
    return made

batch one_hot(self, num_classes):
    return torch.one_hot(self, num_classes)

batch index_fill.int_Scalar(self, dim, index, value):
    whole = lifted(self)
    where = inner(self, dim)
    mask = torch.zeros([batch_size, torch.size(whole, where)], dtype=11, device=self.device)
    marked = torch.scatter(mask, 1, from_the_start(lifted(index), torch.size(whole, where)), True)
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

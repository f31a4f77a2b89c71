"""Batching rules of backward operators, and of operators that save values for them. Most are operators of
``autodiff``."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch own.turned(self, rank):
    return torch.mT(self) if rank >= 2 else self

batch own.sizes_of(tensors):
    return [inner_sizes(each) for each in tensors]

def shifted(dim: int) -> int:
    return dim + 1 if dim >= 0 else dim

def example_dim(dim: int, size: List[int]) -> int:
    return dim + 1 if dim >= 0 else dim + 1 + len(size)

# ---- Reductions.

def summed_over(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    whole = lifted(self)
    return lowered(torch.sum(whole, inner_or_every(whole, dim), True), self)

batch own.summed(self, dim):
    return summed_over(self, dim)

batch own.mean_over(self, dim):
    whole = lifted(self)
    return lowered(torch.mean(whole, inner_or_every(whole, dim), True), self)

batch own.variance_factor(self, dim, correction):
    whole = lifted(self)
    number = 1
    for each in inner_or_every(whole, dim):
        number = number * torch.size(whole, each)
    freedom = number - (1.0 if correction is None else float(correction))
    if freedom > 0:
        return 2.0 / freedom
    return float("nan") if freedom == 0 else float("inf")

batch own.first_equal(grad, self, result):
    value = like_elements(result, self)
    equal = torch.where(torch.isnan(value), torch.isnan(self), self == value)
    return like_elements(grad, self) * equal / like_elements(torch.sum(flat(equal), [1]), self)

batch own.product_back(grad, self, dim, keepdim):
    if self.dim() == 1:
        return grad
    if dim is None:
        whole, axis, given = flat(self), 1, torch.reshape(grad, [batch_size, 1])
    else:
        whole, axis = self, inner(self, dim)
        given = grad if keepdim else torch.unsqueeze(grad, axis)
    length = torch.size(whole, axis)
    if length == 0:
        return torch.zeros_like(self)
    ones = torch.ones_like(torch.narrow(whole, axis, 0, 1))
    before = torch.cumprod(torch.cat([ones, torch.narrow(whole, axis, 0, length - 1)], axis), axis)
    turned = torch.narrow(torch.flip(whole, [axis]), axis, 0, length - 1)
    behind = torch.flip(torch.cumprod(torch.cat([ones, turned], axis), axis), [axis])
    return torch.reshape(given * (before * behind), torch.size(self))

batch own.norm_back(grad, self, p, result, dim, keepdim):
    order = 2.0 if p is None else float(p)
    back = unreduced(grad, inner_sizes(self), dim, keepdim)
    norm = unreduced(result, inner_sizes(self), dim, keepdim)
    if order == 0:
        return torch.zeros_like(self)
    if order == 1:
        return back * torch.sgn(self)
    if order == 2:
        return back * torch.masked_fill(self / norm, norm == 0, 0)
    if order == float("inf") or order == -float("inf"):
        equal = torch.logical_or(torch.abs(self) == norm, torch.isnan(self))
        return back * torch.sgn(self) * equal / summed_over(equal, dim)
    if order < 1:
        powered = torch.masked_fill(torch.sgn(self) * torch.pow(torch.abs(self), order - 1), self == 0, 0)
        return back * powered * torch.pow(norm, 1 - order)
    if order < 2:
        powered = torch.sgn(self) * torch.pow(torch.abs(self), order - 1)
    else:
        powered = self * torch.pow(torch.abs(self), order - 2)
    return back * powered * torch.masked_fill(torch.pow(norm, 1 - order), norm == 0, 0)

def extreme_back(grad: Optional[Tensor], self: Tensor, dim: Optional[int], keepdim: bool, value: Tensor) -> Tensor:
    if grad is None:
        return torch.zeros_like(self)
    dims: Optional[List[int]] = None if dim is None else [dim]
    equal = self == unreduced(value, inner_sizes(self), dims, keepdim)
    return unreduced(grad, inner_sizes(self), dims, keepdim) * equal / summed_over(equal, dims)

batch own.extremes_back(least, greatest, self, dim, keepdim, min, max):
    return extreme_back(least, self, dim, keepdim, min) + extreme_back(greatest, self, dim, keepdim, max)

batch own.masked_sum(grad, mask):
    a, b = aligned(grad, True, mask, True)
    return torch.sum(flat(torch.where(b, a, torch.zeros_like(a))), [1])

batch cumprod_backward(grad, input, dim, output):
    return lowered(torch.cumprod_backward(lifted(grad), lifted(input), inner(input, dim), lifted(output)), input)

# ---- Operators that rearrange elements.

batch own.cat_back(grad, sizes, dim):
    lengths = [0 if size == [0] else size[dim] for size in sizes]
    parts = torch.split_with_sizes(grad, lengths, shifted(dim))
    found: List[Tensor] = []
    for i in range(len(sizes)):
        found.append(torch.new_zeros(grad, [batch_size, 0]) if sizes[i] == [0] else parts[i])
    return found

def all_there(gradients: List[Optional[Tensor]], parts: List[Tensor]) -> List[Tensor]:
    found: List[Tensor] = []
    for i in range(len(gradients)):
        gradient = gradients[i]
        if gradient is None:
            found.append(torch.zeros_like(parts[i]))
        else:
            found.append(gradient)
    return found

batch own.join, own.rejoined(gradients, parts, dim):
    return torch.cat(all_there(gradients, parts), shifted(dim))

batch own.restacked(gradients, parts, dim):
    return torch.stack(all_there(gradients, parts), shifted(dim))

batch own.repeat_back(grad, size, repeats):
    if 0 in repeats:
        return torch.new_zeros(grad, [batch_size] + size)
    if len(repeats) == 0:
        return grad
    missing = len(repeats) - len(size)
    shape = [batch_size]
    copies: List[int] = []
    for i in range(len(repeats)):
        copies.append(len(shape))
        shape = shape + [repeats[i], 1 if i < missing else size[i - missing]]
    return torch.reshape(torch.sum(torch.reshape(grad, shape), copies), [batch_size] + size)

batch own.interleave_back(grad, size, repeats, dim):
    if repeats == 0:
        return torch.new_zeros(grad, [batch_size] + size)
    if dim is None:
        rows = torch.reshape(grad, [batch_size, -1, repeats])
        return torch.reshape(torch.sum(rows, [2]), [batch_size] + size)
    if len(size) == 0:
        return torch.sum(flat(grad), [1])
    axis = example_dim(dim, size)
    sizes = [batch_size] + size
    shape = torch.slice(sizes, 0, axis + 1) + [repeats] + torch.slice(sizes, axis + 1)
    return torch.sum(torch.reshape(grad, shape), [axis + 1])

batch own.diagonal_back(grad, size, offset, dim1, dim2):
    return torch.diagonal_backward(
        grad, [batch_size] + size, offset, example_dim(dim1, size), example_dim(dim2, size)
    )

batch own.diag_back(grad, size, diagonal):
    if len(size) == 1:
        return torch.diagonal(grad, diagonal, 1, 2)
    return torch.diagonal_backward(grad, [batch_size] + size, diagonal, 1, 2)

batch own.pad_back(grad, size, pad, mode):
    if mode == "constant":
        return torch.constant_pad_nd(grad, [-number for number in pad])
    places = torch.slice(size, len(size) - len(pad) // 2)
    count = 1
    for extent in places:
        count = count * extent
    numbers = torch.reshape(torch.arange(count, dtype=7, device=grad.device), [1, 1] + places)
    index = torch.to(torch.reshape(torch.pad(numbers, pad, mode), [-1]), 4)
    rows = torch.reshape(grad, [-1, torch.size(index, 0)])
    zeros = torch.new_zeros(rows, [torch.size(rows, 0), count])
    return torch.reshape(torch.index_add(zeros, 1, index, rows), [batch_size] + size)

batch unfold_backward(grad_in, input_sizes, dim, size, step):
    return torch.unfold_backward(grad_in, [batch_size] + input_sizes, example_dim(dim, input_sizes), size, step)

batch glu_backward(grad_output, self, dim):
    return torch.glu_backward(grad_output, self, inner(self, dim))

# ---- What takes elements out and puts them in.

batch own.narrow_back(grad, size, dim, start, length):
    first = start if start >= 0 else start + size[dim]
    return torch.slice_backward(grad, [batch_size] + size, example_dim(dim, size), first, first + length, 1)

batch own.index_back(grad, size, indices, batched_indices):
    zeros = torch.new_zeros(grad, [batch_size] + size)
    return put_at(zeros, indices, batched_indices, grad, True, batch_size)

batch own.put_zero(grad, indices, batched_indices):
    return put_at(grad, indices, batched_indices, torch.new_zeros(grad, [batch_size]), False, batch_size)

batch own.indexed(grad, batched_grad, indices, batched_indices):
    return taken_at(grad, batched_grad, indices, batched_indices, batch_size)

batch own.taken(grad, dim, index, source):
    if grad.dim() == 1:
        return torch.expand(with_dimensions(grad, source.dim() - 1), torch.size(source))
    where = inner(grad, dim)
    picked = torch.gather(grad, where, along_all(grad, where, index))
    if source.dim() == 1:
        return torch.sum(flat(picked), [1])
    return torch.expand(with_dimensions(picked, source.dim() - 1), torch.size(source))

batch own.take_back(grad, self, index):
    zeros = torch.zeros_like(flat(self))
    places = torch.remainder(flat(index), torch.size(zeros, 1))
    return torch.reshape(torch.scatter_add(zeros, 1, places, flat(grad)), torch.size(self))

batch own.take_along_back(grad, self, indices, dim):
    if dim is None:
        made = torch.scatter_add(torch.zeros_like(flat(self)), 1, flat(indices), flat(grad))
        return torch.reshape(made, torch.size(self))
    where = inner(self, dim)
    sizes = torch.size(grad)
    sizes[where] = torch.size(self, where)
    zeros = torch.new_zeros(grad, sizes)
    made = torch.scatter_add(zeros, where, torch.expand(indices, torch.size(grad)), grad)
    return summed_to(made, inner_sizes(self))

batch index_select_backward(grad, self_sizes, dim, index):
    zeros = lifted(torch.new_zeros(grad, [batch_size] + self_sizes))
    where = example_dim(dim, self_sizes)
    made = torch.scatter_add(zeros, where, along_all(zeros, where, index), lifted(grad))
    return torch.reshape(made, [batch_size] + self_sizes)

batch own.scatter_reduce_back(grad, self, dim, index, src, reduce, include_self, result):
    a, b = own.scatter_reduce_back(
        lifted(grad), lifted(self), inner(self, dim), lifted(index), lifted(src), reduce, include_self, lifted(result)
    )
    return lowered(a, self), lowered(b, src)

batch embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse):
    if scale_grad_by_freq or sparse:
        raise RuntimeError("vmap: the gradient of an embedding that is sparse or scaled by frequencies has no rule")
    # The tables of all examples under each other, and indices that count from the start of an example's own.
    starts = torch.arange(0, batch_size * num_weights, num_weights, device=grad.device)
    places = indices + torch.reshape(starts, [batch_size] + [1] * (indices.dim() - 1))
    rows = grad * torch.unsqueeze(indices != padding_idx, -1)
    width = torch.size(grad, -1)
    zeros = torch.new_zeros(grad, [batch_size * num_weights, width])
    made = torch.index_add(zeros, 0, torch.reshape(places, [-1]), torch.reshape(rows, [-1, width]))
    return torch.unflatten(made, 0, [batch_size, num_weights])

# ---- Losses.

def each_of_loss(grad: Tensor, self: Tensor) -> Tensor:
    return torch.expand(like_elements(grad, self), torch.size(self))

batch binary_cross_entropy_backward(grad_output, self, target, weight, reduction):
    made = torch.binary_cross_entropy_backward(each_of_loss(grad_output, self), self, target, None, 0)
    if weight is not None:
        made = made * padded(weight, True, self.dim() - 1)
    return made * share(self, reduction)

batch smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    made = torch.smooth_l1_loss_backward(each_of_loss(grad_output, self), self, target, 0, beta)
    return made * share(self, reduction)

batch huber_loss_backward(grad_output, self, target, reduction, delta):
    made = torch.huber_loss_backward(each_of_loss(grad_output, self), self, target, 0, delta)
    return made * share(self, reduction)

batch soft_margin_loss_backward(grad_output, self, target, reduction):
    made = torch.soft_margin_loss_backward(each_of_loss(grad_output, self), self, target, 0)
    return made * share(self, reduction)

def with_rows(self: Tensor, alone: bool) -> Tensor:
    return torch.unsqueeze(self, 1) if alone else self

batch own.nll(self, target, weight, reduction, ignore_index):
    alone = self.dim() == 2
    rows, targets = with_rows(self, alone), with_rows(target, alone)
    made = negative_log_likelihood(rows, targets, weight, reduction, ignore_index)
    total = torch.sum(flat(weights_of(targets, weight, ignore_index, rows)), [1])
    return torch.squeeze(made, 1) if alone and reduction == 0 else made, total

batch own.nll_back(grad, self, target, weight, reduction, ignore_index, total_weight):
    alone = self.dim() == 2
    rows, targets = with_rows(self, alone), with_rows(target, alone)
    places = torch.where(targets != ignore_index, targets, torch.zeros_like(targets))
    weights = weights_of(targets, weight, ignore_index, rows)
    spread = with_rows(grad, alone) if reduction == 0 else like_elements(grad, weights)
    if reduction == 1:
        spread = spread / like_elements(total_weight, weights)
    back = -torch.scatter(torch.zeros_like(rows), 2, torch.unsqueeze(places, 2), torch.unsqueeze(weights * spread, 2))
    return torch.squeeze(back, 1) if alone else back

# ---- Layers.

def behind_batch(self: Tensor, rank: int) -> Tensor:
    # The sizes of what normalization learns, for results with ``rank`` dimensions.
    sizes = torch.size(self)
    return torch.reshape(self, [sizes[0]] + [1] * (rank - self.dim()) + torch.slice(sizes, 1))

def last_dims(rank: int, count: int) -> List[int]:
    return [rank - count + i for i in range(count)]

def normalised_back(given: Tensor, normal: Tensor, scale: Tensor, axes: List[int]) -> Tensor:
    mean = torch.mean(given, axes, True)
    return scale * (given - mean - normal * torch.mean(given * normal, axes, True))

batch native_layer_norm(input, normalized_shape, weight, bias, eps):
    made, mean, rstd = torch.native_layer_norm(input, normalized_shape, None, None, eps)
    if weight is not None:
        made = made * behind_batch(weight, input.dim())
    if bias is not None:
        made = made + behind_batch(bias, input.dim())
    return made, mean, rstd

batch native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    normal = (input - mean) * rstd
    given = grad_out if weight is None else grad_out * behind_batch(weight, input.dim())
    back = normalised_back(given, normal, rstd, last_dims(input.dim(), len(normalized_shape)))
    return back, summed_to(grad_out * normal, normalized_shape), summed_to(grad_out, normalized_shape)

batch own.rms_norm_back(grad, input, shape, weight, eps):
    axes = last_dims(input.dim(), len(shape))
    least = (1.1920928955078125e-07 if input.dtype == 6 else 2.220446049250313e-16) if eps is None else eps
    scale = torch.rsqrt(torch.mean(torch.square(input), axes, True) + least)
    normal = input * scale
    given = grad if weight is None else grad * behind_batch(weight, input.dim())
    back = scale * (given - normal * torch.mean(given * normal, axes, True))
    return back, summed_to(grad * normal, shape)

batch native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    whole = torch.contiguous(torch.flatten(input, 0, 1))
    made, mean, rstd = torch.native_group_norm(whole, None, None, N * batch_size, C, HxW, group, eps)
    result = torch.unflatten(made, 0, [batch_size, N])
    sizes = [batch_size, 1, C] + [1] * (input.dim() - 3)
    groups = [batch_size, N, group]
    return scaled(result, weight, bias, sizes), torch.reshape(mean, groups), torch.reshape(rstd, groups)

batch own.in_suggested_order(self):
    return torch.contiguous(self)

batch own.group_norm_back(grad, input, mean, rstd, weight, n, c, area, groups, needed):
    rows = [batch_size, n, groups, -1]
    scale = torch.reshape(rstd, [batch_size, n, groups, 1])
    normal = (torch.reshape(input, rows) - torch.reshape(mean, [batch_size, n, groups, 1])) * scale
    channels = [batch_size, n, c, area]
    each = torch.reshape(grad, channels)
    given = each if weight is None else each * torch.reshape(weight, [batch_size, 1, c, 1])
    back = normalised_back(torch.reshape(given, rows), normal, scale, [3])
    of_weight = torch.sum(each * torch.reshape(normal, channels), [1, 3])
    return torch.reshape(back, torch.size(input)), of_weight, torch.sum(each, [1, 3])

batch own.instance_norm_back(grad, input, weight, running_mean, running_var, use_input_stats, eps):
    axes = [i for i in range(3, input.dim())]
    sizes = [batch_size, 1, torch.size(input, 2)] + [1] * len(axes)
    given = grad if weight is None else grad * torch.reshape(weight, sizes)
    if use_input_stats or running_mean is None or running_var is None:
        centre = torch.mean(input, axes, True)
        scale = torch.rsqrt(torch.mean(torch.square(input - centre), axes, True) + eps)
        normal = (input - centre) * scale
        back = normalised_back(given, normal, scale, axes)
    else:
        scale = torch.reshape(torch.rsqrt(running_var + eps), sizes)
        normal = (input - torch.reshape(running_mean, sizes)) * scale
        back = given * scale
    others = [1] + axes
    return back, torch.sum(grad * normal, others), torch.sum(grad, others)

batch _batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if training and running_mean is not None:
        raise RuntimeError("vmap: batch_norm would write one running mean for all; call eval(), or keep none")
    channels = torch.flatten(torch.movedim(input, 0, 1), 1, 2)
    made, mean, scale, reserve, kind = torch._batch_norm_impl_index(
        channels, None, None, one_channel(running_mean), one_channel(running_var), training, momentum, eps, False
    )
    made = torch.movedim(torch.unflatten(made, 1, [batch_size, torch.size(input, 2)]), 1, 0)
    sizes = [batch_size, 1, torch.size(input, 2)] + [1] * (input.dim() - 3)
    kept = [batch_size, torch.size(mean, 0) // batch_size]
    return scaled(made, weight, bias, sizes), torch.reshape(mean, kept), torch.reshape(scale, kept), reserve, kind

batch own.batch_norm_back(
    grad, input, weight, running_mean, running_var, mean, rstd, reserve, training, eps, needed
):
    axes = [1] + [i for i in range(3, input.dim())]
    sizes = [batch_size, 1, torch.size(input, 2)] + [1] * (input.dim() - 3)
    given = grad if weight is None else grad * torch.reshape(weight, sizes)
    if training or running_mean is None or running_var is None:
        centre = torch.mean(input, axes, True)
        scale = torch.rsqrt(torch.mean(torch.square(input - centre), axes, True) + eps)
        normal = (input - centre) * scale
        back = normalised_back(given, normal, scale, axes)
    else:
        scale = torch.reshape(torch.rsqrt(running_var + eps), sizes)
        normal = (input - torch.reshape(running_mean, sizes)) * scale
        back = given * scale
    return back, torch.sum(grad * normal, axes), torch.sum(grad, axes)

batch own.upsample_back(kind, grad, size, align_corners, scales):
    sizes = [batch_size * size[0]] + torch.slice(size, 1)
    made = own.upsample_back(kind, torch.flatten(grad, 0, 1), sizes, align_corners, scales)
    return torch.unflatten(made, 0, [batch_size, size[0]])

batch own.grid_back(grad, input, grid, interpolation, padding, align_corners, needed):
    a, b = own.grid_back(
        torch.flatten(grad, 0, 1), torch.flatten(input, 0, 1), torch.flatten(grid, 0, 1), interpolation, padding,
        align_corners, needed
    )
    number = torch.size(input, 1)
    return torch.unflatten(a, 0, [batch_size, number]), torch.unflatten(b, 0, [batch_size, number])

batch own.unpool_back(grad, self, indices, dims):
    return own.unpool_back(grad, self, indices, dims)

batch own.attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    rank = max(query.dim(), max(key.dim(), value.dim())) - 1
    mask = None if attn_mask is None else padded(attn_mask, True, rank)
    return own.attention(
        padded(query, True, rank), padded(key, True, rank), padded(value, True, rank), mask, dropout_p, is_causal,
        scale, enable_gqa
    )

batch own.attention_back(
    grad, query, key, value, attn_mask, is_causal, scale, enable_gqa, result, sums, noise, needs_mask
):
    rank = result.dim() - 1
    mask = None if attn_mask is None else padded(attn_mask, True, rank)
    a, b, c, d = own.attention_back(
        padded(grad, True, rank), padded(query, True, rank), padded(key, True, rank), padded(value, True, rank), mask,
        is_causal, scale, enable_gqa, result, sums, noise, needs_mask
    )
    of_mask = None if d is None or attn_mask is None else torch.reshape(d, torch.size(attn_mask))
    return (
        torch.reshape(a, torch.size(query)), torch.reshape(b, torch.size(key)), torch.reshape(c, torch.size(value)),
        of_mask
    )

batch own.dropout(input, p, train):
    if same and train:
        made, noise, scale = own.dropout(torch.ones_like(torch.select(input, 0, 0)), p, train)
        return input * made, same_optional_for_all(noise, batch_size), scale
    return own.dropout(input, p, train)

# ---- Matrices.

batch own.solve_back(grad, A, B, left, result):
    vectors = B.dim() == 2 or (B.dim() == A.dim() - 1 and torch.size(B) == torch.slice(torch.size(A), 0, B.dim()))
    given = torch.unsqueeze(grad, -1) if vectors else grad
    found = torch.unsqueeze(result, -1) if vectors else result
    rank = max(A.dim(), given.dim()) - 1
    back = torch.linalg_solve(torch.mT(padded(A, True, rank)), padded(given, True, rank), left=left)
    turned = torch.mT(padded(found, True, rank))
    of_matrix = torch.matmul(-back, turned) if left else torch.matmul(-turned, back)
    back = torch.squeeze(back, -1) if vectors else back
    return summed_to(of_matrix, inner_sizes(A)), summed_to(back, inner_sizes(B))

batch own.solve_triangular_back(grad, self, B, upper, left, unitriangular, result):
    return own.solve_triangular_back(grad, self, B, upper, left, unitriangular, result)

batch own.cholesky_back(grad, result, upper):
    return own.cholesky_back(grad, result, upper)

batch own.eigh_back(of_values, of_vectors, values, vectors):
    return own.eigh_back(of_values, of_vectors, values, vectors)

batch own.cdist_back(grad, x1, x2, p, result):
    rank = max(x1.dim(), x2.dim()) - 1
    a, b = own.cdist_back(grad, padded(x1, True, rank), padded(x2, True, rank), p, result)
    return torch.reshape(a, torch.size(x1)), torch.reshape(b, torch.size(x2))
"""

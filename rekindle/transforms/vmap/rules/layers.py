"""Batching rules of convolutions, normalization, attention and padding. Most operators have one batch dimension
already, with which the examples are merged."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
def with_bias(result: Tensor, bias: Optional[Tensor], batched_bias: bool, rank: int) -> Tensor:
    if bias is None:
        return result
    sizes = [1] * (rank + 1)
    sizes[2] = torch.size(bias, -1)
    if batched_bias:
        sizes[0] = torch.size(bias, 0)
    return result + torch.reshape(bias, sizes)

batch conv1d, conv2d, conv3d, conv1d.padding, conv2d.padding, conv3d.padding(
    input, batched_input, weight, batched_weight, bias, batched_bias, stride, padding, dilation, groups
):
    rank = example_rank(weight, batched_weight)
    alone = example_rank(input, batched_input) < rank
    whole = input
    if alone:
        whole = torch.unsqueeze(input, 1 if batched_input else 0)
    if not batched_weight:
        if batched_input:
            made = torch.SAME(torch.flatten(whole, 0, 1), weight, None, stride, padding, dilation, groups)
            made = torch.unflatten(made, 0, [batch_size, torch.size(whole, 1)])
        else:
            made = torch.unsqueeze(torch.SAME(whole, weight, None, stride, padding, dilation, groups), 0)
    else:
        # A group of channels for each example.
        examples = whole if batched_input else same_for_all(whole, batch_size)
        channels = torch.flatten(torch.movedim(examples, 0, 1), 1, 2)
        filters = torch.flatten(weight, 0, 1)
        made = torch.SAME(channels, filters, None, stride, padding, dilation, batch_size * groups)
        made = torch.movedim(torch.unflatten(made, 1, [batch_size, torch.size(weight, 1)]), 1, 0)
    made = with_bias(made, bias, batched_bias, rank)
    return torch.squeeze(made, 1) if alone else made

batch conv_transpose1d, conv_transpose2d.input, conv_transpose3d.input(
    input, batched_input, weight, batched_weight, bias, batched_bias, stride, padding, output_padding, groups, dilation
):
    rank = example_rank(weight, batched_weight)
    alone = example_rank(input, batched_input) < rank
    whole = input
    if alone:
        whole = torch.unsqueeze(input, 1 if batched_input else 0)
    if not batched_weight:
        if batched_input:
            made = torch.SAME(
                torch.flatten(whole, 0, 1), weight, None, stride, padding, output_padding, groups, dilation
            )
            made = torch.unflatten(made, 0, [batch_size, torch.size(whole, 1)])
        else:
            made = torch.unsqueeze(
                torch.SAME(whole, weight, None, stride, padding, output_padding, groups, dilation), 0
            )
    else:
        examples = whole if batched_input else same_for_all(whole, batch_size)
        channels = torch.flatten(torch.movedim(examples, 0, 1), 1, 2)
        filters = torch.flatten(weight, 0, 1)
        made = torch.SAME(
            channels, filters, None, stride, padding, output_padding, batch_size * groups, dilation
        )
        made = torch.movedim(torch.unflatten(made, 1, [batch_size, torch.size(made, 1) // batch_size]), 1, 0)
    made = with_bias(made, bias, batched_bias, rank)
    return torch.squeeze(made, 1) if alone else made

# ---- Normalization. The scale and the shift are applied after it.

def scaled(result: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], sizes: List[int]) -> Tensor:
    made = result
    if weight is not None:
        made = made * torch.reshape(weight, sizes)
    if bias is not None:
        made = made + torch.reshape(bias, sizes)
    return made

def one_channel(values: Optional[Tensor]) -> Optional[Tensor]:
    return None if values is None else torch.flatten(values, 0, 1)

batch batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if training and running_mean is not None:
        raise RuntimeError("vmap: batch_norm would write one running mean for all; call eval(), or keep none")
    channels = torch.flatten(torch.movedim(input, 0, 1), 1, 2)
    made = torch.batch_norm(
        channels, None, None, one_channel(running_mean), one_channel(running_var), training, momentum, eps, False
    )
    made = torch.movedim(torch.unflatten(made, 1, [batch_size, torch.size(input, 2)]), 1, 0)
    sizes = [batch_size, 1, torch.size(input, 2)] + [1] * (input.dim() - 3)
    return scaled(made, weight, bias, sizes)

batch instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    if use_input_stats and running_mean is not None:
        raise RuntimeError("vmap: instance_norm would write one running mean for all; call eval(), or keep none")
    channels = torch.flatten(torch.movedim(input, 0, 1), 1, 2)
    made = torch.instance_norm(
        channels, None, None, one_channel(running_mean), one_channel(running_var), use_input_stats, momentum, eps, False
    )
    made = torch.movedim(torch.unflatten(made, 1, [batch_size, torch.size(input, 2)]), 1, 0)
    sizes = [batch_size, 1, torch.size(input, 2)] + [1] * (input.dim() - 3)
    return scaled(made, weight, bias, sizes)

batch group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    made = torch.group_norm(torch.flatten(input, 0, 1), num_groups, None, None, eps, False)
    made = torch.unflatten(made, 0, [batch_size, torch.size(input, 1)])
    sizes = [batch_size, 1, torch.size(input, 2)] + [1] * (input.dim() - 3)
    return scaled(made, weight, bias, sizes)

batch layer_norm(
    input, batched_input, normalized_shape, weight, batched_weight, bias, batched_bias, eps, cudnn_enable
):
    if not batched_weight and not batched_bias:
        return torch.layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
    made = torch.layer_norm(input, normalized_shape, None, None, eps, cudnn_enable)
    batched = batched_input
    if weight is not None:
        a, b = aligned(made, batched, weight, batched_weight)
        made, batched = a * b, batched or batched_weight
    if bias is not None:
        a, b = aligned(made, batched, bias, batched_bias)
        made = a + b
    return made

batch rms_norm(input, batched_input, normalized_shape, weight, batched_weight, eps):
    if not batched_weight:
        return torch.rms_norm(input, normalized_shape, weight, eps)
    made = torch.rms_norm(input, normalized_shape, None, eps)
    if weight is not None:
        a, b = aligned(made, batched_input, weight, batched_weight)
        made = a * b
    return made

batch prelu(self, weight):
    sizes = [batch_size] + [1] * (self.dim() - 1)
    if self.dim() > 2 and weight.dim() > 1:
        sizes[2] = torch.size(weight, 1)
    return torch.where(self > 0, self, self * torch.reshape(weight, sizes))

batch scaled_dot_product_attention(
    query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
):
    rank = max(query.dim(), max(key.dim(), value.dim())) - 1
    mask = None if attn_mask is None else padded(attn_mask, True, rank)
    return torch.scaled_dot_product_attention(
        padded(query, True, rank), padded(key, True, rank), padded(value, True, rank), mask, dropout_p, is_causal,
        scale=scale, enable_gqa=enable_gqa
    )

# ---- Pictures.

batch grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    made = torch.grid_sampler(
        torch.flatten(input, 0, 1), torch.flatten(grid, 0, 1), interpolation_mode, padding_mode, align_corners
    )
    return torch.unflatten(made, 0, [batch_size, torch.size(input, 1)])

batch grid_sampler_2d, grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    made = torch.SAME(
        torch.flatten(input, 0, 1), torch.flatten(grid, 0, 1), interpolation_mode, padding_mode, align_corners
    )
    return torch.unflatten(made, 0, [batch_size, torch.size(input, 1)])

batch new_zeros, new_ones, new_empty(self, size, dtype, layout, device, pin_memory):
    return torch.SAME(self, [batch_size] + size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)

batch new_full(self, size, fill_value, dtype, layout, device, pin_memory):
    return torch.new_full(
        self, [batch_size] + size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory
    )

batch affine_grid_generator(theta, size, align_corners):
    made = torch.affine_grid_generator(
        torch.flatten(theta, 0, 1), [batch_size * size[0]] + torch.slice(size, 1), align_corners
    )
    return torch.unflatten(made, 0, [batch_size, size[0]])

batch im2col(self, kernel_size, dilation, padding, stride):
    if self.dim() == 4:
        return torch.im2col(self, kernel_size, dilation, padding, stride)
    made = torch.im2col(torch.flatten(self, 0, 1), kernel_size, dilation, padding, stride)
    return torch.unflatten(made, 0, [batch_size, torch.size(self, 1)])

batch col2im(self, output_size, kernel_size, dilation, padding, stride):
    if self.dim() == 3:
        return torch.col2im(self, output_size, kernel_size, dilation, padding, stride)
    made = torch.col2im(torch.flatten(self, 0, 1), output_size, kernel_size, dilation, padding, stride)
    return torch.unflatten(made, 0, [batch_size, torch.size(self, 1)])

batch pad(self, pad, mode, value):
    if mode == "constant":
        check_pad(self, pad)
        return torch.pad(self, pad, mode, value)
    least = len(pad) // 2 + 1
    check_rank(self, True, least, least + 1, f"pad: 'self' must have {least} to {least + 1} dimensions")
    if self.dim() <= len(pad) // 2 + 2:
        return torch.pad(self, pad, mode, value)
    made = torch.pad(torch.flatten(self, 0, 1), pad, mode, value)
    return torch.unflatten(made, 0, [batch_size, torch.size(self, 1)])
"""

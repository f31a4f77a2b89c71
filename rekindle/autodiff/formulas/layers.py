"""Normalization, convolution, pooling and recurrent cells."""

from __future__ import annotations

from typing import Final

from rekindle.ops.releases.v2_15 import CELLS_CHECK_RANKS

_TEXT: Final = """
forward layer_norm(input, normalized_shape, weight, bias, eps):
    result, mean, rstd = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
    return result, mean, rstd

backward layer_norm(grad, input, normalized_shape, mean, rstd, weight, bias,
                    needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return torch.native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, needed)

forward group_norm(input, num_groups, weight, bias, eps):
    n, c = input.size(0), input.size(1)
    scale = None if weight is None else weight.contiguous()
    shift = None if bias is None else bias.contiguous()
    result, mean, rstd = torch.native_group_norm(
        own.in_suggested_order(input), scale, shift, n, c, own.ratio(input.numel(), n * c), num_groups, eps)
    return result, mean, rstd

backward group_norm(grad, input, num_groups, mean, rstd, weight, bias,
                    needs_input, needs_weight, needs_bias) -> input, weight, bias:
    n, c = input.size(0), input.size(1)
    needed = [needs_input, needs_weight, needs_bias]
    area = own.ratio(input.numel(), n * c)
    return own.group_norm_back(grad, input, mean, rstd, weight, n, c, area, num_groups, needed)

forward batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    result, mean, rstd, reserve, kind = torch._batch_norm_impl_index(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False)
    return result, mean, rstd, reserve

backward batch_norm(grad, input, weight, running_mean, running_var, mean, rstd, reserve, training, eps,
                    needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return own.batch_norm_back(
        grad, input, weight, running_mean, running_var, mean, rstd, reserve, training, eps, needed)

backward rms_norm(grad, input, normalized_shape, weight, eps) -> input, weight:
    return own.rms_norm_back(grad, input, normalized_shape, weight, eps)

backward conv1d, conv2d, conv3d(grad, input, weight, bias, stride, padding, dilation, groups,
                                needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return own.convolution_back(
        grad, input, weight, bias is not None, stride, padding, dilation, False, [0], groups, needed)

backward conv1d.padding, conv2d.padding, conv3d.padding(grad, input, weight, bias, stride, padding, dilation, groups,
                                                        needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return own.padded_convolution_back(grad, input, weight, bias is not None, stride, padding, dilation, groups, needed)

backward convolution(grad, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
                     needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return own.convolution_back(
        grad, input, weight, bias is not None, stride, padding, dilation, transposed, output_padding, groups, needed)

backward conv_transpose1d, conv_transpose2d.input, conv_transpose3d.input(
        grad, input, weight, bias, stride, padding, dilation, output_padding, groups,
        needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return own.convolution_back(
        grad, input, weight, bias is not None, stride, padding, dilation, True, output_padding, groups, needed)

forward max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode):
    result, indices = torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
    return result, indices

backward max_pool2d(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices) -> self:
    return torch.max_pool2d_with_indices_backward(
        grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)

backward max_pool2d_with_indices(grad0, self, kernel_size, stride, padding, dilation, ceil_mode, result1) -> self:
    return torch.max_pool2d_with_indices_backward(
        existing(grad0), self, kernel_size, stride, padding, dilation, ceil_mode, result1)

forward max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode):
    result, indices = torch.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
    return result, indices

backward max_pool3d(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices) -> self:
    return torch.max_pool3d_with_indices_backward(
        grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)

composite avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    return torch.avg_pool2d(
        self.unsqueeze(-2), [1, kernel_size[0]], own.as_row(stride, 1), own.as_row(padding, 0),
        ceil_mode, count_include_pad).squeeze(-2)

backward avg_pool2d(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                    divisor_override) -> self:
    return torch.avg_pool2d_backward(
        grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

backward avg_pool3d(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                    divisor_override) -> self:
    return torch.avg_pool3d_backward(
        grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

backward adaptive_avg_pool2d(grad, self) -> self:
    return torch._adaptive_avg_pool2d_backward(grad, self)

backward adaptive_avg_pool3d(grad, self) -> self:
    return torch._adaptive_avg_pool3d_backward(grad, self)

composite adaptive_avg_pool1d(self, output_size):
    return torch.adaptive_avg_pool2d(self.unsqueeze(-2), [1, output_size[0]]).squeeze(-2)

backward adaptive_max_pool2d(grad0, self, result1) -> self:
    return torch.adaptive_max_pool2d_backward(existing(grad0), self, result1)

backward adaptive_max_pool3d(grad0, self, result1) -> self:
    return torch.adaptive_max_pool3d_backward(existing(grad0), self, result1)

backward pixel_shuffle(grad, upscale_factor) -> self:
    return torch.pixel_unshuffle(grad, upscale_factor)

backward pixel_unshuffle(grad, downscale_factor) -> self:
    return torch.pixel_shuffle(grad, downscale_factor)

backward im2col(grad, self, kernel_size, dilation, padding, stride) -> self:
    return torch.col2im(grad, own.last_two(self.size()), kernel_size, dilation, padding, stride)

backward col2im(grad, kernel_size, dilation, padding, stride) -> self:
    return torch.im2col(grad, kernel_size, dilation, padding, stride)

backward upsample_nearest1d.vec(grad, input, scale_factors) -> input:
    return own.upsample_back("upsample_nearest1d", grad, input.size(), None, scale_factors)

backward upsample_nearest2d.vec(grad, input, scale_factors) -> input:
    return own.upsample_back("upsample_nearest2d", grad, input.size(), None, scale_factors)

backward upsample_nearest3d.vec(grad, input, scale_factors) -> input:
    return own.upsample_back("upsample_nearest3d", grad, input.size(), None, scale_factors)

backward _upsample_nearest_exact1d.vec(grad, input, scale_factors) -> input:
    return own.upsample_back("_upsample_nearest_exact1d", grad, input.size(), None, scale_factors)

backward _upsample_nearest_exact2d.vec(grad, input, scale_factors) -> input:
    return own.upsample_back("_upsample_nearest_exact2d", grad, input.size(), None, scale_factors)

backward _upsample_nearest_exact3d.vec(grad, input, scale_factors) -> input:
    return own.upsample_back("_upsample_nearest_exact3d", grad, input.size(), None, scale_factors)

backward upsample_linear1d.vec(grad, input, align_corners, scale_factors) -> input:
    return own.upsample_back("upsample_linear1d", grad, input.size(), align_corners, scale_factors)

backward upsample_bilinear2d.vec(grad, input, align_corners, scale_factors) -> input:
    return own.upsample_back("upsample_bilinear2d", grad, input.size(), align_corners, scale_factors)

backward upsample_bicubic2d.vec(grad, input, align_corners, scale_factors) -> input:
    return own.upsample_back("upsample_bicubic2d", grad, input.size(), align_corners, scale_factors)

backward upsample_trilinear3d.vec(grad, input, align_corners, scale_factors) -> input:
    return own.upsample_back("upsample_trilinear3d", grad, input.size(), align_corners, scale_factors)

backward _upsample_bilinear2d_aa.vec(grad, input, align_corners, scale_factors) -> input:
    return own.upsample_back("_upsample_bilinear2d_aa", grad, input.size(), align_corners, scale_factors)

backward _upsample_bicubic2d_aa.vec(grad, input, align_corners, scale_factors) -> input:
    return own.upsample_back("_upsample_bicubic2d_aa", grad, input.size(), align_corners, scale_factors)

backward grid_sampler(grad, input, grid, interpolation_mode, padding_mode, align_corners,
                      needs_input, needs_grid) -> input, grid:
    needed = [needs_input, needs_grid]
    return own.grid_back(grad, input, grid, interpolation_mode, padding_mode, align_corners, needed)

backward grid_sampler_2d(grad, input, grid, interpolation_mode, padding_mode, align_corners,
                         needs_input, needs_grid) -> input, grid:
    needed = [needs_input, needs_grid]
    return torch.grid_sampler_2d_backward(
        grad, input, grid, interpolation_mode, padding_mode, align_corners, needed)

backward grid_sampler_3d(grad, input, grid, interpolation_mode, padding_mode, align_corners,
                         needs_input, needs_grid) -> input, grid:
    needed = [needs_input, needs_grid]
    return torch.grid_sampler_3d_backward(
        grad, input, grid, interpolation_mode, padding_mode, align_corners, needed)

backward native_layer_norm(grad0, input, normalized_shape, weight, bias, result1, result2,
                           needs_input, needs_weight, needs_bias) -> input, weight, bias:
    needed = [needs_input, needs_weight, needs_bias]
    return torch.native_layer_norm_backward(
        existing(grad0), input, normalized_shape, result1, result2, weight, bias, needed)

backward instance_norm(grad, input, weight, running_mean, running_var, use_input_stats, eps) -> input, weight, bias:
    mean = None if use_input_stats else running_mean
    variance = None if use_input_stats else running_var
    return own.instance_norm_back(grad, input, weight, mean, variance, use_input_stats, eps)

composite max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode):
    return torch.max_pool2d(
        self.unsqueeze(-2), [1, kernel_size[0]], own.as_row(stride, 1), own.as_row(padding, 0),
        own.as_row(dilation, 1), ceil_mode).squeeze(-2)

composite max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    values, places = torch.max_pool2d_with_indices(
        self.unsqueeze(-2), [1, kernel_size[0]], own.as_row(stride, 1), own.as_row(padding, 0),
        own.as_row(dilation, 1), ceil_mode)
    return values.squeeze(-2), places.squeeze(-2)

backward max_pool3d_with_indices(grad0, self, kernel_size, stride, padding, dilation, ceil_mode, result1) -> self:
    return torch.max_pool3d_with_indices_backward(
        existing(grad0), self, kernel_size, stride, padding, dilation, ceil_mode, result1)

composite adaptive_max_pool1d(self, output_size):
    values, places = torch.adaptive_max_pool2d(self.unsqueeze(-2), [1, output_size[0]])
    return values.squeeze(-2), places.squeeze(-2)

backward max_unpool2d(grad, self, indices) -> self:
    return own.unpool_back(grad, self, indices, 2)

backward max_unpool3d(grad, self, indices) -> self:
    return own.unpool_back(grad, self, indices, 3)

def check_cell_input(input: Tensor, w_ih: Tensor):
    if RANKS_ARE_CHECKED and input.dim() != 2:
        raise RuntimeError("Expected 2D input (batch x feature), but got {}D input".format(input.dim()))
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(
            "input has inconsistent input_size: got {} expected {}".format(input.size(1), w_ih.size(1)))

def check_cell_state(input: Tensor, state: Tensor, w_hh: Tensor, number: int):
    if RANKS_ARE_CHECKED and state.dim() != 2:
        raise RuntimeError("Expected 2D hidden{} (batch x hidden_size), but got {}D tensor".format(
            number, state.dim()))
    if input.size(0) != state.size(0):
        raise RuntimeError("Input batch size {} doesn't match hidden{} batch size {}".format(
            input.size(0), number, state.size(0)))
    if state.size(1) != w_hh.size(1):
        raise RuntimeError("hidden{} has inconsistent hidden_size: got {}, expected {}".format(
            number, state.size(1), w_hh.size(1)))

composite lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    hidden, cell = hx
    check_cell_input(input, w_ih)
    check_cell_state(input, hidden, w_hh, 0)
    check_cell_state(input, cell, w_hh, 1)
    gates = torch.linear(hidden, w_hh, b_hh) + torch.linear(input, w_ih, b_ih)
    entering, forgetting, proposed, leaving = torch.chunk(gates, 4, 1)
    following = forgetting.sigmoid() * cell + entering.sigmoid() * proposed.tanh()
    return leaving.sigmoid() * following.tanh(), following

composite gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    check_cell_input(input, w_ih)
    check_cell_state(input, hx, w_hh, 0)
    input_reset, input_update, input_new = torch.chunk(torch.linear(input, w_ih, b_ih), 3, 1)
    state_reset, state_update, state_new = torch.chunk(torch.linear(hx, w_hh, b_hh), 3, 1)
    reset = (state_reset + input_reset).sigmoid()
    update = (state_update + input_update).sigmoid()
    proposed = (input_new + state_new * reset).tanh()
    return (hx - proposed) * update + proposed

composite rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    check_cell_input(input, w_ih)
    check_cell_state(input, hx, w_hh, 0)
    return (torch.linear(hx, w_hh, b_hh) + torch.linear(input, w_ih, b_ih)).tanh()

composite rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    check_cell_input(input, w_ih)
    check_cell_state(input, hx, w_hh, 0)
    return (torch.linear(hx, w_hh, b_hh) + torch.linear(input, w_ih, b_ih)).relu()
"""

TEXT: Final = _TEXT.replace("RANKS_ARE_CHECKED", str(CELLS_CHECK_RANKS))

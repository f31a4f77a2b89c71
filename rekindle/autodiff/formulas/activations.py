"""Activations of neural networks."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward relu(grad, result) -> self:
    return torch.threshold_backward(grad, result, 0)

backward threshold(grad, self, threshold) -> self:
    return torch.threshold_backward(grad, self, threshold)

composite relu6(self):
    return torch.hardtanh(self, 0, 6)

backward hardtanh(grad, self, min_val, max_val) -> self:
    return torch.hardtanh_backward(grad, self, min_val, max_val)

backward leaky_relu(grad, self, negative_slope) -> self:
    return torch.leaky_relu_backward(grad, self, negative_slope, False)

backward elu(grad, self, alpha, scale, input_scale) -> self:
    return torch.elu_backward(grad, alpha, scale, input_scale, False, self)

composite selu(self):
    return torch.elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)

composite celu(self, alpha):
    return torch.elu(self, alpha, 1.0, 1.0 / float(alpha))

backward gelu(grad, self, approximate) -> self:
    return torch.gelu_backward(grad, self, approximate=approximate)

backward silu(grad, self) -> self:
    s = self.sigmoid()
    return grad * (s * (self * (1 - s) + 1))

backward mish(grad, self) -> self:
    s, t = self.sigmoid(), torch.softplus(self).tanh()
    return grad * (t + self * s * (1 - t * t))

backward softplus(grad, self, beta, threshold) -> self:
    return torch.softplus_backward(grad, self, beta, threshold)

backward hardswish(grad, self) -> self:
    return torch.hardswish_backward(grad, self)

backward hardsigmoid(grad, self) -> self:
    return torch.hardsigmoid_backward(grad, self)

backward hardshrink(grad, self, lambd) -> self:
    return torch.hardshrink_backward(grad, self, lambd)

backward softshrink(grad, self, lambd) -> self:
    return torch.softshrink_backward(grad, self, lambd)

backward glu(grad, self, dim) -> self:
    return torch.glu_backward(grad, self, dim)

forward log_sigmoid(self):
    result, buffer = torch.log_sigmoid_forward(self)
    return result, buffer

backward log_sigmoid(grad, self, buffer) -> self:
    return torch.log_sigmoid_backward(grad, self, buffer)

backward _prelu_kernel(grad, self, weight) -> self, weight:
    return torch._prelu_kernel_backward(grad, self, weight)

backward softmax.int(grad, dim, result) -> self:
    return torch._softmax_backward_data(grad, result, dim, result.dtype)

backward log_softmax.int(grad, dim, result) -> self:
    return torch._log_softmax_backward_data(grad, result, dim, result.dtype)

backward _softmax(grad, self, dim, result) -> self:
    return torch._softmax_backward_data(grad, result, dim, self.dtype)

backward _log_softmax(grad, self, dim, result) -> self:
    return torch._log_softmax_backward_data(grad, result, dim, self.dtype)

backward _safe_softmax(grad, self, dim, result) -> self:
    return torch._softmax_backward_data(grad, result, dim, self.dtype)

backward _softmax_backward_data(grad, grad_output, output, dim) -> grad_output, output:
    of_grad = output * (grad - (grad * output).sum([dim], True))
    return of_grad, grad * (grad_output - (grad_output * output).sum([dim], True)) - grad_output * (
        grad * output).sum([dim], True)

forward dropout(input, p, train):
    result, mask, scale = own.dropout(input, p, train)
    return result, mask, scale

backward dropout(grad, mask, scale) -> input:
    if mask is None:
        return grad
    return grad * mask if scale is None else grad * mask * scale

backward prelu(grad, self, weight) -> self, weight:
    return own.prelu_back(grad, self, weight)

forward rrelu(self, lower, upper, training):
    result, noise = own.rrelu(self, lower, upper, training)
    return result, noise

backward rrelu(grad, self, lower, upper, training, noise) -> self:
    return torch.rrelu_with_noise_backward(grad, self, noise, lower, upper, training, False)

forward feature_dropout(input, p, train):
    result, mask = own.feature_dropout(input, p, train)
    return result, mask

backward feature_dropout(grad, mask) -> input:
    return grad if mask is None else grad * mask

forward alpha_dropout(input, p, train):
    result, mask = own.alpha_dropout(input, p, train, False)
    return result, mask

backward alpha_dropout(grad, mask) -> input:
    return grad if mask is None else grad * mask

forward feature_alpha_dropout(input, p, train):
    result, mask = own.alpha_dropout(input, p, train, True)
    return result, mask

backward feature_alpha_dropout(grad, mask) -> input:
    return grad if mask is None else grad * mask

backward bernoulli(grad) -> self:
    return torch.zeros_like(grad)

backward normal.Tensor_float(grad) -> mean:
    return torch.zeros_like(grad)

backward normal.float_Tensor(grad) -> std:
    return torch.zeros_like(grad)

backward normal.Tensor_Tensor(mean, std) -> mean, std:
    return torch.zeros_like(mean), torch.zeros_like(std)
"""

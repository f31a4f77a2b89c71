"""Formulas of the operators that backward graphs consist of: gradients of gradients."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward tanh_backward(grad, grad_output, output) -> grad_output, output:
    return torch.tanh_backward(grad, output), grad * grad_output * (output * -2)

backward sigmoid_backward(grad, grad_output, output) -> grad_output, output:
    return torch.sigmoid_backward(grad, output), grad * grad_output * (1 - output * 2)

backward threshold_backward(grad, self, threshold) -> grad_output:
    return torch.threshold_backward(grad, self, threshold)

backward _grad_sum_to_size(grad, self) -> self:
    return grad.expand(self.size())

backward select_backward(grad, dim, index) -> grad_output:
    return torch.select(grad, dim, index)

backward slice_backward(grad, dim, start, end, step) -> grad_output:
    return torch.slice(grad, dim, start, end, step)
"""

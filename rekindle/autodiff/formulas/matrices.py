"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward mm(grad, self, mat2) -> self, mat2:
    return grad.mm(mat2.t()), self.t().mm(grad)

backward bmm(grad, self, mat2) -> self, mat2:
    return grad.bmm(mat2.transpose(1, 2)), self.transpose(1, 2).bmm(grad)

backward mv(grad, self, vec) -> self, vec:
    return grad.unsqueeze(1) * vec, self.t().mv(grad)

backward dot(grad, self, tensor) -> self, tensor:
    return grad * tensor, grad * self

backward vdot(grad, self, other) -> self, other:
    return grad * other, grad * self

backward matmul(grad, self, other) -> self, other:
    return own.matmul_self(grad, self.size(), other), own.matmul_other(grad, self, other.size())

backward linear(grad, input, weight, bias) -> input, weight, bias:
    grad_bias = grad if bias is None else own.sum_to(grad, bias.size())
    return own.linear_input(grad, input.size(), weight), own.linear_weight(grad, input, weight.size()), grad_bias

backward addmm(grad, self, mat1, mat2, beta, alpha) -> self, mat1, mat2:
    scaled_grad = scaled(grad, alpha)
    return own.sum_to(scaled(grad, beta), self.size()), scaled_grad.mm(mat2.t()), mat1.t().mm(scaled_grad)

backward addmv(grad, self, mat, vec, beta, alpha) -> self, mat, vec:
    scaled_grad = scaled(grad, alpha)
    return own.sum_to(scaled(grad, beta), self.size()), scaled_grad.unsqueeze(1) * vec, mat.t().mv(scaled_grad)

backward addr(grad, self, vec1, vec2, beta, alpha) -> self, vec1, vec2:
    scaled_grad = scaled(grad, alpha)
    return own.sum_to(scaled(grad, beta), self.size()), scaled_grad.mv(vec2), scaled_grad.t().mv(vec1)

backward baddbmm(grad, self, batch1, batch2, beta, alpha) -> self, batch1, batch2:
    scaled_grad = scaled(grad, alpha)
    grad_first = scaled_grad.bmm(batch2.transpose(1, 2))
    grad_second = batch1.transpose(1, 2).bmm(scaled_grad)
    return own.sum_to(scaled(grad, beta), self.size()), grad_first, grad_second

backward addbmm(grad, self, batch1, batch2, beta, alpha) -> self, batch1, batch2:
    scaled_grad = scaled(grad, alpha).expand(batch1.size(0), batch1.size(1), batch2.size(2))
    grad_first = scaled_grad.bmm(batch2.transpose(1, 2))
    grad_second = batch1.transpose(1, 2).bmm(scaled_grad)
    return own.sum_to(scaled(grad, beta), self.size()), grad_first, grad_second

composite outer(self, vec2):
    return self.unsqueeze(1) * vec2

composite linalg_vecdot(x, y, dim):
    return (x * y).sum(dim)

backward linalg_inv(grad, result) -> A:
    turned = result.transpose(-2, -1)
    return -turned.matmul(grad).matmul(turned)

backward linalg_inv_ex(grad0, inverse) -> A:
    turned = inverse.transpose(-2, -1)
    return -turned.matmul(existing(grad0)).matmul(turned)

backward trace(grad, self) -> self:
    return own.diagonal_back(grad.expand(min(self.size(0), self.size(1))), self.size(), 0, 0, 1)

backward linalg_cross(grad, self, other, dim, result) -> self, other:
    grad_self = torch.linalg_cross(other, grad, dim=dim)
    return sum_to(grad_self, self, result), sum_to(torch.linalg_cross(grad, self, dim=dim), other, result)

backward inner(grad, self, other) -> self, other:
    return own.inner_back(grad, self, other)

backward kron(grad, self, other) -> self, other:
    return own.kron_back(grad, self, other)

backward tensordot(grad, self, other, dims_self, dims_other) -> self, other:
    return own.tensordot_back(grad, self, other, dims_self, dims_other)

backward einsum(grad, equation, tensors) -> tensors:
    return own.einsum_back(grad, equation, tensors)

backward bilinear(grad, input1, input2, weight, bias) -> input1, input2, weight, bias:
    grad_bias = grad if bias is None else own.sum_to(grad, bias.size())
    first = torch.einsum("...o,oij,...j->...i", [grad, weight, input2])
    second = torch.einsum("...o,oij,...i->...j", [grad, weight, input1])
    of_weight = torch.einsum("no,ni,nj->oij", [
        grad.reshape([-1, weight.size(0)]), input1.reshape([-1, weight.size(1)]), input2.reshape([-1, weight.size(2)])])
    return first, second, of_weight, grad_bias

backward linalg_multi_dot(grad, tensors) -> tensors:
    return own.multi_dot_back(grad, tensors)

backward cdist(grad, x1, x2, p, result) -> x1, x2:
    return own.cdist_back(grad, x1, x2, p, result)
"""

"""Batching rules of products of matrices and vectors, distances and ``einsum``."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
def product(self: Tensor, batched_self: bool, other: Tensor, batched_other: bool) -> Tensor:
    a, b = example_rank(self, batched_self), example_rank(other, batched_other)
    if not batched_self and not batched_other:
        return torch.matmul(self, other)
    if not batched_other:
        if b == 1 or (a == 1 and b == 2):
            return torch.matmul(self, other)
        if a == 1:
            return torch.squeeze(torch.matmul(with_dimensions(torch.unsqueeze(self, 1), b), other), -2)
        return torch.matmul(padded(self, True, b), other)
    if not batched_self:
        if a == 1 and b == 1:
            return torch.matmul(other, self)
        if b == 1:
            return torch.squeeze(torch.matmul(self, with_dimensions(torch.unsqueeze(other, 2), a)), -1)
        if a == 1:
            return torch.squeeze(torch.matmul(torch.unsqueeze(self, 0), other), -2)
        return torch.matmul(self, padded(other, True, a))
    left = torch.unsqueeze(self, 1) if a == 1 else self
    right = torch.unsqueeze(other, 2) if b == 1 else other
    rank = max(left.dim(), right.dim()) - 1
    result = torch.matmul(padded(left, True, rank), padded(right, True, rank))
    if a == 1:
        result = torch.squeeze(result, -2)
    if b == 1:
        result = torch.squeeze(result, -1)
    return result

batch matmul, linalg_matmul(self, batched_self, other, batched_other):
    return product(self, batched_self, other, batched_other)

batch mm, bmm(self, batched_self, mat2, batched_mat2):
    return product(self, batched_self, mat2, batched_mat2)

batch mv(self, batched_self, vec, batched_vec):
    return product(self, batched_self, vec, batched_vec)

batch dot(self, batched_self, tensor, batched_tensor):
    return product(self, batched_self, tensor, batched_tensor)

batch vdot(self, batched_self, other, batched_other):
    return product(torch.conj(self), batched_self, other, batched_other)

batch inner(self, batched_self, other, batched_other):
    if example_rank(self, batched_self) == 0 or example_rank(other, batched_other) == 0:
        a, b = aligned(self, batched_self, other, batched_other)
        return a * b
    if example_rank(self, batched_self) == 1 or example_rank(other, batched_other) == 1:
        a, b = aligned(self, batched_self, other, batched_other)
        return torch.sum(a * b, -1)
    right = other if batched_other else same_for_all(other, batch_size)
    left = self if batched_self else same_for_all(self, batch_size)
    made = torch.bmm(torch.flatten(left, 1, -2), torch.transpose(torch.flatten(right, 1, -2), 1, 2))
    sizes = torch.slice(torch.size(left), 0, -1) + torch.slice(torch.size(right), 1, -1)
    return torch.reshape(made, sizes)

batch outer, ger(self, vec2):
    return torch.unsqueeze(self, 2) * torch.unsqueeze(vec2, 1)

batch linear(input, batched_input, weight, batched_weight, bias, batched_bias):
    if not batched_weight and not batched_bias:
        return torch.linear(input, weight, bias)
    turned = torch.transpose(weight, -2, -1) if example_rank(weight, batched_weight) == 2 else weight
    result = product(input, batched_input, turned, batched_weight)
    if bias is not None:
        a, b = aligned(result, batched_input or batched_weight, bias, batched_bias)
        return a + b
    return result

batch addmm(self, batched_self, mat1, batched_mat1, mat2, batched_mat2, beta, alpha):
    made = product(mat1, batched_mat1, mat2, batched_mat2)
    a, b = aligned(self, batched_self, made, batched_mat1 or batched_mat2)
    return b * alpha if beta == 0 else a * beta + b * alpha

batch addmv(self, batched_self, mat, batched_mat, vec, batched_vec, beta, alpha):
    made = product(mat, batched_mat, vec, batched_vec)
    a, b = aligned(self, batched_self, made, batched_mat or batched_vec)
    return b * alpha if beta == 0 else a * beta + b * alpha

batch addr(self, batched_self, vec1, vec2, beta, alpha):
    made = torch.unsqueeze(vec1, 2) * torch.unsqueeze(vec2, 1)
    a, b = aligned(self, batched_self, made, True)
    return b * alpha if beta == 0 else a * beta + b * alpha

batch baddbmm(self, batched_self, batch1, batched_batch1, batch2, batched_batch2, beta, alpha):
    made = product(batch1, batched_batch1, batch2, batched_batch2)
    a, b = aligned(self, batched_self, made, batched_batch1 or batched_batch2)
    return b * alpha if beta == 0 else a * beta + b * alpha

batch addbmm(self, batched_self, batch1, batched_batch1, batch2, batched_batch2, beta, alpha):
    made = torch.sum(product(batch1, batched_batch1, batch2, batched_batch2), -3)
    a, b = aligned(self, batched_self, made, batched_batch1 or batched_batch2)
    return b * alpha if beta == 0 else a * beta + b * alpha

batch kron(self, other):
    rank = max(self.dim(), other.dim()) - 1
    a, b = padded(self, True, rank), padded(other, True, rank)
    sizes = [torch.size(a, 0)]
    for dim in range(1, rank + 1):
        a = torch.unsqueeze(a, 2 * dim)
        b = torch.unsqueeze(b, 2 * dim - 1)
        sizes = sizes + [torch.size(a, 2 * dim - 1) * torch.size(b, 2 * dim)]
    return torch.reshape(a * b, sizes)

batch tensordot(self, other, dims_self, dims_other):
    mine, others = inner_all(self, dims_self), inner_all(other, dims_other)
    for i in range(len(mine)):
        # A dimension of size 1 goes with one of any size.
        if torch.size(self, mine[i]) == 1:
            other = torch.sum(other, [others[i]], True)
        elif torch.size(other, others[i]) == 1:
            self = torch.sum(self, [mine[i]], True)
    left = [dim for dim in range(1, self.dim()) if dim not in mine]
    right = [dim for dim in range(1, other.dim()) if dim not in others]
    number = 1
    for dim in mine:
        number = number * torch.size(self, dim)
    a, b = torch.permute(self, [0] + left + mine), torch.permute(other, [0] + others + right)
    rows, columns = [torch.size(self, dim) for dim in left], [torch.size(other, dim) for dim in right]
    height, width = 1, 1
    for size in rows:
        height = height * size
    for size in columns:
        width = width * size
    made = torch.bmm(torch.reshape(a, [batch_size, height, number]), torch.reshape(b, [batch_size, number, width]))
    return torch.reshape(made, [batch_size] + rows + columns)

def check_same_rank(self: Tensor, other: Tensor) -> None:
    if self.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")

batch cross(self, other, dim):
    check_same_rank(self, other)
    a, b = aligned(self, True, other, True)
    return torch.linalg_cross(a, b, dim=first_of_three(a) if dim is None else inner(a, dim))

def first_of_three(self: Tensor) -> int:
    found = 0
    for dim in range(1, self.dim()):
        if found == 0 and torch.size(self, dim) == 3:
            found = dim
    if found == 0:
        raise RuntimeError("no dimension of size 3 in input")
    return found

batch linalg_cross(self, other, dim):
    check_same_rank(self, other)
    a, b = aligned(self, True, other, True)
    return torch.linalg_cross(a, b, dim=inner(a, dim))

batch cdist(x1, x2, p, compute_mode):
    a, b = aligned(x1, True, x2, True)
    return torch.cdist(a, b, p, compute_mode)

batch _cdist_forward(x1, x2, p, compute_mode):
    a, b = aligned(x1, True, x2, True)
    return torch._cdist_forward(a, b, p, compute_mode)

batch cosine_similarity(x1, x2, dim, eps):
    a, b = aligned(x1, True, x2, True)
    return torch.cosine_similarity(lifted(a), lifted(b), inner(a, dim), eps)

batch pairwise_distance(x1, x2, p, eps, keepdim):
    a, b = aligned(x1, True, x2, True)
    return lowered(torch.norm(lifted(torch.sub(a, b) + eps), p, [-1], keepdim), a)

batch dist(self, other, p):
    a, b = aligned(self, True, other, True)
    return torch.linalg_vector_norm(flat(a - b), p, [1])

batch vander(x, N, increasing):
    made = torch.linalg_vander(x, N=N)
    return made if increasing else torch.flip(made, [-1])

batch cov(self, correction, fweights, aweights):
    assert fweights is None and aweights is None
    whole = torch.unsqueeze(self, 1) if self.dim() == 2 else self
    less = whole - torch.mean(whole, [2], True)
    number = torch.size(whole, 2) - correction
    made = torch.bmm(less, torch.conj(torch.transpose(less, 1, 2))) / max(number, 0)
    return torch.reshape(made, [batch_size]) if self.dim() == 2 else made

batch linalg_vecdot(x, y, dim):
    a, b = aligned(x, True, y, True)
    return torch.linalg_vecdot(a, b, dim=inner(a, dim))

batch linalg_vander(x, N):
    return torch.linalg_vander(lifted(x), N=N)

batch linalg_multi_dot(tensors):
    made = tensors[0]
    for i in range(len(tensors)):
        least = 1 if i == 0 or i == len(tensors) - 1 else 2
        check_rank(tensors[i], True, least, 2, f"linalg_multi_dot: tensor {i} must have {least} to 2 dimensions")
    for i in range(1, len(tensors)):
        made = product(made, True, tensors[i], True)
    return made

def unused_letter(equation: str) -> str:
    found = ""
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        if found == "" and letter not in equation:
            found = letter
    return found

def letters_used_once(terms: str) -> str:
    found = "..." if "..." in terms else ""
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz":
        if terms.count(letter) == 1:
            found = found + letter
    return found

def equation_of_batch(equation: str) -> str:
    sides = equation.replace(" ", "").split("->")
    letter = unused_letter(equation)
    result = sides[1] if len(sides) == 2 else letters_used_once(sides[0])
    terms = ",".join([letter + term for term in sides[0].split(",")])
    return terms + "->" + letter + result

batch einsum(equation, tensors):
    return torch.einsum(equation_of_batch(equation), tensors)

batch own.einsum_back(grad, equation, tensors):
    return own.einsum_back(grad, equation_of_batch(equation), tensors)
"""

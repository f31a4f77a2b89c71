"""Backward of linear solvers and matrix decompositions."""

from __future__ import annotations

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import sum_to
from rekindle.ops.registration.declare import implements


@implements("autodiff::solve_back(Tensor grad, Tensor A, Tensor B, bool left, Tensor result) -> (Tensor, Tensor)")
def solve_back(grad: Tensor, A: Tensor, B: Tensor, left: bool, result: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``linalg.solve``, whose right side may be a batch of vectors."""
    vectors = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    if vectors:
        grad, result = grad.unsqueeze(-1), result.unsqueeze(-1)
    back = torch.linalg.solve(A.mT, grad, left=left)
    of_matrix = -back @ result.mT if left else -result.mT @ back
    back = back.squeeze(-1) if vectors else back
    return sum_to(of_matrix, A.shape), sum_to(back, B.shape)


@implements(
    "autodiff::solve_triangular_back(Tensor grad, Tensor self, Tensor B, bool upper, bool left, bool unitriangular,"
    " Tensor result) -> (Tensor, Tensor)"
)
def solve_triangular_back(
    grad: Tensor,
    self: Tensor,
    B: Tensor,
    upper: bool,
    left: bool,
    unitriangular: bool,
    result: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``linalg.solve_triangular``: of the matrix, its triangle alone."""
    back = torch.linalg.solve_triangular(self.mT, grad, upper=not upper, left=left, unitriangular=unitriangular)
    of_matrix = -back @ result.mT if left else -result.mT @ back
    inner = 1 if unitriangular else 0
    of_matrix = of_matrix.triu(inner) if upper else of_matrix.tril(-inner)
    return sum_to(of_matrix, self.shape), sum_to(back, B.shape)


@implements("autodiff::cholesky_back(Tensor grad, Tensor result, bool upper) -> Tensor")
def cholesky_back(grad: Tensor, result: Tensor, upper: bool) -> Tensor:
    """Return the gradient of a Cholesky decomposition, which is symmetric as its argument is."""
    factor, back = (result.mT, grad.mT) if upper else (result, grad)
    inner = (factor.mT @ back).tril()
    inner = (inner + inner.tril(-1).mT) / 2
    half = torch.linalg.solve_triangular(factor.mT, inner, upper=True)
    found: Tensor = torch.linalg.solve_triangular(factor, half, upper=False, left=False)
    return found


@implements("autodiff::eigh_back(Tensor? of_values, Tensor? of_vectors, Tensor values, Tensor vectors) -> Tensor")
def eigh_back(of_values: Tensor | None, of_vectors: Tensor | None, values: Tensor, vectors: Tensor) -> Tensor:
    """Return the gradient of the eigenvalues and eigenvectors of a symmetric matrix."""
    if of_vectors is None:
        assert of_values is not None
        return (vectors * of_values.unsqueeze(-2)) @ vectors.mT
    between = values.unsqueeze(-2) - values.unsqueeze(-1)
    between.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    turned = vectors.mT @ of_vectors
    inner = (turned - turned.mT) / (2 * between)  # symmetric, as the matrix is
    if of_values is not None:
        inner = inner + torch.diag_embed(of_values)
    return vectors @ inner @ vectors.mT

"""Equations, decompositions and norms of matrices."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward linalg_solve(grad, A, B, left, result) -> A, B:
    return own.solve_back(grad, A, B, left, result)

backward linalg_solve_ex(grad0, A, B, left, result) -> A, B:
    return own.solve_back(existing(grad0), A, B, left, result)

backward linalg_solve_triangular(grad, self, B, upper, left, unitriangular, result) -> self, B:
    return own.solve_triangular_back(grad, self, B, upper, left, unitriangular, result)

def of_logarithm(grad: Optional[Tensor], matrix: Tensor) -> Tensor:
    if grad is None:
        return torch.zeros_like(matrix)
    return grad.unsqueeze(-1).unsqueeze(-1) * torch.linalg_inv(matrix).transpose(-2, -1)

backward linalg_slogdet(grad0, grad1, A) -> A:
    return of_logarithm(grad1, A)

backward slogdet(grad0, grad1, self) -> self:
    return of_logarithm(grad1, self)

backward logdet(grad, self) -> self:
    return of_logarithm(grad, self)

backward cholesky(grad, upper, result) -> self:
    return own.cholesky_back(grad, result, upper)

backward linalg_cholesky(grad, upper, result) -> self:
    return own.cholesky_back(grad, result, upper)

backward linalg_cholesky_ex(grad0, upper, L) -> self:
    return own.cholesky_back(existing(grad0), L, upper)

backward linalg_eigh(grad0, grad1, eigenvalues, eigenvectors) -> self:
    return own.eigh_back(grad0, grad1, eigenvalues, eigenvectors)

composite linalg_eigvalsh(self, UPLO):
    values, vectors = torch.linalg_eigh(self, UPLO)
    return values

composite linalg_diagonal(A, offset, dim1, dim2):
    return torch.diagonal(A, offset, dim1, dim2)

constant linalg_matrix_rank, linalg_matrix_rank.tol_tensor
"""

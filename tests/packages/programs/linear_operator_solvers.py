"""linear_operator scripts the inner steps of its conjugate gradients when it is imported."""

from __future__ import annotations

from typing import Any

import torch
from keeping import main
from linear_operator.operators import DenseLinearOperator
from linear_operator.settings import cg_tolerance, max_cholesky_size
from linear_operator.utils.linear_cg import linear_cg


def system() -> tuple[torch.Tensor, torch.Tensor]:
    root = torch.randn(30, 30, dtype=torch.double)
    return root @ root.T + torch.eye(30, dtype=torch.double), torch.randn(30, 2, dtype=torch.double)


def solved(preconditioned: bool) -> Any:
    matrix, right = system()
    scale = matrix.diagonal()[:, None]
    return linear_cg(
        matrix.matmul,
        right,
        n_tridiag=1,
        max_iter=100,
        max_tridiag_iter=20,
        tolerance=1e-8,
        preconditioner=(lambda x: x / scale) if preconditioned else None,
    )


def differentiated() -> Any:
    """The quadratic form and log determinant of Gaussian processes, and their gradients."""
    matrix, right = system()
    matrix.requires_grad_()
    with max_cholesky_size(1), cg_tolerance(1e-6):
        terms = DenseLinearOperator(matrix).inv_quad_logdet(right, logdet=True)
    sum(terms).backward()
    return [term.detach() for term in terms], matrix.grad


if __name__ == "__main__":
    main(
        {
            "plain": lambda: solved(preconditioned=False),
            "preconditioned": lambda: solved(preconditioned=True),
            "differentiated": differentiated,
        }
    )

"""Operators that PyTorch has removed and archives still call, written by their replacements.

Where this PyTorch has an operator itself, that one runs. Results follow the release that removed the operator: a factor
is unique up to signs, so those of a later LAPACK may differ from those of an earlier one.
"""

from __future__ import annotations

from typing import Final

_CHOLESKY: Final = """
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    return torch.linalg_cholesky(self, upper=upper)

def cholesky(self: Tensor, upper: bool = False, *, out: Tensor) -> Tensor:
    return torch.linalg_cholesky(self, upper=upper, out=out)
"""

_QR: Final = """
def qr(self: Tensor, some: bool = True) -> Tuple[Tensor, Tensor]:
    return torch.linalg_qr(self, "reduced" if some else "complete")

def qr(self: Tensor, some: bool = True, *, Q: Tensor, R: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.linalg_qr(self, "reduced" if some else "complete", Q=Q, R=R)
"""

_SYMEIG: Final = """
def symeig(self: Tensor, eigenvectors: bool = False, upper: bool = True) -> Tuple[Tensor, Tensor]:
    triangle = "U" if upper else "L"
    if eigenvectors:
        return torch.linalg_eigh(self, triangle)
    return torch.linalg_eigvalsh(self, triangle), torch.empty([0], dtype=self.dtype, device=self.device)
"""
"""Without eigenvectors, the second result was empty."""

_EIG: Final = """
def eig(self: Tensor, eigenvectors: bool = False) -> Tuple[Tensor, Tensor]:
    if not eigenvectors:
        return torch.view_as_real(torch.linalg_eigvals(self)), torch.empty([0], dtype=self.dtype, device=self.device)
    values, vectors = torch.linalg_eig(self)
    values = torch.view_as_real(values)
    second = torch.lt(torch.select(values, -1, 1), 0)
    return values, torch.where(second, torch.neg(torch.imag(vectors)), torch.real(vectors))
"""
"""Complex numbers were pairs. Of two conjugate eigenvectors, the first column is the real part and the second the
imaginary part of the first."""

_MATRIX_RANK: Final = """
def matrix_rank(self: Tensor, tol: float, symmetric: bool = False) -> Tensor:
    return torch.linalg_matrix_rank(self, tol, symmetric)

def matrix_rank(self: Tensor, symmetric: bool = False) -> Tensor:
    return torch.linalg_matrix_rank(self, hermitian=symmetric)
"""

_SOLVE: Final = """
def solve(self: Tensor, A: Tensor) -> Tuple[Tensor, Tensor]:
    batch = torch.broadcast_tensors([torch.empty(self.size()[:-2]), torch.empty(A.size()[:-2])])[0].size()
    LU, pivots = torch.linalg_lu_factor(torch.expand(A, batch + A.size()[-2:]))
    return torch.linalg_lu_solve(LU, pivots, torch.expand(self, batch + self.size()[-2:])), LU
"""

_LSTSQ: Final = """
def lstsq(self: Tensor, A: Tensor) -> Tuple[Tensor, Tensor]:
    rows, columns = A.size(0), A.size(1)
    if rows < columns:
        raise NotImplementedError("torch.lstsq of fewer rows than columns was removed from PyTorch")
    b = torch.unsqueeze(self, 1) if self.dim() == 1 else self
    QR, tau = torch.geqrf(A)
    b = torch.ormqr(QR, tau, b, True, True)
    R = torch.triu(torch.slice(QR, 0, 0, columns))
    first = torch.linalg_solve_triangular(R, torch.slice(b, 0, 0, columns), upper=True)
    return torch.cat([first, torch.slice(b, 0, columns)]), QR
"""
"""The rows after the solution have the residuals of each column of ``self``."""

_FOURIER: Final = """
def fft(self: Tensor, signal_ndim: int, normalized: bool = False) -> Tensor:
    x = torch.view_as_complex(torch.contiguous(self))
    dims = [i - signal_ndim for i in range(signal_ndim)]
    return torch.view_as_real(torch.fft_fftn(x, None, dims, "ortho" if normalized else "backward"))

def ifft(self: Tensor, signal_ndim: int, normalized: bool = False) -> Tensor:
    x = torch.view_as_complex(torch.contiguous(self))
    dims = [i - signal_ndim for i in range(signal_ndim)]
    return torch.view_as_real(torch.fft_ifftn(x, None, dims, "ortho" if normalized else "backward"))

def rfft(self: Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True) -> Tensor:
    dims = [i - signal_ndim for i in range(signal_ndim)]
    norm = "ortho" if normalized else "backward"
    if onesided:
        return torch.view_as_real(torch.fft_rfftn(self, None, dims, norm))
    return torch.view_as_real(torch.fft_fftn(self, None, dims, norm))

def irfft(self: Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True,
          signal_sizes: List[int] = []) -> Tensor:
    x = torch.view_as_complex(torch.contiguous(self))
    dims = [i - signal_ndim for i in range(signal_ndim)]
    norm = "ortho" if normalized else "backward"
    if not onesided:
        return torch.contiguous(torch.real(torch.fft_ifftn(x, None, dims, norm)))
    if len(signal_sizes) == 0:
        signal_sizes = x.size()[-signal_ndim:]
        signal_sizes[-1] = 2 * signal_sizes[-1] - 1
    return torch.fft_irfftn(x, signal_sizes, dims, norm)
"""
"""Fourier transforms of the releases before 1.8: complex numbers were pairs, and the transforms applied to the last
dimensions before the pairs. Omitted sizes of an inverse real transform were odd."""

_EXTREMES: Final = """
def max_values(self: Tensor, dim: List[int], keepdim: bool = False) -> Tensor:
    return torch.amax(self, dim, keepdim)

def min_values(self: Tensor, dim: List[int], keepdim: bool = False) -> Tensor:
    return torch.amin(self, dim, keepdim)
"""

REMOVED_OPERATORS: Final = (_CHOLESKY, _QR, _SYMEIG, _EIG, _MATRIX_RANK, _SOLVE, _LSTSQ, _FOURIER, _EXTREMES)
"""Texts of functions that replace the operators of their names, each used if this PyTorch does not have the
operator."""

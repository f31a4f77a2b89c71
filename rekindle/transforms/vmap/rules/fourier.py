"""Batching rules of Fourier transforms."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch fft_fft, fft_ifft, fft_rfft, fft_irfft, fft_hfft, fft_ihfft(self, n, dim, norm):
    return torch.SAME(self, n, inner(self, dim), norm)

batch fft_fft2, fft_ifft2, fft_rfft2, fft_irfft2, fft_hfft2, fft_ihfft2(self, s, dim, norm):
    return torch.SAME(self, s, inner_all(self, dim), norm)

def transformed(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]]) -> List[int]:
    if dim is not None:
        return inner_all(self, dim)
    if s is not None:
        return [i - len(s) for i in range(len(s))]
    return every_inner(self)

batch fft_fftn, fft_ifftn, fft_rfftn, fft_irfftn, fft_hfftn, fft_ihfftn(self, s, dim, norm):
    return torch.SAME(self, s, transformed(self, s, dim), norm)

batch fft_fftshift, fft_ifftshift(self, dim):
    return torch.SAME(self, transformed(self, None, dim))
"""

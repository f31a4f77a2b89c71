"""Differences between releases of PyTorch in what its kernels compute, which generated kernels follow."""

from __future__ import annotations

from typing import Final

import torch

_RELEASE: Final = tuple(int(part) for part in torch.__version__.split(".")[:2])

EARLY_OVERFLOW_OF_HYPERBOLICS: Final = _RELEASE < (2, 14)
"""Whether ``sinh`` and ``cosh`` of floats overflow where ``exp`` does, at 88.7, as SLEEF's functions do. Since 2.14
they overflow where their results do, at 89.4."""

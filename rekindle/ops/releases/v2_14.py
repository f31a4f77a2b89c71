"""PyTorch 2.14: ``sinh`` and ``cosh``."""

from __future__ import annotations

from typing import Final

from rekindle.ops.releases import RELEASE

EARLY_OVERFLOW_OF_HYPERBOLICS: Final = RELEASE < (2, 14)
"""Whether ``sinh`` and ``cosh`` of floats overflow where ``exp`` does, at 88.7, as SLEEF's functions do. Since 2.14
they overflow where their results do, at 89.4. Kernels follow the release."""

"""PyTorch 2.14: ``sinh`` and ``cosh``, and gradients of ``clamp``."""

from __future__ import annotations

from typing import Final

from rekindle.ops.releases import RELEASE

EARLY_OVERFLOW_OF_HYPERBOLICS: Final = RELEASE < (2, 14)
"""Whether ``sinh`` and ``cosh`` of floats overflow where ``exp`` does, at 88.7, as SLEEF's functions do. Since 2.14
they overflow where their results do, at 89.4. Kernels follow the release."""

CLAMP_EXCLUDES_LIMITS: Final = RELEASE >= (2, 14)
"""Whether the gradient of ``clamp`` is 0 at a limit that is a number, and half of it is that of a limit that is a
tensor. Before 2.14, it is that of the element there."""

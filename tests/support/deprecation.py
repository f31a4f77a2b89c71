"""torch.jit says at each call that it is deprecated. Tests that use it as the oracle silence exactly that."""

from __future__ import annotations

import warnings


def silence() -> None:
    """Inside of ``warnings.catch_warnings()``: let ``torch.jit.script`` and its kin be called."""
    for category in (DeprecationWarning, FutureWarning):  # the second since PyTorch 2.15
        warnings.filterwarnings(
            "ignore", r".torch\.jit\.\w+. is (deprecated|not supported in Python 3\.14\+)", category
        )

"""PyTorch 2.15: numbers that are assigned to parts of Tensors or fill them, and ranks that recurrent cells check."""

from __future__ import annotations

from typing import Final

import torch

from rekindle.ops.releases import RELEASE

_SHORT: Final = frozenset(
    {torch.float16, torch.bfloat16, *(value for name, value in vars(torch).items() if name.startswith("float8_"))}
)

CELLS_CHECK_RANKS: Final = RELEASE >= (2, 15)
"""Whether a recurrent cell raises an error of its own where its input or state is not a matrix."""

TRUNCATES_BEFORE_CHECK: Final = RELEASE >= (2, 15)
"""Whether a float is truncated before PyTorch checks that an integer dtype holds it: 127.4 becomes the int8 127."""


def check_assigned_number(number: complex, dtype: torch.dtype) -> None:
    """Raise the error of ``x[i] = number`` since PyTorch 2.15 if the number exceeds a floating dtype of 16 or 8 bits.
    Earlier releases made it infinite.

    Where ``x[i]`` has one element, eager assigns infinity still. That is not known here, so this raises then too.

    Raises:
        RuntimeError: the number exceeds the range of ``dtype``, and PyTorch is 2.15 or later.
    """
    if RELEASE >= (2, 15) and dtype in _SHORT:
        torch.empty(0, dtype=dtype).fill_(number)

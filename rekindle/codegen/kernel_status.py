"""Return codes of kernels."""

from __future__ import annotations

from enum import IntEnum


class KernelStatus(IntEnum):
    """Return codes of a kernel. After any code but success, the operators run one by one."""

    DONE = 0
    FAILED = 1
    """An index or a number was out of bounds, or a GPU has no memory left."""
    DECLINED = 2
    """It is never launched on tensors of these sizes: it would use too little of a GPU."""
    NO_MEMORY = 3
    """The processor has no memory left for values that are computed on the way."""

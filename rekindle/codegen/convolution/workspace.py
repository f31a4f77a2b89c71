"""Memory that the calls of kernels share."""

from __future__ import annotations

import threading
from typing import Final

import torch
from torch import Tensor

_MAX_KEPT: Final = 1 << 24
"""Maximum size in bytes of the workspace that a thread caches."""


class Workspace(threading.local):
    """Scratch memory of a Python thread, to which kernels write while they run."""

    def __init__(self) -> None:
        self._memory = torch.empty(0, dtype=torch.float32, device="cpu")

    def of(self, size: int) -> Tensor:
        """Return at least ``size`` bytes of memory, which later calls may reuse unless ``size`` exceeds the cache's
        maximum."""
        if size > _MAX_KEPT:
            return torch.empty(-(-size // 4), dtype=torch.float32, device="cpu")
        if self._memory.numel() * 4 < size:
            self._memory = torch.empty(-(-size // 4), dtype=torch.float32, device="cpu")
        return self._memory


WORKSPACE: Final = Workspace()

"""Measurements against eager Python and torch.jit, side by side: ``python -m benchmarks``."""

import os

# PyTorch's profiler, which tells the memory, writes a line for each start and stop. It reads this when it is loaded.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

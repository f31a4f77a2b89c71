"""Measurements compared with eager Python and ``torch.jit``: ``python -m benchmarks``."""

import os

# PyTorch's profiler, which measures memory, writes a line at each start and stop. It reads this when it is loaded.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

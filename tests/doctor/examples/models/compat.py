"""Names of torch.jit, for other modules."""

import torch

jit_script = torch.jit.script  # not torch.jit.trace


def maybe_script(fn, enabled: bool = True):
    """Compile with torch.jit.script, if it is enabled."""
    return torch.jit.script(fn) if enabled else fn

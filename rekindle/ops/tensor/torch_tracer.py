"""Whether PyTorch's own tracer is recording: it sees operators, and takes for constants what kernels compute.

``torch.jit.trace`` and ``torch.onnx.export(dynamo=False)`` record so. The dispatch key of the tracer is included in a
thread while it records; asking for it does not involve TorchScript.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

_KEY: Final[Any] = torch._C._parse_dispatch_key("Tracer")
_is_included: Final[Callable[[Any], bool]] = torch._C._dispatch_tls_is_dispatch_key_included


def is_traced_by_torch() -> bool:
    """Return whether PyTorch's tracer records this thread: operators then run one by one."""
    return _is_included(_KEY)

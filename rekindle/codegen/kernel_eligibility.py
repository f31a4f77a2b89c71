"""Eligibility of tensors for this package's kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rekindle.ops.tensor.torch_tracer import is_traced_by_torch


def is_plain(tensor: Any) -> bool:
    """Return whether ``tensor`` is a dense, nonempty tensor of 32-bit floats on the CPU, of the class Tensor itself
    (not a Parameter), and no gradients, transforms, autocasting or tracing apply to it. Modes of Python are not
    checked."""
    if type(tensor) is not Tensor or tensor.dtype is not torch.float32 or not tensor.is_cpu:
        return False
    if tensor.requires_grad and torch.is_grad_enabled():
        return False
    if tensor.layout is not torch.strided or tensor.is_neg() or tensor._is_zerotensor() or not tensor.numel():
        return False
    if torch.is_autocast_enabled("cpu") or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return torch.autograd.forward_ad._current_level < 0 and not is_traced_by_torch()

"""The kinds of calls: what captures of a function depend on."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, Final

import torch
from torch import Tensor

COMPARED: Final = frozenset({int, bool, str, type(None), torch.dtype, torch.device, torch.layout})


class NotCapturable(Exception):
    """A call cannot be captured; the text is the reason."""


def described(value: Any, tensors: list[Tensor]) -> Hashable:
    """Return what identifies the kind of an argument or a result, and add its tensors to ``tensors``.

    Raises:
        NotCapturable: there can be no copy of it.
    """
    if type(value) is Tensor or type(value) is torch.nn.Parameter:
        if value.layout is not torch.strided or value.is_quantized:
            raise NotCapturable("a tensor is not dense")
        tensors.append(value)
        return value.dtype, value.shape, value.stride(), value.requires_grad
    if isinstance(value, (tuple, list)):
        return type(value), tuple(described(each, tensors) for each in value)
    if isinstance(value, dict):
        return dict, tuple((key, described(each, tensors)) for key, each in value.items())
    if isinstance(value, torch.nn.Module):
        return id(value)
    if type(value) in COMPARED:
        return type(value), value
    if type(value) is float:
        return float, value, math.copysign(1.0, value)
    raise NotCapturable(f"a call takes or returns a {type(value).__name__}")


def with_tensors(value: Any, tensors: Iterator[Tensor]) -> Any:
    """Return ``value`` with its tensors replaced by ``tensors``, in the order of :func:`_described`."""
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        parts = [with_tensors(each, tensors) for each in value]
        if isinstance(value, list):
            return parts
        return tuple(parts) if type(value) is tuple else type(value)._make(parts)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: with_tensors(each, tensors) for key, each in value.items()}
    return value


def modes() -> Hashable:
    """Return the modes that choose what operators do."""
    return (
        torch.is_inference_mode_enabled(),
        *((torch.is_autocast_enabled(each), torch.get_autocast_dtype(each)) for each in ("cuda", "cpu")),
        torch.get_default_dtype(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
    )


def is_intercepted() -> bool:
    """Return whether something has to see each operator."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )

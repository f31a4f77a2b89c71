"""The kinds of calls: what captures of a function depend on."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import Parameter

from rekindle.ops.tensor.torch_tracer import is_traced_by_torch

COMPARED: Final = frozenset({int, bool, str, type(None), torch.dtype, torch.device, torch.layout})


class NotCapturable(Exception):
    """A call cannot be captured; the message is the reason."""


def kind_of(value: Any, tensors: list[Tensor], parameters: list[Tensor] | None = None) -> Hashable:
    """Return a key of the kind of an argument or a result, and append its tensors to ``tensors``. With ``parameters``,
    parameters of modules are appended to these, and are identified by their address: a capture reads them where they
    are. The key of a module is its ``id``.

    Raises:
        NotCapturable: ``value``, or an item of it, is of an unsupported class, or a tensor that is not dense; or a
            tensor is the key of a dict.
    """
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        return layout_of(value)
    if kind is Parameter:
        if parameters is None:
            tensors.append(value)
            return layout_of(value)
        parameters.append(value)
        return value.data_ptr(), layout_of(value)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(kind_of(each, tensors, parameters) for each in value)
    if isinstance(value, dict):
        if any(isinstance(key, Tensor) for key in value):
            raise NotCapturable("a tensor is the key of a dict")
        parts = [(kind_of(key, tensors), kind_of(each, tensors, parameters)) for key, each in value.items()]
        return dict, tuple(parts)
    if isinstance(value, torch.nn.Module):
        return id(value)
    number = value_key(value)
    if number is None:
        raise NotCapturable(f"a call takes or returns a {type(value).__name__}")
    return number


def layout_of(tensor: Tensor) -> Hashable:
    """Return a key of the properties of a tensor on which operators depend, other than its elements.

    Raises:
        NotCapturable: ``tensor`` is nested, sparse or quantized, its elements are conjugated or negated lazily, or they
            are zeros without memory.
    """
    dtype = tensor.dtype
    if tensor.is_neg() or (dtype.is_complex and tensor.is_conj()):
        raise NotCapturable("a tensor is conjugated or negated lazily")
    if tensor._is_zerotensor():
        raise NotCapturable("a tensor of zeros has no memory")
    if tensor.is_nested or tensor.layout is not torch.strided or tensor.is_quantized:
        raise NotCapturable("a tensor is not dense")
    return dtype, tensor.shape, tensor.stride(), tensor.requires_grad


def value_key(value: Any) -> Hashable | None:
    """Return a key of a bool, int, float, string, dtype, device, layout or None; None for other values."""
    if type(value) in COMPARED:
        return type(value), value
    return (float, value, math.copysign(1.0, value)) if type(value) is float else None


def with_tensors(value: Any, tensors: Iterator[Tensor], *, parameters: bool = True) -> Any:
    """Return ``value`` with its tensors replaced by ``tensors``, in the order of :func:`kind_of`. Without
    ``parameters``, parameters are not replaced."""
    if isinstance(value, Tensor):
        return value if type(value) is Parameter and not parameters else next(tensors)
    if isinstance(value, (tuple, list)):
        parts = [with_tensors(each, tensors, parameters=parameters) for each in value]
        if isinstance(value, list):
            return parts
        make: Any = getattr(type(value), "_make", tuple)  # of a NamedTuple
        return make(parts)
    if isinstance(value, dict):
        return {key: with_tensors(each, tensors, parameters=parameters) for key, each in value.items()}
    return value


_SETTINGS: Final = tuple(
    getattr(torch._C, name)
    for name in (
        *("_get_cudnn_enabled", "_get_cudnn_benchmark", "_get_cudnn_deterministic"),
        *("_get_cublas_allow_fp16_reduced_precision_reduction", "_get_cublas_allow_bf16_reduced_precision_reduction"),
        *("_get_cublas_allow_fp16_accumulation", "_get_blas_preferred_backend", "_get_linalg_preferred_backend"),
        *("_get_flash_sdp_enabled", "_get_mem_efficient_sdp_enabled", "_get_math_sdp_enabled"),
        *("_get_cudnn_sdp_enabled", "_get_overrideable_sdp_enabled", "_get_math_sdp_allow_fp16_bf16_reduction"),
        "_get_deterministic_algorithms",
    )
    if hasattr(torch._C, name)
)
"""Settings of the process by which operators choose their kernels."""


def modes() -> Hashable:
    """Return a key of the global modes on which operators depend, such as inference mode and autocast."""
    return (
        torch.is_inference_mode_enabled(),
        *((torch.is_autocast_enabled(each), torch.get_autocast_dtype(each)) for each in ("cuda", "cpu")),
        torch.get_default_dtype(),
        *(torch._C._get_fp32_precision_getter("cuda", operator) for operator in ("matmul", "conv", "rnn")),
        tuple(torch._C._get_sdp_priority_order()),
        *[get() for get in _SETTINGS],
    )


def is_intercepted() -> bool:
    """Return whether something observes each operator: a mode, a function transform, forward-mode derivatives or a
    trace."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
        or is_traced_by_torch()
    )

"""Numbers as Tensors, as Python's operators on Tensors pass them.

``x * 0.5`` in Python calls ``mul.Tensor`` with a Tensor that is marked as a number: it does not take part in the
promotion of dtypes, but autograd saves it, and frees it after the backward pass. ``mul.Scalar`` computes the same and
saves no Tensor, so that a second backward pass would succeed where it fails in eager mode.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from rekindle.codegen.aten.functions import AtenFunction, aten_function

_SAVED: Final = ("mul", "mul_", "div", "div_")
_NOT_SAVED: Final = ("add", "add_", "sub", "sub_")
_AS_TENSORS: Final = {
    **{f"aten::{name}.Scalar": f"aten::{name}.Tensor" for name in (*_SAVED, *_NOT_SAVED)},
    **{f"aten::{name}.Scalar_mode": f"aten::{name}.Tensor_mode" for name in ("div", "div_")},
}
"""Overloads for numbers that Python never calls, and the overloads that it calls instead."""


def overload_for_tensors(function: AtenFunction) -> AtenFunction | None:
    """Return the function that Python calls with a number converted to a tensor, in place of the overload for numbers
    that ``function`` is; None if Python calls ``function`` itself."""
    name = _AS_TENSORS.get(function.name)
    return None if name is None else aten_function(name)


def saves_number(function: AtenFunction) -> bool:
    """Return whether autograd saves the number that is passed to ``function``."""
    return function.name.removeprefix("aten::").partition(".")[0] in _SAVED


def wrapped_number(value: object) -> torch.Tensor | None:
    """Return the tensor to which Python converts a bool, a float or an int of 64 bits in a call; None for other values,
    and while a mode or a transform is active, under which no tensor can be created that outlives it."""
    is_number = type(value) in (bool, float) or (type(value) is int and -(1 << 63) <= value < 1 << 63)
    if (
        not is_number
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
    ):
        return None
    with torch._C.DisableTorchFunction(), torch.inference_mode(False), torch.enable_grad():
        one = torch.ones((), device="cpu", dtype=torch.float32, requires_grad=True)
        product: Any = one * value  # type: ignore[operator]
        number = getattr(product.grad_fn, "_saved_other", None)
    return number if type(number) is torch.Tensor and number.dim() == 0 else None

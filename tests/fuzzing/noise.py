"""Whether the answer of a program hangs on the last bits of its floats: then a kernel may change it."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.fuzzing.comparison import tensors_in


class Noise(TorchDispatchMode):
    """Change the results of operators by one or two units in the last place."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        returns = func._schema.returns
        if any(each.alias_info is not None for each in returns) or func.namespace != "aten":
            return result
        if "aten::" in str(func._schema.name) and func._schema.name.split("::")[1] in _EXACT:
            return result
        for tensor in tensors_in(result):
            if tensor.is_floating_point() and not any(tensor is each for each in tensors_in(list(args))):
                noise = torch.randint(-2, 3, tensor.shape, generator=self._generator).to(tensor.dtype)
                tensor.copy_(tensor * (1 + noise * torch.finfo(tensor.dtype).eps))
        return result


class ZerosAnnihilate(TorchDispatchMode):
    """In backward passes, where a zero says that there is no gradient, zero times or divided by anything is zero."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func._schema.name).removeprefix("aten::")
        is_backward = torch._C._current_graph_task_id() != -1
        if name not in ("mul", "div", *_SCALED) or not is_backward or not result.is_floating_point():
            return result
        operands = args[:2] if name == "mul" else args[:1]
        for operand in tensors_in(list(operands)):
            result = torch.where(operand == 0, torch.zeros_like(result), result)
        return result


_SCALED = frozenset(
    f"{name}_backward"
    for name in ("sigmoid", "tanh", "gelu", "silu", "elu", "softplus", "leaky_relu", "threshold", "hardtanh", "logit")
)
"""Backward kernels that multiply each element of the gradient, their first operand, by a factor."""
_EXACT = frozenset(
    {
        "clone",
        "_to_copy",
        "lift_fresh",
        "zeros",
        "ones",
        "full",
        "arange",
        "empty",
        "neg",
        "abs",
        "where",
        "cat",
        "stack",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "max",
        "min",
        "amax",
        "amin",
        "relu",
        "sort",
        "gather",
        "index",
        "index_select",
        "flip",
        "roll",
        "masked_fill",
        "maximum",
        "minimum",
        "clamp",
        "round",
        "floor",
        "ceil",
        "trunc",
        "sign",
        "scalar_tensor",
        "topk",
        "tril",
        "triu",
    }
)
"""What kernels compute to the last bit."""

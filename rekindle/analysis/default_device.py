"""Default devices: compiled code runs outside the mode that PyTorch sets for one.

``torch.set_default_device`` and ``with torch.device(...)`` push a function mode, which passes the device to functions
that create tensors. A function mode intercepts every operator, so that no native plan and no kernel runs under it. But
compiled programs do not depend on default devices: as in TorchScript, ``torch.zeros`` is on the CPU where no device is
given. So the mode makes no difference to most graphs. Code that falls back because of it checks
:func:`is_sole_function_mode` and :func:`may_read_default_device`, and calls itself again by :func:`run_outside`. Calls
without a mode pay nothing.

Graphs to which the mode may make a difference run under it: those that call Python, or ``torch.tensor`` without a
device. Custom operators and Tensor subclasses do not see it in eager mode either: PyTorch runs the operator that a mode
intercepts, with all that it calls, outside the mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.utils._device import DeviceContext

from rekindle.analysis.effects import CALLS
from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import NoneType, OptionalType

_READERS: Final = frozenset({"aten::tensor", "aten::as_tensor"})
"""Kinds that run Python functions which create tensors on the default device. Operators of PyTorch's dispatcher do not:
the Python functions that are called in place of them get an explicit device."""


def is_sole_function_mode() -> bool:
    """Return whether the mode of a default device is the only function mode of this thread."""
    return torch._C._len_torch_function_stack() == 1 and type(torch._C._get_function_stack_at(0)) is DeviceContext


def may_read_default_device(graph: Graph) -> bool:
    """Return whether the results of ``graph`` may depend on the default device."""
    return any(_may_read(node) for node in graph.all_nodes_with_subgraphs())


def _may_read(node: Node) -> bool:
    if node.kind not in _READERS:
        return node.kind in CALLS
    assert node.operator is not None
    names = [argument.name for argument in node.operator.schema.arguments]
    return isinstance(node.inputs[names.index("device")].type, (OptionalType, NoneType))


def run_outside(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return the result of ``function(*arguments)``, called without the only function mode of this thread."""
    mode = torch._C._pop_torch_function_stack()
    try:
        return function(*arguments)
    finally:
        torch._C._push_on_torch_function_stack(mode)

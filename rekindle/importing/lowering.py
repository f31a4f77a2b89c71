"""Lower Dynamo's captures, which call functions and methods of ``torch``, to graphs of ATen operators.

.. code-block:: text

    %y = call_function[target=torch.nn.functional.linear](args = (%x, %w), kwargs = {})
    %z = call_method[target=add_](args = (%y, 1), kwargs = {})

    becomes

    %linear = call_function[target=torch.ops.aten.linear.default](args = (%x, %w), kwargs = {})
    %add_ = call_function[target=torch.ops.aten.add_.Tensor](args = (%linear, 1), kwargs = {})

PyTorch's own tracer runs the graph on FakeTensors, above autograd: composite operators are not decomposed, and writes
remain in place. The IR has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor, fx
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan_op
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import make_fx

from rekindle.errors import CaptureError
from rekindle.importing.fx.fx_importer import name_of

_WITH_GRADIENTS: Final = (
    *(torch.ops.higher_order.cond, torch.ops.higher_order.while_loop),
    *(scan_op, map_impl),
)
"""Higher-order operators that programs can express and differentiate."""


def lowered(module: fx.GraphModule, inputs: Sequence[Any]) -> fx.GraphModule:
    """Return ``module``, a graph of Dynamo, lowered to a graph of ATen operators. ``inputs`` are examples of its
    inputs.

    Raises:
        CaptureError: the graph affects gradients, dtypes or devices other than through its operators, or takes a tensor
            subclass.
        Exception: whatever PyTorch raises if it cannot trace the graph.
    """
    for within in module.modules():
        if isinstance(within, fx.GraphModule):
            _check(within)
    fakes = [_fake(node, given) for node, given in zip(_placeholders(module), inputs, strict=True)]
    mode = next((fake.fake_mode for fake in fakes if isinstance(fake, FakeTensor)), None)
    if mode is None:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, traceback.preserve_node_meta():
        run = fx.Interpreter(module).run
        found: fx.GraphModule = make_fx(run, pre_dispatch=True, _allow_non_fake_inputs=True)(*fakes)
    return found


def _placeholders(module: fx.GraphModule) -> list[fx.Node]:
    return list(module.graph.find_nodes(op="placeholder"))


def _fake(node: fx.Node, given: Any) -> Any:
    """Return the FakeTensor or value for an input while tracing: that of the capture, or ``given`` if the capture has
    none.

    Raises:
        CaptureError: it is a tensor subclass.
    """
    known = node.meta.get("example_value", given)
    if isinstance(known, Tensor) and type(known) not in (Tensor, FakeTensor, torch.nn.Parameter):
        raise CaptureError(f"'{node.name}' is a {type(known).__name__}, a tensor of a class of its own")
    return known


def _check(module: fx.GraphModule) -> None:
    for node in module.graph.nodes:
        target = node.target
        if isinstance(target, HigherOrderOperator) and target not in _WITH_GRADIENTS:
            raise CaptureError(f"'{name_of(target)}' has a gradient of its own")
        if getattr(target, "__name__", "") in ("_enter_autocast", "_enter_inference_mode"):
            raise CaptureError(f"'{name_of(target)}' changes what operators mean")

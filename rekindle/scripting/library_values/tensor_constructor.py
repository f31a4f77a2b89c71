"""``torch.tensor``: of a Tensor, it is a copy with the same dtype.

TorchScript has no overload for a Tensor. It takes its number for a float, and makes a float32 of that.
"""

from __future__ import annotations

from typing import Final

from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.types import TensorType

_CONVERSIONS: Final = frozenset({"dtype", "device"})


class TensorConstructor(BuiltinFunction):
    """The function ``torch.tensor``."""

    def call(self, call: CallSite) -> SugaredValue:
        given = {item.name: item for item in call.kwargs}
        data = given.pop("data", None) if not call.args else call.args[0]
        known = given.keys() <= _CONVERSIONS | {"requires_grad"} and len(call.args) < 2
        if data is None or not isinstance(data.type, TensorType) or not known:
            return super().call(call)
        graph, range = call.graph, call.range
        options: dict[str, object] = {name: given[name].materialize(graph) for name in _CONVERSIONS & given.keys()}
        detached = graph.insert("aten::detach", [data.materialize(graph)], range=range)
        copied = graph.insert("aten::to", [detached], {**options, "copy": True}, range)
        if "requires_grad" in given:
            flag = given["requires_grad"].materialize(graph)
            copied = graph.insert("aten::requires_grad_", [copied, flag], range=range)
        return SimpleValue(copied)

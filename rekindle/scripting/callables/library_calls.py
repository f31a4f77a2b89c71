"""Functions of PyTorch that Python executes: they use Python that cannot be compiled, such as classes within functions.
Programs that call them run in this process, and gradients pass through them; archives cannot hold them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
import torch.masked

from rekindle.frontend.sugared_values.base import CallSite, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import TENSOR, ListType, Type


class LibraryCall(StaticValue):
    """A function of PyTorch that the program calls in Python, with all arguments. ``result`` is the type of its
    result."""

    def __init__(self, function: Callable[..., Any], result: Type) -> None:
        self.function = function
        self.result = result

    @property
    def description(self) -> str:
        return f"the Python function '{self.function.__name__}'"

    def call(self, call: CallSite) -> SugaredValue:
        inputs = [item.materialize(call.graph) for item in (*call.args, *call.kwargs)]
        node = call.graph.create("prim::PythonOp", inputs, types=[self.result], range=call.range)
        node.attributes["name"] = self.function.__name__
        called = _Named(self.function, len(call.args), tuple(item.name or "" for item in call.kwargs))
        node.attributes["function"] = ConstantObject(called)
        return SimpleValue(call.graph.insert_node(node).output)


class _Named:
    """A function whose last arguments are passed by name. It converts an argument named ``dtype``, a number in
    programs, to the dtype."""

    def __init__(self, function: Callable[..., Any], positional: int, names: tuple[str, ...]) -> None:
        self.function = function
        self.positional = positional
        self.names = names
        self.__qualname__ = self.__name__ = function.__name__

    def __call__(self, *args: Any) -> Any:
        named = dict(zip(self.names, args[self.positional :], strict=True))
        if isinstance(named.get("dtype"), int):
            named["dtype"] = DTYPES[named["dtype"]]
        return self.function(*args[: self.positional], **named)


_MASKED: Final = (
    *("amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean"),
    *("median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"),
)

_LOSSES: Final = [
    getattr(torch.nn.functional, name) for name in ("linear_cross_entropy",) if hasattr(torch.nn.functional, name)
]
"""Functions that some releases of PyTorch lack."""

LIBRARY_CALLS: Final[dict[int, SugaredValue]] = {
    **{id(getattr(torch.masked, name)): LibraryCall(getattr(torch.masked, name), TENSOR) for name in _MASKED},
    **{id(function): LibraryCall(function, TENSOR) for function in _LOSSES},
    id(torch.unravel_index): LibraryCall(torch.unravel_index, ListType(TENSOR)),
}
"""Sugared values of functions, by identity."""

"""The kinds of calls: what captures of a function depend on."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.ir.graph import Graph, Node, Value
from rekindle.ops.python.objects import get_attribute

_COMPARED: Final = frozenset({int, bool, str, type(None), torch.dtype, torch.device, torch.layout})


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
        return value.dtype, value.shape, value.stride()
    if isinstance(value, (tuple, list)):
        return type(value), tuple(described(each, tensors) for each in value)
    if isinstance(value, dict):
        return dict, tuple((key, described(each, tensors)) for key, each in value.items())
    if isinstance(value, torch.nn.Module):
        return id(value)
    if type(value) in _COMPARED:
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


def _attribute_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that read attributes of the arguments, in graph order."""
    return [node for node in graph.all_nodes() if node.kind == "prim::GetAttr"]


def _attribute_values(graph: Graph) -> Iterator[Value]:
    """Yield the values of attributes that are not objects of which others are read."""
    nodes = _attribute_nodes(graph)
    for node in nodes:
        if not all(use.user.kind == "prim::GetAttr" for use in node.output.uses):
            yield node.output


class Attributes:
    """The attributes of arguments that a graph reads."""

    def __init__(self, graph: Graph) -> None:
        numbers: dict[Value, int] = {value: index for index, value in enumerate(graph.inputs)}
        self._reads: list[tuple[Callable[[Any], Any], int]] = []
        self._leaves: list[int] = []
        leaves = set(_attribute_values(graph))
        for node in _attribute_nodes(graph):
            numbers[node.output] = len(numbers)
            self._reads.append((get_attribute(node), numbers[node.input]))
            if node.output in leaves:
                self._leaves.append(numbers[node.output])

    def of(self, arguments: Sequence[object]) -> list[Any]:
        """Return the values of the attributes for ``arguments``."""
        values = list(arguments)
        for get, owner in self._reads:
            values.append(get(values[owner]))
        return [values[leaf] for leaf in self._leaves]

    def state(self, arguments: Sequence[object]) -> list[object]:
        """Return what must not change of them as long as a capture is replayed."""
        return [state_of(each) for each in self.of(arguments)]


def state_of(value: Any) -> object:
    """Return what must not change of an attribute as long as a capture is replayed.

    Raises:
        NotCapturable: nothing shows whether it has changed.
    """
    if isinstance(value, Tensor):
        return value.data_ptr(), value.dtype, value.shape, value.stride()
    if type(value) in (list, tuple):
        return type(value), [state_of(each) for each in value]
    if type(value) in _COMPARED or type(value) is float:
        return type(value), value
    raise NotCapturable(f"an attribute is a {type(value).__name__}")


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of an attribute."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)

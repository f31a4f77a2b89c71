"""Operators that the way back is built with, beside those of formulas (:mod:`rekindle.autodiff.backward_operators`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rekindle.errors import InternalError
from rekindle.ir.execution import callable_of
from rekindle.ir.graph import Node
from rekindle.ir.registry import Effects, Operation
from rekindle.ops.declare import implements, implements_for_node


@implements("autodiff::join(Tensor?[] gradients, Tensor[] parts, int dim) -> Tensor")
def join(gradients: Sequence[Tensor | None], parts: Sequence[Tensor], dim: int) -> Tensor:
    """``gradients`` joined along ``dim``, with zeros for those that do not exist, of the size of their part; there are
    no parts where all exist."""
    if not parts:
        return torch.cat(gradients, dim)  # type: ignore[arg-type]
    pairs = zip(gradients, parts, strict=True)
    return torch.cat([torch.zeros_like(part) if gradient is None else gradient for gradient, part in pairs], dim)


@implements("autodiff::only_at(Any gradient, int count, int index) -> Any", passes_on=True)
def only_at(gradient: Any, count: int, index: int) -> list[Any]:
    """The gradients of a list of ``count`` elements, of which one was used."""
    found: list[Any] = [None] * count
    found[index] = gradient
    return found


@implements("autodiff::added(Any a, Any b) -> Any", passes_on=True)
def added(a: Any, b: Any) -> Any:
    """The sum of the gradients of two containers, any part of which may not exist: of lists element by element, of
    dicts key by key."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Tensor):
        return a + b
    if isinstance(a, dict):
        return {key: added(a.get(key), b.get(key)) for key in (*a, *(key for key in b if key not in a))}
    return [added(x, y) for x, y in zip(a, b, strict=True)]


@implements("autodiff::plus(Tensor(a) a, Tensor? b) -> Tensor(a)")
def plus(a: Tensor, b: Tensor | None) -> Tensor:
    """The sum of a gradient, and one that may not exist."""
    return a if b is None else a + b


@implements("autodiff::sum_of(Tensor(a)? a, Tensor(a)? b) -> Tensor(a)?")
def sum_of(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of two gradients, either of which may not exist."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@implements_for_node("autodiff::backward_of(...) -> ...", effects=Effects.PURE)
def backward_of(node: Node) -> Operation:
    """PyTorch's autograd through attribute ``Subgraph``: takes the gradients of its outputs ``given``, then its
    inputs, and returns the gradients of its inputs ``wanted``."""
    graph = node.get_graph("Subgraph")
    given, wanted = _numbers(node, "given"), _numbers(node, "wanted")
    run = callable_of(graph, "backward_of")
    several = len(graph.outputs) != 1

    def go(*inputs: Any) -> Any:
        again = torch.is_grad_enabled()
        gradients, arguments = inputs[: len(given)], list(inputs[len(given) :])
        with torch.enable_grad():
            for index in wanted:
                arguments[index] = _fresh(arguments[index], again)
            results = run(*arguments)
            outputs = [(results if several else (results,))[index] for index in given]
            found = _gradients(outputs, [arguments[index] for index in wanted], gradients, again)
        return found[0] if len(found) == 1 else tuple(found)

    return go


def _numbers(node: Node, name: str) -> list[int]:
    found = node[name]
    if not isinstance(found, list):
        raise InternalError(f"attribute '{name}' of {node.kind} is not a list of numbers")
    return [number for number in found if isinstance(number, int)]


def _fresh(value: Any, again: bool) -> Any:
    """``value``, so that a gradient of it can be asked for; still connected to where it came from if ``again``."""
    if isinstance(value, list):
        return [_fresh(item, again) for item in value]
    if not isinstance(value, Tensor):
        return value
    if again and value.requires_grad:
        return value.view_as(value)
    return value.detach().requires_grad_(value.is_floating_point() or value.is_complex())


def _gradients(outputs: list[Any], inputs: list[Any], gradients: Sequence[Any], again: bool) -> list[Any]:
    pairs = [
        (output, gradient)
        for output, gradient in zip(_flat(outputs), _flat(gradients), strict=True)
        if gradient is not None and output.requires_grad
    ]
    leaves = [value for value in _flat(inputs) if value.requires_grad]
    found: list[Any] = [None] * len(leaves)
    if pairs and leaves:
        found = list(
            torch.autograd.grad(
                [output for output, _ in pairs],
                leaves,
                [gradient for _, gradient in pairs],
                allow_unused=True,
                create_graph=again,
            )
        )
    # A gradient that does not exist is zero here: whoever asked has shown a way to it.
    by_leaf = {
        id(leaf): torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves, found, strict=True)
    }
    return [_shaped(value, by_leaf) for value in inputs]


def _flat(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [item for value in values for item in _flat(value)]
    return [values]


def _shaped(value: Any, by_leaf: dict[int, Tensor]) -> Any:
    if isinstance(value, list):
        return [_shaped(item, by_leaf) for item in value]
    return by_leaf.get(id(value))

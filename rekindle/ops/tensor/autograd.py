"""Operators of gradients: those that programs call, and those that accumulate gradients in differentiated graphs.

A gradient that does not exist is None here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ops.registration.declare import implements

# -------------------------------------------------------------------------------------------------- called by programs


@implements(
    "aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()",
    effects=AliasAnalysisKind.CONSERVATIVE,
    side_effects=True,
)
def backward(
    self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False
) -> None:
    """Add the gradients of ``self`` to the ``grad`` of the leaves that it was computed from."""
    torch.autograd.backward(self, gradient, retain_graph, create_graph)


@implements(
    "aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None,"
    " bool create_graph=False) -> ()",
    effects=AliasAnalysisKind.CONSERVATIVE,
    side_effects=True,
)
def backward_of_list(
    tensors: list[Tensor],
    grad_tensors: list[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients of all ``tensors`` to the ``grad`` of the leaves that they were computed from."""
    torch.autograd.backward(tensors, grad_tensors, retain_graph, create_graph)


@implements(
    "aten::grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, bool? retain_graph=None,"
    " bool create_graph=False, bool allow_unused=False) -> Tensor?[]",
    effects=AliasAnalysisKind.CONSERVATIVE,
)
def grad(
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list[Tensor | None]:
    """Return the gradients of ``outputs`` by ``inputs``: None for an input that is not used, if ``allow_unused``."""
    return list(
        torch.autograd.grad(
            outputs,
            inputs,
            grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
        )
    )


# -------------------------------------------------------------------------------------------- in differentiated graphs


@implements("prim::AutogradZero() -> Tensor")
def no_gradient() -> None:
    """Return None, for a missing gradient."""


@implements("prim::AutogradAdd(Any a, Any b) -> Any", may_alias_inputs=True)
def add_gradients(a: Any, b: Any) -> Any:
    """Return ``a + b``, where either may be None."""
    if a is None:
        return b
    return a if b is None else a + b


@implements("prim::AutogradAnyNonZero(...) -> bool")
def any_gradient(*gradients: Any) -> bool:
    """Return whether one of the gradients is not None. A list counts for each of its elements."""
    return any(_exist(gradients))


@implements("prim::AutogradAllNonZero(...) -> bool")
def all_gradients(*gradients: Any) -> bool:
    """Return whether none of the gradients is None."""
    return all(_exist(gradients))


@implements("prim::AutogradAllZero(...) -> bool")
def no_gradients(*gradients: Any) -> bool:
    """Return whether all of the gradients are None."""
    return not any(_exist(gradients))


def _exist(gradients: Sequence[Any]) -> list[bool]:
    found: list[bool] = []
    for gradient in gradients:
        found.extend(_exist(gradient) if isinstance(gradient, (list, tuple)) else [gradient is not None])
    return found

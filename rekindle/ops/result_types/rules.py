"""Rules: what is known of the results of an operator, given what is known of its arguments.

A rule is composed of parts, each a function of the call: dtype, sizes, device, and from which arguments gradients flow.

.. code-block:: text

    "sum": tensor(named(summed(first)), reduced("dim"))
    "max_unpool2d": tensor(first, keep_leading(2))
    "sort": several(SAME, INDICES)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import torch

from rekindle.ir.types import TENSOR, TensorType
from rekindle.ops.result_types import dtypes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.facts import Every, Fact

Rule: TypeAlias = Callable[[Call], Sequence[Fact]]
"""Returns one fact for each result; fewer if nothing is known about the others."""

SizesRule: TypeAlias = Callable[[Call], Sizes | None]
DeviceRule: TypeAlias = Callable[[Call], torch.device | None]

Rules: TypeAlias = Mapping[str, Rule]
"""Rules by the name of the operator, without the namespace ``aten``."""


def unknown_sizes(call: Call) -> Sizes | None:
    """Return None: the sizes are unknown."""
    return None


# ------------------------------------------------------------------------------------------------------------- devices


def shared_device(call: Call) -> torch.device | None:
    """Return the device of all tensors among the arguments, if they are known to be on one; else
    None."""
    found = {tensor.device for tensor in call.tensors}
    return found.pop() if len(found) == 1 else None


def first_device(call: Call) -> torch.device | None:
    """Return the device of the first argument; None if it is not known."""
    return call.first.device


def made_on(otherwise: DeviceRule) -> DeviceRule:
    """Return a rule for the device passed as the argument ``device``, or the device inferred by ``otherwise`` if that
    is None."""

    def rule(call: Call) -> torch.device | None:
        if call.is_none("device"):
            return otherwise(call)
        found = call.value("device")
        found = torch.device(found) if isinstance(found, str) else found
        if not isinstance(found, torch.device) or (found.index is None and found.type not in ("cpu", "meta")):
            return None  # the current device of its type
        return torch.device(found.type) if found.type in ("cpu", "meta") else found

    return rule


def default_device(call: Call) -> torch.device | None:
    """Return the device of tensors that are created without one; None if it is not known."""
    return call.default_device


# ----------------------------------------------------------------------------------------------------------- gradients

ALL: Final = "all"
"""A gradient flows from each tensor among the arguments that is of a floating or complex dtype."""

FIRST: Final = "first"
"""A gradient flows from the first argument. It may flow from others."""

SOME: Final = "some"
"""Gradients may flow from each argument, but need not."""

NEVER: Final = "never"
"""The operator is not differentiable."""


def _requires_grad(call: Call, dtype: torch.dtype | None, flow: str) -> bool | None:
    """Return whether the result requires a gradient, in a run that records gradients; None if that is unknown."""
    if flow == NEVER or not dtypes.may_require_grad(dtype):
        return False
    if all(tensor.requires_grad is False for tensor in call.tensors):
        return False
    if dtype is None or flow == SOME:
        return None
    sources = call.tensors if flow == ALL else call.tensors[:1]
    return True if any(tensor.requires_grad and _is_differentiable(tensor) for tensor in sources) else None


def _is_differentiable(tensor: TensorType) -> bool:
    return tensor.dtype is not None and dtypes.may_require_grad(tensor.dtype)


# --------------------------------------------------------------------------------------------------------- combinators


@dataclass(slots=True, frozen=True)
class Result:
    """Rule of an operator that returns one tensor."""

    dtype: dtypes.DtypeRule
    sizes: SizesRule
    device: DeviceRule
    flow: str

    def type(self, call: Call) -> TensorType:
        """Return the type of the result of a call, as far as it is known."""
        dtype = self.dtype(call)
        return TensorType(dtype, self.device(call), self.sizes(call), None, _requires_grad(call, dtype, self.flow))

    def __call__(self, call: Call) -> Sequence[Fact]:
        return (self.type(call),)


def tensor(
    dtype: dtypes.DtypeRule = dtypes.first,
    sizes: SizesRule = unknown_sizes,
    *,
    device: DeviceRule = shared_device,
    flow: str = FIRST,
) -> Result:
    """Return the rule of an operator that returns one tensor, from rules for its dtype, sizes and device. ``flow``
    (ALL, FIRST, SOME or NEVER) says which arguments make it require a gradient."""
    return Result(dtype, sizes, device, flow)


def several(*results: Result) -> Rule:
    """Return a rule for several results, each with its own rule."""
    return lambda call: [result.type(call) for result in results]


def list_of(result: Result) -> Rule:
    """Return the rule of an operator that returns a list of unknown length, whose items all have the type of
    ``result``."""

    def rule(call: Call) -> Sequence[Fact]:
        found = result.type(call)
        return (Every(found),) if found != TENSOR else ()

    return rule


def each(result: Rule, *names: str) -> Rules:
    """Return a table with the same rule for several operators, whose names are separated by spaces."""
    return {name: result for text in names for name in text.split()}

"""Which operators have results of the same dtype whether autocast is on or not."""

from __future__ import annotations

from functools import cache
from typing import Final

import torch

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.operators.registry import Operator
from rekindle.ir.operators.traits import Trait

_KEYS: Final = ("AutocastCPU", "AutocastCUDA", "AutocastMPS", "AutocastXPU", "AutocastPrivateUse1")


@cache
def ignores_autocast(operator: Operator) -> bool:
    """Return whether autocast is known not to change the dtype of the results of ``operator``.

    That is known of operators that move data, and of those in ``aten`` that return views or arguments, or that are
    pointwise or take no tensors, have no kernel for an autocast key and are not composite: autocast may change any
    operator that a composite one calls.
    """
    schema = operator.schema
    if Trait.MOVES_DATA in operator.traits:
        return True
    if not schema.name.startswith("aten::"):
        return False
    if any(result.alias is not None for result in schema.returns):
        return not operator.may_alias_inputs
    takes_tensors = any(may_contain_tensor(argument.type) for argument in schema.arguments)
    if (takes_tensors and Trait.POINTWISE not in operator.traits) or operator.may_alias_inputs:
        return False
    if not torch._C._dispatch_has_kernel(schema.qualified_name):
        return False
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    is_composite = has_kernel(schema.qualified_name, "CompositeImplicitAutograd")
    return not is_composite and not any(has_kernel(schema.qualified_name, key) for key in _KEYS)

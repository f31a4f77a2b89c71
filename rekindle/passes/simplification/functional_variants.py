"""Functional variants of mutating operators: operators that compute the same numbers into a new tensor.

``x.add_(y)`` keeps the dtype and the sizes of ``x``, or fails; ``x + y`` takes those that both need. So the two are the
same only where something is known of the operands: here from their types, by the rule for the result of ``add``, and
from how they were computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import torch

from rekindle.analysis.transfer_functions import fact_of_input
from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import BoolType, FloatType, IntType, NoneType, OptionalType, StringType, TensorType, Type
from rekindle.ops.result_types import result_facts


def functional_kind(node: Node, *, sizes_stay: bool) -> str | None:
    """Return the kind of the operator with the inputs of ``node`` that returns in a new tensor what ``node`` writes to
    its first input; None if there is none, or if its result may have another dtype or other sizes.

    ``sizes_stay`` states that the graph never changes the sizes of an existing tensor.
    """
    operator = node.operator
    functional = None if operator is None or len(node.outputs) != 1 else functional_operator(operator)
    if functional is None or not _keeps_dtype_and_sizes(node, functional, sizes_stay):
        return None
    return functional.name


@cache
def functional_operator(operator: Operator) -> Operator | None:
    """Return the functional variant of the in-place ``operator``: a pointwise or size-preserving operator without
    randomness that takes the same arguments; None if there is none."""
    name, arguments = operator.name, operator.schema.arguments
    writes = [argument.alias is not None and argument.alias.is_write for argument in arguments]
    if not name.endswith("_") or name.endswith("__") or writes != [True] + [False] * (len(writes) - 1):
        return None
    types = [argument.type for argument in arguments]
    for other in REGISTRY.overloads(name[:-1]):
        if [argument.type for argument in other.schema.arguments] == types:
            fits = not other.is_nondeterministic and other.traits & {Trait.POINTWISE, Trait.SAME_SIZES}
            return other if fits and not other.schema.is_mutable else None
    return None


def _keeps_dtype_and_sizes(node: Node, new: Operator, sizes_stay: bool) -> bool:
    self, *others = node.inputs
    type = self.type
    if not isinstance(type, TensorType):
        return False
    if Trait.SAME_DTYPE not in new.traits:
        if type.dtype is None or type.dtype not in _ORDINARY:
            return False
        arguments = [fact_of_input(value) for value in node.inputs]
        result = next(iter(result_facts(new.schema, arguments, default_dtype=None)), None)
        if not isinstance(result, TensorType) or result.dtype != type.dtype:
            return False
    tensors = [other for other in others if not isinstance(_item(other.type), _PLAIN)]
    return all(_fits_in(other, self, sizes_stay) for other in tensors)


_PLAIN: Final = (IntType, FloatType, BoolType, NoneType, StringType)
_ORDINARY: Final = frozenset(
    {torch.float32, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8}
)
"""Dtypes that autocast does not change."""


def _item(type: Type) -> Type:
    return type.element if isinstance(type, OptionalType) else type


def _fits_in(other: Value, self: Value, sizes_stay: bool) -> bool:
    """Return whether ``other`` is known to broadcast to the sizes of ``self``."""
    mine, theirs = self.type, other.type
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
        return False
    if theirs.rank == 0 or (sizes_stay and _origin_of_sizes(self) is _origin_of_sizes(other)):
        return True
    return mine.sizes is not None and theirs.sizes is not None and _broadcasts(theirs.sizes, mine.sizes)


def _broadcasts(sizes: Sequence[int | None], to: Sequence[int | None]) -> bool:
    if len(sizes) > len(to):
        return False
    known = zip(reversed(sizes), reversed(to), strict=False)
    return all(mine == 1 or (mine is not None and mine == theirs) for mine, theirs in known)


def _origin_of_sizes(value: Value) -> Value:
    """Return a value with the sizes of ``value``, as far as operators on tensors and numbers prove it."""
    while True:
        node = value.node
        operator = node.operator
        if operator is None or len(node.outputs) != 1 or not node.inputs:
            return value
        self, *others = node.inputs
        keeps_sizes = Trait.SAME_SIZES in operator.traits or (
            Trait.POINTWISE in operator.traits
            and all(each is self or isinstance(_item(each.type), _PLAIN) for each in others)
        )
        if not keeps_sizes or not isinstance(self.type, TensorType):
            return value
        value = self

"""Result types: rules that infer facts about the results of operators from facts about their arguments.

.. code-block:: text

    aten::matmul(Float(*, 4), Float(4, 8))  ->  Float(*, 8)
    aten::sum(Long(*, *), dim=[0])          ->  Long(*)
    aten::add(Half(*), 0-dimensional Float) ->  Half(*)

A rule is proven, not observed: what it says holds for all sizes, strides and numbers for which the operator succeeds,
as long as no autocast is on. Nothing runs. An operator without a rule has results of which nothing is known.

Each family of operators has a table of rules by name. In-place operators need no rule: the first argument keeps its
dtype and device, and its sizes unless the operator has the trait ``RESHAPES``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch

from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TENSOR, ListType, TensorType, Type
from rekindle.ops.registration.traits import traits_of_kind
from rekindle.ops.result_types import (
    backward,
    elementwise,
    factories,
    indexing,
    linalg,
    matmul,
    neural,
    properties,
    reductions,
    views,
)
from rekindle.ops.result_types.call import Call
from rekindle.ops.result_types.dtypes import ORDINARY
from rekindle.ops.result_types.facts import Fact
from rekindle.ops.result_types.rules import Rule

_FAMILIES: Final = (elementwise, reductions, views, matmul, neural, factories, indexing, linalg, backward)


def _tables() -> dict[str, Rule]:
    found: dict[str, Rule] = {**views.PRIM_RULES, **backward.OWN_RULES}
    for family in _FAMILIES:
        for name, rule in family.RULES.items():
            found[f"aten::{name}"] = rule
    return found


RULES: Final[Mapping[str, Rule]] = _tables()
"""Rules of operators that return tensors, or lists of them, by the kind of node."""

PROPERTIES: Final[Mapping[str, Rule]] = properties.RULES
"""Rules of operators that return a number, or another fact about a tensor."""


def result_facts(
    schema: FunctionSchema,
    arguments: Sequence[Fact],
    *,
    default_dtype: torch.dtype | None,
    default_device: torch.device | None = None,
    attributes: Mapping[str, object] | None = None,
) -> Sequence[Fact]:
    """Return for each result of a call what is known about it: its type, or its value if that is constant. Return an
    empty sequence if no rule applies.

    ``arguments`` are facts in the order of the schema. ``default_dtype`` and ``default_device`` are those of the
    process when the graph runs, None if they are not known. Whether results require a gradient holds for runs that
    record gradients.
    """
    returns = schema.returns
    rule = PROPERTIES.get(schema.name)
    if rule is None:
        if not all(_is_of_tensors(result.type) for result in returns):
            return ()
        rule = RULES.get(schema.name)
    call = Call(schema, arguments, default_dtype, default_device, attributes or {})
    if schema.arguments and _is_written(schema.arguments[0]):
        return _in_place(call) if len(returns) == 1 else ()
    if rule is None or any(argument.is_out for argument in schema.arguments):
        return ()
    if any(tensor.dtype is not None and tensor.dtype not in ORDINARY for tensor in call.tensors):
        return ()
    found = rule(call)
    if any(
        isinstance(fact, TensorType) != isinstance(result.type, TensorType)
        for fact, result in zip(found, returns, strict=False)
    ):
        return ()  # another overload
    return found


def _is_of_tensors(type: Type) -> bool:
    """Return whether values of this type are tensors, or lists of tensors."""
    return isinstance(type, TensorType) or (isinstance(type, ListType) and isinstance(type.element, TensorType))


def _is_written(argument: Argument) -> bool:
    return argument.alias is not None and argument.alias.is_write and argument.type == TENSOR


def _in_place(call: Call) -> Sequence[Fact]:
    given = call.first
    reshapes = Trait.RESHAPES in traits_of_kind(call.schema.name)
    return (TensorType(given.dtype, given.device, None if reshapes else given.sizes),)

"""Traits of operators: by name from a table, of the dispatcher's overloads from their tags and schemas besides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

import torch

from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.traits import PROPERTY_QUERIES, Trait
from rekindle.ir.types import TENSOR, without_none
from rekindle.ops.registration.trait_table import FRESH_COMPOSITES, TABLE

NO_TRAITS: Final[frozenset[Trait]] = frozenset()


@cache
def trait_table() -> Mapping[str, frozenset[Trait]]:
    """Return the traits of the table, by the kind of node."""
    found = {_kind(name): frozenset({Trait.FRESH}) for name in FRESH_COMPOSITES.split()}
    for line in TABLE.strip().splitlines():
        name, *words = line.split()
        found[_kind(name)] = frozenset(map(Trait, words))
    return found


def traits_of_kind(kind: str) -> frozenset[Trait]:
    """Return the traits of the operators of a kind (``aten::add``)."""
    return trait_table().get(kind, NO_TRAITS)


@cache
def kinds_with(trait: Trait) -> frozenset[str]:
    """Return the kinds that have ``trait`` in the table."""
    return frozenset(kind for kind, traits in trait_table().items() if trait in traits)


def queried_properties(kind: str) -> frozenset[Trait]:
    """Return the tensor properties on which the result of a property query depends, such as the rank for ``aten::dim``;
    empty for other operators."""
    return traits_of_kind(kind) & PROPERTY_QUERIES


@cache
def queries_of(*properties: Trait) -> frozenset[str]:
    """Return the property queries whose results follow from ``properties`` alone."""
    found = {kind: queried_properties(kind) for kind in trait_table()}
    return frozenset(kind for kind, queried in found.items() if queried and queried <= {*properties})


_DATA_DEPENDENT: Final = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)

_KEEPS_DATA: Final = frozenset({Trait.VIEW, Trait.MOVES_DATA})
"""Pointwise operators with these return their operand, or a copy in an order that an argument specifies."""


def traits_of_overload(
    schema: FunctionSchema,
    tags: Collection[torch.Tag],
    *,
    is_composite: bool,
    known: frozenset[Trait] | None = None,
) -> frozenset[Trait]:
    """Return the traits of an operator of the dispatcher: those of its name (``known``, by default from the table), and
    those that follow from its tags and its schema."""
    found = set(traits_of_kind(schema.name) if known is None else known)
    if torch.Tag.pointwise in tags:
        found.add(Trait.POINTWISE)
    if Trait.POINTWISE in found and sum(without_none(each.type) == TENSOR for each in schema.arguments) > 1:
        found.discard(Trait.SAME_RANK)  # operands are broadcast: the limits of ``clamp`` in the table are numbers
    if any(tag in tags for tag in _DATA_DEPENDENT):
        found.add(Trait.DATA_DEPENDENT)
    result = schema.returns[0].alias if schema.returns else None
    if result is not None and not result.is_write and not is_composite and Trait.ALIASES_OPERANDS not in found:
        found.add(Trait.VIEW)
    written = [index for index, each in enumerate(schema.arguments) if each.alias is not None and each.alias.is_write]
    if written == [0] and len(schema.returns) == 1 and Trait.RESHAPES not in found:
        found |= {Trait.SAME_RANK, Trait.SAME_SIZES}
    if Trait.POINTWISE in found and written in ([], [0]) and not found & _KEEPS_DATA:
        found.add(Trait.ANY_LAYOUT)
    return frozenset(found)


def _kind(name: str) -> str:
    return name if "::" in name else f"aten::{name}"

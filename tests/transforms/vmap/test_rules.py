"""The rules of batching: each names an operator that there is, and can be compiled."""

from __future__ import annotations

import random

import pytest

import rekindle.ops  # noqa: F401  (fills the registry)
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.verifier import verify
from rekindle.transforms.vmap.batching_rule import helper, helpers, operators_with_rules, rule_for
from rekindle.transforms.vmap.rules.metadata import SCALARS, UNCHANGED
from tests.versions.differences import removed_operators

SAMPLE = sorted(random.Random(20260).sample(sorted(operators_with_rules()), 120))
"""A fifth of them; ``make sweep-vmap`` runs nearly all."""


def test_every_rule_is_of_an_operator_that_there_is() -> None:
    kinds = [_kind(name) for name in operators_with_rules()]
    assert {kind for kind in kinds if REGISTRY.find(kind) is None} == removed_operators()


def _kind(name: str) -> str:
    return f"autodiff::{name.removeprefix('own.')}" if name.startswith("own.") else f"aten::{name}"


@pytest.mark.parametrize("name", SAMPLE)
def test_a_rule_can_be_compiled(name: str) -> None:
    operator = REGISTRY.find(_kind(name))
    assert operator is not None
    rule = rule_for(operator.schema)
    assert rule is not None
    tensors = [argument.name for argument in operator.schema.arguments if may_contain_tensor(argument.type)]
    kept = [name for name in tensors if not rule.expands(name)]
    for batched in (tensors, [each for each in tensors if each not in kept[1:]]):
        verify(rule.graph(frozenset(batched), same=False))


@pytest.mark.parametrize("name", helpers())
def test_helpers_can_be_compiled(name: str) -> None:
    verify(helper(name))


@pytest.mark.parametrize("name", [*SCALARS, *sorted(UNCHANGED)])
def test_what_is_said_of_an_operator_is_said_of_one_that_there_is(name: str) -> None:
    assert REGISTRY.find(name) is not None or REGISTRY.overloads(name)

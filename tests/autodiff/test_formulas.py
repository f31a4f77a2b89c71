"""Each formula: it compiles, and speaks of an operator and its arguments."""

from __future__ import annotations

import pytest

from rekindle.autodiff.formula import Formula, _index, family_of, operators_with_formulas
from rekindle.autodiff.formulas import TEXTS
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.verifier import verify


def kind_of(operator: str) -> str:
    """Return the kind of the operator that formulas call ``operator``: ``own.attention`` is ``autodiff::attention``."""
    return f"autodiff::{operator.removeprefix('own.')}" if operator.startswith("own.") else f"aten::{operator}"


def formula(operator: str) -> Formula:
    found = REGISTRY.find(kind_of(operator))
    assert found is not None, f"there is no operator {kind_of(operator)}"
    return Formula(found.schema, _index().definitions[operator])


@pytest.mark.parametrize("operator", operators_with_formulas())
def test_formula_compiles(operator: str) -> None:
    found = formula(operator)
    names = {argument.name for argument in found.schema.arguments}
    assert set(found.targets) <= names
    composite = found.composite
    if composite is not None:
        assert not found.targets
        verify(composite.graph)
        return
    if found.forward is not None:
        verify(found.forward.graph)
    verify(found.backward.graph)


@pytest.mark.parametrize("operator", sorted(_index().constants))
def test_constants_are_operators(operator: str) -> None:
    assert REGISTRY.find(kind_of(operator)) is not None
    assert operator not in _index().definitions


def test_every_operator_has_a_family() -> None:
    assert {family_of(operator) for operator in operators_with_formulas()} <= set(TEXTS)

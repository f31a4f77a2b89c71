"""Compiled derivative formulas on disk: a process that finds them compiles none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rekindle.autodiff import formula
from rekindle.autodiff.formula import Formula, FormulaFunction, operators_with_formulas
from rekindle.ir.graph import Graph
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.verifier import verify
from rekindle.runtime.strategies import graph_cache
from rekindle.runtime.strategies.formula_cache import FormulaCache


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], FormulaCache]:
    """Begins a process, with an empty disk for the first one."""
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: False)

    def begin() -> FormulaCache:
        cache = FormulaCache()
        monkeypatch.setattr(formula.compiled_formulas, "_value", cache)
        return cache

    return begin


def formula_named(name: str) -> Formula:
    operator = REGISTRY.find(f"aten::{name}")
    assert operator is not None
    return Formula(operator.schema, formula._index().definitions[name])


def no_compilation(self: object, text: str, name: str) -> Graph:
    raise AssertionError(f"compiles {name}")


def test_the_next_process_compiles_no_formula(
    process: Callable[[], FormulaCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = process()
    names = [name for name in operators_with_formulas() if REGISTRY.find(f"aten::{name}") is not None]
    made = {name: _parts(name) for name in names}
    assert len(made) > 300
    cache.write()
    process()
    monkeypatch.setattr(type(formula._TEXTS), "emit", no_compilation)
    for name, parts in made.items():
        for part, again in zip(parts, _parts(name), strict=True):
            verify(again.graph)
            assert str(again.graph) == str(part.graph)
            assert (again.parameters, again.returns) == (part.parameters, part.returns)
            assert [value.type for value in again.graph.outputs] == [value.type for value in part.graph.outputs]


def _parts(name: str) -> list[FormulaFunction]:
    found = formula_named(name)
    return [part for part in map(found._part, found._definitions) if part is not None]


def test_formulas_of_two_processes_are_kept(
    process: Callable[[], FormulaCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = process()
    _ = formula_named("tanh").backward
    second = process()
    _ = formula_named("exp").backward
    first.write()
    second.write()
    process()
    monkeypatch.setattr(type(formula._TEXTS), "emit", no_compilation)
    _ = formula_named("tanh").backward
    _ = formula_named("exp").backward


def test_nothing_is_kept_where_passes_are_watched(
    process: Callable[[], FormulaCache], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: True)
    cache = process()
    _ = formula_named("tanh").backward
    cache.write()
    assert not list(tmp_path.iterdir())

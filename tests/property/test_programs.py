"""Scripted equals eager, on random programs."""

from __future__ import annotations

import copy
import importlib.util
import linecache
import sys
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, note, settings, strategies as st

import rekindle
from rekindle.ir.graph import Block
from tests.property.programs import programs
from tests.support.equality import assert_same
from tests.support.shares import portion
from tests.support.texts import round_trip_differences

_numbers = count()

ARGUMENTS = st.tuples(
    st.integers(-3, 9),
    st.integers(0, 4),
    st.sampled_from([0.0, 1.5, -2.25]),
    st.booleans(),
    st.sampled_from([[0.5, -1.0], [2.0, 3.0]]).map(torch.tensor),
    st.sampled_from([[0.0, 1.0], [-4.0, 0.25]]).map(torch.tensor),
    st.lists(st.integers(-4, 9), max_size=4),
    st.sampled_from([1, 3]).map(lambda n: [torch.full([2], float(i)) for i in range(n)]),
)


@settings(max_examples=portion(200), suppress_health_check=list(HealthCheck))
@given(text=programs(), calls=st.lists(ARGUMENTS, min_size=2, max_size=3))
def test_scripted_is_eager(tmp_path_factory: pytest.TempPathFactory, text: str, calls: list[tuple[Any, ...]]) -> None:
    note(text)
    module = load(text, tmp_path_factory.getbasetemp())
    try:
        compiled = rekindle.script(module.f)
        for arguments in calls:
            note(f"f{arguments}")
            ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
            assert_same(_outcome(compiled, ours), _outcome(module.f, theirs))
            assert_same(ours, theirs, "arguments")
    finally:
        unload(module)


@settings(max_examples=portion(40), suppress_health_check=list(HealthCheck))
@given(text=programs())
def test_text_is_read_back_as_the_same_program(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    note(text)
    module = load(text, tmp_path_factory.getbasetemp())
    try:
        compiled = rekindle.script(module.f)
        note(compiled.code)
        # The reader knows that nothing after a raise runs, and leaves the results uninitialized.
        assume(not _returns_after_raising(compiled.graph.block))
        assert not "\n".join(round_trip_differences(compiled))
    finally:
        unload(module)


def _returns_after_raising(block: Block) -> bool:
    """Whether ``block``, or a block within, raises unconditionally and returns values all the same."""
    raises = any(node.kind == "prim::RaiseException" for node in block.nodes)
    if raises and any(value.node.kind != "prim::Uninitialized" for value in block.outputs):
        return True
    return any(_returns_after_raising(inner) for node in block.nodes for inner in node.blocks)


def _outcome(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return "returned", function(*arguments)
    except Exception as error:
        return "raised", type(error)


def load(text: str, folder: Path) -> ModuleType:
    """A module in a real file: its functions' source can be read."""
    name = f"generated_program_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def unload(module: ModuleType) -> None:
    assert module.__file__ is not None
    Path(module.__file__).unlink()
    linecache.cache.pop(module.__file__, None)
    del sys.modules[module.__name__]

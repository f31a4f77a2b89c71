"""Gradients on disk: a process that finds one differentiates nothing, and gets what the first process got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rekindle.autodiff import differentiate
from rekindle.autodiff.gradient import Gradient
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.runtime.strategies import graph_cache
from rekindle.runtime.strategies.gradient_cache import find_stored
from tests.autodiff.graphs import graph_of
from tests.runtime import gradient_process
from tests.runtime.gradient_process import CALLS, PROGRAMS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, which is used although graphs are verified."""
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: False)
    return tmp_path


def squashed(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w) / (x.exp() + 3)


def two_results(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.tanh(x * w)
    return y * w, y.sigmoid() / (x + 3)


def repeated(x: Tensor, w: Tensor) -> Tensor:
    for i in range(x.size(0)):
        x = torch.tanh(x * w) if i % 2 == 0 else x.exp() * w
    return x


def changed(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w) / (x.exp() + 4)


Program = Callable[..., Any]


def stored(program: Program, *wanted: bool) -> tuple[Gradient, bool]:
    """Return the gradient as a new process gets it, and whether it was built. Its first backward graph is used, and
    written with it."""
    graph = graph_of(program)
    found = find_stored(graph, wanted)
    assert found is not None
    built = []

    def build() -> Gradient:
        built.append(1)
        return differentiate(graph, wanted)

    gradient = found.gradient(build)
    gradient.backward_for([True] * len(gradient.roots))
    return gradient, bool(built)


def text_of(gradient: Gradient, *defined: bool) -> str:
    backward = gradient.backward_for(defined)
    verify(gradient.forward)
    verify(backward.graph)
    parts = (gradient.requires_grad, gradient.results, gradient.captures, gradient.roots, gradient.is_straight_line)
    return f"{parts} {backward.captures}\n{print_graph(gradient.forward)}\n{print_graph(backward.graph)}"


def cases_of(gradient: Gradient) -> list[tuple[bool, ...]]:
    """Return some cases of which roots have a gradient: all results, one of them, and also residuals."""
    count = len(gradient.roots)
    results = tuple(root < gradient.results for root in gradient.roots)
    return list(dict.fromkeys([(True,) * count, results, (True, *[False] * (count - 1))]))


@pytest.mark.parametrize("program", [squashed, two_results, repeated])
def test_the_next_process_differentiates_nothing(program: Program, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, was_built = stored(program, True, True)
    assert was_built
    cases = cases_of(first)
    texts = [text_of(first, *case) for case in cases]
    again, was_built = stored(program, True, True)
    assert not was_built
    monkeypatch.setattr("rekindle.autodiff.gradient.differentiate", None)
    assert [text_of(again, *case) for case in cases] == texts


@pytest.mark.parametrize("program", [squashed, two_results, repeated])
def test_a_backward_graph_that_is_not_on_disk(program: Program, disk: Path) -> None:
    first, _ = stored(program, True, True)
    expected = differentiate(graph_of(program), (True, True))
    again, was_built = stored(program, True, True)
    assert not was_built
    for case in cases_of(first):
        assert text_of(again, *case) == text_of(expected, *case)


def test_another_graph_or_other_inputs_or_another_process(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(squashed, True, True)
    assert stored(changed, True, True)[1]
    assert stored(squashed, True, False)[1]
    assert not stored(squashed, True, True)[1]
    monkeypatch.setattr(graph_cache, "_environment", lambda: b"other files of the compiler")
    assert stored(squashed, True, True)[1]


def test_damaged_files_and_those_of_others_are_not_used(disk: Path) -> None:
    _, was_built = stored(squashed, True, True)
    (path,) = disk.iterdir()
    content = path.read_bytes()
    for damaged in (content[:-5], content[:60] + bytes([content[60] ^ 1]) + content[61:], b""):
        path.write_bytes(damaged)
        assert stored(squashed, True, True)[1]
        assert not stored(squashed, True, True)[1]
    path.chmod(0o666)
    assert stored(squashed, True, True)[1]


def test_nothing_is_stored_while_passes_are_watched(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: True)
    assert find_stored(graph_of(squashed), (True, True)) is None
    monkeypatch.setattr(graph_cache, "are_passes_watched", lambda: False)
    monkeypatch.setenv("REKINDLE_CACHE", "0")
    assert find_stored(graph_of(squashed), (True, True)) is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_gradients_and_errors_of_the_next_process(name: str, tmp_path: Path) -> None:
    """First and second derivatives, in the first calls and in those with kernels, and the text and place of an
    error."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REKINDLE_")}
    environment = {**kept, "PYTHONPATH": str(ROOT), "REKINDLE_CACHE_DIR": str(tmp_path)}
    found = []
    for _ in range(2):
        command = [sys.executable, gradient_process.__file__, name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    first, second = found
    assert first["differentiated"]
    assert not second["differentiated"]
    assert "must match" in first["error"]
    assert f"'{name}'" in first["error"]
    assert second["error"] == first["error"]
    assert len(second["results"]) == 7 * CALLS
    for expected, result in zip(first["results"], second["results"], strict=True):
        assert result == pytest.approx(expected, rel=1e-5, abs=1e-6)
    for expected, result in zip(second["eager"], second["results"], strict=False):
        assert result == pytest.approx(expected, rel=1e-5, abs=1e-6)

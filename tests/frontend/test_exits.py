"""The exit transform: break, continue, return and raise in all positions, beside torch.jit and beside Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.frontend.functions import emit_function
from rekindle.frontend.sugared_values.base import EmptyResolver
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.verifier import verify
from rekindle.passes.pass_manager import run_passes
from rekindle.runtime.executor import execute
from rekindle.runtime.pipelines import CLEANUP_AFTER_EMISSION
from rekindle.syntax.python_ast import function_def
from tests.frontend.control_flow import random_program, systematic
from tests.support.oracle import normalize, script_with_torch
from tests.support.shares import rotating

SYSTEMATIC = systematic()
ARGUMENTS = [(7, 2, 3), (12, 1, 4), (4, 4, 0), (0, 0, 0), (30, 5, 1)]


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., int]]:
    """The systematic programs, from a real file: what compiles them reads their source."""
    return _load(tmp_path_factory.mktemp("programs") / "systematic.py", "\n\n".join(SYSTEMATIC.values()))


def _load(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def _compile(function: Callable[..., int]) -> Graph:
    graph, _ = emit_function(function_def(function), EmptyResolver())
    verify(graph)
    run_passes(graph, CLEANUP_AFTER_EMISSION, verify)
    return graph


def _outcome(run: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return run(*arguments)
    except Exception:
        return "raised"


@pytest.mark.parametrize("name", SYSTEMATIC)
def test_same_graph_as_torch_jit(name: str, functions: dict[str, Callable[..., int]]) -> None:
    graph = _compile(functions[name])
    assert normalize(str(graph)) == normalize(str(script_with_torch(functions[name]).graph))


@pytest.mark.parametrize("name", SYSTEMATIC)
def test_same_answers_as_python(name: str, functions: dict[str, Callable[..., int]]) -> None:
    record = GraphFunction(name, _compile(functions[name]))
    for arguments in ARGUMENTS:
        assert _outcome(execute, record, arguments) == _outcome(functions[name], *arguments)


def test_random_programs(tmp_path: Path) -> None:
    """The graphs of 200 random programs are those of torch.jit."""
    seeds = rotating(200)
    text = "\n\n".join(random_program(seed).replace("def f(", f"def f{seed}(") for seed in seeds)
    functions = _load(tmp_path / "random_programs.py", text)
    for seed in seeds:
        function = functions[f"f{seed}"]
        graph = _compile(function)
        assert normalize(str(graph)) == normalize(str(script_with_torch(function).graph)), random_program(seed)

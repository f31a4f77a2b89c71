"""The ways of executing a program. What the executor can be asked to do stands here once; every test here runs all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import rekindle
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen.native import FormNativeRegions
from rekindle.ir.graph import Graph
from rekindle.ir.verifier import verify
from rekindle.passes import (
    BatchMM,
    CanonicalizeOps,
    DecomposeOps,
    EliminateGuards,
    HoistFromIf,
    LoopInvariantMotion,
    LoopUnrolling,
    Pass,
    Peephole,
    RemoveExpands,
    RemoveMutation,
)
from rekindle.runtime import specializing
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.support.profiled import Profiled


@dataclass(slots=True, frozen=True)
class Way:
    """``entered`` holds while programs are called, the first call included."""

    name: str
    entered: Callable[[], AbstractContextManager[None]]

    def __str__(self) -> str:
        return self.name


@contextmanager
def _unoptimized() -> Iterator[None]:
    with rekindle.optimized_execution(False):
        yield


class _Verification:
    """Passes that verify between others."""

    name = "verification"

    def run(self, graph: Graph) -> bool:
        verify(graph)
        return False


MORE_PASSES: tuple[Pass, ...] = (
    CanonicalizeOps(),
    Peephole(),
    HoistFromIf(),
    LoopInvariantMotion(),
    LoopUnrolling(),
    RemoveExpands(),
    RemoveMutation(),
    DecomposeOps(),
    BatchMM(),
)
"""Passes that must be right for every input, whether calls run them or not."""


@contextmanager
def _more_passes() -> Iterator[None]:
    """All passes, each followed by a check of the graph, between two rounds of the usual ones."""
    passes = [step for each in (*MORE_PASSES, *OPTIMIZATION) for step in (each, _Verification())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(specializing, "OPTIMIZATION", (*OPTIMIZATION, *passes))
        yield


@contextmanager
def _derivatives() -> Iterator[None]:
    """Every operator with a formula stands in a graph with a derivative of its own."""
    with pytest.MonkeyPatch.context() as patch:
        passes = (*OPTIMIZATION, CreateDifferentiableGraphs(threshold=1), _Verification())
        patch.setattr(specializing, "OPTIMIZATION", passes)
        yield


@contextmanager
def _profiling() -> Iterator[None]:
    before = rekindle.set_execution_strategy("profiling")
    try:
        yield
    finally:
        rekindle.set_execution_strategy(before)


@contextmanager
def _all_guards() -> Iterator[None]:
    """The strategy ``profiling`` with a guard wherever a tensor is used, but where others imply it."""
    with Profiled(guarding=(EliminateGuards(),)).calls():
        yield


@contextmanager
def _native() -> Iterator[None]:
    """Loops over numbers are machine code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(specializing, "OPTIMIZATION", (*OPTIMIZATION, FormNativeRegions(), _Verification()))
        yield


REFERENCE = Way("unoptimized", _unoptimized)
"""The interpreter, on the graph as it was compiled: what the others are held against."""


@contextmanager
def _strategy(name: str) -> Iterator[None]:
    before = rekindle.set_execution_strategy(name)
    try:
        yield
    finally:
        rekindle.set_execution_strategy(before)


WAYS = (
    Way("default", contextlib.nullcontext),
    Way("native_strategy", lambda: _strategy("native")),
    Way("more_passes", _more_passes),
    Way("derivatives", _derivatives),
    Way("profiling", _profiling),
    Way("all_guards", _all_guards),
    Way("native", _native),
)


def forget_plans(compiled: Any) -> None:
    """Have the next call optimise anew: what was compiled before in this process has plans already."""
    if isinstance(compiled, torch.nn.Module):
        modules = [module for module in compiled.modules() if isinstance(module, rekindle.ScriptModule)]
        records = [record for module in modules for record in module.script_type.methods.values()]
    else:
        records = [compiled._record]
    for record in records:
        record.executable = None

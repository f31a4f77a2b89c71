"""The ways of executing a program. The options of the executor are listed here once; every test here runs all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import rekindle
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen import fusion_executor
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.native import FormNativeRegions
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
from rekindle.runtime.executor import STRATEGIES
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.strategies import simple_strategy
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


def _with(name: str, *passes: Pass) -> Way:
    """The usual passes, these, and the usual ones again. ``REKINDLE_VERIFY`` has the graph verified after each."""

    @contextmanager
    def entered() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fusion_executor, "COMPILE_THRESHOLD_US", 0.0)  # kernels from the first call on
            patch.setattr(simple_strategy, "OPTIMIZATION", (*OPTIMIZATION, *passes, *OPTIMIZATION))
            yield

    return Way(name, entered)


def _strategy(name: str) -> Way:
    @contextmanager
    def entered() -> Iterator[None]:
        before = rekindle.set_execution_strategy(name)
        try:
            yield
        finally:
            rekindle.set_execution_strategy(before)

    return Way(name, entered)


@contextmanager
def _all_guards() -> Iterator[None]:
    """The strategy ``profiling`` with a guard wherever a tensor is used, but where others imply it."""
    with Profiled(guarding=(EliminateGuards(),)).calls():
        yield


@contextmanager
def _native() -> Iterator[None]:
    """Loops over numbers are machine code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simple_strategy, "OPTIMIZATION", (*OPTIMIZATION, FormNativeRegions()))
        yield


REFERENCE = Way("unoptimized", _unoptimized)
"""The interpreter, on the graph as it was compiled: the reference of the others."""


WAYS = (
    *map(_strategy, sorted(STRATEGIES)),
    _with("more_passes", *MORE_PASSES),
    # Every operator with a formula is in a graph with a derivative of its own, and in a kernel where there is one.
    _with("derivatives", CreateDifferentiableGraphs(threshold=1)),
    _with("fused", CanonicalizeOps(), FuseGraph(least=1, alone=True)),
    _with("all", *MORE_PASSES, CreateDifferentiableGraphs(threshold=1), FuseGraph(least=1, alone=True)),
    Way("all_guards", _all_guards),
    Way("native_regions", _native),
)


def forget_plans(compiled: Any) -> None:
    """Have the next call optimize again: what was compiled before in this process has plans already."""
    if isinstance(compiled, torch.nn.Module):
        modules = [module for module in compiled.modules() if isinstance(module, rekindle.ScriptModule)]
        records = [record for module in modules for record in module.script_type.methods.values()]
    else:
        records = [compiled._record]
    for record in records:
        record.executable = None

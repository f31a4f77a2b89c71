"""No operator runs on tensors while programs are compiled, neither on real ones nor on such without data.

Every program of the two corpora is compiled for its arguments: scripted, inlined, optimised, specialised and planned,
under a mode that counts the calls of operators. What is allowed:

- Operators on numbers and strings run to fold constants: the dispatcher does not show them to a mode of tensors.
- A tensor that is a constant of a program is detached, so that the graph does not own the caller's.
- ``torch.export`` brings FakeTensors of its own (:mod:`rekindle.exporting`, :mod:`rekindle.importing`), of programs
  that leave or come; loading an archive measures its tensors by their meta kernels (:mod:`rekindle.archive.budget`).
  Neither compiles anything.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.ir.types import TensorType, Type
from rekindle.passes import inline
from rekindle.runtime.executor import with_strategy
from tests.language.corpus import corpus as language_corpus
from tests.oracle.corpus import corpus as oracle_corpus

SHARDS = 16

ALLOWED = frozenset({"aten.detach.default", "aten.alias.default", "aten.promote_types.default"})
"""What makes a tensor of the caller a constant of a graph, and a constant that is folded: a dtype of two."""


class Counting(TorchDispatchMode):
    """Counts the calls of operators on tensors, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[str(func)] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def no_fake_tensors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(self: FakeTensorMode) -> FakeTensorMode:
        raise AssertionError("a FakeTensorMode was entered while compiling")

    with monkeypatch.context() as patch:
        patch.setattr(FakeTensorMode, "__enter__", refuse)
        yield


def programs() -> list[tuple[str, Any, list[tuple[Any, ...]]]]:
    """Every program that compiles: name, program, arguments."""
    found: list[tuple[str, Any, list[tuple[Any, ...]]]] = []
    for each in language_corpus():
        if each.refusal is None:
            found.append((each.name, each, list(each.inputs)))
    return [*found, *((each.name, each, list(each.samples)) for each in oracle_corpus())]


def compile_everything(subject: Any, arguments: tuple[Any, ...]) -> None:
    """All that happens before the first operator of a program runs, and types of all its tensors."""
    compiled = rekindle.script(subject)
    record = compiled.forward._record if isinstance(subject, torch.nn.Module) else compiled._record
    graph = record.graph.copy()
    inline(graph)
    given = [compiled, *arguments] if isinstance(subject, torch.nn.Module) else list(arguments)
    types: list[Type | None] = [
        TensorType.of(value) if isinstance(value, torch.Tensor) else None for value in given[: len(graph.inputs)]
    ]
    types += [None] * (len(graph.inputs) - len(types))
    refine_types(graph, propagate_types(graph, types))
    if len(given) != len(graph.inputs):
        return  # a call adds what has a default
    for strategy in ("simple", "profiling", "native"):
        before = rekindle.set_execution_strategy(strategy)
        try:
            with_strategy(record).strategy.prepare(given)
        finally:
            rekindle.set_execution_strategy(before)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_operator_runs_while_the_corpus_is_compiled(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = 0
    for name, program, samples in programs()[shard::SHARDS]:
        subject = program.subject()
        arguments = copy.deepcopy(samples[0]) if samples else ()
        counting = Counting()
        with warnings.catch_warnings(), no_fake_tensors(monkeypatch), contextlib.suppress(rekindle.RekindleError):
            warnings.simplefilter("ignore")
            with counting:
                compile_everything(subject, arguments)
            compiled += 1
        unexpected = {call: count for call, count in counting.calls.items() if call not in ALLOWED}
        assert not unexpected, f"{name}: {unexpected}"
    assert compiled > 60

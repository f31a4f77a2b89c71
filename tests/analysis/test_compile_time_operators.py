"""No operator runs on tensors while programs are compiled, neither on real ones nor on such without data.

Every program of the two corpora is compiled for its arguments: scripted, inlined, optimized, specialized and planned,
under a mode that counts the calls of operators. So are its derivatives, forward and reverse, as programs and as the
backward graphs that PyTorch's autograd is given, and the program for a batch. What is allowed:

- Operators on numbers and strings run to fold constants: the dispatcher does not show them to a mode of tensors.
- A tensor that is a constant of a program is detached, so that the graph does not own the caller's.
- ``torch.export`` brings FakeTensors of its own (:mod:`rekindle.exporting`, :mod:`rekindle.importing`), of programs
  that leave or come, and runs the program on copies of its example where that decides a branch; loading an archive
  measures its tensors by their meta kernels (:mod:`rekindle.archive.budget`). Neither compiles anything. What an export
  compiles before, it compiles as a call does.
- The layout of Tensors in memory is read from a few that are made for this, once in a process and in a thread of its
  own (:mod:`rekindle.codegen.llvm.tensor_abi`). It has nothing to do with any program.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.autodiff import CreateDifferentiableGraphs, differentiate
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.types import TensorType, Type
from rekindle.passes import CanonicalizeOps, Inlining, inline, run_passes
from rekindle.runtime.executor import with_strategy
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.language.corpus import corpus as language_corpus
from tests.oracle.corpus import corpus as oracle_corpus

SHARDS = 16

STRATEGIES = ("simple", "profiling", "native")

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
    prepare(record, given)


def prepare(record: GraphFunction, given: Sequence[Any], strategies: Sequence[str] = STRATEGIES) -> None:
    """Have each of the strategies compile for such arguments."""
    for strategy in strategies:
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


def compile_backward(record: GraphFunction) -> int:
    """All that autograd is given of a program whose tensors require gradients; returns how many backward graphs."""
    made = 0
    graph = record.graph.copy()
    run_passes(graph, (Inlining(), *OPTIMIZATION, CanonicalizeOps(), CreateDifferentiableGraphs(threshold=1)))
    for node in graph.find_nodes("prim::DifferentiableGraph"):
        subgraph = node["Subgraph"]
        assert isinstance(subgraph, Graph)
        gradient = differentiate(subgraph, [isinstance(value.type, TensorType) for value in subgraph.inputs])
        for each in (gradient.forward, gradient.backward):
            callable_of(each, "derivative", optimized=True)
        made += 1
    return made


def transformed(
    compiled: Any, given: Sequence[Any], result: Any, numbers: tuple[int, ...]
) -> Iterator[tuple[Callable[[], Any], list[Any]]]:
    """What makes a derivative by the arguments ``numbers``, or a program for a batch of them, and what that takes."""
    several = [each.expand(3, *each.shape).clone() if i in numbers else each for i, each in enumerate(given)]
    dims = tuple([0 if i in numbers else None for i in range(len(given))])
    yield lambda: rekindle.grad(compiled, numbers), list(given)
    yield lambda: rekindle.vjp(compiled, numbers), [*given, result]
    yield lambda: rekindle.jvp(compiled, numbers), [*given, tuple([given[i] for i in numbers])]
    yield lambda: rekindle.vmap(compiled, dims), several


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_operator_runs_while_derivatives_and_batches_are_compiled(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, backward = 0, 0
    for name, program, samples in programs()[shard::SHARDS]:
        subject = program.subject()
        given = list(copy.deepcopy(samples[0])) if samples else []
        numbers = tuple(i for i, each in enumerate(given) if isinstance(each, Tensor) and each.is_floating_point())
        if isinstance(subject, torch.nn.Module) or not numbers:
            continue
        counting = Counting()
        with warnings.catch_warnings(), contextlib.suppress(rekindle.RekindleError):
            warnings.simplefilter("ignore")
            function = rekindle.script(subject)
            result = outcome(function, given)
            ways = list(transformed(function, given, result, numbers))
            with counting, no_fake_tensors(monkeypatch):
                with contextlib.suppress(rekindle.RekindleError):
                    backward += compile_backward(function._record)
                for make, arguments in ways:
                    with contextlib.suppress(rekindle.RekindleError):
                        record = make()._record
                        if len(arguments) == len(record.graph.inputs):  # a call adds what has a default
                            prepare(record, arguments, ["native"])
                        compiled += 1
        unexpected = {call: count for call, count in counting.calls.items() if call not in ALLOWED}
        assert not unexpected, f"{name}: {unexpected}"
    assert compiled > 10
    assert backward > 5


def outcome(function: Any, given: Sequence[Any]) -> Any:
    """What it returns; None where it raises."""
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        return function(*copy.deepcopy(given))
    return None

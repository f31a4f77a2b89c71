"""The sweep over gradients of PyTorch's operator database, in float64.

    python -m tests.sweeps.gradients --full --jobs 2      everything; writes results/gradients.md and .json
    python -m tests.sweeps.gradients --only add,mul       some entries, and what goes wrong with them

For every entry that supports autograd, up to three samples, as function or method, are scripted. Two things are made of
each: the derivative of the whole graph, and the graph with its operators split into differentiable graphs. Values,
which results require a gradient, gradients, and where PyTorch has them gradients of gradients must equal eager's, and
those of the first sample must agree with differences of values (``gradcheck``, ``gradgradcheck``) where eager's do.
An entry counts where one of its cases can be scripted and has a gradient in eager; it goes through formulas where no
backward graph of it asks PyTorch's autograd for the gradient of an operator. Where an entry takes complex numbers, one
sample of these is split and compared too.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from rekindle.errors import CompileError, DifferentiationError, VerificationError
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.types import ListType, TensorType
from rekindle.ir.verifier import verify
from rekindle.passes import CanonicalizeOps, DeadCodeElimination, run_passes
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.sweeps import report
from tests.sweeps.cases import Case, NotWritable, _variants, _Writer, load, seed
from tests.sweeps.shards import run_entries, serve

STEM = "gradients"
SAMPLES = 3


@dataclass(slots=True)
class Result:
    """What comes of an entry. ``by_autograd`` are the kinds that PyTorch's autograd was asked for; the other numbers
    are cases too."""

    cases: int = 0
    gradcheck: int = 0
    gradgradcheck: int = 0
    complex: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    by_autograd: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.cases > 0 and not self.failures

    @property
    def by_formulas(self) -> bool:
        return self.passed and not self.by_autograd


@cache
def database() -> dict[str, Any]:
    """The entries that support autograd, by their full names."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu")}


def cases_of(op: Any, dtype: torch.dtype = torch.float64, most: int = SAMPLES) -> Iterator[Case]:
    """The calls of an entry, each in the first way in which it can be written."""
    variants = {name: write for name, write in _variants(op).items() if name != "inplace"}
    seed()
    for index, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=True)):
        if index == most:
            return
        for variant, write in variants.items():
            writer = _Writer()
            try:
                expression = write(writer, sample)
            except NotWritable:
                continue
            name = re.sub(r"\W", "_", f"{op.full_name}_{dtype}_{index}_{variant}")
            parameters = ", ".join(f"t{i}" for i in range(len(writer.tensors)))
            text = f"def {name}({parameters}):\n    return {expression}\n"
            key = f"{index}/{variant}" if dtype is torch.float64 else f"complex {index}/{variant}"
            yield Case(key, name, text, writer.tensors)
            break


# --------------------------------------------------------------------------------------------------------- comparing


def tensors_of(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in tensors_of(item)]
    return []


def _fresh(arguments: Sequence[Tensor]) -> list[Tensor]:
    return [t.detach().clone().requires_grad_(t.requires_grad) for t in arguments]


@dataclass(slots=True)
class Answer:
    """Values, gradients, and gradients of gradients of a call."""

    values: list[Tensor]
    gradients: list[Tensor | None] = field(default_factory=list)
    second: list[Tensor | None] = field(default_factory=list)


def answer(function: Callable[..., Any], arguments: Sequence[Tensor], *, twice: bool) -> Answer:
    inputs = _fresh(arguments)
    wanted = [value for value in inputs if value.requires_grad]
    seed()
    values = tensors_of(function(*inputs))
    roots = [value for value in values if value.requires_grad]
    found = Answer([value.detach() for value in values])
    if not roots:
        return found
    seed()
    cotangents = [torch.randn(root.shape, dtype=root.dtype).requires_grad_(twice) for root in roots]
    gradients = torch.autograd.grad(roots, wanted, cotangents, allow_unused=True, create_graph=twice)
    found.gradients = [None if gradient is None else gradient.detach() for gradient in gradients]
    again = [gradient for gradient in gradients if gradient is not None and gradient.requires_grad]
    if twice and again:
        seed()
        more = [torch.randn(gradient.shape, dtype=gradient.dtype) for gradient in again]
        second = torch.autograd.grad(again, [*wanted, *cotangents], more, allow_unused=True)
        found.second = list(second)
    return found


def difference(found: Answer, expected: Answer) -> str | None:
    """What differs; None where nothing does. A gradient that does not exist and one that is zero are the same."""
    for what in ("values", "gradients", "second"):
        ours, theirs = getattr(found, what), getattr(expected, what)
        if what == "second" and not theirs:
            continue
        if len(ours) != len(theirs):
            return f"{what}: {len(ours)} instead of {len(theirs)}"
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            problem = _difference(mine, other)
            if problem:
                return f"{what}[{index}]: {problem}"
    return None


def _difference(mine: Tensor | None, other: Tensor | None) -> str | None:
    if mine is None or other is None:
        if mine is other:
            return None
        there = other if mine is None else mine
        assert there is not None
        if not there.any():
            return None
        return f"{'None' if mine is None else 'a tensor'} instead of {'None' if other is None else 'a tensor'}"
    if mine.shape != other.shape or mine.dtype != other.dtype:
        return f"{mine.dtype} of {tuple(mine.shape)} instead of {other.dtype} of {tuple(other.shape)}"
    if mine.layout != torch.strided:
        mine, other = mine.to_dense(), other.to_dense()
    if not torch.allclose(mine, other, rtol=1e-6, atol=1e-8, equal_nan=True):
        return f"values differ by up to {(mine - other).abs().max().item():.3g}"
    return None


# ----------------------------------------------------------------------------------------------------------- two ways


def _specialized(graph: Graph, arguments: Sequence[Tensor]) -> Graph:
    """A copy, optimized, with what is known of ``arguments`` before they come: dtype, rank, device."""
    plain = graph.copy()
    run_passes(plain, OPTIMIZATION)
    graph = plain.copy()
    refine_types(graph, propagate_types(graph, [TensorType.of(value).with_rank_only() for value in arguments]))
    try:
        run_passes(graph, (*OPTIMIZATION, CanonicalizeOps()))
    except VerificationError:  # branches that are never taken have other types than what they are branches of
        run_passes(plain, [CanonicalizeOps()])
        return plain
    return graph


def graph_of(function: Callable[..., Any], arguments: Sequence[Tensor], result: Any) -> Graph:
    """The graph that a call would run, its results flattened as ``result`` is."""
    graph = _specialized(rekindle.script(function).graph, arguments)
    made = graph.outputs[0].node
    if made.kind == "prim::TupleConstruct":
        values = list(made.inputs)
    elif isinstance(graph.outputs[0].type, ListType) and isinstance(result, (list, tuple)):
        unpack = graph.create("prim::ListUnpack", [graph.outputs[0]], outputs=len(result))
        values = list(graph.append_node(unpack).outputs)
    else:
        return graph
    graph.block.erase_output(0)
    for value in values:
        graph.add_output(value)
    run_passes(graph, [DeadCodeElimination()])
    return graph


def _left_to_autograd(graph: Graph) -> list[str]:
    subgraphs = [call.get_graph("Subgraph") for call in graph.find_nodes("autodiff::backward_of")]
    named = [call.inputs[0].node["value"] for call in graph.find_nodes("autodiff::backward_of_call")]
    return sorted(
        {node.kind for inner in subgraphs for node in inner.nodes} | {str(name).split(".")[0] for name in named}
    )


def _check(op: Any, function: Callable[..., Any], case: Case, result: Result) -> str | None:
    twice = bool(op.supports_gradgrad)
    try:
        expected = answer(function, case.arguments, twice=twice)
        raw = function(*_fresh(case.arguments))
    except Exception:
        return None  # eager does not take it
    if not expected.gradients:
        return None
    try:
        graph = graph_of(function, case.arguments, raw)
    except CompileError:
        return None
    result.cases += 1
    whole = DifferentiableOperation(graph)
    wanted = tuple(argument.requires_grad for argument in case.arguments)
    try:
        backward = whole.derivative(wanted).gradient
    except DifferentiationError as error:
        result.by_autograd += [str(error).splitlines()[0]]
    else:
        verify(backward.forward)
        verify(backward.backward)
        result.by_autograd += _left_to_autograd(backward.backward)
        if any(node.blocks for node in backward.forward.nodes):
            # A derivative through branches and loops is taken again from program to program: tests/transforms.
            expected.second = []
        problem = difference(answer(whole, case.arguments, twice=twice and bool(expected.second)), expected)
        if problem:
            return f"whole: {problem}"
        if case.key.startswith("0/"):
            problem = _by_differences(op, function, whole, case, result, twice=twice and bool(expected.second))
            if problem:
                return problem
    return _split(function, graph, case, expected)


def _split(function: Callable[..., Any], graph: Graph, case: Case, expected: Answer) -> str | None:
    """What differs where the operators of ``graph`` are split into differentiable graphs."""
    CreateDifferentiableGraphs(threshold=1).run(graph)
    verify(graph)
    problem = difference(
        answer(callable_of(graph, case.name), case.arguments, twice=False), Answer(expected.values, expected.gradients)
    )
    return f"split: {problem}" if problem else None


def _by_differences(
    op: Any, function: Callable[..., Any], whole: Callable[..., Any], case: Case, result: Result, *, twice: bool
) -> str | None:
    """Whether gradients agree with differences of values, where eager's do."""
    for what, check in (("gradcheck", gradcheck), ("gradgradcheck", gradgradcheck)):
        if what == "gradgradcheck" and not twice:
            continue
        problem = _disagreement(op, check, whole, case)
        if problem is None:
            setattr(result, what, getattr(result, what) + 1)
        elif _disagreement(op, check, function, case) is None:
            return f"{what}: {problem}"
    return None


def _disagreement(op: Any, check: Callable[..., bool], function: Callable[..., Any], case: Case) -> str | None:
    def seeded(*arguments: Tensor) -> tuple[Tensor, ...]:
        seed()
        found = tensors_of(op.gradcheck_wrapper(function, *arguments))
        return tuple([value for value in found if value.requires_grad])

    # Kernels take over from operators after a few calls, and round otherwise.
    tolerance = max(op.gradcheck_nondet_tol, 1e-12)
    try:
        seed()
        check(seeded, _fresh(case.arguments), fast_mode=True, nondet_tol=tolerance)
    except TooLong:
        raise
    except Exception as error:
        return str(error).splitlines()[0][:200]
    return None


def _check_complex(function: Callable[..., Any], case: Case, result: Result) -> str | None:
    try:
        expected = answer(function, case.arguments, twice=False)
        raw = function(*_fresh(case.arguments))
    except Exception:
        return None
    if not expected.gradients:
        return None
    try:
        graph = graph_of(function, case.arguments, raw)
    except CompileError:
        return None
    result.complex += 1
    return _split(function, graph, case, expected)


LIMIT = 60
"""Seconds that an entry may take."""


class TooLong(Exception):
    """An entry took longer than :data:`LIMIT`."""


def too_long(*_: object) -> None:
    raise TooLong(f"took longer than {LIMIT} s")


def sweep_entry(name: str) -> Result:
    op = database()[name]
    result = Result()
    cases = list(cases_of(op))
    if torch.complex128 in op.supported_backward_dtypes("cpu"):
        cases += cases_of(op, torch.complex128, most=1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(cases, Path(folder), name)
        for case in cases:
            try:
                function = getattr(module, case.name)
                if case.key.startswith("complex"):
                    problem = _check_complex(function, case, result)
                else:
                    problem = _check(op, function, case, result)
            except TooLong:
                raise
            except Exception as error:
                problem = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            if problem:
                result.failures[case.key] = problem
    result.by_autograd = sorted(set(result.by_autograd))
    return result


def _limited(name: str) -> Result:
    signal.alarm(LIMIT)
    try:
        return sweep_entry(name)
    except TooLong as error:
        return Result(1, {"time": str(error)})
    finally:
        signal.alarm(0)


def asserted() -> list[str]:
    """The entries for which PyTorch's own table asserts that a differentiable graph holds them."""
    return [name for name, op in database().items() if op.assert_autodiffed]


# ---------------------------------------------------------------------------------------------------------- reporting


def summary(results: dict[str, Result]) -> dict[str, Any]:
    counted = {name: result for name, result in results.items() if result.cases}
    passed = [name for name, result in counted.items() if result.passed]
    by_formulas = [name for name, result in counted.items() if result.by_formulas]
    theirs = [name for name in asserted() if name in counted]
    return {
        "torch": torch.__version__.partition("+")[0],
        "entries": len(results),
        "denominator": len(counted),
        "passed": len(passed),
        "percent": round(100 * len(passed) / max(1, len(counted)), 2),
        "by_formulas": len(by_formulas),
        "percent_by_formulas": round(100 * len(by_formulas) / max(1, len(counted)), 2),
        "asserted_by_torch": len(theirs),
        "asserted_by_formulas": sum(results[name].by_formulas for name in theirs),
        "cases": sum(result.cases for result in counted.values()),
        "gradcheck": sum(result.gradcheck for result in counted.values()),
        "gradgradcheck": sum(result.gradgradcheck for result in counted.values()),
        "complex": sum(result.complex for result in results.values()),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.gradients")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--only", help="entries, with commas between them; with --full, they replace what is written")
    parser.add_argument("--part", help="I/N: the I-th of N parts of all entries; adds to what earlier parts have found")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        torch.set_num_threads(1)
        os.environ.pop("REKINDLE_VERIFY", None)  # what is made here is verified once, when it is done
        signal.signal(signal.SIGALRM, too_long)
        serve(options.worker, lambda name: asdict(_limited(name)))
        return 0
    names = options.only.split(",") if options.only else list(database())
    if options.part:
        index, count = map(int, options.part.split("/"))
        names = names[index - 1 :: count]
    found = run_entries("tests.sweeps.gradients", names, [], options.jobs)
    results = {
        name: Result(failures={"process": "died"}, cases=1) if found[name] is None else Result(**found[name])
        for name in names
    }
    if options.full and (options.only or (options.part and index > 1)):
        results = _committed() | results
    head = summary(results)
    for name, result in results.items():
        if result.failures or (options.only and result.by_autograd):
            print(name, result.failures, result.by_autograd)
    print(json.dumps(head, indent=1))
    if options.full:
        _write(results, head)
    return 0


def _committed() -> dict[str, Result]:
    """The results that were written last."""
    path = report.RESULTS / f"{STEM}.json"
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    return {name: Result(**entry) for name, entry in data["entries"].items()} | {
        name: Result() for name in data["outside"]
    }


def _write(results: dict[str, Result], head: dict[str, Any]) -> None:
    counted = {name: result for name, result in sorted(results.items()) if result.cases}
    entries = {name: asdict(result) for name, result in counted.items()}
    outside = sorted(set(results) - set(counted))
    data = {"summary": head, "entries": entries, "outside": outside}
    (report.RESULTS / f"{STEM}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (report.RESULTS / f"{STEM}.md").write_text(_markdown(counted, outside, head), encoding="utf-8")


def _markdown(counted: dict[str, Result], outside: list[str], head: dict[str, Any]) -> str:
    known = report.known_failures(report.known_failures_path(STEM))
    failing = {name: result for name, result in counted.items() if not result.passed}
    others = {name: result for name, result in counted.items() if result.passed and result.by_autograd}
    whole = (
        f"torch {head['torch']}, float64. Of {head['entries']} entries that support autograd, a case of "
        f"**{head['denominator']}** can be scripted and has a gradient in eager; of these **{head['passed']}** "
        f"({head['percent']} %) give eager's values, gradients and gradients of gradients in all of {head['cases']} "
        "cases, the derivative of the whole graph as well as the split one."
    )
    differences = (
        f"The first sample of each was compared with finite differences too: {head['gradcheck']} pass `gradcheck`, "
        f"{head['gradgradcheck']} `gradgradcheck`; the others do not in eager either, or have no such gradients. Of "
        f"{head['complex']} entries a sample of complex numbers was compared; these gradients are PyTorch's."
    )
    formulas = (
        f"**{head['by_formulas']}** ({head['percent_by_formulas']} %) go through formulas of rekindle alone, among "
        f"them {head['asserted_by_formulas']} of the {head['asserted_by_torch']} for which PyTorch's table asserts a "
        "differentiable graph."
    )
    lines = [
        "# Gradients of the operator database",
        "",
        whole,
        "",
        differences,
        "",
        formulas,
        "",
        "| entry that fails | first failure | reason |",
        "| --- | --- | --- |",
        *(f"| {name} | {next(iter(r.failures.values()))} | {known.get(name, '')} |" for name, r in failing.items()),
        "",
        "Left to PyTorch's autograd:",
        "",
        *(f"- {name}: {', '.join(result.by_autograd)}" for name, result in others.items()),
        "",
        f"No case to compare: {', '.join(outside)}.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

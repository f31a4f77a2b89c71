"""The sweep over inferred types: what type propagation says of the results of operators, beside what they are.

    python -m tests.sweeps.inferred_types --full --jobs 2      everything; writes results/inferred_types.md
    python -m tests.sweeps.inferred_types --quick --share 4    fewer samples, of every fourth entry
    python -m tests.sweeps.inferred_types --only add,mul       some entries, and what is wrong with them

Each sample of PyTorch's operator database becomes a graph, as in :mod:`tests.sweeps.op_db`. Its types are propagated at
several levels of knowledge of the arguments (:data:`LEVELS`), and the graph runs: each fact that does not hold for the
value that was there is wrong. Of the tensors that were there, the share is counted whose dtype, and whose rank, was
known.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

import rekindle
from rekindle.analysis.type_propagation import propagate_types
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import BOOL, FLOAT, INT, TENSOR, TensorType, Type
from rekindle.passes import inline
from tests.support.graphs import Evaluator
from tests.sweeps.cases import Case, NotWritable, _variants, _Writer, load, seed
from tests.sweeps.op_db import database
from tests.sweeps.shards import run_entries, serve

RESULTS = Path(__file__).parent / "results" / "inferred_types.md"

PRIMARY = (torch.float32, torch.int64, torch.complex64)
"""Dtypes of which more samples are taken."""

DTYPES = (
    *PRIMARY,
    *(torch.bool, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.int8, torch.int16),
    *(torch.complex128, torch.complex32),
)

_LONGEST_TEXT = 4000


# -------------------------------------------------------------------------------------------------- levels of knowledge


def _every_other_size(type: TensorType) -> TensorType:
    assert type.sizes is not None
    return replace(type, sizes=tuple(size if index % 2 else None for index, size in enumerate(type.sizes)))


def _first_only(type: TensorType, index: int) -> TensorType:
    return TENSOR if index else type


LEVELS: dict[str, Callable[[TensorType, int], TensorType]] = {
    "all": lambda type, index: type,
    "ranks": lambda type, index: type.with_rank_only(),
    "some sizes": lambda type, index: _every_other_size(type),
    "all but gradients": lambda type, index: replace(type, requires_grad=None),
    "dtypes": lambda type, index: replace(type, sizes=None),
    "sizes": lambda type, index: replace(type, dtype=None, device=None),
    "the first argument": _first_only,
    "nothing": lambda type, index: TENSOR,
    "all but numbers": lambda type, index: type,
    "ranks, not numbers": lambda type, index: type.with_rank_only(),
    "all, with gradients": lambda type, index: type,
    "ranks, with gradients": lambda type, index: type.with_rank_only(),
}
"""What is known of the tensor that is the argument at an index. Constants of the graph are arguments of which only the
type is known in levels without numbers."""


@dataclass(slots=True)
class Counts:
    """Tensors that there were, those of known dtype, those of known rank, and facts that did not hold."""

    tensors: int = 0
    dtypes: int = 0
    ranks: int = 0
    wrong: list[str] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------------------- real values


class Recorder(Evaluator):
    """Notes the type that each tensor has when its value is made."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[Value, list[TensorType]] = {}

    def node(self, node: Node) -> list[Any]:
        results = Evaluator.node(self, node)
        for value, result in zip(node.outputs, results, strict=True):
            if isinstance(result, torch.Tensor):
                self.seen.setdefault(value, []).append(type_of(result))
        return results


def type_of(tensor: torch.Tensor) -> TensorType:
    """All that may be said of ``tensor``."""
    return replace(TensorType.of(tensor), strides=None)


def with_gradients(arguments: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same arguments, of which those that can require a gradient. None is a leaf: they may be written to."""
    copies = [argument.detach().clone() for argument in arguments]
    return [each.requires_grad_().clone() if each.is_floating_point() or each.is_complex() else each for each in copies]


def without_numbers(graph: Graph) -> tuple[Graph, list[Any]]:
    """A copy of ``graph`` in which numbers are inputs, and these numbers."""
    copy = graph.copy()
    numbers = []
    for node in copy.find_nodes("prim::Constant"):
        if node.output.type in (INT, FLOAT, BOOL) and "value" in node.attributes:
            number = node.attributes["value"]
            node.output.replace_all_uses_with(copy.add_input(type=node.output.type))
            numbers.append(bool(number) if node.output.type == BOOL else number)
    return copy, numbers


# ------------------------------------------------------------------------------------------------------------ measuring


def measure(graph: Graph, arguments: list[torch.Tensor], found: dict[str, Counts]) -> None:
    """Propagate types through ``graph`` at every level, run it, and compare."""
    numberless, numbers = without_numbers(graph)
    recorders: dict[tuple[Graph, bool], Recorder] = {}
    for title, choose in LEVELS.items():
        has_gradients = "with gradients" in title
        given = with_gradients(arguments) if has_gradients else [each.detach().clone() for each in arguments]
        if has_gradients and not any(each.requires_grad for each in given):
            continue
        measured = numberless if "numbers" in title else graph
        values = [*given, *numbers] if "numbers" in title else given
        types: list[Type | None] = [
            choose(type_of(value), index) if isinstance(value, torch.Tensor) else None
            for index, value in enumerate(values)
        ]
        told = propagate_types(measured, types, grad_enabled=True if has_gradients else None)
        recorder = recorders.get((measured, has_gradients))
        if recorder is None:
            recorder = recorders[measured, has_gradients] = Recorder()
            with torch.enable_grad():
                recorder.run(measured, values)
        compare(measured, told, recorder, found.setdefault(title, Counts()))


def compare(graph: Graph, told: dict[Value, Type], recorder: Recorder, counts: Counts) -> None:
    """Count what was known of the tensors that there were, and note what was wrong."""
    for value, seen in recorder.seen.items():
        claim = told.get(value, TENSOR)
        claim = claim if isinstance(claim, TensorType) else TENSOR
        counts.tensors += 1
        counts.dtypes += claim.dtype is not None
        counts.ranks += claim.sizes is not None
        for type in seen:
            if not type.is_subtype_of(claim):
                counts.wrong.append(f"{value.node.kind} gave {type}, not {claim}, in\n{graph}")


def samples(op: Any, *, quick: bool) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """The calls of an entry: the text of a function after its name, and its arguments."""
    supported = op.supported_dtypes("cpu")
    for dtype in DTYPES[:2] if quick else DTYPES:
        if dtype not in supported:
            continue
        most = 3 if quick else 12 if dtype in PRIMARY else 4
        seed()
        try:
            for index, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
                if index == most:
                    break
                yield from _texts(op, sample)
        except Exception:
            continue


def _texts(op: Any, sample: Any) -> Iterator[tuple[str, list[torch.Tensor]]]:
    for write in _variants(op).values():
        writer = _Writer()
        try:
            expression = write(writer, sample)
        except NotWritable:
            continue
        parameters = ", ".join(f"t{index}" for index in range(len(writer.tensors)))
        if len(expression) <= _LONGEST_TEXT:
            yield f"({parameters}):\n    return {expression}\n", writer.tensors


def measure_entry(name: str, *, quick: bool = False) -> dict[str, Counts]:
    """The counts of an entry of the database, by level."""
    calls: dict[str, list[list[torch.Tensor]]] = {}
    for text, arguments in samples(database()[name], quick=quick):
        calls.setdefault(text, []).append(arguments)
    cases = [Case(str(index), f"f{index}", f"def f{index}{text}", []) for index, text in enumerate(calls)]
    found: dict[str, Counts] = {}
    if not cases:
        return found
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(cases, Path(folder), f"inferred_{name}")
        for case, all_arguments in zip(cases, calls.values(), strict=True):
            graph = _graph_of(getattr(module, case.name))
            for arguments in all_arguments if graph is not None else ():
                assert graph is not None
                if _runs(graph, arguments):
                    measure(graph, arguments, found)
    return found


def _graph_of(function: Any) -> Graph | None:
    try:
        graph = rekindle.script(function).graph.copy()
    except Exception:  # not a program: the sweep over operators counts those
        return None
    inline(graph)
    return graph


def _runs(graph: Graph, arguments: list[torch.Tensor]) -> bool:
    """Whether the graph runs on these arguments, with gradients too where some require them."""
    try:
        Evaluator().run(graph, [each.detach().clone() for each in arguments])
        with torch.enable_grad():
            Evaluator().run(graph, with_gradients(arguments))
    except Exception:
        return False
    return True


# -------------------------------------------------------------------------------------------------------------- results


def table(totals: dict[str, Counts], failed: int) -> str:
    """The shares by level, as they are kept."""
    lines = [
        "# Inferred types of PyTorch's operator database",
        "",
        "Graphs of its samples. What is known of the arguments, against what is known of the results.",
        "",
        "| known of the arguments | tensors | dtype known | rank known | wrong facts |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {title} | {each.tensors} | {each.dtypes / each.tensors:.2%} | {each.ranks / each.tensors:.2%} "
            f"| {len(each.wrong)} |"
            for title, each in totals.items()
            if each.tensors
        ),
        "",
        f"Entries that ended the process: {failed}.",
    ]
    return "\n".join(lines) + "\n"


def _add(totals: dict[str, Counts], found: dict[str, Any]) -> None:
    for title, (tensors, dtypes, ranks, wrong) in found.items():
        total = totals.setdefault(title, Counts())
        total.tensors += tensors
        total.dtypes += dtypes
        total.ranks += ranks
        total.wrong += wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.inferred_types")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--quick", action="store_true", help="two dtypes, three samples each")
    parser.add_argument("--share", type=int, default=1, help="take every so many-th entry")
    parser.add_argument("--only", help="entries, with commas between them")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker is not None:
        torch.set_num_threads(1)
        serve(options.worker, lambda name: _packed(measure_entry(name, quick=options.quick)))
        return 0
    names = options.only.split(",") if options.only else list(database())[:: options.share]
    found = run_entries("tests.sweeps.inferred_types", names, ["--quick"] * options.quick, options.jobs)
    totals: dict[str, Counts] = {title: Counts() for title in LEVELS}
    for result in found.values():
        _add(totals, result or {})
    crashed = [name for name, result in found.items() if result is None]
    text = table(totals, len(crashed))
    for wrong in dict.fromkeys(each for counts in totals.values() for each in counts.wrong[:5]):
        print(wrong)
    print(text, *crashed, sep="\n")
    if options.full:
        RESULTS.write_text(text, encoding="utf-8")
    return 1 if crashed or any(counts.wrong for counts in totals.values()) else 0


def _packed(found: dict[str, Counts]) -> dict[str, Any]:
    return {title: [each.tensors, each.dtypes, each.ranks, each.wrong[:20]] for title, each in found.items()}


if __name__ == "__main__":
    sys.exit(main())

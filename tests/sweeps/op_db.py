"""The sweep over PyTorch's operator database.

    python -m tests.sweeps.op_db --full --jobs 2      everything; writes results/op_db.md and .json
    python -m tests.sweeps.op_db --only add,mul       some entries, and what goes wrong with them
    python -m tests.sweeps.op_db --record --jobs 2    asks torch.jit.script again which cases it takes (takes --only
    too) python -m tests.sweeps.op_db --traces …           the same with traces python -m tests.sweeps.op_db --every …
    the same of all that eager runs, whatever torch.jit does with it

For every entry up to six samples in float32, an integer dtype and complex64, each called as function, method and
in-place method. An entry counts where torch.jit.script compiles and runs one of its cases; it passes where every case
that torch.jit.script takes compiles here and gives eager's answer.

With ``--every``, an entry counts where eager runs one of its cases, and passes where all of those compile here and give
eager's answer. The cases that torch.jit.script takes are not run again: the committed result of their sweep counts.

With ``--traces``, an entry counts where a trace of torch.jit gives eager's answer on the sample that it was made of.
A trace must agree with eager on that sample, on other samples of the same text and ranks, and on inputs of
which sizes were doubled, as far as eager takes them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from tests.sweeps import report
from tests.sweeps.cases import Case, cases_of, digest, load
from tests.sweeps.other_sizes import other_sizes
from tests.sweeps.outcomes import Compiler, Outcome, check
from tests.sweeps.report import EntryResult
from tests.sweeps.shards import run_entries, serve
from tests.sweeps.ways import EVERY, SCRIPT, TRACE, Way

STEM = "op_db"

UNINITIALIZED = ("empty", "new_empty", "resize_", "_empty")
"""Operators whose results hold whatever was in the memory: their shapes and dtypes are compared, not their values."""


NOT_DOUBLED = ("nn.functional.embedding_bag", "linalg.lstsq", "linalg.lstsq.grad_oriented")
"""Operators that read beyond their memory where sizes are doubled, since repeated offsets are not valid; and those
whose results depend on the rank of a matrix, which rounding decides where rows are repeated."""


@cache
def database() -> dict[str, Any]:
    """The entries by their full names."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}


def evaluate(
    name: str, cases: list[Case], compiler: Compiler, others: dict[str, list[list[torch.Tensor]]] | None = None
) -> dict[str, Outcome]:
    """What comes of each case of an entry; ``others`` are further arguments to compare on."""
    values = not name.startswith(UNINITIALIZED)
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        module = load(cases, Path(folder), name)
        for case in cases:
            function = partial(getattr, module, case.name)
            further = [(arguments, {}) for arguments in (others or {}).get(case.key, ())]
            outcomes[case.key] = check(function, case.arguments, {}, compiler, values=values, others=further)
    return outcomes


def taken_by_torch(name: str, cases: list[Case], way: Way, record: dict[str, Any] | None = None) -> set[str]:
    """The cases that torch.jit takes: as recorded, or asked now where the texts are others."""
    recorded = (record or {}).get(name)
    if recorded is not None and recorded["texts"] == digest(cases):
        return set(recorded["taken"])
    assert way.theirs is not None
    outcomes = evaluate(name, cases, way.theirs)
    return {key for key, outcome in outcomes.items() if outcome.stage in way.stages}


def other_arguments(name: str, cases: list[Case]) -> dict[str, list[list[torch.Tensor]]]:
    """For each case, arguments of other sizes: those of cases of the same text, and its own with sizes doubled."""
    alike: dict[Any, list[Case]] = {}
    for case in cases:
        alike.setdefault(_without_sizes(case), []).append(case)
    return {
        case.key: [
            *(other.arguments for other in alike[_without_sizes(case)] if _shapes(other) != _shapes(case)),
            *(other_sizes(case.arguments) if name not in NOT_DOUBLED else ()),
        ]
        for case in cases
    }


def _without_sizes(case: Case) -> Any:
    dtype, _, variant = case.key.split("/")
    kinds = tuple((tensor.dim(), tensor.dtype, tensor.layout) for tensor in case.arguments)
    return dtype, variant, case.text.partition("\n")[2], kinds


def _shapes(case: Case) -> list[torch.Size]:
    return [tensor.shape for tensor in case.arguments]


def sweep_entry(name: str, way: Way, record: dict[str, Any] | None = None, *, with_torch: bool = False) -> EntryResult:
    cases = list(cases_of(database()[name]))
    if way.theirs is None:
        return _sweep_rest(name, way, cases)
    taken = taken_by_torch(name, cases, way, record)
    wanted = [case for case in cases if case.key in taken]
    others = other_arguments(name, cases) if way.other_sizes else {}
    outcomes = evaluate(name, wanted, way.theirs if with_torch else way.ours, others)
    failures = {key: outcome for key, outcome in outcomes.items() if not outcome.passed}
    texts = {case.key: case.text for case in wanted if case.key in failures}
    return EntryResult(name, len(wanted), failures, texts, others=sum(o.others for o in outcomes.values()))


def _sweep_rest(name: str, way: Way, cases: list[Case]) -> EntryResult:
    """The cases of an entry that torch.jit.script does not take, and what the sweep of those that it takes found."""
    record = load_record(SCRIPT)
    rest = [case for case in cases if case.key not in taken_by_torch(name, cases, SCRIPT, record)]
    outcomes = evaluate(name, rest, way.ours)
    outcomes = {key: outcome for key, outcome in outcomes.items() if outcome.stage != "eager"}
    failures = {key: outcome for key, outcome in outcomes.items() if not outcome.passed}
    known = report.committed_entries(STEM).get(name, {"cases": 0, "failed": {}})
    failures |= {key: Outcome(stage) for key, stage in known["failed"].items()}
    texts = {case.key: case.text for case in cases if case.key in failures}
    return EntryResult(name, len(outcomes) + known["cases"], failures, texts)


def load_record(way: Way) -> dict[str, Any]:
    path = way.record(STEM)
    return json.loads(path.read_text(encoding="utf-8"))["entries"] if path.exists() else {}


def _record_entry(name: str, way: Way) -> dict[str, Any]:
    cases = list(cases_of(database()[name]))
    return {"texts": digest(cases), "taken": sorted(taken_by_torch(name, cases, way))}


def _record(names: list[str], way: Way, options: list[str], jobs: int) -> None:
    found = run_entries("tests.sweeps.op_db", names, ["--record", *options], jobs)
    entries = load_record(way) | {name: result or {"texts": "crashed", "taken": []} for name, result in found.items()}
    entries = {name: entries[name] for name in sorted(entries)}
    version = torch.__version__.partition("+")[0]
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
    way.record(STEM).write_text(f'{{"torch": "{version}", "entries": {{\n{lines}\n}}}}\n', encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.op_db")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--only", help="entries, with commas between them")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--traces", action="store_true", help="trace the cases, on other sizes too")
    parser.add_argument("--every", action="store_true", help="all that eager runs")
    parser.add_argument("--record", action="store_true", help="ask torch.jit which cases it takes")
    parser.add_argument("--causes", action="store_true", help="print the most frequent causes of failure")
    parser.add_argument("--with-torch", action="store_true", help="compile with torch.jit, to try out the sweep")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    way = TRACE if options.traces else EVERY if options.every else SCRIPT
    if options.worker:
        torch.set_num_threads(1)
        if options.record:
            serve(options.worker, partial(_record_entry, way=way))
        else:
            record = load_record(way)
            serve(options.worker, lambda name: sweep_entry(name, way, record, with_torch=options.with_torch).to_json())
        return 0
    names = options.only.split(",") if options.only else list(database())
    passed_on = ["--traces"] * options.traces + ["--every"] * options.every + ["--with-torch"] * options.with_torch
    if options.record:
        _record(names, way, passed_on, options.jobs)
        return 0
    found = run_entries("tests.sweeps.op_db", names, passed_on, options.jobs)
    results = {name: EntryResult.from_json(name, found[name]) for name in names}
    title = "The operator database" + {TRACE: ", traced", EVERY: ", all of it"}.get(way, "")
    show_causes = options.causes or bool(options.only)
    return report.conclude(STEM + way.suffix, title, way.peer, results, show_causes=show_causes, full=options.full)


if __name__ == "__main__":
    sys.exit(main())

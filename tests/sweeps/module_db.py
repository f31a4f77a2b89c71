"""The sweep over PyTorch's module database.

    python -m tests.sweeps.module_db --full --jobs 2      everything; writes results/module_db.md and .json
    python -m tests.sweeps.module_db --only nn_Linear     some entries, and what goes wrong with them
    python -m tests.sweeps.module_db --record             asks torch.jit.script again which cases it takes
    python -m tests.sweeps.module_db --traces …           the same with traces

Every module in float32, in training and in evaluation mode, with up to twelve of the database's samples, spread
evenly over them. Outputs of two calls and what the calls leave in buffers are compared with eager's. An entry counts
where torch.jit.script compiles and runs one of its cases; further cases that pass are listed beside it.

With ``--traces``, an entry counts where a trace of torch.jit gives eager's answer on the sample that it was made of.
The module is traced as part of another, which has the other arguments than tensors. A trace must agree with
eager does, and on inputs of which sizes were doubled too, as far as eager takes them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from tests.sweeps import report
from tests.sweeps.cases import seed
from tests.sweeps.other_sizes import other_sizes
from tests.sweeps.outcomes import Compiler, Outcome, check
from tests.sweeps.report import EntryResult
from tests.sweeps.shards import run_entries, serve
from tests.sweeps.ways import SCRIPT, TRACE, Way

STEM = "module_db"
SAMPLES = 12


@dataclass(slots=True)
class ModuleCase:
    """A module to be made, and what to call it with; ``key`` is ``train/sample`` or ``eval/sample``."""

    key: str
    make: Callable[[], torch.nn.Module]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    text: str


@cache
def database() -> dict[str, Any]:
    """The entries by their names."""
    from torch.testing._internal.common_modules import module_db

    return {entry.formatted_name: entry for entry in module_db}


def cases_of(entry: Any) -> list[ModuleCase]:
    cases: list[ModuleCase] = []
    for training in (True, False):
        mode = "train" if training else "eval"
        seed()
        inputs = entry.module_inputs_func(
            entry, device="cpu", dtype=torch.float32, requires_grad=False, training=training
        )
        inputs = [(index, item) for index, item in enumerate(inputs) if item.forward_input is not None]
        step = max(1, len(inputs) / SAMPLES)
        for index, item in (inputs[int(i * step)] for i in range(min(SAMPLES, len(inputs)))):
            arguments, keywords = item.constructor_input.args, item.constructor_input.kwargs
            cases.append(
                ModuleCase(
                    f"{mode}/{index}",
                    _maker(entry.module_cls, arguments, keywords, training),
                    tuple(item.forward_input.args),
                    dict(item.forward_input.kwargs),
                    f"{entry.formatted_name}(*{_brief(arguments)}, **{_brief(keywords)}), {mode}\n",
                )
            )
    return cases


def _maker(module: Any, arguments: Any, keywords: Any, training: bool) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        seed()
        return module(*arguments, **keywords).train(training)

    return make


def _brief(value: Any) -> str:
    return repr(value)[:200]


class Called(torch.nn.Module):
    """A module called with ``leaves``, the leaves of its arguments, of which this takes and gives the tensors alone."""

    def __init__(self, module: torch.nn.Module, leaves: list[Any], structure: TreeSpec) -> None:
        super().__init__()
        self.module = module
        self.train(module.training)
        self._leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self._structure = structure

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        arguments, keywords = tree_unflatten(leaves, self._structure)
        result = self.module(*arguments, **keywords)
        found = tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        return found[0] if len(found) == 1 else found


def _called(case: ModuleCase) -> ModuleCase:
    """The case as that of a module that takes nothing but tensors."""
    leaves, structure = tree_flatten((case.arguments, case.keywords))
    tensors = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
    return ModuleCase(case.key, lambda: Called(case.make(), leaves, structure), tensors, {}, case.text)


def evaluate(cases: list[ModuleCase], compiler: Compiler, way: Way, *, other: bool = False) -> dict[str, Outcome]:
    """What comes of each case; with ``other``, on other sizes too."""
    outcomes: dict[str, Outcome] = {}
    for case in map(_called, cases) if way is TRACE else cases:
        others = other_sizes((case.arguments, case.keywords)) if other else ()
        outcomes[case.key] = check(case.make, case.arguments, case.keywords, compiler, calls=2, others=others)
    return outcomes


def taken_by_torch(cases: list[ModuleCase], way: Way, recorded: list[str] | None) -> set[str]:
    """The cases that torch.jit takes: as recorded for this release of PyTorch, or asked now."""
    if recorded is not None:
        return set(recorded)
    outcomes = evaluate(cases, way.theirs, way)
    return {key for key, outcome in outcomes.items() if outcome.stage in way.stages}


def sweep_entry(name: str, way: Way, record: dict[str, list[str]], *, with_torch: bool = False) -> EntryResult:
    cases = cases_of(database()[name])
    taken = taken_by_torch(cases, way, record.get(name))
    compiler = way.theirs if with_torch else way.ours
    wanted = [case for case in cases if case.key in taken or not taken]
    outcomes = evaluate(wanted, compiler, way, other=way.other_sizes)
    others = sum(outcome.others for outcome in outcomes.values())
    if not taken:
        beyond = [outcome for outcome in outcomes.values() if outcome.stage != "eager"]
        return EntryResult(name, others=others, beyond=bool(beyond) and all(outcome.passed for outcome in beyond))
    failures = {key: outcome for key, outcome in outcomes.items() if not outcome.passed}
    texts = {case.key: case.text for case in cases if case.key in failures}
    return EntryResult(name, len(taken), failures, texts, others=others)


def load_record(way: Way) -> dict[str, list[str]]:
    """What was recorded; nothing where it was recorded with another release of PyTorch, which has other samples."""
    release, entries = _recorded(way)
    return entries if release == _version() else {}


def taken_names(way: Way) -> list[str]:
    """The entries of this release's database of which torch.jit takes a case, by the record of whichever release."""
    return sorted(name for name, taken in _recorded(way)[1].items() if taken and name in database())


def _recorded(way: Way) -> tuple[str, dict[str, list[str]]]:
    path = way.record(STEM)
    if not path.exists():
        return "", {}
    record = json.loads(path.read_text(encoding="utf-8"))
    return record["torch"], record["entries"]


def _version() -> str:
    return torch.__version__.partition("+")[0]


def _record_entry(name: str, way: Way) -> list[str]:
    return sorted(taken_by_torch(cases_of(database()[name]), way, None))


def _record(names: list[str], way: Way, options: list[str], jobs: int) -> None:
    found = run_entries("tests.sweeps.module_db", names, ["--record", *options], jobs)
    entries = load_record(way) | {name: result or [] for name, result in found.items()}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries))
    way.record(STEM).write_text(f'{{"torch": "{_version()}", "entries": {{\n{lines}\n}}}}\n', encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.module_db")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--only", help="entries, with commas between them")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--traces", action="store_true", help="trace the cases, on other sizes too")
    parser.add_argument("--record", action="store_true", help="ask torch.jit which cases it takes")
    parser.add_argument("--causes", action="store_true", help="print the most frequent causes of failure")
    parser.add_argument("--with-torch", action="store_true", help="compile with torch.jit, to try out the sweep")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    way = TRACE if options.traces else SCRIPT
    if options.worker:
        torch.set_num_threads(1)
        if options.record:
            serve(options.worker, partial(_record_entry, way=way))
        else:
            record = load_record(way)
            serve(options.worker, lambda name: sweep_entry(name, way, record, with_torch=options.with_torch).to_json())
        return 0
    names = options.only.split(",") if options.only else list(database())
    passed_on = ["--traces"] * options.traces + ["--with-torch"] * options.with_torch
    if options.record:
        _record(names, way, passed_on, options.jobs)
        return 0
    found = run_entries("tests.sweeps.module_db", names, passed_on, options.jobs)
    results = {name: EntryResult.from_json(name, found[name]) for name in names}
    title = "The module database, traced" if options.traces else "The module database"
    show_causes = options.causes or bool(options.only)
    return report.conclude(STEM + way.suffix, title, way.peer, results, show_causes=show_causes, full=options.full)


if __name__ == "__main__":
    sys.exit(main())

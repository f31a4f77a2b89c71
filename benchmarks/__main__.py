"""Every benchmark, compared with eager Python and ``torch.jit``.

python -m benchmarks                       all of them; JSON beside the tables, in benchmarks/output/
python -m benchmarks --only execution      one of them
python -m benchmarks --workload LSTM       those workloads whose names have this in them
python -m benchmarks --peers inductor      with torch.compile as well
python -m benchmarks --only kernels --peers inductor --check    prints regressions from the baseline; exit code 1
python -m benchmarks --only kernels --peers inductor --save     makes this run the baseline
python -m benchmarks --only modules                             what others wrote; hours, and packages: [modules]
python -m benchmarks --only modules --every 20 --resume         a part of it; what an earlier run measured is kept
python -m benchmarks --only runtimes                            beside ONNX Runtime and OpenVINO: packages [runtimes]
python -m benchmarks --only runtimes --threads 2                the time that passes on two threads
python -m benchmarks --only numeric_loops                       loops over numbers beside Numba: packages [numba]
python -m benchmarks --only libraries                           native libraries beside LibTorch and others: g++
python -m benchmarks --only rounded_weights                     large linear maps with bfloat16 and int8 weights
python -m benchmarks --quick               few rounds: shows that they run, not how fast
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import (
    archives,
    baseline,
    batching,
    compile_time,
    compiled,
    execution,
    first_calls,
    first_uses,
    fork_wait,
    frozen,
    graph_size,
    imports,
    interpreter,
    kernels,
    learning,
    modules,
    numeric_loops,
    operators,
    overhead,
    plots,
    rounded_weights,
    strategies,
    thread_wakes,
    trace_time,
    training,
    whole_steps,
)
from benchmarks.libraries import measure as libraries
from benchmarks.peers import PEERS
from benchmarks.runtimes import measure as runtimes
from benchmarks.workloads import KERNELS, WORKLOADS

OUTPUT: Final = Path(__file__).parent / "output"
CONSOLE: Final = Console(width=None if sys.stdout.isatty() else 180)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--only", choices=BENCHMARKS, help="run one of them")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that they run, not how fast")
    parser.add_argument("--workload", default="", help="of the workloads, only those with this in their names")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[], help="peers beside eager, rekindle, torch.jit")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's threads while workloads run")
    parser.add_argument("--plot", type=Path, help="where the picture of graph_size, bandwidth or learning goes: an SVG")
    parser.add_argument("--check", action="store_true", help="compare the kernels' ratios with the baseline's")
    parser.add_argument("--save", action="store_true", help="make this the kernels' baseline, or the saved table")
    parser.add_argument("--every", type=int, default=1, help="of the modules, only every so many")
    parser.add_argument("--limit", type=float, default=modules.LIMIT, help="seconds for a process of a module")
    parser.add_argument("--resume", action="store_true", help="keep the rows of modules that are in the output")
    parser.add_argument("--out", type=Path, default=OUTPUT / "latest.json", help="where the JSON goes")
    options = parser.parse_args(arguments)
    if options.check and not baseline.PATH.exists():
        parser.error(f"there is no baseline to compare with; --save makes one: {baseline.PATH}")
    found: dict[str, Any] = {"machine": machine(options.threads)}
    slower: list[baseline.Regression] = []
    for name, benchmark in BENCHMARKS.items():
        if options.only == name or (options.only is None and name not in APART):
            rows = benchmark(options)
            found[name] = [_as_json(row) for row in rows]
            if name == "kernels":
                slower = _beside_the_baseline(rows, options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    CONSOLE.print(f"written: {options.out}")
    return 1 if slower else 0


def _beside_the_baseline(rows: list[Any], options: argparse.Namespace) -> list[baseline.Regression]:
    slower: list[baseline.Regression] = []
    if options.check:
        slower = baseline.regressions(baseline.ratios_of(rows), baseline.load())
        for each in slower:
            CONSOLE.print(f"slower than the baseline: {each}")
        if not slower:
            CONSOLE.print("slower than the baseline: nothing")
    if options.save:
        baseline.save(rows, machine(options.threads))
        CONSOLE.print(f"written: {baseline.PATH}")
    return slower


def machine(threads: int) -> dict[str, Any]:
    """Return what the results depend on: the versions, the processor, and the ``threads`` of the measured calls."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": platform.processor() or platform.machine(),
        "threads": threads,
    }


# ---------------------------------------------------------------------------------------------------------- benchmarks


def _execution(options: argparse.Namespace) -> list[Any]:
    chosen = [workload for workload in WORKLOADS if options.workload in workload.name]
    peers = _peers(options)
    rounds = 3 if options.quick else execution.ROUNDS
    slice = 0.001 if options.quick else execution.SLICE
    rows = list(execution.run(rounds, peers, chosen, threads=options.threads, slice=slice))
    if rows:
        _show(f"Time of a call, {options.threads} thread(s), no gradients", execution.speed_table(rows))
        _show("First call with compilation; memory of tensors", execution.cost_table(rows))
        for line in execution.remarks(rows):
            CONSOLE.print(line)
    return rows


def _kernels(options: argparse.Namespace) -> list[Any]:
    chosen = [workload for workload in KERNELS if options.workload in workload.name]
    rounds = 3 if options.quick else execution.ROUNDS
    rows = list(kernels.run(rounds, _peers(options), chosen, threads=options.threads))
    if rows:
        title = f"Kernels: time of a call, {options.threads} thread(s), no gradients"
        _show(title, execution.speed_table(rows))
        _show("First call with compilation; memory of tensors", execution.cost_table(rows))
        _show("Our time over a peer's, and what it was to be at most", kernels.aims_table(rows))
        for line in execution.remarks(rows):
            CONSOLE.print(line)
    return rows


def _bandwidth(options: argparse.Namespace) -> list[Any]:
    rows = list(kernels.bandwidth(3 if options.quick else 30, _peers(options), threads=options.threads))
    _show("x * y + x - 0.5 * y beside the machine's bandwidth", kernels.bandwidth_table(rows))
    if options.plot is not None and options.only == "bandwidth":
        drawn = {name: [(float(row.elements), row.peers[name]) for row in rows] for name in rows[0].peers}
        drawn["addition into a tensor"] = [(float(row.elements), row.machine) for row in rows]
        text = plots.lines("x * y + x - 0.5 * y", "elements", "gigabytes a second", drawn, by_decades=True)
        options.plot.write_text(text, encoding="utf-8")
    return rows


def _first_calls(options: argparse.Namespace) -> list[Any]:
    chosen = [workload for workload in first_calls.WORKLOADS if options.workload in workload.name]
    rows = list(first_calls.run(_peers(options), chosen[:1] if options.quick else chosen))
    if rows:
        _show("First calls, caches cold, each in a fresh process", first_calls.table(rows))
    return rows


def _peers(options: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(["eager", "rekindle", "torch.jit", *options.peers]))


def _overhead(options: argparse.Namespace) -> list[Any]:
    rows = overhead.run(3 if options.quick else overhead.ROUNDS)
    _show("Calls beyond their operators", overhead.table(rows))
    return rows


def _operators(options: argparse.Namespace) -> list[Any]:
    rows = operators.run(3 if options.quick else operators.ROUNDS, options.workload)
    if rows:
        _show("Operators on 4×4 floats, one thread, no gradients: nanoseconds", operators.table(rows))
    return rows


def _strategies(options: argparse.Namespace) -> list[Any]:
    chosen = [workload for workload in WORKLOADS if options.workload in workload.name]
    rows = list(strategies.run(3 if options.quick else strategies.ROUNDS, chosen))
    _show("Strategies of execution, CPU time of a call", strategies.table(rows))
    return rows


def _compile_time(options: argparse.Namespace) -> list[Any]:
    rows = compile_time.run(1 if options.quick else compile_time.ROUNDS)
    _show("Time to script a model, each in a fresh process", compile_time.table(rows))
    return rows


def _first_uses(options: argparse.Namespace) -> list[Any]:
    rows = list(first_uses.run(1 if options.quick else first_uses.ROUNDS, only=options.workload))
    if rows:
        _show("Milliseconds of the processor to script a module, and of the first calls", first_uses.table(rows))
    return rows


def _graph_size(options: argparse.Namespace) -> list[Any]:
    rows = graph_size.run(1, (500, 1_000)) if options.quick else graph_size.run()
    _show("Time to compile programs of growing size", graph_size.table(rows))
    if options.plot is not None and options.only not in ("bandwidth", "learning"):
        families = {name: [(row.nodes, row.total) for row in rows if row.what == name] for name in graph_size.FAMILIES}
        text = plots.lines("Time to compile, by the size of the program", "nodes", "seconds", families)
        options.plot.write_text(text, encoding="utf-8")
    return rows


def _imports(options: argparse.Namespace) -> list[Any]:
    rows = imports.run(1 if options.quick else imports.ROUNDS)
    _show("What importing takes", imports.table(rows))
    return rows


def _trace_time(options: argparse.Namespace) -> list[Any]:
    rows = trace_time.run(1 if options.quick else trace_time.ROUNDS)
    _show("Time to trace BERT-base, each in a fresh process", trace_time.table(rows))
    return rows


def _interpreter(options: argparse.Namespace) -> list[Any]:
    rows = interpreter.run(2 if options.quick else 30)
    _show("Time for an interpreted node", interpreter.table(rows))
    return rows


def _fork_wait(options: argparse.Namespace) -> list[Any]:
    rows = fork_wait.run(2 if options.quick else 20)
    _show("Tasks that are forked and waited for", fork_wait.table(rows))
    return rows


def _archives(options: argparse.Namespace) -> list[Any]:
    rows = archives.run(1 if options.quick else 10)
    _show("Archives, read and written", archives.table(rows))
    return rows


def _frozen(options: argparse.Namespace) -> list[Any]:
    rows = frozen.run(3 if options.quick else frozen.ROUNDS)
    _show("Frozen networks: time over eager's, one thread, no gradients", frozen.table(rows))
    return rows


def _batching(options: argparse.Namespace) -> list[Any]:
    rows = batching.run(3 if options.quick else batching.ROUNDS)
    _show("Batches: time over torch.func.vmap's, one thread", batching.table(rows))
    return rows


def _compiled(options: argparse.Namespace) -> list[Any]:
    peers = compiled.PEERS if not options.quick or "inductor" in options.peers else compiled.PEERS[:3]
    rows = list(compiled.run(3 if options.quick else compiled.ROUNDS, options.workload, peers))
    if rows:
        _show("torch.compile, one thread", compiled.table(rows))
    return rows


def _learning(options: argparse.Namespace) -> list[Any]:
    rows = learning.run(5 if options.quick else learning.STEPS)
    _show("Losses of training, eager and scripted", learning.table(rows))
    if options.plot is not None and options.only == "learning":
        text = plots.lines("Losses while three models learn", "steps", "part of the first loss", learning.curves(rows))
        options.plot.write_text(text, encoding="utf-8")
    return rows


def _training(options: argparse.Namespace) -> list[Any]:
    rows = training.run(3 if options.quick else training.ROUNDS, options.peers, options.workload)
    if rows:
        _show("Forward and backward, one thread, time over eager's", training.table(rows))
    return rows


def _whole_steps(options: argparse.Namespace) -> list[Any]:
    rows = whole_steps.run(3 if options.quick else whole_steps.ROUNDS, options.peers, options.workload)
    if rows:
        _show("Forward, backward, clipping and AdamW, one thread, time over eager's", whole_steps.table(rows))
    return rows


def _modules(options: argparse.Namespace) -> list[Any]:
    chosen = modules.chosen(options.workload, options.every)
    quick = (3, 0.0005) if options.quick else (modules.ROUNDS, modules.SLICE)
    output = OUTPUT / "modules.jsonl"
    rows = modules.measured(chosen, *quick, options.limit, output, resume=options.resume, console=CONSOLE)
    if rows:
        _show("Modules of libraries, one thread", modules.table(rows))
        _print_lines(modules.summary(rows))
    _save_if_asked(modules, rows, options)
    return rows


def _runtimes(options: argparse.Namespace) -> list[Any]:
    chosen = [network for network in runtimes.NETWORKS if options.workload in network.name]
    quick = (3, chosen, 0.0) if options.quick else (runtimes.ROUNDS, chosen)
    rows = list(runtimes.run(*quick, threads=options.threads))
    if rows:
        _show(f"Inference beside other runtimes, {options.threads} thread(s)", runtimes.table(rows))
        _show("Largest error beside float64 over the largest number", runtimes.errors_table(rows))
        _print_lines(runtimes.remarks(rows))
    _save_if_asked(runtimes, rows, options)
    return rows


def _numeric_loops(options: argparse.Namespace) -> list[Any]:
    quick = (1, options.workload, 0.0) if options.quick else (numeric_loops.ROUNDS, options.workload)
    rows = numeric_loops.run(*quick)
    if rows:
        _show("Loops over numbers beside Numba, one thread", numeric_loops.table(rows))
    return rows


def _libraries(options: argparse.Namespace) -> list[Any]:
    quick = (1, options.workload, 0.02) if options.quick else (libraries.ROUNDS, options.workload)
    rows = list(libraries.run(*quick))
    if rows:
        _show("Programs without Python, one thread", libraries.table(rows))
        _print_lines(libraries.remarks(rows))
    _save_if_asked(libraries, rows, options)
    return rows


def _rounded_weights(options: argparse.Namespace) -> list[Any]:
    quick = (3, options.workload, 0.0) if options.quick else (rounded_weights.ROUNDS, options.workload)
    rows = list(rounded_weights.run(*quick))
    if rows:
        _show("Weights rounded to fewer bits, one thread", rounded_weights.table(rows))
    return rows


def _thread_wakes(options: argparse.Namespace) -> list[Any]:
    rows = list(thread_wakes.run(0.1 if options.quick else thread_wakes.SECONDS))
    _show("Wakes of another thread of Python a second, while a program runs", thread_wakes.table(rows))
    return rows


BENCHMARKS: Final[dict[str, Callable[[argparse.Namespace], list[Any]]]] = {
    "execution": _execution,
    "kernels": _kernels,
    "bandwidth": _bandwidth,
    "first_calls": _first_calls,
    "overhead": _overhead,
    "operators": _operators,
    "strategies": _strategies,
    "compile_time": _compile_time,
    "first_uses": _first_uses,
    "graph_size": _graph_size,
    "imports": _imports,
    "trace_time": _trace_time,
    "interpreter": _interpreter,
    "fork_wait": _fork_wait,
    "thread_wakes": _thread_wakes,
    "archives": _archives,
    "frozen": _frozen,
    "batching": _batching,
    "compiled": _compiled,
    "learning": _learning,
    "training": _training,
    "whole_steps": _whole_steps,
    "modules": _modules,
    "runtimes": _runtimes,
    "numeric_loops": _numeric_loops,
    "libraries": _libraries,
    "rounded_weights": _rounded_weights,
}
APART: Final = frozenset({"modules", "runtimes", "numeric_loops", "libraries", "rounded_weights"})
"""These run only where they are named: they take hours, or packages that nothing else needs."""


def _as_json(row: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(row), "ratio": row.ratio}


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        CONSOLE.print(line, markup=False, highlight=False)


def _save_if_asked(benchmark: ModuleType, rows: list[Any], options: argparse.Namespace) -> None:
    """With ``--save``, write the rows of a benchmark, a module with ``save`` and ``PATH``, to its file of results."""
    if options.save:
        benchmark.save(rows, machine(options.threads))
        CONSOLE.print(f"written: {benchmark.PATH}")


def _show(title: str, rows: list[list[Any]]) -> None:
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in rows[1:]:
        table.add_row(*row)
    CONSOLE.print(table)


if __name__ == "__main__":
    sys.exit(main())

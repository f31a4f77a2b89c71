"""Every benchmark, side by side with torch.jit.

python -m benchmarks                       all of them; JSON beside the tables, in benchmarks/output/
python -m benchmarks --only compile_time   one of them
python -m benchmarks --quick               few rounds: shows that they run, not how fast
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import archives, compile_time, fork_wait, interpreter, trace_time

OUTPUT = Path(__file__).parent / "output"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--only", choices=("compile_time", "trace_time", "interpreter", "fork_wait", "archives"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=OUTPUT / "latest.json", help="where the JSON goes")
    options = parser.parse_args(arguments)
    console = Console()
    found: dict[str, Any] = {"machine": machine()}
    if options.only in (None, "compile_time"):
        rows = compile_time.run(1 if options.quick else compile_time.ROUNDS)
        found["compile_time"] = [_as_json(row) for row in rows]
        console.print(_table("Time to script a model, each in a fresh process", compile_time.table(rows)))
    if options.only in (None, "trace_time"):
        traces = trace_time.run(1 if options.quick else trace_time.ROUNDS)
        found["trace_time"] = [_as_json(row) for row in traces]
        console.print(_table("Time to trace BERT-base, each in a fresh process", trace_time.table(traces)))
    if options.only in (None, "interpreter"):
        nodes = interpreter.run(2 if options.quick else 30)
        found["interpreter"] = [_as_json(row) for row in nodes]
        console.print(_table("Time for an interpreted node", _interpreter_table(nodes)))
    if options.only in (None, "fork_wait"):
        tasks = fork_wait.run(2 if options.quick else 20)
        found["fork_wait"] = [_as_json(row) for row in tasks]
        console.print(_table("Tasks that are forked and waited for", _tasks_table(tasks)))
    if options.only in (None, "archives"):
        files = archives.run(1 if options.quick else 10)
        found["archives"] = [_as_json(row) for row in files]
        console.print(_table("Archives, read and written", archives.table(files)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    console.print(f"written: {options.out}")
    return 0


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
    }


def _interpreter_table(rows: list[interpreter.Row]) -> list[list[str]]:
    head = ["program", "rekindle, ns", "torch.jit, ns", "ratio", "eager, ns", "plainest loop, ns"]
    body = [
        [
            row.what,
            f"{row.rekindle:.0f}",
            f"{row.torch_jit:.0f}",
            f"{row.ratio:.2f}",
            f"{row.eager:.0f}",
            f"{row.naive:.0f}",
        ]
        for row in rows
    ]
    return [head, *body]


def _tasks_table(rows: list[fork_wait.Row]) -> list[list[str]]:
    head = ["program", "rekindle, ms", "torch.jit, ms", "ratio", "without forks, ms", "of that"]
    body = [
        [
            row.what,
            f"{row.rekindle:.1f}",
            f"{row.torch_jit:.1f}",
            f"{row.ratio:.2f}",
            "" if row.rekindle_serial is None else f"{row.rekindle_serial:.1f}",
            "" if row.of_serial is None else f"{row.of_serial:.2f}",
        ]
        for row in rows
    ]
    return [head, *body]


def _as_json(row: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(row), "ratio": row.ratio}


def _table(title: str, rows: list[list[Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if index == 0 else "right")
    for row in rows[1:]:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    sys.exit(main())

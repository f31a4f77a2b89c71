"""Cost of ``import rekindle`` compared with ``import torch``, of the first program, and of starting the command line.

Each measurement is a process of its own; medians over several processes are reported.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

import rekindle

ROOT: Final = Path(__file__).parent.parent
ROUNDS: Final = 7
STEPS: Final = {
    "import torch": "import torch",
    "import rekindle": "import rekindle",
    "rekindle.script, for the first time": "rekindle.script",
    "a first function, compiled and called": "rekindle.CompilationUnit('def f(x): return x + 1').f(torch.ones(2))",
}
PROCESS: Final = """
import sys, time
from benchmarks.memory import peak_megabytes
for step in sys.argv[1:]:
    start = time.process_time()
    exec(step)
    print(time.process_time() - start, peak_megabytes())
"""
COMMAND: Final = """
import contextlib, os, sys, time
from benchmarks.memory import peak_megabytes
from rekindle.cli.main import main
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    assert main(sys.argv[1:]) == 0
print(time.process_time(), peak_megabytes())
"""
COMMANDS: Final = ("--help", "inspect --help", "show --help", "inspect net.pt", "show net.pt")
"""Commands that are measured. ``net.pt`` is an archive of a small model."""


@dataclass(slots=True)
class Row:
    """A step and the median of its milliseconds. ``ratio`` is to the import of torch. ``megabytes`` is the peak memory
    of the process up to the end of the step."""

    what: str
    milliseconds: float
    ratio: float
    megabytes: float


def run(rounds: int = ROUNDS) -> list[Row]:
    """Measure in ``rounds`` processes."""
    found = [_process() for _ in range(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        net = Path(folder, "net.pt")
        rekindle.save(rekindle.script(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())), net)
        found_of_commands = [[_command(command, net) for command in COMMANDS] for _ in range(rounds)]
    names = [*STEPS, *(f"rekindle {command}" for command in COMMANDS)]
    columns = [*zip(*found), *zip(*found_of_commands)]
    medians = [[statistics.median(numbers) for numbers in zip(*column)] for column in columns]
    first = medians[0][0]
    return [Row(what, taken * 1e3, taken / first, memory) for what, (taken, memory) in zip(names, medians)]


def _process() -> list[tuple[float, float]]:
    return _numbers(PROCESS, *STEPS.values())


def _command(arguments: str, net: Path) -> tuple[float, float]:
    (found,) = _numbers(COMMAND, *arguments.replace("net.pt", str(net)).split())
    return found


def _numbers(program: str, *arguments: str) -> list[tuple[float, float]]:
    """Run a process and return the numbers that it prints: seconds of processor time and megabytes."""
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [(float(seconds), float(memory)) for seconds, memory in map(str.split, out.splitlines())]


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names."""
    body = [[row.what, f"{row.milliseconds:.0f}", f"{row.ratio:.2f}", f"{row.megabytes:.0f}"] for row in rows]
    return [["step", "ms", "of importing torch", "MB by then"], *body]

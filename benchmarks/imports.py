"""What ``import rekindle`` takes, beside ``import torch``, which it needs; and what the first use of it loads.

Every measurement is a process of its own; a time is that of its processor, the median over a few processes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
for step in sys.argv[1:]:
    start = time.process_time()
    exec(step)
    print(time.process_time() - start)
"""


@dataclass(slots=True)
class Row:
    """A step, and the median of its milliseconds; ``ratio`` is to the import of torch."""

    what: str
    milliseconds: float
    ratio: float


def run(rounds: int = ROUNDS) -> list[Row]:
    """Measure in ``rounds`` processes."""
    found = [_process() for _ in range(rounds)]
    medians = [statistics.median(each) * 1e3 for each in zip(*found)]
    return [Row(what, taken, taken / medians[0]) for what, taken in zip(STEPS, medians)]


def _process() -> list[float]:
    command = [sys.executable, "-W", "ignore", "-c", PROCESS, *STEPS.values()]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [float(line) for line in out.split()]


def table(rows: list[Row]) -> list[list[Any]]:
    """The rows as text, with their heading on top."""
    body = [[row.what, f"{row.milliseconds:.0f}", f"{row.ratio:.2f}"] for row in rows]
    return [["step", "ms", "of importing torch"], *body]

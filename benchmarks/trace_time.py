"""Time to trace BERT-base, compared with ``torch.jit.trace`` and the eager forward pass.

Each measurement is a process of its own. It imports PyTorch and the compiler, creates the model, runs it twice and
times the second run. It times a trace without a check, on one thread, and a second one with the check, which runs the
code again; rekindle also records a second trace for it. Processes of rekindle and ``torch.jit`` alternate; medians over
the rounds are reported.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ROUNDS = 5

# What a process does. Its last line has seconds: the eager pass, the trace, the trace with its check.
PROCESS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
from benchmarks.bert import bert
if sys.argv[1] == "rekindle":
    import rekindle
    trace = rekindle.trace
else:
    trace = torch.jit.trace
model, inputs = bert()
others = torch.randint(1, 1000, (3, 77)), torch.ones(3, 77, dtype=torch.long)
seconds = []

def timed(run):
    begin = time.perf_counter()
    result = run()
    seconds.append(time.perf_counter() - begin)
    return result

with torch.no_grad():
    model(*inputs)
    timed(lambda: model(*inputs))
    traced = timed(lambda: trace(model, inputs, check_trace=False))
    timed(lambda: trace(model, inputs))
    torch.testing.assert_close(traced(*others), model(*others), rtol=1e-4, atol=1e-4)
print(json.dumps(seconds))
"""


@dataclass(slots=True)
class Row:
    """Median milliseconds of an eager forward pass, of a trace, and of a trace with its check."""

    what: str
    eager: float
    trace: float
    checked: float
    rounds: int

    @property
    def ratio(self) -> float:
        """The time of a trace divided by that of an eager forward pass."""
        return self.trace / self.eager

    @property
    def meets_the_aim(self) -> bool:
        """Whether a trace takes at most as long as three eager forward passes, plus two seconds."""
        return self.trace <= 3 * self.eager + 2000


def run(rounds: int = ROUNDS) -> list[Row]:
    """Measure both compilers alternately."""
    found: dict[str, list[list[float]]] = {"rekindle": [], "torch.jit": []}
    for _ in range(rounds):
        for which, seconds in found.items():
            seconds.append(_process(which))

    def median(of: list[list[float]], index: int) -> float:
        return 1e3 * statistics.median(seconds[index] for seconds in of)

    return [Row(which, *(median(of, index) for index in range(3)), rounds=rounds) for which, of in found.items()]


def _process(compiler: str) -> list[float]:
    command = [sys.executable, "-c", PROCESS, compiler]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seconds: list[float] = json.loads(out.splitlines()[-1])
    return seconds


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names."""
    head = ["BERT-base, 8 x 128 tokens", "eager pass, ms", "trace, ms", "passes", "trace with check, ms", "aim"]
    body = [
        [
            row.what,
            f"{row.eager:.0f}",
            f"{row.trace:.0f}",
            f"{row.ratio:.1f}",
            f"{row.checked:.0f}",
            "met" if row.meets_the_aim else "missed",
        ]
        for row in rows
    ]
    return [head, *body]

"""Time to script a model, compared with ``torch.jit.script``.

Each measurement is a new process, so that nothing is compiled before. It imports PyTorch and the compiler, creates the
model, and times ``script``. Then it creates the model again and times a second ``script``, which may reuse what equal
modules share. The second time is reported in its own column and is not part of the ratio, and so is the import of the
compiler. Processes of rekindle and ``torch.jit`` alternate; medians over the rounds are reported.
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
ROUNDS = 7

# What a process does. Its last line has seconds: the import, the first call of script, the second.
PROCESS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
from benchmarks.models import MODELS
which, compiler = sys.argv[1:]
begin = time.perf_counter()
if compiler == "rekindle":
    import rekindle
    script = rekindle.script
else:
    script = torch.jit.script
seconds = [time.perf_counter() - begin]
expected = None
for _ in range(2):
    torch.manual_seed(0)
    model, inputs = MODELS[which]()
    begin = time.perf_counter()
    compiled = script(model)
    seconds.append(time.perf_counter() - begin)
torch.testing.assert_close(compiled(*inputs), model(*inputs))
print(json.dumps(seconds))
"""


@dataclass(slots=True)
class Row:
    """Median milliseconds to script a model: the first time in a process, and the second."""

    what: str
    ours: float
    torch_jit: float
    ours_again: float
    torch_jit_again: float
    ours_import: float
    rounds: int

    @property
    def ratio(self) -> float:
        """The time of the first ``script`` divided by that of ``torch.jit.script``."""
        return self.ours / self.torch_jit


def run(rounds: int = ROUNDS) -> list[Row]:
    """Measure all models."""
    from benchmarks.models import MODELS

    return [_measure(which, rounds) for which in MODELS]


def _measure(which: str, rounds: int) -> Row:
    ours: list[list[float]] = []
    theirs: list[list[float]] = []
    for _ in range(rounds):
        ours.append(_process(which, "rekindle"))
        theirs.append(_process(which, "torch.jit"))

    def median(of: list[list[float]], index: int) -> float:
        return 1e3 * statistics.median(seconds[index] for seconds in of)

    return Row(which, median(ours, 1), median(theirs, 1), median(ours, 2), median(theirs, 2), median(ours, 0), rounds)


def _process(which: str, compiler: str) -> list[float]:
    command = [sys.executable, "-c", PROCESS, which, compiler]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seconds: list[float] = json.loads(out.splitlines()[-1])
    return seconds


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names."""
    head = ["model", "rekindle, ms", "torch.jit, ms", "ratio", "again, ms", "torch.jit again, ms", "import, ms"]
    body = [
        [
            row.what,
            f"{row.ours:.0f}",
            f"{row.torch_jit:.0f}",
            f"{row.ratio:.1f}",
            f"{row.ours_again:.0f}",
            f"{row.torch_jit_again:.0f}",
            f"{row.ours_import:.0f}",
        ]
        for row in rows
    ]
    return [head, *body]

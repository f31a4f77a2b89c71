"""Whole models of torchvision and timm: eager, compiled, and optimized for inference.

    python -m benchmarks.frozen_models                    all; writes benchmarks/results/frozen_models.json
    python -m benchmarks.frozen_models --resume           those that the file lacks
    python -m benchmarks.frozen_models --only resnet      those with this in their names; nothing is written

The classification models of torchvision at 224 × 224, and the model of each file of timm that has the fewest
parameters, with random weights, for one image on one thread. Each is measured in a process of its own, interleaved, in
processor time; a ratio is the median of those of the rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

import rekindle
from benchmarks.execution import interleaved
from benchmarks.modules import timm_models, torchvision_models
from benchmarks.modules.case import ModuleCase
from benchmarks.modules.catalog import case_named

PATH: Final = Path(__file__).parent / "results" / "frozen_models.json"
ROUNDS: Final = 9
LIMIT: Final = 400.0
"""Seconds that a model may take."""
WARM_CALLS: Final = 4
TOLERANCE: Final = 1e-3
"""By how much of its largest number a result may be off: long chains of sums in another order."""
ALLOWED: Final = 1.02
"""The ratio up to which a model is as fast."""


@dataclass(slots=True)
class Row:
    """A model: milliseconds of a call in eager, the ratios of the compiled and of the optimized model to it, the ratio
    of the optimized to the compiled one, and the seconds of optimizing with the first call. ``error`` is the reason if
    there are no numbers, ``load`` the load of the machine."""

    model: str
    eager: float = math.nan
    compiled: float = math.nan
    optimized: float = math.nan
    optimized_of_compiled: float = math.nan
    seconds: float = math.nan
    error: str = ""
    load: float = 0.0


def models() -> list[ModuleCase]:
    """Return the cases: those of torchvision at the largest size."""
    names = {
        f"{name}, {torchvision_models.OTHER_SIDES.get(name, (224,))[-1]}" for name in torchvision_models.CLASSIFICATION
    }
    names.add("vit_h_14, 224")
    return [*(case for case in torchvision_models.CASES if case.name in names), *timm_models.CASES]


def measure(case: ModuleCase) -> Row:
    """Measure one model in this process."""
    torch.set_num_threads(1)
    row = Row(case.title, load=os.getloadavg()[0])
    torch.manual_seed(0)
    module = case.make().eval()
    inputs = case.inputs_of("inference")
    with torch.no_grad():
        expected = tree_leaves(case.result(module(*inputs)))
        compiled: Any = rekindle.script(module)
        for _ in range(WARM_CALLS):
            compiled(*inputs)
        began = time.perf_counter()
        optimized = rekindle.optimize_for_inference(compiled)
        optimized(*inputs)
        row.seconds = time.perf_counter() - began
        for _ in range(WARM_CALLS):
            found = tree_leaves(case.result(optimized(*inputs)))
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE * float(theirs.abs().max()))
        functions = (module, compiled, optimized)
        calls = [lambda function=function: function(*inputs) for function in functions]  # type: ignore[misc]
        eager, plain, fast = interleaved(calls, ROUNDS, 0.0, time.thread_time)
    row.eager = statistics.median(eager) * 1e3
    row.compiled = _ratio(plain, eager)
    row.optimized = _ratio(fast, eager)
    row.optimized_of_compiled = _ratio(fast, plain)
    return row


def _ratio(mine: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(mine, theirs, strict=True))


def measured(case: ModuleCase, limit: float) -> Row:
    """Measure one model in a process of its own. If that fails or takes more than ``limit`` seconds, return a row with
    the error."""
    command = [sys.executable, "-m", "benchmarks.frozen_models", "--one", case.title]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Row(case.title, error=f"more than {limit:.0f} seconds")
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Row(case.title, error=f"exit {done.returncode}: {last}"[:300])
    return Row(**json.loads(lines[-1]))


def summary(rows: Sequence[Row]) -> list[str]:
    """Return the figures over all rows, and the rows that are slower than allowed."""
    known = [row for row in rows if not row.error]
    loads = [row.load for row in known]
    lines = [f"{len(known)} of {len(rows)} models; load {min(loads, default=0):.1f} to {max(loads, default=0):.1f}"]
    if known:
        for name in ("compiled", "optimized", "optimized_of_compiled"):
            mean = math.exp(statistics.fmean(math.log(getattr(row, name)) for row in known))
            lines.append(f"geometric mean, {name.replace('_', ' ')}: {mean:.2f}")
        for name in ("optimized", "optimized_of_compiled"):
            slow = sorted((getattr(row, name), row.model) for row in known if getattr(row, name) > ALLOWED)
            lines.append(f"{name.replace('_', ' ')} above {ALLOWED}: {len(slow)}")
            lines += [f"  {ratio:.2f}  {model}" for ratio, model in reversed(slow)]
    return lines + [f"no numbers: {row.model}: {row.error}" for row in rows if row.error]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.frozen_models")
    parser.add_argument("--only", default="", help="of the models, those with this in their names; nothing is written")
    parser.add_argument("--resume", action="store_true", help="keep the rows of the file")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a model")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        warnings.simplefilter("ignore")
        print(json.dumps(asdict(measure(case_named(options.one)))))
        return 0
    known = json.loads(PATH.read_text(encoding="utf-8"))["rows"] if options.resume and PATH.exists() else []
    rows = {row["model"]: Row(**row) for row in known}
    for case in models():
        if options.only in case.title and case.title not in rows:
            row = rows[case.title] = measured(case, options.limit)
            print(f"{row.model:50} {row.compiled:6.2f} {row.optimized:6.2f}  {row.error}", flush=True)
            if not options.only:
                _save(list(rows.values()))
    print(*summary(list(rows.values())), sep="\n")
    return 0


def _save(rows: Sequence[Row]) -> None:
    # Numbers that are not known are left out: JSON has no NaN.
    known = [{name: value for name, value in asdict(row).items() if value == value} for row in rows]
    about = {"torch": torch.__version__, "threads": 1, "summary": summary(rows), "rows": known}
    PATH.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

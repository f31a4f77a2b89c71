"""Baseline of ratios, stored in the repository, for finding regressions.

A ratio is rekindle's time divided by a peer's in the same round. Since ratios differ between machines, a regression is
a ratio that has grown by more than a quarter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.execution import OURS, Row

PATH: Final = Path(__file__).parent / "results" / "kernels.json"
SLACK: Final = 1.25

Ratios = Mapping[str, Mapping[str, float]]
"""By workload, by peer."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A ratio that was ``before`` in the baseline and is ``now``, of a workload and a peer."""

    workload: str
    peer: str
    before: float
    now: float

    def __str__(self) -> str:
        return f"{self.workload}: {self.now:.2f} times {self.peer}'s time, and it was {self.before:.2f} times"


def ratios_of(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return the ratios of rekindle to each peer, by workload and peer. Ratios that are NaN are omitted."""
    return {
        row.what: {
            name: round(timed.ours_of_it, 4)
            for name, timed in row.peers.items()
            if name != OURS and not math.isnan(timed.ours_of_it)
        }
        for row in rows
    }


def save(rows: Sequence[Row], machine: Mapping[str, Any], path: Path = PATH) -> None:
    """Write the ratios of ``rows`` into the baseline. Other ratios in it are kept."""
    known = dict(load(path)) if path.exists() else {}
    for what, ratios in ratios_of(rows).items():
        known[what] = {**known.get(what, {}), **ratios}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": dict(machine), "ratios": known}, indent=1) + "\n", encoding="utf-8")


def load(path: Path = PATH) -> Ratios:
    found: Ratios = json.loads(path.read_text(encoding="utf-8"))["ratios"]
    return found


def regressions(now: Ratios, baseline: Ratios, slack: float = SLACK) -> list[Regression]:
    """Return the ratios that are more than ``slack`` times those of the baseline. Ratios that the baseline lacks are
    ignored."""
    return [
        Regression(workload, peer, before, ratio)
        for workload, ratios in now.items()
        for peer, ratio in ratios.items()
        if (before := baseline.get(workload, {}).get(peer)) is not None and ratio > before * slack
    ]

"""Rows of the table: each case in each mode, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks.modules.case import ModuleCase

ROOT: Final = Path(__file__).parent.parent.parent
LIMIT: Final = 300.0
"""Seconds that a process may take."""
ROUNDS: Final = 30
SLICE: Final = 0.002
COMPILERS: Final = ("rekindle", "torch.jit")
TOO_LONG: Final = "takes longer than"
"""How the ``error`` of a peer begins that the time limit has ended: it has not rejected the module."""


@dataclass(slots=True)
class Peer:
    """One peer on one case: microseconds a call, the median and the least; the median over the rounds of its time over
    another's; and milliseconds of ``script`` and the first three calls, where nothing is on disk and where a process
    before has compiled the same. ``torch.jit`` keeps nothing on disk: its times are under ``warm``. ``load`` are the
    milliseconds in which a program of no interest, compiled and called before, loaded the compiler.

    ``error`` says why there is nothing, and ``differs`` what is wrong with its answers.
    """

    call: float | None = None
    fastest: float | None = None
    ratios: dict[str, float] = field(default_factory=dict)
    load: float | None = None
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    error: str = ""
    differs: str = ""


@dataclass(slots=True)
class Row:
    """A case in a mode. ``share`` is that of PyTorch's own matrix products and convolutions in eager's time;
    ``failure`` says why even eager has no numbers; ``load`` is the load of the machine before; ``commit`` is that
    of the compiler, where it is known: rows are kept when others are measured again."""

    library: str
    name: str
    mode: str
    peers: dict[str, Peer] = field(default_factory=dict)
    share: float | None = None
    failure: str = ""
    load: float = 0.0
    commit: str = ""

    @property
    def ratio(self) -> float | None:
        """Rekindle's time divided by eager's."""
        return self.over("eager")

    @property
    def title(self) -> str:
        """The name among all rows."""
        return f"{self.library} {self.name}, {self.mode}"

    def over(self, peer: str) -> float | None:
        """Return rekindle's time divided by that of a peer; None if one of them was not measured."""
        return self.peers["rekindle"].ratios.get(peer) if "rekindle" in self.peers else None


def measured(case: ModuleCase, mode: str, rounds: int = ROUNDS, slice: float = SLICE, limit: float = LIMIT) -> Row:
    """Measure a case in a mode; no process takes longer than ``limit`` seconds."""
    options = ["--rounds", str(rounds), "--slice", str(slice)]
    row = Row(case.library, case.name, mode, load=os.getloadavg()[0], commit=_commit())
    with tempfile.TemporaryDirectory() as folder:
        _into(row, _process([case.title, mode, "cold"], folder, limit))
        if row.failure:
            return row
        peers = list(COMPILERS)
        while True:
            found = _process([case.title, mode, "steady", *options, "--peers", *peers], folder, limit)
            _into(row, found)
            culprit = found.get("stage")
            if not found.get("ended") or culprit not in peers:
                break
            # a crash or an endless call of one peer leaves the numbers of the other
            row.peers[culprit].error = found["ended"]
            peers.remove(culprit)
    return row


@cache
def _commit() -> str:
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def _into(row: Row, found: dict[str, Any]) -> None:
    row.share = found.get("share", row.share)
    row.failure = found.get("failure", row.failure)
    for name in ("eager", *COMPILERS):
        if name in found:
            peer = row.peers.setdefault(name, Peer())
            for key, value in found[name].items():
                if key.startswith("of_"):
                    peer.ratios[key.removeprefix("of_")] = value
                else:
                    setattr(peer, key, value or getattr(peer, key))
    ended, stage = found.get("ended", ""), found.get("stage", "start")
    if ended and stage in COMPILERS:
        row.peers.setdefault(stage, Peer()).error = ended
    elif ended:
        row.failure = row.failure or f"{stage}: {ended}"


def _process(arguments: list[str], folder: str, limit: float) -> dict[str, Any]:
    """Return what a process reports, with ``ended`` where it did not end by itself."""
    environment = {**os.environ, "REKINDLE_CACHE_DIR": folder, "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile the files of the packages again
    command = [sys.executable, "-m", "benchmarks.modules.process", *arguments]
    ended = ""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=limit, check=False, capture_output=True, text=True
        )
        text = done.stdout
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            ended = f"ends with {done.returncode}: {last[:200]}"
    except subprocess.TimeoutExpired as error:
        text = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        ended = f"{TOO_LONG} {limit:.0f} seconds"
    found: dict[str, Any] = {"ended": ended} if ended else {}
    for line in text.splitlines():
        for key, value in (json.loads(line) if line.startswith("{") and line.endswith("}") else {}).items():
            if isinstance(value, dict):
                found.setdefault(key, {}).update(value)
            else:
                found[key] = value
    return found


# ----------------------------------------------------------------------------------------------------------------- rows


def as_json(row: Row) -> dict[str, Any]:
    """Return the row as plain data."""
    return asdict(row)


def from_json(found: dict[str, Any]) -> Row:
    """Return the row that :func:`as_json` wrote."""
    return Row(**{**found, "peers": {name: Peer(**peer) for name, peer in found["peers"].items()}})


def load(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines; a line that is not complete is left out."""
    rows: dict[str, Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line.endswith("}"):
            row = from_json(json.loads(line))
            rows[row.title] = row
    return list(rows.values())

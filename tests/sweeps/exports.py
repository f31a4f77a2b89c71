"""The sweep over programs that leave for Export IR, beside the converter that PyTorch brings along.

    python -m tests.sweeps.exports --full               everything; writes results/exports.md
    python -m tests.sweeps.exports --only if.,nn.LSTM   some probes, and what goes wrong with them

A probe of tests/exporting/probes.py agrees if its exported program passes PyTorch's verifier and gives what the
compiled program gives on the example, on the other inputs and on the example twice more, state going on from call to
call; so do the program after a way through a file, and after `run_decompositions()`.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import copy
import json
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import torch
from torch._export.converter import TS2EPConverter

import rekindle
from tests.exporting.checking import Outcome, checked, compared
from tests.exporting.probes import PROBES, Probe

RESULTS = Path(__file__).parent / "results"

UNFINISHED = Path(tempfile.gettempdir()) / "rekindle-exports.json"

WORDS = {
    "agrees": "agrees",
    "refused": "refused",
    "raises": "raises on another call",
    "wrong": "**wrong**",
    "error": "fails in PyTorch",
}


def ours(probe: Probe) -> Outcome:
    """What comes of a probe here."""
    try:
        return checked(probe)
    except Exception as error:
        return Outcome("error", f"{type(error).__name__}: {str(error).splitlines()[0]}")


def theirs(probe: Probe) -> Outcome:
    """What comes of it in PyTorch's converter."""
    try:
        scripted = torch.jit.script(probe.make())
        program = TS2EPConverter(scripted, copy.deepcopy(tuple(probe.args))).convert()
        module = program.module()
    except Exception as error:
        return Outcome("refused", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return compared(module, rekindle.script(probe.make()), probe)


def page(rows: dict[str, tuple[Outcome, Outcome]]) -> str:
    """The results as a page."""
    counts = [Counter(row[index].verdict for row in rows.values()) for index in (0, 1)]
    lines = ["# Programs exported, here and by PyTorch's converter", ""]
    lines.append(f"{len(rows)} programs; torch {torch.__version__.split('+')[0]}.")
    lines += ["", "| | rekindle | `torch._export.converter` |", "| --- | --- | --- |"]
    for verdict, words in WORDS.items():
        lines.append(f"| {words} | {counts[0][verdict]} | {counts[1][verdict]} |")
    lines += ["", "| program | rekindle | `torch._export.converter` |", "| --- | --- | --- |"]
    for name, (here, there) in rows.items():
        lines.append(f"| {name} | {WORDS[here.verdict]} | {WORDS[there.verdict]} |")
    return "\n".join(lines) + "\n"


def _known() -> dict[str, tuple[Outcome, Outcome]]:
    """What a sweep that was stopped has found."""
    if not UNFINISHED.exists():
        return {}
    told = json.loads(UNFINISHED.read_text(encoding="utf-8"))
    return {name: (Outcome(*pair[0]), Outcome(*pair[1])) for name, pair in told.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.exports")
    parser.add_argument("--full", action="store_true", help="every probe; writes the results")
    parser.add_argument("--only", default="", help="beginnings of names, with commas between them")
    parser.add_argument("--seconds", type=int, default=0, help="stop after so many; the next --full goes on from there")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    names = list(PROBES)
    if options.only:
        names = [name for name in names if name.startswith(tuple(options.only.split(",")))]
    rows = _known() if options.full else {}
    end = time.monotonic() + (options.seconds or 1e9)
    for name in names:
        if name in rows or time.monotonic() > end:
            continue
        rows[name] = ours(PROBES[name]), theirs(PROBES[name])
        print(name, *(f"{each.verdict} {each.detail}".strip()[:200] for each in rows[name]), sep=" | ", flush=True)
        if options.full:
            told = {name: [[each.verdict, each.detail] for each in pair] for name, pair in rows.items()}
            UNFINISHED.write_text(json.dumps(told), encoding="utf-8")
    if options.full and len(rows) == len(names):
        (RESULTS / "exports.md").write_text(page({name: rows[name] for name in PROBES}), encoding="utf-8")
        UNFINISHED.unlink()
    return 0 if all(row[0].verdict in ("agrees", "refused") for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

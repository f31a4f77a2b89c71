"""The sweep over programs that leave for Export IR, beside the converter that PyTorch brings along.

    python -m tests.sweeps.exports --full                  every probe on every way; writes results/exports.md and .json
    python -m tests.sweeps.exports --full --ways ONNX      one way anew, in the results
    python -m tests.sweeps.exports --only if.,nn.LSTM      some probes, and what goes wrong with them

A probe of tests/exporting/probes.py agrees on a way if what the way makes of its exported program gives what the
compiled program gives on the example, on the other inputs and on the example twice more, state going on from call to
call. The ways are those of tests/exporting/ways.py. The converter is tried on the first of them alone.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Iterable

import torch
from torch._export.converter import TS2EPConverter

import rekindle
from tests.exporting import ways
from tests.exporting.checking import Outcome, compared, exported
from tests.exporting.probes import PROBES, Probe
from tests.sweeps.report import RESULTS

CONVERTER = "`torch._export.converter`"
ONNX = "ONNX"
WAYS = (*ways.FULL, *ways.SAMPLED, ONNX)

FOR_AOTINDUCTOR = (
    *("straight.function", "if.tensor", "if.different_shapes", "for.dynamic_size", "for.break", "while.if_inside"),
    *("state.int_decides", "raise.nested", "class.in_branch", "nn.LSTM", "nn.TransformerEncoder", "args.nested"),
)
"""The sample of programs that AOTInductor packages."""

_WHILE_LOOP = "Inductor takes no while_loop over a size that is a symbol: one written by hand fails with the same error"
_NUMBER = "a float read off a buffer is taken for that of the first call: a program written by hand is as wrong"

IN_PYTORCH = {
    **{
        (name, "torch.compile: Inductor"): _WHILE_LOOP
        for name in ("for.dynamic_argument", "for.dynamic_size", "for.write_row", "for.nested", "model.rnn_dynamic")
    },
    ("state.flag", "torch.compile: aot_eager"): _NUMBER,
    ("state.flag", "torch.compile: Inductor"): _NUMBER,
}
"""What PyTorch does not do with programs of its own either, by program and way."""

WORDS = {
    "agrees": "agrees",
    "refused": "refused",
    "raises": "raises on another call",
    "wrong": "**wrong**",
    "error": "fails in PyTorch",
    "": "not tried",
}

Row = dict[str, Outcome]
"""What comes of a probe on each way."""


def ours(probe: Probe, wanted: Iterable[str]) -> Row:
    """What comes of a probe here, on each way that is ``wanted``."""
    try:
        program = exported(probe)
        program.validate()
        file = ways.in_file(program)
    except rekindle.errors.ExportError as error:
        return dict.fromkeys(wanted, Outcome("refused", str(error).split("\n", 1)[0]))
    found: Row = {}
    for name in wanted:
        if name == ONNX:
            if ways.is_for_onnx(probe, program):
                found[name] = ways.outcome_in_onnx(file, probe)
        elif name in ways.SAMPLED:
            if probe.name in FOR_AOTINDUCTOR:
                found[name] = ways.outcome(ways.SAMPLED[name], file, probe)
        else:
            found[name] = ways.outcome(ways.FULL[name], file, probe)
    return found


def theirs(probe: Probe) -> Outcome:
    """What comes of it in PyTorch's converter."""
    try:
        scripted = torch.jit.script(probe.make())
        program = TS2EPConverter(scripted, copy.deepcopy(tuple(probe.args))).convert()
        module = program.module()
    except Exception as error:
        return Outcome("refused", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return compared(module, rekindle.script(probe.make()), probe)


def page(rows: dict[str, Row]) -> str:
    """The results as a page."""
    names = [*WAYS, CONVERTER]
    counts = {name: Counter(row[name].verdict for row in rows.values() if name in row) for name in names}
    lines = ["# Programs exported, here and by PyTorch's converter", ""]
    lines.append(f"{len(rows)} programs; torch {torch.__version__.split('+')[0]}.")
    lines += ["", f"| | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    lines.append(f"| tried | {' | '.join(str(sum(counts[name].values())) for name in names)} |")
    for verdict, words in WORDS.items():
        if verdict:
            lines.append(f"| {words} | {' | '.join(str(counts[name][verdict]) for name in names)} |")
    lines += ["", f"| program | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for name, row in rows.items():
        lines.append(f"| {name} | {' | '.join(_word(row.get(way)) for way in names)} |")
    lines += ["", "What does not agree here:", ""]
    for name, row in rows.items():
        for way in WAYS:
            if way in row and row[way].verdict != "agrees":
                detail = IN_PYTORCH.get((name, way)) or " ".join(row[way].detail.split())[:240]
                lines.append(f"- {name}, {way}: {row[way].verdict}: {detail}")
    return "\n".join(lines) + "\n"


def _word(outcome: Outcome | None) -> str:
    return "" if outcome is None else WORDS[outcome.verdict]


def committed() -> dict[str, Row]:
    """The results that were written last."""
    path = RESULTS / "exports.json"
    if not path.exists():
        return {}
    told = json.loads(path.read_text(encoding="utf-8"))
    return {name: {way: Outcome(*pair) for way, pair in row.items()} for name, row in told.items()}


def _write(rows: dict[str, Row]) -> None:
    told = {name: {way: [each.verdict, each.detail] for way, each in row.items()} for name, row in rows.items()}
    (RESULTS / "exports.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "exports.md").write_text(page(rows), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.exports")
    parser.add_argument("--full", action="store_true", help="every probe; writes the results")
    parser.add_argument("--only", default="", help="beginnings of names, with commas between them")
    parser.add_argument("--ways", default="", help="beginnings of ways, with commas between them; else all")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    chosen = [way for way in (*WAYS, CONVERTER) if way.startswith(tuple(options.ways.split(",")))]
    if ONNX in chosen and not all(map(importlib.util.find_spec, ("onnxscript", "onnxruntime"))):
        print("onnxscript and onnxruntime are not installed: pip install -e .[onnx]")
        chosen.remove(ONNX)
    rows: dict[str, Row] = {}
    known = committed()
    for name in [name for name in PROBES if name.startswith(tuple(options.only.split(",")))]:
        row = ours(PROBES[name], [way for way in chosen if way != CONVERTER])
        if CONVERTER in chosen:
            row[CONVERTER] = theirs(PROBES[name])
        rows[name] = row
        if options.full:  # after each, so that nothing is lost of a sweep that is stopped
            _write({each: known.get(each, {}) | rows.get(each, {}) for each in PROBES})
        told = [f"{way}: {each.verdict} {each.detail}".strip()[:200] for way, each in row.items()]
        print(name, *told, sep=" | ", flush=True)
    bad = [each for row in rows.values() for way, each in row.items() if way != CONVERTER and each.verdict == "wrong"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

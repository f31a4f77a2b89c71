"""The sweep over programs exported to Export IR, compared with PyTorch's own converter.

    python -m tests.sweeps.exports --full                  every probe on every way; writes results/exports.md and .json
    python -m tests.sweeps.exports --full --ways ONNX      one way again, in the results
    python -m tests.sweeps.exports --only if.,nn.LSTM      some probes, and what goes wrong with them
    python -m tests.sweeps.exports --by-hand               what PyTorch does with programs that were written by hand

A probe of tests/exporting/probes.py agrees on a way if what the way makes of its exported program gives what the
compiled program gives on the example, on the other inputs and on the example twice more, state kept from call to
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
from tests.exporting.by_hand import EQUIVALENTS
from tests.exporting.checking import Outcome, compared, exported
from tests.exporting.probes import PROBES, Probe
from tests.sweeps.report import RESULTS

CONVERTER = "`torch._export.converter`"
ONNX = "ONNX"
WAYS = (*ways.FULL, *ways.SAMPLED, ONNX)

FOR_AOTINDUCTOR = (
    *("straight.function", "if.tensor", "if.different_shapes", "for.dynamic_size", "for.break", "while.if_inside"),
    *(
        "state.int_decides",
        "state.buffer_returned",
        "raise.nested",
        "class.in_branch",
        "nn.LSTM",
        "nn.TransformerEncoder",
        "args.nested",
    ),
)
"""The sample of programs that AOTInductor packages."""

INDUCTOR, AOTINDUCTOR = "torch.compile: Inductor", "AOTInductor"

IN_PYTORCH: dict[tuple[str, str], str] = {
    **{
        (name, ONNX): "a branch in a loop"
        for name in (
            *("for.break", "for.long_break", "for.return_inside", "while.if_inside", "hard.return_in_while_in_for"),
            *("hard.return_in_while_in_dynamic_for", "hard.continue_and_breaks", "hard.collatz"),
        )
    },
    ("results.structure", ONNX): "an int among results",
    ("results.none", ONNX): "no result",
    ("state.int_decides", AOTINDUCTOR): "an int that changes",
    ("state.buffer_returned", AOTINDUCTOR): "what a buffer was",
    ("hard.checks_in_branches", INDUCTOR): "an int in a loop",
    ("hard.averages", INDUCTOR): "a float among results",
    ("hard.cache", INDUCTOR): "a slice anywhere",
    ("hard.complex", ONNX): "complex numbers",
    ("hard.bfloat16", ONNX): "bfloat16",
}
"""What PyTorch does not do with programs of its own either, by program and way: a name in
tests/exporting/by_hand.py. Strict: what is listed and agrees is a fault of the list."""

OPEN: dict[tuple[str, str], str] = {}
"""What has not been written by hand: it may be of this package or PyTorch's."""

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
                alike = IN_PYTORCH.get((name, way))
                told = " ".join(row[way].detail.split())[:160]
                why = OPEN.get((name, way), "not looked into")
                detail = f"as {alike}, written by hand" if alike else f"{why}: {told}"
                lines.append(f"- {name}, {way}: {row[way].verdict}: {detail}")
    lines += ["", "Written for `torch.export` by hand, in tests/exporting/by_hand.py:", ""]
    for key, found in _committed_by_hand().items():
        name, _, way = key.partition(", ")
        lines.append(f"- {name}: {EQUIVALENTS[name].reason}. {way}: {found}")
    return "\n".join(lines) + "\n"


def unlisted(rows: dict[str, Row]) -> list[str]:
    """What does not agree and is not listed, and what is listed and agrees."""
    found = []
    for name, row in rows.items():
        for way, each in row.items():
            is_listed = (name, way) in IN_PYTORCH or (name, way) in OPEN
            if way != CONVERTER and is_listed is (each.verdict == "agrees"):
                found.append(f"{name}, {way}: {each.verdict}, but is {'' if is_listed else 'not '}listed")
    return found


def by_hand(chosen: Iterable[str]) -> dict[str, str]:
    """What comes of the programs that are written by hand, on each way that they are listed for."""
    found: dict[str, str] = {}
    for name, way in sorted({(alike, way) for (_, way), alike in IN_PYTORCH.items()}):
        if way not in chosen:
            continue
        each = EQUIVALENTS[name]
        probe = Probe(name, each.make, each.calls[0], each.calls[1:])
        file = ways.in_file(each.exported())
        if way == ONNX:
            result = ways.outcome_in_onnx(file, probe, each.make)
        else:
            result = ways.outcome({**ways.FULL, **ways.SAMPLED}[way], file, probe, each.make)
        found[f"{name}, {way}"] = result.verdict
        print("by hand", name, way, result.verdict, result.detail[:160], sep=" | ", flush=True)
    return found


def _committed_by_hand() -> dict[str, str]:
    path = RESULTS / "exports_by_hand.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


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
    parser.add_argument("--by-hand", action="store_true", help="only the programs that are written by hand")
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
    if options.full or options.by_hand:
        hand = _committed_by_hand() | by_hand(chosen)
        (RESULTS / "exports_by_hand.json").write_text(json.dumps(hand, indent=1) + "\n", encoding="utf-8")
        if options.by_hand:
            _write({each: known.get(each, {}) for each in PROBES})
            return 1 if "agrees" in hand.values() else 0
    for name in [name for name in PROBES if name.startswith(tuple(options.only.split(",")))]:
        row = ours(PROBES[name], [way for way in chosen if way != CONVERTER])
        if CONVERTER in chosen:
            row[CONVERTER] = theirs(PROBES[name])
        rows[name] = row
        if options.full:  # after each, so that nothing is lost of a sweep that is stopped
            _write({each: known.get(each, {}) | rows.get(each, {}) for each in PROBES})
        told = [f"{way}: {each.verdict} {each.detail}".strip()[:200] for way, each in row.items()]
        print(name, *told, sep=" | ", flush=True)
    bad = unlisted(rows)
    print(*bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""The sweep over programs of ``torch.export`` that are imported.

    python -m tests.sweeps.imports --full                every program; writes results/imports.md
    python -m tests.sweeps.imports --only cond.,sizes.   some, and what goes wrong with them

tests/importing/checking.py says what a program has to do to agree.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import logging
import sys
import warnings

import torch

from tests.importing.checking import AGREES, Outcome, checked
from tests.importing.programs import PROGRAMS
from tests.importing.transformers_models import is_there, transformers_models
from tests.sweeps.report import RESULTS


def page(rows: dict[str, Outcome]) -> str:
    """The results as a page."""
    agree = sum(outcome.stage == AGREES for outcome in rows.values())
    told = (
        f"{len(rows)} programs; torch {torch.__version__.partition('+')[0]}. **{agree}** agree with PyTorch in all "
        "that is compared: answers, refusals, gradients, the archive in `torch.jit.load`, and exported again."
    )
    lines = [
        "# Programs of torch.export, imported",
        "",
        told,
        "",
        "| program | comes as far as |",
        "| --- | --- |",
    ]
    for name, outcome in rows.items():
        last = outcome.stage if outcome.stage == AGREES else f"{outcome.stage}: {outcome.detail}".replace("|", "\\|")
        lines.append(f"| {name} | {last} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.imports")
    parser.add_argument("--full", action="store_true", help="every program; writes the results")
    parser.add_argument("--only", default="", help="beginnings of names, with commas between them")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    rows: dict[str, Outcome] = {}
    if not is_there():
        print("transformers is not installed: its models are left out (pip install transformers)")
    programs = PROGRAMS | transformers_models()
    for name in [name for name in programs if name.startswith(tuple(options.only.split(",")))]:
        rows[name] = checked(programs[name])
        print(name, rows[name].stage, rows[name].detail, sep=" | ", flush=True)
    if options.full:
        (RESULTS / "imports.md").write_text(page(rows), encoding="utf-8")
    return 0 if all(outcome.stage == AGREES for outcome in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

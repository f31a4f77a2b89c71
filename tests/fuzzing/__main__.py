"""``python -m tests.fuzzing``: random programs, compiled here and compared with eager Python.

python -m tests.fuzzing --count 2000 --seed 3 --jobs 2      prints what was found
python -m tests.fuzzing --seed 3 --only 17                  one program: its text, and what comes of it
python -m tests.fuzzing --replay tests/fuzzing/findings/wrong_answer_int_instead_of_float_1a2b3c.py
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.fuzzing.batch import run, warm
from tests.fuzzing.findings import FOLDER, replay, subject_text
from tests.fuzzing.generating.programs import generate
from tests.fuzzing.judge import Judge
from tests.fuzzing.program import Program
from tests.fuzzing.results import add, summary, text_of
from tests.fuzzing.workers import PROCESSOR_SECONDS, limit


def explain(program: Program) -> int:
    """Print one program and its verdict; the process ends if that takes too long."""
    warm()
    limit(4 * PROCESSOR_SECONDS)
    print(program.source)
    verdict = Judge().verdict(program)
    print(f"{verdict.status} {verdict.failure} {verdict.kind}\n{verdict.way}, call {verdict.call}\n{verdict.detail}")
    return verdict.status == "finding"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzzing")
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--start", type=int, default=0, help="the number of the first program")
    parser.add_argument("--seed", type=int, default=1, help="which programs the numbers mean")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no further programs after this time")
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds to shrink one finding")
    parser.add_argument("--write", action="store_true", help="write results/ and findings/")
    parser.add_argument("--batch", type=Path, help="write the numbers of the run to this file")
    parser.add_argument("--findings", type=Path, default=None, help="write findings to this folder")
    parser.add_argument("--only", type=int, help="one program, by its number")
    parser.add_argument("--replay", type=Path, help="one program, from the file of a finding")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        return explain(replay(options.replay))
    if options.only is not None:
        return explain(generate(options.seed, options.only))
    folder = options.findings or (FOLDER if options.write else None)
    report = run(
        options.seed, options.start, options.count, options.jobs, options.minutes * 60, options.shrink, folder=folder
    )
    print(f"\n{text_of(report)}")
    for finding in report.findings.values():
        verdict = finding.verdict
        print(f"--- {finding.number} {verdict.failure}: {verdict.kind} ({verdict.way}, call {verdict.call})")
        print(subject_text(finding.source))
        print(f"  {verdict.detail[:400]}")
    if options.batch is not None:
        options.batch.write_text(json.dumps(summary(report), indent=1) + "\n", encoding="utf-8")
    if options.write:
        add([summary(report)])
    return bool(report.findings)


if __name__ == "__main__":
    sys.exit(main())

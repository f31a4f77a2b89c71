"""The sweep over kernels of single operators: every sample of PyTorch's operator database, in every dtype.

    python -m tests.sweeps.fusion --full               everything; writes results/fusion.md
    python -m tests.sweeps.fusion --only add,exp       some entries, and what goes wrong with them

A sample counts where PyTorch answers. Its kernel must give the dtype, the sizes, the strides and the elements that
PyTorch gives (tests/codegen/test_pointwise.py says how near); where there is no kernel, the operator itself runs, and
the table says how often.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.codegen.samples import DTYPES, OF_ROWS, Case, cases, in_other_places, names, with_special_numbers
from tests.codegen.test_pointwise import check

RESULTS = Path(__file__).parent / "results" / "fusion.md"


def _variants(case: Case) -> Iterator[tuple[str, Case]]:
    yield "", case
    if case.name in OF_ROWS:
        yield ", in other places", in_other_places(case)
        yield ", with special numbers", with_special_numbers(case)


def sweep(name: str) -> tuple[Counter[str], list[str]]:
    """How many samples of an entry had a kernel and how many had none, and what went wrong."""
    found: Counter[str] = Counter()
    failures = []
    for dtype in DTYPES:
        for number, case in enumerate(cases(name, dtype)):
            for title, each in _variants(case):
                try:
                    found["by a kernel" if check(each, dtype) else "without"] += 1
                except AssertionError as error:
                    why = str(error).splitlines()[0] if str(error) else ""
                    failures.append(f"{name}, {dtype}, sample {number}{title}: {why}")
    return found, failures


def table(rows: list[tuple[str, int, int, int]], failures: list[str]) -> str:
    """The results as they are kept."""
    total = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    lines = [
        "# Kernels of single operators against PyTorch",
        "",
        "Samples of PyTorch's operator database in ten dtypes; where an operator works on more than one element at a",
        "time, also with gaps between the elements and in another order in memory, and with a NaN and infinities.",
        "",
        "| entry | by a kernel | operator by operator | wrong |",
        "| --- | --- | --- | --- |",
        *(f"| {name} | {kernel} | {without} | {wrong} |" for name, kernel, without, wrong in rows),
        f"| all {len(rows)} | {total[0]} | {total[1]} | {total[2]} |",
        *(f"\n- {each}" for each in failures),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.fusion")
    parser.add_argument("--full", action="store_true", help="every entry; writes the results")
    parser.add_argument("--only", default="", help="entries, with commas between them")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    chosen = [name for name in names() if options.full or name in options.only.split(",")]
    rows, failures = [], []
    for name in chosen:
        found, wrong = sweep(name)
        failures += wrong
        rows.append((name, found["by a kernel"], found["without"], len(wrong)))
        print(*rows[-1])
    print(*failures, sep="\n")
    total = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    print(f"{total[0]} samples by a kernel, {total[1]} without, {total[2]} wrong")
    if options.full:
        RESULTS.write_text(table(rows, failures), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""The sweep over kernels of single operators: every sample of PyTorch's operator database, in every dtype.

    python -m tests.sweeps.fusion --full               everything; writes results/fusion.md
    python -m tests.sweeps.fusion --only add,exp       some entries, and what goes wrong with them
    python -m tests.sweeps.fusion --full --device cuda         the same on a GPU; writes results/fusion_cuda.md
    python -m tests.sweeps.fusion --full --device emulated     its kernels on the host; results/fusion_emulated.md

A sample counts where PyTorch answers. Its kernel must give the dtype, the sizes, the strides and the elements that
PyTorch gives (tests/codegen/test_pointwise.py says how near); where there is no kernel, the operator itself runs, and
the table says how often.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.codegen.cuda.emulator import on_emulated_gpu
from tests.codegen.samples import DTYPES, OF_ROWS, Case, cases, in_other_places, names, with_special_numbers
from tests.codegen.test_pointwise import by_group, check

RESULTS = Path(__file__).parent / "results"
NAMES = {"cpu": "fusion.md", "cuda": "fusion_cuda.md", "emulated": "fusion_emulated.md"}
"""The file of the results of each device."""


_TITLES = {"cpu": "", "cuda": ", on a GPU", "emulated": ", kernels of GPUs emulated on the host"}


def _variants(case: Case) -> Iterator[tuple[str, Case]]:
    yield "", case
    if case.name in OF_ROWS:
        yield ", in other places", in_other_places(case)
        yield ", with special numbers", with_special_numbers(case)


def sweep(name: str, device: str = "cpu") -> tuple[Counter[str], list[str]]:
    """How many samples of an entry had a kernel and how many had none, and what went wrong."""
    warnings.simplefilter("ignore")
    found: Counter[str] = Counter()
    run = on_emulated_gpu if device == "emulated" else by_group
    failures = []
    for dtype in DTYPES:
        for number, case in enumerate(cases(name, dtype)):
            for title, each in _variants(case):
                if device == "cuda":
                    each = Case(each.name, each.graph, [value.cuda() for value in each.inputs])
                try:
                    found["by a kernel" if check(each, dtype, run) else "without"] += 1
                except AssertionError as error:
                    why = str(error).splitlines()[0] if str(error) else ""
                    failures.append(f"{name}, {dtype}, sample {number}{title}: {why}")
    return found, failures


def table(rows: list[tuple[str, int, int, int]], failures: list[str], device: str = "cpu") -> str:
    """The results as they are kept."""
    total = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    lines = [
        f"# Kernels of single operators against PyTorch{_TITLES[device]}",
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
    parser.add_argument("--device", choices=sorted(NAMES), default="cpu", help="what runs the kernels")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--only", default="", help="entries, with commas between them")
    options = parser.parse_args(arguments)
    chosen = [name for name in names() if options.full or name in options.only.split(",")]
    rows, failures = [], []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        for name, (found, wrong) in zip(chosen, pool.map(partial(sweep, device=options.device), chosen), strict=True):
            failures += wrong
            rows.append((name, found["by a kernel"], found["without"], len(wrong)))
            print(*rows[-1], flush=True)
    print(*failures, sep="\n")
    total = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    print(f"{total[0]} samples by a kernel, {total[1]} without, {total[2]} wrong")
    if options.full:
        (RESULTS / NAMES[options.device]).write_text(table(rows, failures, options.device), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""The sweep over programs that become native libraries, each called from a C program.

python -m tests.sweeps.libraries --full            every program of both corpora; writes results/libraries.md and .json
python -m tests.sweeps.libraries --only strings.   some programs, and what is wrong with them
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import warnings
from collections import Counter
from collections.abc import Sequence

import torch

from tests.building.corpus import RANDOM, Outcome, attempt
from tests.differential import subjects
from tests.sweeps.report import RESULTS

WORDS = {
    "same": "same values and errors",
    "not built": "refused when it is built",
    "refused": "refused when it is called: sizes that no example has, ints of more than 64 bits",
    "differs": "**differs**",
}


def _attempt(name: str) -> tuple[str, Outcome]:
    warnings.simplefilter("ignore")
    try:
        return name, attempt(name)
    except Exception as error:
        return name, Outcome("differs", f"{type(error).__name__}: {error}")


def outcomes(names: Sequence[str]) -> dict[str, Outcome]:
    """What comes of programs, each built in a process that may crash."""
    found: dict[str, Outcome] = {}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=200) as pool:
        for number, (name, outcome) in enumerate(pool.imap(_attempt, names), 1):
            found[name] = outcome
            if number % 50 == 0:
                print(f"{number} of {len(names)}: {Counter(each.verdict for each in found.values())}", flush=True)
    return found


def page(found: dict[str, Outcome]) -> str:
    """The results as a page."""
    counts = Counter(each.verdict for each in found.values())
    freestanding = sum(each.verdict == "same" and not each.torch_operators for each in found.values())
    lines = ["# Programs as native libraries", ""]
    lines.append(f"{len(found)} programs, each called from C; torch {torch.__version__.split('+')[0]}.")
    lines += ["", "| | programs | share |", "| --- | ---: | ---: |"]
    lines += [f"| {words} | {counts[key]} | {counts[key] / len(found):.1%} |" for key, words in WORDS.items()]
    lines += ["", f"{freestanding} of those that are the same need no PyTorch.", ""]
    reasons = Counter(_kind_of(each.detail) for each in found.values() if each.verdict == "not built")
    lines += ["Why programs are refused when they are built:", ""]
    lines += [f"- {count}: {reason}" for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0]))]
    lines += ["", "Which programs are not the same:", ""]
    lines += [
        f"- {name}: {each.verdict}: {' '.join(each.detail.split())[:160]}"
        for name, each in sorted(found.items())
        if each.verdict != "same"
    ]
    return "\n".join(lines) + "\n"


def _kind_of(reason: str) -> str:
    """A reason without the names that are its own."""
    return re.sub(r"__torch__\.\S+|InterfaceType<\w+>", "a class", " ".join(reason.split()))[:120]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all programs; write the results")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    options = parser.parse_args()
    names = [name for name in subjects.names("programs") if options.only in name and name not in RANDOM]
    found = outcomes(names)
    for name, each in found.items():
        if each.verdict != "same":
            print(f"{name}: {each.verdict}: {each.detail}")
    print(Counter(each.verdict for each in found.values()))
    if options.full:
        rows = {name: each._asdict() for name, each in found.items()}
        (RESULTS / "libraries.json").write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        (RESULTS / "libraries.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()

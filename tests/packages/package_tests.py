"""Real packages that use torch.jit use this one through the drop-in, without knowing, and answer as before.

Each program runs twice, with PyTorch's ``torch.jit`` and with this package in its place, and its answers are compared
part by part; archives of the one are loaded by the other, in both directions. Both run at the same time, each on
half of the cores. A run of all programs writes `results.md`.

Run by `make test-packages` in an environment with the versions of `requirements.txt`; not by `make test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.packages.programs.keeping import assert_close

LIMIT = 3600
"""Seconds that one program may take: a machine that others use has few for it."""
HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SHARED = {"keeping", "library_cases"}
"""Files beside the programs that they import."""

# Each program, with what of it must reach this package.
COMPILED = {
    "e3nn_layers": "105 programs compiled here: archive 1, function 7, module 97",
    "einops_layers": "8 programs compiled here: archive 1, module 7",
    "gpytorch_models": "12 programs compiled here: archive 5, function 2, module 5",
    "graph_tools": "11 programs compiled here: function 2, graph 6, module 3",
    "lightning_modules": "14 programs compiled here: archive 6, module 8",
    "linear_operator_solvers": "2 programs compiled here: function 2",
    "mace_models": "335 programs compiled here: archive 4, function 5, module 326",
    "metatensor_maps": "91 programs compiled here: archive 2, function 85, module 4",
    "piq_measures": "30 programs compiled here: archive 13, module 17",
    "pyro_inference": "10 programs compiled here: function 10",
    "silero_vad_archive": "8 programs compiled here: archive 8",
    "timm_models": "164 programs compiled here: archive 82, module 82",
    "torch_geometric_layers": "43 programs compiled here: archive 1, class 2, module 40",
    "torchani_models": "6 programs compiled here: archive 1, module 5",
    "torchaudio_programs": "117 programs compiled here: archive 44, function 29, module 44",
    "torchmetrics_calls": "108 programs compiled here: archive 46, function 16, module 46",
    "torchvision_models": "42 programs compiled here: archive 19, module 23",
    "torchvision_transforms": "90 programs compiled here: archive 43, function 4, module 43",
}

KNOWN_GAPS: dict[str, dict[str, str]] = {}
"""Parts that work with ``torch.jit`` and not here, by program, and why. A part that works must not be listed."""
KNOWN_ARCHIVE_GAPS = {
    "torchaudio_programs": {
        "archive of rekindle, HDemucs": "torch.jit refuses to compile HDemucs; it loads the archive of rekindle, and "
        "its optimizer fails: with optimized_execution(False) it runs",
    },
}
"""The same for archives that the other compiler loads."""


@dataclass(slots=True)
class Outcome:
    """What came of one program, for the page. ``only_here`` are parts that ``torch.jit`` refuses, or gives other
    results for than eager, by what it says; ``neither`` are those that no compiler takes."""

    parts: int = 0
    agree: int = 0
    only_here: dict[str, str] = field(default_factory=dict)
    neither: dict[str, str] = field(default_factory=dict)
    archives: list[str] = field(default_factory=list)


OUTCOMES: dict[str, Outcome] = {}


@pytest.fixture(scope="module", autouse=True)
def _page() -> Iterator[None]:
    yield
    if set(OUTCOMES) == set(COMPILED):
        (HERE / "results.md").write_text(page(), encoding="utf-8")


def page() -> str:
    lines = [
        "# Packages through the drop-in",
        "",
        "Written by `make test-packages`. Parts of programs agree where the results with rekindle are those with",
        "`torch.jit`, and, where a part compares them, those of eager. Archives are loaded by the other compiler.",
        "",
        "| program | parts | agree | only here | neither | known gaps | here to torch.jit | torch.jit to here |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, each in sorted(OUTCOMES.items()):
        counts = each.parts, each.agree, len(each.only_here), len(each.neither), len(KNOWN_GAPS.get(name, ()))
        lines.append(f"| `{name}` | {' | '.join(map(str, counts))} | {' | '.join(each.archives)} |")
    sections = [
        ("Only here", {name: each.only_here for name, each in OUTCOMES.items()}),
        ("Neither", {name: each.neither for name, each in OUTCOMES.items()}),
        ("Known gaps", KNOWN_GAPS),
        ("Known gaps of archives", KNOWN_ARCHIVE_GAPS),
    ]
    for title, found in sections:
        if not any(found.values()):
            continue
        lines += ["", f"## {title}", "", "| program | part | why |", "| --- | --- | --- |"]
        for name, parts in sorted(found.items()):
            lines += [f"| `{name}` | {part} | {_cell(why)} |" for part, why in parts.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return an error without paths, short enough for a table."""
    text = re.sub(r"(/[\w.+-]+)+/|0x[0-9a-f]+", "", text).replace("|", "\\|")
    return text if len(text) <= 120 else f"{text[:120]} …"


def test_every_program_is_run() -> None:
    assert {path.stem for path in (HERE / "programs").glob("*.py")} == {*COMPILED} | SHARED
    assert set(KNOWN_GAPS) <= set(COMPILED)


@pytest.mark.parametrize("program", COMPILED)
def test_answers_are_as_before(program: str, tmp_path: Path) -> None:
    path = str(HERE / "programs" / f"{program}.py")
    torch_jit, compiled = tmp_path / "torch_jit.pt", tmp_path / "rekindle.pt"
    _, report = _both((path, str(torch_jit)), ("-m", "rekindle", "run-script", "--report", path, str(compiled)))
    outcome = OUTCOMES[program] = Outcome()
    problems = compare(program, torch.load(torch_jit), torch.load(compiled), outcome)
    problems += exchange(tmp_path, outcome, KNOWN_ARCHIVE_GAPS.get(program, {}))
    assert not problems, "\n".join(problems)

    first = re.search(r"^rekindle: .*$", report, re.MULTILINE)
    assert first is not None
    assert first[0].removeprefix("rekindle: ") == COMPILED[program]


def compare(program: str, expected: dict[str, Any], found: dict[str, Any], outcome: Outcome) -> list[str]:
    """Compare the answers of all parts; returns what is wrong."""
    assert list(found) == list(expected)
    gaps = KNOWN_GAPS.get(program, {})
    assert set(gaps) <= set(expected)
    outcome.parts = len(expected)
    problems = []
    for part, (theirs, answer) in expected.items():
        ours, value = found[part]
        problem = ""
        if ours == "error":
            problem = value
            if theirs == "error":
                outcome.neither[part], problem = answer, ""
        elif theirs == "error":
            outcome.only_here[part] = answer
        else:
            try:
                assert_close(value, answer)
                outcome.agree += 1
            except AssertionError as error:
                problem = str(error)
        if part in gaps and not problem:
            problems.append(f"{part} works: remove it from the known gaps")
        elif part not in gaps and problem:
            problems.append(f"{part}: {problem}")
    return problems


def exchange(folder: Path, outcome: Outcome, gaps: dict[str, str]) -> list[str]:
    """Load the archives of each compiler with the other; returns what is wrong."""
    problems = []
    script = str(HERE / "exchange.py")
    ways: dict[str, tuple[str, ...]] = {"rekindle": (), "torch_jit": ("-m", "rekindle", "run-script")}
    there = {name: folder / f"{name}.archives" for name in ways}
    answers = {name: folder / f"{name}.exchanged.pt" for name, archives in there.items() if archives.exists()}
    _both(*((*ways[name], script, str(path), str(there[name])) for name, path in answers.items()))
    for name in ways:
        if name not in answers:
            outcome.archives.append("–")
            continue
        results: dict[str, str] = torch.load(answers[name])
        wrong = {f"archive of {name}, {part}": why for part, why in results.items() if why}
        outcome.archives.append(f"{len(results) - len(wrong)} of {len(results)}")
        problems += [f"{part}: {why}" for part, why in wrong.items() if part not in gaps]
        kept = {part for part in gaps if part.startswith(f"archive of {name},")}
        problems += [f"{part} works: remove it from the known gaps" for part in sorted(kept - set(wrong))]
    return problems


def _both(*commands: tuple[str, ...]) -> list[str]:
    """Run Python with each of these arguments, side by side; returns what each says on stderr."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda arguments: _run(*arguments), commands))


def _run(*arguments: str) -> str:
    """Run Python with these arguments; returns what it says on stderr."""
    done = subprocess.run(
        # torch.jit says at each call that it is deprecated, and packages have warnings of their own.
        [sys.executable, "-W", "ignore", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2))},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr

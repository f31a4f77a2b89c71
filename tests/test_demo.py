"""``make demo``: it runs, its results are eager's, and it fits a terminal of 80 columns."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def output() -> str:
    """What the demo prints; it exits with 1 where a result is not eager's."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stderr == ""
    return done.stdout


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_it_fits_80_columns(output: str) -> None:
    assert [line for line in output.splitlines() if columns(line) > 80] == []


def test_it_shows_the_whole_product(output: str) -> None:
    for shown in (
        "def gated_norm(",
        "aten::rsqrt",
        "prim::FusionGroup_0",
        "kernel(in0: f32, in1: f32) -> (out0: f32)",
        "edit distance",
        "torch.jit.load opens it, and its result equals eager's.",
        "while_loop = torch.ops.higher_order.while_loop",
        "On 7 rows its result equals the program's.",
        "aten::add(%4, %14, %15)",
        "Next steps",
    ):
        assert shown in output


def test_no_word_of_a_table_is_cut(output: str) -> None:
    rows = output.partition("2. Times")[2].partition("3. An archive")[0]
    assert "program" in rows
    assert "…" not in rows


def test_the_next_steps_are_there(output: str) -> None:
    steps = output.partition("Next steps")[2]
    pages = [word for word in steps.split() if word.startswith("docs/")]
    assert pages == ["docs/index.md", "docs/start/torch_jit.md"]
    assert all((ROOT / page).exists() for page in pages)

"""The matrix of versions: reports are read, results are merged, and what is committed is complete."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from rekindle.runtime.native_plans.self_test import TESTED
from tests.support.shares import stays_in_part
from tests.versions import matrix
from tests.versions.matrix import Row

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
<testcase classname="tests.ir.test_a" name="test_passes" time="0.1"/>
<testcase classname="tests.ir.test_a" name="test_fails[1]"><failure message="no">text</failure></testcase>
<testcase classname="tests.ir.test_a" name="test_skips"><skipped message="why"/></testcase>
<testcase classname="" name="tests.ir.test_b"><error message="collection failure">text</error></testcase>
</testsuite></testsuites>
"""


def row(python: str, torch: str, **changes: object) -> Row:
    made = Row(python, torch, "tests/ir", "0123abcd", "2026-11-25", 3, 0, 1, share="0123abcd-3.9-2.2")
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_reports_are_read(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT, encoding="utf-8")
    found = matrix.from_report(path, python="3.11.7", torch="2.15.0", tests="tests/ir", commit="0123abcd")
    assert (found.passed, found.failed, found.skipped) == (1, 2, 1)
    assert found.failures == ["tests.ir.test_a::test_fails[1]", "tests.ir.test_b"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.date)


def test_a_row_replaces_that_of_its_combination(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, second = row("3.11.7", "2.15.0"), row("3.9.1", "2.2.0")
    for each in (first, second, row("3.11.8", "2.15.1", failed=1, failures=["tests.ir.test_a::test_fails"])):
        matrix.save(each, path)
    assert [(each.python, each.torch) for each in matrix.load(path)] == [("3.9.1", "2.2.0"), ("3.11.8", "2.15.1")]
    assert path.with_suffix(".md").read_text(encoding="utf-8") == (
        "# Versions\n"
        "\n"
        "Written by `make test-matrix` (`python -m tests.versions.matrix`). A row is the last run of a combination.\n"
        "Each combination runs a share of its own: `SHARES=<share>` selects the same tests again.\n"
        "\n"
        "| Python | PyTorch | tests | passed | failed | skipped | commit | share | date |\n"
        "| --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |\n"
        "| 3.9.1 | 2.2.0 | tests/ir | 3 | 0 | 1 | 0123abcd | 0123abcd-3.9-2.2 | 2026-11-25 |\n"
        "| 3.11.8 | 2.15.1 | tests/ir | 3 | 1 | 1 | 0123abcd | 0123abcd-3.9-2.2 | 2026-11-25 |\n"
        "\n"
        "Failures with Python 3.11.8 and PyTorch 2.15.1:\n"
        "\n"
        "- `tests.ir.test_a::test_fails`\n"
    )


def test_tests_that_failed_run_again() -> None:
    before = row("3.12.1", "2.15.0", failed=2, failures=["tests.ir.test_a::test_x[a.b::c]", "tests.ops.test_b::test_y"])
    assert [matrix.node_id(failure) for failure in before.failures] == [
        "tests/ir/test_a.py::test_x[a.b::c]",
        "tests/ops/test_b.py::test_y",
    ]
    again = row("3.12.1", "2.15.0", commit="4567cdef", passed=1, failed=1, skipped=0, failures=before.failures[1:])
    found = matrix.merged(before, again)
    assert (found.passed, found.failed, found.skipped, found.failures) == (4, 1, 1, ["tests.ops.test_b::test_y"])
    assert (found.commit, found.tests) == ("0123abcd", "tests/ir; failures again at 4567cdef")
    later = matrix.merged(found, row("3.12.1", "2.15.0", commit="89abef01", passed=1, skipped=0))
    assert (later.passed, later.failed, later.tests) == (5, 0, "tests/ir; failures again at 89abef01")


def test_each_combination_has_a_share_of_its_own() -> None:
    assert matrix.share_of("3.9.18", "2.2.1+cpu", "0123abcd") == "0123abcd-3.9-2.2"
    names = [f"tests/ir/test_a.py::test_{number}" for number in range(800)]
    shares = [matrix.share_of(python, torch, "0123abcd") for python in ("3.10.1", "3.11.1") for torch in matrix.TORCHES]
    together = {name for share in shares for name in names if stays_in_part(name, 8, share)}
    assert len(together) > 500


def test_what_would_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix.main(["--dry-run", "--python", "python3.10", "--torch", "2.11.0", "--torch", "2.15.0"]) == 0
    assert capsys.readouterr().out == "=== python3.10, PyTorch 2.11.0\n=== python3.10, PyTorch 2.15.0\n"


def command(path: Path, *, code: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)


def test_interpreters_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyenv's commands on the path exist for each Python that it has installed, and start only the selected one."""
    shims, versions = tmp_path / "shims", tmp_path / "versions"
    command(shims / "python3.11", code=0)
    command(shims / "python3.12", code=127)
    command(shims / "python3.13", code=127)
    for version in ("3.12.9", "3.12.10"):
        command(versions / version / "bin" / "python3.12", code=0)
    monkeypatch.setenv("PATH", str(shims))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert matrix.interpreters() == ["python3.11", str(versions / "3.12.10" / "bin" / "python3.12")]


def test_a_part_of_all_tests() -> None:
    names = [f"tests/ir/test_a.py::test_{number}" for number in range(800)]
    kept = [name for name in names if stays_in_part(name, 8, "0123abcd")]
    assert 70 < len(kept) < 130
    assert kept == [name for name in names if stays_in_part(name, 8, "0123abcd")]
    assert kept != [name for name in names if stays_in_part(name, 8, "another seed")]
    assert names == [name for name in names if stays_in_part(name, 1, "0123abcd")]


def test_the_page_is_that_of_the_results() -> None:
    rows = matrix.load()
    assert matrix.RESULTS.with_suffix(".md").read_text(encoding="utf-8") == matrix.page(rows)


def test_native_plans_are_for_releases_in_the_results() -> None:
    """Elsewhere a wrong C++ type might crash."""
    tested = {".".join(each.torch.split(".")[:2]) + "." for each in matrix.load()}
    assert set(TESTED) <= tested

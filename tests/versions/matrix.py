"""Run a share of the tests on every version of Python and PyTorch, one environment after another.

    python -m tests.versions.matrix                                        every combination
    python -m tests.versions.matrix --python python3.10 --torch 2.11.0     one of them
    python -m tests.versions.matrix tests/runtime tests/codegen            these tests alone
    python -m tests.versions.matrix --one-in 8                             one in eight of all tests
    python -m tests.versions.matrix --again                                the tests that failed, once they are mended

An environment takes up to 6 GB and is removed when its tests have run. The results are written to ``results.json`` and
``results.md`` beside this file, a combination after another: a run that ends early keeps what it has. Only Python's own
library is imported here, so that any Python can run it.

The interpreters are those on the path that start, and those of pyenv: its commands on the path exist for each Python
that it has installed, but start only the one that is selected.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.json")
PYTHONS = ("python3.10", "python3.11", "python3.12", "python3.13", "python3.14")
TORCHES = ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")


@dataclass(slots=True)
class Row:
    """The result of one combination.

    ``failures`` are the tests that failed, ``share`` the seed that selected the tests (``REKINDLE_SHARES``).
    """

    python: str
    torch: str
    tests: str
    commit: str
    date: str
    passed: int
    failed: int
    skipped: int
    failures: list[str] = field(default_factory=list)
    share: str = ""

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The releases of Python and PyTorch, without the last number."""
        return _release(self.python), _release(self.torch)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def from_report(report: Path, *, python: str, torch: str, tests: str, commit: str) -> Row:
    """Read what pytest wrote with ``--junitxml``."""
    passed = failed = skipped = 0
    failures: list[str] = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
            failures.append(f"{case.get('classname', '')}::{case.get('name', '')}".removeprefix("::"))
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Row(python, torch, tests, commit, date, passed, failed, skipped, sorted(failures))


# ------------------------------------------------------------------------------------------------------------- results


def load(path: Path = RESULTS) -> list[Row]:
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def save(row: Row, path: Path = RESULTS) -> None:
    """Put a row in place of that of the same combination, and write both files."""
    rows = sorted([*(each for each in load(path) if each.key != row.key), row], key=lambda each: each.key)
    path.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(page(rows), encoding="utf-8")


def merged(before: Row, again: Row) -> Row:
    """Return the row ``before``, with the results of the tests that failed in it as they are in ``again``."""
    return replace(
        before,
        tests=f"{before.tests.partition('; failures')[0]}; failures again at {again.commit}",
        date=again.date,
        passed=before.passed + again.passed,
        failed=again.failed,
        skipped=before.skipped + again.skipped,
        failures=again.failures,
    )


def node_id(failure: str) -> str:
    """Return the name by which pytest runs a test, of the name that its report has."""
    module, _, name = failure.partition("::")
    return f"{module.replace('.', '/')}.py::{name}"


def page(rows: list[Row]) -> str:
    """Return the table of the results, with the failures after it."""
    lines = [
        "# Versions",
        "",
        "Written by `make test-matrix` (`python -m tests.versions.matrix`). A row is the last run of a combination.",
        "Each combination runs a share of its own: `SHARES=<share>` selects the same tests again.",
        "",
        "| Python | PyTorch | tests | passed | failed | skipped | commit | share | date |",
        "| --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    lines += [
        f"| {row.python} | {row.torch} | {row.tests} | {row.passed} | {row.failed} | {row.skipped} | {row.commit} |"
        f" {row.share} | {row.date} |"
        for row in rows
    ]
    for row in rows:
        if row.failures:
            lines += ["", f"Failures with Python {row.python} and PyTorch {row.torch}:", ""]
            lines += [f"- `{name}`" for name in row.failures]
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------------------------------------------- interpreters


def interpreters() -> list[str]:
    """Return an interpreter of each release of Python that there is on this machine."""
    return [found for name in PYTHONS if (found := _interpreter(name))]


def _interpreter(name: str) -> str | None:
    """Return the command ``name`` if it starts, else pyenv's newest interpreter of that name, else None."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    of_pyenv = sorted(versions.glob(f"*/bin/{name}"), key=lambda each: _numbers(each.parts[-3]), reverse=True)
    return next((each for each in (name, *map(str, of_pyenv)) if _starts(each)), None)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _starts(python: str) -> bool:
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0


# ---------------------------------------------------------------------------------------------------------------- runs


def run(python: str, torch: str, tests: list[str], *, share: str, one_in: int, jobs: str) -> Row | None:
    """Test one combination in an environment of its own; None where there is no such environment."""
    with tempfile.TemporaryDirectory(prefix="rekindle-versions-") as folder:
        own = Path(folder, "environment")
        binary = str(own / "bin" / "python")
        pip = installer(binary)
        steps = [
            [python, "-m", "venv", str(own)],
            [*pip, "setuptools>=77.0.3", f"torch=={torch}"],
            [*pip, "--no-build-isolation", "-e", f"{ROOT}[test]"],
        ]
        if not all(_succeeds(step) for step in steps):
            return None
        report = Path(folder, "report.xml")
        code = "import platform, torch; print(platform.python_version(), torch.__version__)"
        versions = subprocess.run([binary, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        pytest = [binary, "-m", "pytest", "-q", "-n", jobs, "--continue-on-collection-errors", f"--junitxml={report}"]
        environment = {**os.environ, "REKINDLE_SHARES": share, "REKINDLE_ONE_IN": str(one_in)}
        subprocess.run([*pytest, *tests], cwd=ROOT, env=environment, check=False)
        if not report.exists():
            return None
        selection = (" ".join(tests) or "all folders") + (f", one in {one_in}" if one_in > 1 else "")
        row = from_report(report, python=versions[0], torch=versions[1], tests=selection, commit=_commit())
        return replace(row, share=share)


def installer(python: str) -> list[str]:
    """Return the command that installs packages for an interpreter: uv's where it is on the path, else pip's.

    uv unpacks a wheel once and links its files into environments. CUDA's libraries are the same for every Python.
    """
    if shutil.which("uv"):
        return ["uv", "pip", "install", "--quiet", "--python", python]
    return [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def _version(python: str) -> str:
    """Return the version of an interpreter, as ``3.11.7``."""
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def share_of(version: str, torch: str, commit: str) -> str:
    """Return the seed of a combination's share: each tests another part, so that together they test more."""
    return "-".join([commit, *(".".join(map(str, _release(each))) for each in (version, torch))])


def _row_of(python: str, torch: str) -> Row | None:
    """Return the row of a combination, None if it was not tested."""
    key = (_release(_version(python)), _release(torch))
    return next((row for row in load() if row.key == key), None)


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def _commit() -> str:
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.versions.matrix")
    parser.add_argument("--python", action="append", help="an interpreter; may be given several times")
    parser.add_argument("--torch", action="append", help="a release of PyTorch; may be given several times")
    parser.add_argument("--share", help="the seed of the shares; without it, each combination has its own")
    parser.add_argument("--one-in", type=int, default=1, help="run one in so many of these tests")
    parser.add_argument("--jobs", default="auto", help="how many processes run the tests")
    parser.add_argument("--again", action="store_true", help="run the tests that failed, in the rows that have any")
    parser.add_argument("--dry-run", action="store_true", help="print the combinations that would be tested")
    parser.add_argument("tests", nargs="*", help="files and folders of tests; all of them if there are none")
    options = parser.parse_args(arguments)
    pythons = options.python or interpreters()
    combinations = [(python, torch) for python in pythons for torch in options.torch or TORCHES]
    failed: list[Any] = []
    for python, torch in combinations:
        before = _row_of(python, torch) if options.again else None
        if options.again and (before is None or not before.failures):
            continue
        print(f"=== {python}, PyTorch {torch}", flush=True)
        if options.dry_run:
            continue
        if before is None:
            share = options.share or share_of(_version(python), torch, _commit())
            row = run(python, torch, options.tests, share=share, one_in=options.one_in, jobs=options.jobs)
        else:
            tests = [node_id(failure) for failure in before.failures]
            row = run(python, torch, tests, share="", one_in=1, jobs=options.jobs)
            row = row and merged(before, row)
        if row is None:
            print(f"=== there is no environment of {python} and PyTorch {torch}, or pytest did not start in it")
            failed.append((python, torch))
            continue
        save(row)
        print(f"=== {row.passed} passed, {row.failed} failed, {row.skipped} skipped")
        failed += row.failures
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

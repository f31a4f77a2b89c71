"""Many entries in processes of their own: a crash takes down one entry, not the sweep.

What was found is kept on disk as it comes: a sweep that was stopped continues where it was, as long as neither the
package nor the tests have changed.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHUNK = 24
"""Entries that one process takes on: enough to make up for the seconds it takes to start."""

PROCESSOR_SECONDS = 1200
"""What one entry may take of a processor. A clock on the wall would blame entries for what runs beside them."""

WALL_SECONDS = 7200
"""After so long a process waits for something that does not come."""

_ROOT = Path(__file__).resolve().parents[2]
_OUTPUT = Path(__file__).parent / "output"


def run_entries(module: str, names: list[str], options: list[str], jobs: int, *, chunk: int = CHUNK) -> dict[str, Any]:
    """Run ``python -m module --worker FILE *options`` over all entries; what it wrote about each, by name.

    The worker reads the names from FILE.names, and appends one line of JSON, ``[name, result]``, to FILE when it is
    done with an entry. An entry on which a process dies gets the result None. One process takes on ``chunk`` entries.
    """
    notebook = _Notebook(module, options)
    found = notebook.read(names)
    if found:
        print(f"{len(found)} of {len(names)} are known from {notebook.path}", file=sys.stderr)
    left = [name for name in names if name not in found]
    count = -(-len(left) // chunk)
    # Dealt out one by one: long cases are adjacent in lists.
    chunks = [left[start::count] for start in range(count)]
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(lambda part: _run_chunk(module, part, options, notebook), chunks):
            found.update(done)
            print(f"\r{len(found)}/{len(names)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    notebook.path.unlink(missing_ok=True)
    return {name: found[name] for name in names}


class _Notebook:
    """What is known of entries, a line each, in a file whose name is the state of the code."""

    def __init__(self, module: str, options: list[str]) -> None:
        state = hashlib.sha256(json.dumps([module, options, sys.version]).encode())
        for path in sorted(path for folder in ("rekindle", "tests") for path in (_ROOT / folder).rglob("*.py")):
            state.update(path.read_bytes())
        self.path = _OUTPUT / f"{module.rpartition('.')[2]}-{state.hexdigest()[:16]}.jsonl"
        self._lock = threading.Lock()

    def read(self, names: list[str]) -> dict[str, Any]:
        if not self.path.exists():
            return {}
        wanted = set(names)
        return {name: result for name, result in _rows(self.path) if name in wanted}

    def add(self, found: dict[str, Any]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        with self._lock, self.path.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in found.items())


def _rows(path: Path) -> list[tuple[str, Any]]:
    """The names and results in a file; its last line may have been cut off by what ended the process."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]


def _run_chunk(module: str, names: list[str], options: list[str], notebook: _Notebook) -> dict[str, Any]:
    results: dict[str, Any] = {}
    while len(results) < len(names):
        left = [name for name in names if name not in results]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results"
            path.touch()
            path.with_suffix(".names").write_text(json.dumps(left), encoding="utf-8")
            command = [sys.executable, "-m", module, "--worker", str(path), *options]
            try:
                code = subprocess.run(command, timeout=WALL_SECONDS, check=False, env=_verifying()).returncode
            except subprocess.TimeoutExpired:
                code = -1
            new: dict[str, Any] = dict(_rows(path))
        dead = next((name for name in left if name not in new), None)
        if code != 0 and dead is not None:
            new[dead] = None
        notebook.add(new)
        results.update(new)
        if code == 0:
            break
    return results


def _verifying() -> dict[str, str]:
    """An environment in which every graph is verified, as in the tests."""
    return {**os.environ, "REKINDLE_VERIFY": "1"}


def serve(path: Path, work: Any) -> None:
    """The other side: call ``work(name)`` for each name and write down what it gives.

    An entry that takes more than :data:`PROCESSOR_SECONDS` ends the process, wherever it is.
    """
    for name in json.loads(path.with_suffix(".names").read_text(encoding="utf-8")):
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
        result = work(name)
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps([name, result]) + "\n")
    signal.setitimer(signal.ITIMER_PROF, 0)

"""Many entries in processes of their own: a crash takes down one entry, not the sweep."""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHUNK = 24
"""Entries that one process takes on: enough to make up for the seconds it takes to start."""


def run_entries(module: str, names: list[str], options: list[str], jobs: int, timeout: float = 900) -> dict[str, Any]:
    """Run ``python -m module --worker FILE *options`` over all entries; what it wrote about each, by name.

    The worker reads the names from FILE.names, and appends one line of JSON, ``[name, result]``, to FILE when it is
    done with an entry. An entry on which a process dies gets the result None.
    """
    chunks = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
    results: dict[str, Any] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for number, part in enumerate(pool.map(lambda chunk: _run_chunk(module, chunk, options, timeout), chunks)):
            results.update(part)
            print(f"\r{min((number + 1) * CHUNK, len(names))}/{len(names)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return results


def _run_chunk(module: str, names: list[str], options: list[str], timeout: float) -> dict[str, Any]:
    results: dict[str, Any] = {}
    while len(results) < len(names):
        left = [name for name in names if name not in results]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results"
            path.touch()
            path.with_suffix(".names").write_text(json.dumps(left), encoding="utf-8")
            command = [sys.executable, "-m", module, "--worker", str(path), *options]
            try:
                code = subprocess.run(command, timeout=timeout, check=False, env=_verifying()).returncode
            except subprocess.TimeoutExpired:
                code = -1
            for line in path.read_text(encoding="utf-8").splitlines():
                name, result = json.loads(line)
                results[name] = result
        if code == 0:
            break
        dead = next((name for name in left if name not in results), None)
        if dead is not None:
            results[dead] = None
    return results


def _verifying() -> dict[str, str]:
    """An environment in which every graph is verified, as in the tests."""
    return {**os.environ, "REKINDLE_VERIFY": "1"}


def serve(path: Path, work: Any) -> None:
    """The other side: call ``work(name)`` for each name and write down what it gives."""
    for name in json.loads(path.with_suffix(".names").read_text(encoding="utf-8")):
        result = work(name)
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps([name, result]) + "\n")

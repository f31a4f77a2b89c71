"""Programs found on disk by the digest of their source: every ingredient of what is stored decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.codegen.llvm.disk_cache import DiskCache
from rekindle.runtime.strategies import stored_programs
from rekindle.runtime.strategies.stored_programs import ProgramFile, StoredProgram
from rekindle.scripting.callables import stored_functions
from tests.runtime import stored_program_process
from tests.runtime.stored_program_process import CHANGES, EDITS, READ_AT_RUN_TIME
from tests.scripting.test_stored_functions import forget

ROOT = Path(__file__).parents[2]
Outcome = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What happens in a process that finds nothing, in those with a change, and in one without a change after these."""

    before: Outcome
    changed: dict[str, Outcome]
    after: Outcome


def _environment(cache: Path) -> dict[str, str]:
    """Return the environment of processes that use the cache, without what tests set: nothing is read from disk while
    passes are verified."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REKINDLE_")}
    return {**kept, "PYTHONPATH": str(ROOT), "REKINDLE_CACHE_DIR": str(cache)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    folder = tmp_path_factory.mktemp("programs")
    output = folder / "results"
    command = [sys.executable, stored_program_process.__file__, str(folder), str(output), "nothing", *CHANGES]
    environment = _environment(folder / "cache")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return Outcomes(*json.loads(output.read_text()))


def test_the_next_process_optimizes_and_decodes_nothing(outcomes: Outcomes) -> None:
    first = outcomes.before
    assert first["optimized"]
    assert first["found"] == pytest.approx(first["eager"], rel=1e-6)
    for later in (outcomes.changed["nothing"], outcomes.after):
        assert (later["optimized"], later["loaded"], later["found"]) == (0, False, first["found"])


@pytest.mark.parametrize("change", CHANGES)
def test_with_another(change: str, outcomes: Outcomes) -> None:
    found = outcomes.changed[change]
    assert found["optimized"] or change in READ_AT_RUN_TIME, "it ran a version that was made for something else"
    if change not in EDITS:
        assert found["found"] == pytest.approx(found["eager"], rel=1e-6)
    else:
        assert found["found"] != pytest.approx(found["eager"], rel=1e-3)


def test_an_edit_in_the_process_that_stores_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(stored_functions, "are_passes_watched", lambda: False)
    forget()
    record = rekindle.script(torch.nn.functional.silu)._record
    assert StoredProgram.of(record) is not None
    record.graph.block.prepend(record.graph.create_constant(1))
    assert StoredProgram.of(record) is None
    forget()


def test_a_file_is_replaced_when_it_becomes_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stored_programs, "MAX_BYTES", 10)
    file = ProgramFile(DiskCache(tmp_path), b"program")
    for key, payload in ((b"a", b"123456"), (b"b", b"1234"), (b"c", b"5")):
        file.store(key, payload)
        file.write()
    assert [file.load(key) for key in (b"a", b"b", b"c")] == [None, None, b"5"]


PROGRAM = """
import sys
import torch
import rekindle

torch.set_num_threads(1)
encoder = torch.nn.TransformerEncoderLayer(8, 2, 16).eval()
generator = torch.Generator().manual_seed(0)
with torch.no_grad():
    for parameter in encoder.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator))
    x = torch.randn(3, 2, 8, generator=generator)
    compiled = rekindle.script(encoder)
    sys.stdin.readline()
    for _ in range(2):  # the first call is not optimized
        torch.testing.assert_close(compiled(x), encoder(x))
print(compiled.forward._record.is_loaded)
"""


def _started(cache: Path, before: str = "") -> subprocess.Popen[str]:
    """Start a process that runs the program ``before``, compiles a module, and waits for a line before it calls it."""
    return subprocess.Popen(
        [sys.executable, "-c", before + PROGRAM],
        env=_environment(cache),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finished(*processes: subprocess.Popen[str]) -> list[str]:
    """Let processes call the module, all at once, and return what they print: whether the source graph was decoded."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    printed = []
    for process in processes:
        output, error = process.communicate()
        assert process.returncode == 0, error
        printed.append(output.strip())
    return printed


def test_two_processes_write_at_once_and_a_third_reads(tmp_path: Path) -> None:
    # One of the two may be so late that it reads what the other has written.
    assert "True" in _finished(_started(tmp_path), _started(tmp_path))
    assert _finished(_started(tmp_path)) == ["False"]


def test_damaged_files_are_not_used(tmp_path: Path) -> None:
    _finished(_started(tmp_path))
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        content = bytearray(path.read_bytes())
        content[len(content) * 2 // 3] ^= 1
        path.write_bytes(content if number % 2 else content[:-7])
    assert _finished(_started(tmp_path)) == ["True"]
    assert _finished(_started(tmp_path)) == ["False"]


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
"""The disk is full: files are made, but nothing can be written to them."""
READ_ONLY = """
import errno, os
from rekindle.codegen.llvm import disk_cache

def refused(*arguments, **keywords):
    raise OSError(errno.EROFS, "Read-only file system")

os.replace = os.utime = disk_cache._write = refused
"""
"""The folder cannot be written to, by root either."""


@pytest.mark.parametrize("disk", [FULL, READ_ONLY])
def test_a_disk_that_cannot_be_written_to(disk: str, tmp_path: Path) -> None:
    """Programs run as without a cache and write no file; files that exist are read."""
    assert _finished(_started(tmp_path, disk)) == ["True"]
    assert not list(tmp_path.iterdir())
    _finished(_started(tmp_path))
    files = sorted(tmp_path.iterdir())
    assert _finished(_started(tmp_path, disk)) == ["False"]
    assert sorted(tmp_path.iterdir()) == files


def test_a_file_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    _finished(_started(tmp_path))
    for path in tmp_path.iterdir():
        path.chmod(0o666)
    assert _finished(_started(tmp_path)) == ["True"]

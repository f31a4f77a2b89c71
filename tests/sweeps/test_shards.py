"""A sweep in processes: crashes, timeouts, and continuing where it was stopped."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.sweeps import shards

NAMES = ["one", "dies", "two", "spins", "three"]


def work(name: str) -> str:
    """The work of these tests' worker: some entries end the process."""
    if name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    while name == "spins":
        pass
    return name.upper()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The folder of what is known is an empty one; processes may take a second. The chunks that were begun."""
    begun: list[str] = []
    run = shards._run_chunk

    def noted(module: str, names: list[str], options: list[str], notebook: shards._Notebook) -> dict[str, object]:
        begun.extend(names)
        return run(module, names, options, notebook)

    monkeypatch.setattr(shards, "_OUTPUT", tmp_path / "output")
    monkeypatch.setattr(shards, "_run_chunk", noted)
    return begun


def test_a_crash_and_an_endless_loop_take_down_one_entry_each(asked: list[str]) -> None:
    found = shards.run_entries("tests.sweeps.test_shards", NAMES, [], 1)
    assert found == {"one": "ONE", "dies": None, "two": "TWO", "spins": None, "three": "THREE"}
    assert list(found) == NAMES
    assert not list(shards._OUTPUT.iterdir())


def test_goes_on_where_it_was_stopped(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    notebook = shards._Notebook("tests.sweeps.test_shards", [])
    notebook.add({"one": "from before", "dies": None, "spins": None})
    with notebook.path.open("a", encoding="utf-8") as out:
        out.write('["two", "cut o')
    found = shards.run_entries("tests.sweeps.test_shards", NAMES, [], 1)
    assert found == {"one": "from before", "dies": None, "two": "TWO", "spins": None, "three": "THREE"}
    assert asked == ["two", "three"]
    assert f"3 of 5 are known from {notebook.path}" in capsys.readouterr().err


def test_other_code_knows_nothing(asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebook = shards._Notebook("tests.sweeps.test_shards", [])
    (tmp_path / "rekindle").mkdir()
    (tmp_path / "rekindle" / "other.py").write_text("changed = True", encoding="utf-8")
    monkeypatch.setattr(shards, "_ROOT", tmp_path)
    assert shards._Notebook("tests.sweeps.test_shards", []).path != notebook.path
    assert shards._Notebook("tests.sweeps.test_shards", ["--traces"]).path != notebook.path


def test_every_name_has_a_result(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"entry {number}" for number in range(7)]
    monkeypatch.setattr(shards, "CHUNK", 3)
    found = shards.run_entries("tests.sweeps.test_shards", names, [], 2)
    assert found == {name: name.upper() for name in names}
    assert list(found) == names
    assert sorted(asked) == names


if __name__ == "__main__":
    shards.PROCESSOR_SECONDS = 1
    shards.serve(Path(sys.argv[sys.argv.index("--worker") + 1]), work)

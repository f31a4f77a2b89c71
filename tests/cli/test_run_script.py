"""`rekindle run-script` runs programs as Python does, with the drop-in installed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def rekindle(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rekindle", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "helpers.py").write_text(
        "import torch\n\n\n@torch.jit.script\ndef doubled(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n",
        encoding="utf-8",
    )
    (tmp_path / "app.py").write_text(
        textwrap.dedent(
            """
            import sys

            import torch

            from helpers import doubled

            print(__name__, sys.argv[1:])
            print(type(doubled).__module__, doubled(torch.ones(1)))
            net = torch.jit.script(torch.nn.Linear(2, 2))
            print(isinstance(net, torch.jit.ScriptModule))
            if "--fail" in sys.argv:
                raise ValueError("as asked")
            sys.exit(3)
            """
        ),
        encoding="utf-8",
    )
    return tmp_path


OUTPUT = "rekindle.program.function tensor([2.])\nTrue\n"


def test_a_program_gets_its_arguments_and_gives_its_exit_code(folder: Path) -> None:
    done = rekindle("run-script", "app.py", "-x", "--report", "1", cwd=folder)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "__main__ ['-x', '--report', '1']\n" + OUTPUT


def test_a_module_by_its_name_and_the_report(folder: Path) -> None:
    done = rekindle("run-script", "--report", "-m", "app", cwd=folder)
    assert (done.returncode, done.stdout) == (3, "__main__ []\n" + OUTPUT)
    assert done.stderr == (
        "rekindle: 2 programs compiled here: function 1, module 1\n  function doubled\n  module Linear\n"
    )


def test_the_traceback_of_an_error_is_the_programs_own(folder: Path) -> None:
    done = rekindle("run-script", str(folder / "app.py"), "--fail", cwd=folder)
    assert done.returncode == 1
    first, place, *_, last = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert place == f'  File "{folder / "app.py"}", line 13, in <module>'
    assert last == "ValueError: as asked"


def test_what_is_not_there(folder: Path) -> None:
    done = rekindle("run-script", "nothing.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rekindle: error: there is no file 'nothing.py' (see 'rekindle run-script --help')\n"

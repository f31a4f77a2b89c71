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


OUTPUT = "rekindle.api.drop_in.compiled_classes tensor([2.])\nTrue\n"


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


def test_the_report_of_one_program(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import torch\n\n\n@torch.jit.script\ndef one(x: torch.Tensor):\n    return x\n")
    done = rekindle("run-script", "--report", "one.py", cwd=tmp_path)
    assert done.stderr == "rekindle: 1 program compiled here: function 1\n  function one\n"


WHOLE = """
import torch
from torch.jit import ScriptModule, load, save, script


@torch.jit.script
def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return x * factor


@torch.jit.script
class Shift:
    def __init__(self, by: torch.Tensor) -> None:
        self.by = by

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.by


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])

    @torch.jit.export
    def encode(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = scaled(layer(x))
        return x

    @torch.jit.unused
    def later(self, x: torch.Tensor) -> torch.Tensor:
        return eval("x")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Shift(x.mean()).apply(self.encode(x))


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(2, 4)
scripted = script(net)
traced = torch.jit.trace(net, x)
both = torch.jit.trace_module(net, {"forward": x, "encode": x})
save(scripted, "scripted.pt")
traced.save("traced.pt")
torch.jit.save(both, "both.pt", _extra_files={"a.txt": "hello"})
files = {"a.txt": ""}
made = [scripted, traced, both, load("scripted.pt"), torch.jit.load("traced.pt"), load("both.pt", _extra_files=files)]
for module in made:
    assert isinstance(module, ScriptModule)
    torch.testing.assert_close(module(x), net(x))
    print(type(module).__module__, module.original_name)
print(files)
"""


def test_a_program_that_scripts_traces_saves_and_loads(folder: Path) -> None:
    (folder / "whole.py").write_text(WHOLE, encoding="utf-8")
    done = rekindle("run-script", "--report", "whole.py", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "rekindle.program.modules.module Net\n" * 6 + "{'a.txt': b'hello'}\n")
    assert done.stderr == (
        "rekindle: 8 programs compiled here: archive 3, class 1, function 1, module 3\n"
        "  archive both.pt\n"
        "  archive scripted.pt\n"
        "  archive traced.pt\n"
        "  class Shift\n"
        "  function scaled\n"
        "  module Net (3 times)\n"
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

"""`rekindle doctor` on a package that has torch.jit in every form: whole reports."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.cli.main import main
from rekindle.doctor import archive_trial
from rekindle.doctor.examination import Options, examine
from rekindle.doctor.processes import try_all
from rekindle.doctor.search import search
from rekindle.doctor.trial import Request
from rekindle.doctor.verdicts import Verdict, judged
from tests.support.golden import GoldenTexts

ROOT = Path(__file__).parents[2]
EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the examples in it."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_times(text: str) -> str:
    """The report without what differs between machines: times, and whether the packages for ONNX are there."""
    text = re.sub(r"^\n\d+ of \d+ programs? can leave as ONNX\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^  ONNX, .*\n", "", re.sub(r"take \d+\.\d\d of", "take N of", text), flags=re.MULTILINE)


def repair(examples: Path) -> None:
    """Make what torch.jit does not compile either into what it does."""
    path = examples / "models" / "functions.py"
    text = path.read_text(encoding="utf-8").replace("@jit_script\n", "").replace("(x, times):", "(x, times: int):")
    path.write_text(text, encoding="utf-8")


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["doctor", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def test_the_report_and_the_changes(examples: Path, capsys: pytest.CaptureFixture[str], golden: GoldenTexts) -> None:
    code, out = doctor(capsys, "models", "--html", "report.html", "--fix")
    assert code == 1
    golden("doctor/models", without_times(out))
    page = (examples / "report.html").read_text(encoding="utf-8")
    assert "<h1>rekindle doctor: models</h1>" in page
    assert "functions.py:18" in page
    assert not re.search(r"\b(src|href)=|https?://", page)
    text = (examples / "models" / "functions.py").read_text(encoding="utf-8")
    assert "def repeated(x, times: int):" in text
    assert "_jit_set_profiling_executor" not in text
    code, out = doctor(capsys, "models")
    golden("doctor/models_after_fix", without_times(out))


def test_json_of_one_file(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (examples / "one.py").write_text(
        "import torch\n\n\n@torch.jit.script\ndef f(x, n):\n    return x[: len(n), m]\n", "utf-8"
    )
    code, out = doctor(capsys, "one.py", "--json")
    data = json.loads(out)
    assert code == 1
    assert data == {
        "rekindle": rekindle.__version__,
        "torch": torch.__version__,
        "path": "one.py",
        "files": 1,
        "files_with_uses": 1,
        "counts": {"works as it is": 0, "works with a change": 0, "does not work": 1, "not tried": 0},
        "uses": [
            {
                "path": "one.py",
                "line": 4,
                "column": 1,
                "end_line": 4,
                "name": "torch.jit.script",
                "form": "decorator",
                "scope": "",
                "text": "@torch.jit.script",
                "verdict": "does not work",
                "reason": "f cannot be compiled",
                "problems": [
                    {"message": "the name 'm' is not defined", "cause": "undefined name", "file": "one.py", "line": 6}
                ],
                "diff": "",
                "programs": [],
            }
        ],
        "diff": "",
        "archives": [],
        "outside": {"programs": 0, "failed": []},
        "mentions": [],
        "unread": [],
        "command": None,
        "stock": None,
    }


def test_a_command_is_recorded(examples: Path, golden: GoldenTexts) -> None:
    repair(examples)
    done = subprocess.run(
        [sys.executable, "-m", "rekindle", "doctor", ".", "--run", "python use.py net.pt"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "tensor([8., 8.]) tensor([1., 1.]) tensor([3.])" in done.stderr, done.stderr
    assert done.returncode == 1  # what is for phones
    golden("doctor/run", without_times(done.stdout))


def test_a_command_without_pytorch(examples: Path) -> None:
    found = examine(examples, Options(command=[sys.executable, "-c", ""]), examples)
    reasons = {each.reason for each in found.with_verdict(Verdict.NOT_TRIED) if each.use.name == "torch.jit.trace"}
    assert reasons == {"no process of the command that imports PyTorch could be recorded"}
    assert found.command == {"command": [sys.executable, "-c", ""], "exit_code": 0, "processes": 0}


def test_a_folder_is_only_read_if_nothing_is_to_be_imported(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (examples / "models" / "__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    code, out = doctor(capsys, "models", "--no-import", "--json")
    data = json.loads(out)
    assert code == 1  # mobile
    reasons = {use["reason"] for use in data["uses"] if use["verdict"] == "not tried" and use["form"] != "reference"}
    assert "its module was not imported" in reasons
    code, out = doctor(capsys, "models", "--json")
    reasons = {use["reason"] for use in json.loads(out)["uses"] if use["verdict"] == "not tried"}
    assert "importing 'models.functions' raised SystemExit: imported (__init__.py:1)" in reasons


class Counter(torch.nn.Module):
    def forward(self, x: torch.Tensor, path: str = "") -> torch.Tensor:
        return x.cumsum(0) * 2


class Writer(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.save(x, "written.pt")
        return x


def test_archives_run_in_the_sandbox_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rekindle.save(rekindle.script(Counter()), "counter.pt")
    code, out = doctor(capsys, "counter.pt")
    assert code == 0
    assert out == (
        "counter.pt: 1 archive\n"
        "  works as it is          1\n"
        "  works with a change     0\n"
        "  does not work           0\n"
        "  not tried               0\n"
        "\n"
        "works as it is\n"
        "  counter.pt: it loads, and forward answers in the sandbox on generated inputs: float32[4, 4]\n"
    )
    code, out = doctor(capsys, "counter.pt", "--trust", "--input", "f32[3]", "--json")
    (archive,) = json.loads(out)["archives"]
    assert (code, archive["reason"], archive["pt2"]) == (
        0,
        "it loads, and forward answers in the sandbox on given inputs: float32[3]",
        "agrees",
    )
    assert archive["seconds"] > 0


class Running(torch.nn.Module):
    """Returns the sum of all calls: each changes the module."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total = self.total + x
        return self.total * 2


def test_an_archive_whose_calls_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each compiled call is compared with the same call in the sandbox, conversions begin with the saved state."""
    monkeypatch.chdir(tmp_path)
    rekindle.save(rekindle.script(Running()), "running.pt")
    code, out = doctor(capsys, "running.pt", "--trust", "--input", "f32[3]", "--json")
    (archive,) = json.loads(out)["archives"]
    assert (code, archive["verdict"], archive["pt2"], archive["native"]) == (0, "works as it is", "agrees", "agrees")


def test_an_archive_whose_calls_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rekindle.save(rekindle.script(Running()), tmp_path / "running.pt")
    results = iter([2.0, 4.0, 7.0])
    monkeypatch.setattr(archive_trial, "load", lambda path, map_location: lambda x: x * next(results))
    answers = iter([torch.ones(3) * 4, torch.ones(3) * 6])
    found = archive_trial._trusted(tmp_path / "running.pt", [torch.ones(3)], torch.ones(3) * 2, lambda: next(answers))
    assert found["difference"].startswith("Tensor-likes are not close! Mismatched elements: 3 / 3 (100.0%)")
    assert list(found) == ["difference"]


def test_an_archive_that_writes_files_is_not_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.jit.script(Writer()).save("writer.pt")
    code, out = doctor(capsys, ".", "--json")
    (archive,) = json.loads(out)["archives"]
    assert (code, archive["verdict"]) == (0, "not tried")
    assert archive["reason"].startswith("it loads; forward was not called: it raises on all generated inputs: ")
    assert "aten::save" in archive["reason"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["writer.pt"]


def test_a_broken_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rekindle.save(rekindle.script(Counter()), "counter.pt")
    with zipfile.ZipFile("counter.pt") as before, zipfile.ZipFile("other.pt", "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(b"torch.cumsum", b"ops.mine.cumsum"))
    Path("broken.pt").write_bytes(Path("counter.pt").read_bytes()[:-100])
    Path("counter.pt").unlink()
    code, out = doctor(capsys, ".", "--json")
    (archive,) = json.loads(out)["archives"]  # other files are not listed
    assert (code, archive["verdict"], archive["reason"]) == (
        1,
        "does not work",
        "no installed package has mine::cumsum",
    )
    code, out = doctor(capsys, "broken.pt")
    assert code == 1
    assert out.splitlines()[6:] == [
        "does not work",
        "  broken.pt: it cannot be loaded",
        "      CorruptArchiveError: The archive is truncated: its directory, which is at the end, is missing.",
    ]


def test_answers_of_stock_pytorch(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.jit.script(Counter()).save("counter.pt")
    repair(examples)
    code, out = doctor(capsys, ".", "--stock", "stock", "--json")
    told = json.loads(out)["stock"]["record.py"]
    assert told == "written, with inputs for 5 programs: run it where stock PyTorch is, then this again"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "stock/record.py", "."], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"5 programs recorded in {Path('stock').resolve() / 'outputs.pt'}\n"
    code, out = doctor(capsys, ".", "--stock", "stock", "--json")
    told = json.loads(out)["stock"]
    assert told == {
        str(Path("counter.pt").resolve()): "agrees",
        "models.functions:positive": "agrees",
        "models.functions:repeated": "agrees",
        "models.functions:scaled": "agrees",
        "models.functions:shifted": "agrees",
    }


def test_modules_that_crash_or_hang_leave_the_others(tmp_path: Path) -> None:
    for name, text in {
        "crash": "import os\nos.abort()\n",
        "hang": "while True:\n    pass\n",
        "fine": "import torch\n\n\n@torch.jit.script\ndef f(x: torch.Tensor):\n    return x\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    trial = try_all(Request("", [str(tmp_path)], ["crash", "hang", "fine"]), 15, work)
    assert trial.stopped == {"crash": "the process ended by signal SIGABRT", "hang": "the process took more than 15 s"}
    programs: list[dict[str, Any]] = [event for event in trial.events if event["event"] == "program"]
    assert [(event["subject"], event["ok"]) for event in programs] == [("f", True)]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            "class Rear(torch.nn.Module):\n    @torch.jit.script_method\n    def forward(self, x): return x",
            "the method is compiled when an object of a class of torch.jit.ScriptModule is made, and none was",
        ),
        ("class Net(torch.jit.ScriptModule): pass", "the class is compiled when an object is made, and none was"),
    ],
)
def test_why_a_class_was_not_tried(code: str, why: str, tmp_path: Path) -> None:
    """A method of another module with this mark is compiled by neither compiler."""
    (tmp_path / "net.py").write_text(f"import torch\n{code}\n", encoding="utf-8")
    [use] = search(tmp_path)[0].uses
    found = judged(use, [], "not imported")
    assert (found.verdict, found.reason) == (Verdict.NOT_TRIED, why)


def test_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "no_such_package"]) == 2
    assert capsys.readouterr().err == (
        "rekindle: error: there is no file, folder or installed package 'no_such_package' "
        "(see 'rekindle doctor --help')\n"
    )

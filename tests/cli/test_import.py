"""`rekindle import` makes archives of files of torch.export."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import export
from torch.utils import _pytree as pytree

from tests.cli.conftest import Command
from tests.importing.models import Perceptron
from tests.importing.programs import of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own


def test_what_is_written_is_the_program(command: Command, folder: Path) -> None:
    model = Perceptron()
    torch.export.save(export(model, (torch.ones(2, 8),)), "net.pt2")
    done = command("import", "net.pt2", "-o", "back.pt", "--check")
    assert (done.code, done.out.splitlines()) == (0, ["call 1: agree", "call 2: agree", "call 3: agree"])
    x = torch.randn(2, 8)
    torch.testing.assert_close(torch.jit.load("back.pt")(x), model(x))


def test_what_cannot_be_done(command: Command, folder: Path) -> None:
    done = command("import", "nothing.pt2", "-o", "back.pt")
    assert done.code == 2
    assert "nothing.pt2" in done.err

    def cast(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    torch.export.save(export(of(cast)(), (torch.ones(2, 2),)), "cast.pt2")
    done = command("import", "cast.pt2", "-o", "back.pt")
    assert done.code == 1
    assert "'wrap_with_autocast' has no form in a program" in done.err
    assert not Path("back.pt").exists()


def test_classes_of_libraries_are_imported(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("answers.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    answers: Any = importlib.import_module("answers")
    torch.export.save(export(answers.Net(), (torch.ones(3),)), "net.pt2")
    del sys.modules["answers"]  # as in a process that knows nothing of it
    pytree._deregister_pytree_node(answers.Answer)
    done = command("import", "net.pt2", "-o", "back.pt")
    assert done.code == 2
    assert done.err == (
        "rekindle: error: net.pt2: the program takes or gives objects of the class answers.Answer, which is not known"
        " here\n"
        "Hint: import what registers it with PyTorch before: import answers; on the command line: "
        "rekindle import --import answers …\n"
    )
    done = command("import", "net.pt2", "-o", "back.pt", "--import", "answer")
    assert (done.code, done.err) == (
        2,
        "rekindle: error: --import answer: ModuleNotFoundError: No module named 'answer'\n",
    )
    done = command("import", "net.pt2", "-o", "back.pt", "--check", "--import", "answers")
    assert (done.code, done.out.splitlines()) == (0, ["call 1: agree", "call 2: agree", "call 3: agree"])
    assert torch.jit.load("back.pt")(torch.ones(3)).twice.tolist() == [2.0, 2.0, 2.0]


def test_what_is_no_file_of_torch_export(command: Command, folder: Path) -> None:
    Path("text.pt2").write_text("a program")
    done = command("import", "text.pt2", "-o", "back.pt")
    assert (done.code, done.err) == (2, "rekindle: error: text.pt2: this is not a file of torch.export\n")


LIBRARY = """
from dataclasses import dataclass

import torch


@dataclass
class Answer:
    once: torch.Tensor
    twice: torch.Tensor


torch.export.register_dataclass(Answer, serialized_type_name="answers.Answer")


class Net(torch.nn.Module):
    def forward(self, x):
        return Answer(x + 0, x * 2)
"""

"""`rekindle import` makes archives of files of torch.export."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.export import export

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

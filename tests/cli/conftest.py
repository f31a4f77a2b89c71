"""Commands called in this process, in a folder with archives to work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import rekindle
from rekindle.cli.main import main


@dataclass(slots=True)
class Done:
    code: int
    out: str
    err: str


Command = Callable[..., Done]


class Part(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Part()
        self.second = Part()
        self.names = ["cat", "dog"]
        self.register_buffer("offset", torch.zeros(2))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        if self.training:
            x = -x
        return self.second(self.first(x)) * scale + self.offset

    @torch.jit.export
    def classify(self, x: torch.Tensor) -> list[str]:
        return [self.names[int(i)] for i in self.forward(x).argmax(-1)]

    @torch.jit.export
    def fail(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("as asked")


def compiled() -> rekindle.ScriptModule:
    """The same module each time, whose answers are whole numbers: both parts multiply with [[1, 2], [3, 4]]."""
    net = Net().eval()
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    for part in (net.first, net.second):
        part.linear.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return rekindle.script(net)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with ``net.pt`` in it."""
    monkeypatch.chdir(tmp_path)
    rekindle.save(compiled(), "net.pt", {"labels.txt": "cat\ndog\n"})
    return tmp_path


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> Done:
        capsys.readouterr()
        code = main(arguments)
        return Done(code, *capsys.readouterr())

    return call

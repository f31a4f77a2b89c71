"""Lightning's modules have `to_torchscript`, by script and by trace, to a file too."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from keeping import compared, hand_over, main
from pytorch_lightning import LightningModule
from torch import Tensor, nn


class Net(LightningModule):
    def __init__(self, width: int = 8, dropout: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 2))
        self.loss = nn.CrossEntropyLoss()
        self.example_input_array = torch.ones(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Exported(Net):
    """A method beside forward, and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 2.0
        self.register_buffer("mean", torch.arange(4.0))

    @torch.jit.export
    def scores(self, x: Tensor, temperature: float = 1.0) -> Tensor:
        return torch.softmax(self(x - self.mean) * self.scale / temperature, -1)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 1:
            x = x.unsqueeze(0)
        return self.net(x)


class Sequence(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(4, 6, batch_first=True)
        self.parts = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out, (h, _) = self.cell(x)
        for part in self.parts:
            out = out + part(out).tanh()
        return out, h


def part(make: Any, *shapes: tuple[int, ...], **options: Any) -> Any:
    def run() -> Any:
        module = make().eval()
        calls = [(torch.randn(shape),) for shape in shapes]
        if options.get("method") == "trace" and "example_inputs" in options:
            options["example_inputs"] = calls[0]
        return compared(module, *calls, compile=lambda each: each.to_torchscript(**options))

    return run


def to_a_file() -> Any:
    module = Net().eval()
    x = torch.randn(3, 4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.pt")
        module.to_torchscript(path)
        loaded = torch.jit.load(str(path))
    assert torch.equal(loaded(x), module(x))
    return loaded(x)


def exported() -> Any:
    module = Exported()
    scripted = module.to_torchscript()
    assert module.training
    x = torch.randn(3, 4)
    found = scripted.scores(x, 2.0)
    assert torch.allclose(found, module.eval().scores(x, 2.0))
    hand_over(scripted.eval(), (x,), module(x))
    return found


def trained() -> Any:
    """Steps on the scripted copy's parameters are steps on the module's: they are the same tensors."""
    module = Net(dropout=0.0)
    scripted = module.to_torchscript().train()
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer = module.configure_optimizers()
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(scripted(x), y).backward()
        optimizer.step()
    assert torch.equal(scripted(x), module(x))
    return scripted(x)


if __name__ == "__main__":
    main(
        {
            "script": part(Net, (3, 4), (5, 4)),
            "trace": part(Net, (3, 4), (5, 4), method="trace"),
            "trace, example": part(Net, (3, 4), (5, 4), method="trace", example_inputs=True),
            "sequence, script": part(Sequence, (2, 5, 4), (1, 7, 4)),
            "sequence, trace": part(Sequence, (2, 5, 4), method="trace", example_inputs=True),
            "exported": exported,
            "file": to_a_file,
            "trained": trained,
        }
    )

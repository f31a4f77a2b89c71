"""The devices that programs name can be changed."""

from __future__ import annotations

import torch

import rekindle
from rekindle.archive.code.devices import map_devices

CUDA, OTHER, CPU = torch.device("cuda:0"), torch.device("cuda:1"), torch.device("cpu")


def outside(n: int) -> torch.Tensor:
    return torch.ones(n, device="cuda:0")


class Inner(torch.nn.Module):
    def forward(self, n: int) -> torch.Tensor:
        return torch.wait(torch.jit.fork(outside, n)) if n > 5 else outside(n)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.where = CUDA
        self.both = [(CUDA, 1), (OTHER, 2)]
        self.named = {"a": CUDA}
        self.kept = [OTHER]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = [torch.device("cuda:0"), torch.device("cuda:1")]
        if len(places) == 2:
            x = x + torch.ones(2, device=torch.device("cuda:0"))
        return x + self.inner(2)


def test_in_programs_and_attributes() -> None:
    module = rekindle.script(Net())
    kept = module.kept
    map_devices(module, lambda device: CPU if device == CUDA else device)
    assert (module.where, module.both, module.named) == (CPU, [(CPU, 1), (OTHER, 2)], {"a": CPU})
    assert module.kept is kept
    assert torch.equal(module(torch.ones(2)), torch.full((2,), 3.0))
    assert torch.equal(module.inner(6), torch.ones(6))
    assert str(module.graph).count('"cuda:1"') == 1
    assert '"cuda:0"' not in f"{module.graph}{module.inner.graph}"


def test_after_a_call() -> None:
    class Simple(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros(2, device="cpu") + x

    module = rekindle.script(Simple())
    assert module(torch.ones(2)).device == CPU
    map_devices(module, lambda device: torch.device("meta"))
    assert module(torch.ones(2, device="meta")).device.type == "meta"

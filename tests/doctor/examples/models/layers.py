from __future__ import annotations

import torch
from torch.utils.mobile_optimizer import optimize_for_mobile


class Old(torch.jit.ScriptModule):
    __constants__ = ["steps"]

    def __init__(self, steps=2):
        super().__init__()
        self.steps = steps

    @torch.jit.script_method
    def forward(self, x):
        for _ in range(self.steps):
            x = x + 1
        return x


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    @torch.jit.export
    def encode(self, x: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting():
            return self.linear(x)
        return self.linear(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encode(x).relu()


def save(net: Net, path: str) -> None:
    scripted: torch.jit.ScriptModule = torch.jit.script(net)
    torch.jit.save(scripted, path)


def save_for_phones(net: Net, path: str) -> None:
    optimize_for_mobile(torch.jit.script(net))._save_for_lite_interpreter(path)

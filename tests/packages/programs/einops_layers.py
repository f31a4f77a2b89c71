"""einops has a spelling of its layers for torch.jit.script."""

from __future__ import annotations

from typing import Any

import torch
from einops.layers.torch import Rearrange, Reduce
from keeping import main, reloaded


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3),
            Reduce("b c (h h2) (w w2) -> b c h w", "max", h2=2, w2=2),
            Rearrange("b c h w -> b (c h w)"),
            torch.nn.Linear(54, 4),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def net() -> Any:
    return torch.jit.script(Net())(torch.randn(2, 3, 8, 8)).detach()


def layers() -> Any:
    x = torch.randn(2, 4, 6)
    reduced = [torch.jit.script(Reduce("b c (n m) -> c n", how, m=3))(x) for how in ("sum", "mean", "prod", "min")]
    return reduced, torch.jit.script(Rearrange("b c (n m) -> (b m) n c", n=2))(x)


def archive() -> Any:
    return reloaded(torch.jit.script(Net()))(torch.randn(2, 3, 8, 8)).detach()


if __name__ == "__main__":
    main({"net": net, "layers": layers, "archive": archive})

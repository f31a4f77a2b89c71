"""fvcore counts the operations of the graph of a run, and TensorBoard draws the graph of a trace."""

from __future__ import annotations

from typing import Any

import torch
from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis, flop_count_table
from keeping import main
from torch.utils.tensorboard._pytorch_graph import graph as tensorboard_graph


class Residual(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = torch.nn.Sequential(
            torch.nn.Conv2d(width, width, 3, padding=1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU()
        )
        self.second = torch.nn.Conv2d(width, width, (1, 3), padding=(0, 1), groups=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x + self.second(self.first(x)))


class Net(torch.nn.Module):
    """Convolutions, a transposed one, normalization, upsampling, a product and an einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, stride=2)
        self.blocks = torch.nn.ModuleList([Residual(8) for _ in range(3)])
        self.up = torch.nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.norm = torch.nn.GroupNorm(2, 4)
        self.out = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = torch.nn.functional.interpolate(self.norm(self.up(x)), scale_factor=2.0, mode="bilinear")
        x = x.flatten(2)
        weights = torch.softmax(torch.matmul(x.transpose(1, 2), x), -1)
        mixed = torch.einsum("bij,bcj->bci", weights, x)
        return self.out(mixed.mean(-1)), weights


MODELS = {
    "net": (Net, (2, 3, 9, 9)),
    "perceptron": (lambda: torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)), (3, 4)),
    "encoder": (lambda: torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Dropout()), (5, 8)),
}


def counted(name: str) -> Any:
    make, shape = MODELS[name]
    model, x = make().eval(), torch.ones(shape)
    flops = FlopCountAnalysis(model, x).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    activations = ActivationCountAnalysis(model, x).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    return (
        flops.total(),
        dict(flops.by_module()),
        dict(flops.by_operator()),
        activations.total(),
        dict(activations.by_module()),
        as_tensor(flop_count_table(flops)),
    )


def drawn(name: str) -> Any:
    """The operators of TensorBoard's graph, each with its module and the sizes of its result. A traced convolution is
    ``aten::_convolution`` to torch.jit, and ``aten::conv2d`` here."""
    make, shape = MODELS[name]
    drawing, _ = tensorboard_graph(make(), torch.ones(shape))
    lines = [
        f"{node.name.rpartition('/')[0]} {operator_of(node)} {node.attr['_output_shapes']}"
        for node in drawing.node
        if node.op.startswith("aten::") or node.op == "IO Node"
    ]
    return as_tensor("\n".join(sorted(lines)))


def operator_of(node: Any) -> str:
    return "convolution" if "conv" in node.op else node.op


def as_tensor(text: str) -> torch.Tensor:
    return torch.tensor(list(text.encode()))


if __name__ == "__main__":
    main(
        {
            **{f"{name} counted": lambda name=name: counted(name) for name in MODELS},
            **{f"{name} drawn": lambda name=name: drawn(name) for name in MODELS},
        }
    )

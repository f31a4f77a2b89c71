"""Modules: parameters, buffers, attributes, constants, submodules, containers, methods."""

from typing import Dict, Final, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.oracle.corpus import program, ramp


@program((ramp(2, 3),))
class OneLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x):
        return torch.relu(self.linear(x))


@program((ramp(2),))
class ParametersAndBuffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2) * 3)
        self.register_buffer("offset", torch.ones(2))
        self.register_parameter("bias", None)

    def forward(self, x):
        x = x * self.weight + self.offset
        if self.bias is not None:
            x = x + self.bias
        return x


@program((ramp(2),))
class Attributes(nn.Module):
    names: List[str]
    table: Dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.scale = 2.5
        self.count = 3
        self.flag = True
        self.name = "m"
        self.names = ["a", "b"]
        self.table = {"a": 1}
        self.pair = (1, 2.0)

    def forward(self, x):
        if self.flag and self.name == "m":
            x = x * self.scale + self.count
        return x + self.table["a"] + len(self.names) + self.pair[0]


@program((ramp(2),))
class Constants(nn.Module):
    __constants__ = ["mode"]
    steps: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.mode = "add"
        self.steps = 2

    def forward(self, x):
        for i in range(self.steps):
            if self.mode == "add":
                x = x + 1
            else:
                x = x - 1
        return x


@program((ramp(2, 3),))
class InSequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)


@program((ramp(2, 3),))
class ListOfModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@program((ramp(2, 3),))
class EnumeratedModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        return x + len(self.layers)


@program((ramp(2, 3),))
class IndexedModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 2)])

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


@program((ramp(2, 3),))
class DictOfModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"first": nn.Linear(3, 3), "second": nn.ReLU()})

    def forward(self, x):
        for name, layer in self.layers.items():
            x = layer(x)
        return self.layers["first"](x)


@program((ramp(2),))
class SeveralMethods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = 2

    def helper(self, x, n: int = 3):
        return x * n + self.k

    def other(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return self.helper(x), self.helper(x, n=5)

    def forward(self, x):
        a, b = self.other(x)
        return a - b


@program((ramp(2),))
class Exported(nn.Module):
    def forward(self, x):
        return x + 1

    @torch.jit.export
    def extra(self, x: Tensor, n: int) -> Tensor:
        return x * n


@program((ramp(2),))
class Ignored(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return self.double(x)

    def double(self, x: Tensor) -> Tensor:
        return x * 2

    @torch.jit.unused
    def never(self, x: Tensor) -> Tensor:
        return x.apply_(lambda v: v)


@program((ramp(2, 3),))
class Training(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        if self.training:
            x = x + 1
        return self.drop(self.norm(x))


@program((ramp(1, 2, 6, 6),))
class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.flat = nn.Flatten()

    def forward(self, x):
        return self.flat(self.pool(F.relu(self.conv(x))))


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.inner = nn.Linear(size, size)

    def forward(self, x, residual: Optional[Tensor] = None):
        y = self.inner(x)
        if residual is not None:
            y = y + residual
        return y


@program((ramp(2, 3),))
class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = Block(3)
        self.b = Block(3)

    def forward(self, x):
        y = self.a(x)
        return self.b(y, residual=x)


@program((ramp(2, 3),))
class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x))


@program((ramp(2),))
class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.calls = 0

    def forward(self, x):
        self.total += x
        self.calls += 1
        self.total = self.total * 1
        return self.total * self.calls


@program((torch.tensor([1, 2, 0]),))
class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(4, 3)

    def forward(self, i):
        return self.embedding(i)


@program((ramp(2, 3), None), (ramp(2, 3), (ramp(2, 4), ramp(2, 4))))
class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, Tensor]:
        return self.cell(x, state)


@program((ramp(3, 2, 3),))
class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def forward(self, x):
        out, h = self.rnn(x)
        return out, h


@program((ramp(2, 3),))
class Property(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = 2

    @property
    def doubled(self) -> int:
        return self.k * 2

    def forward(self, x):
        return x * self.doubled


@program((ramp(2),))
class ParameterList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(2) * i) for i in range(3)])

    def forward(self, x):
        for w in self.weights:
            x = x + w
        return x


@program((ramp(2),))
class Inherited(SeveralMethods):
    def helper(self, x, n: int = 3):
        return super().helper(x, n) + 1 if False else x * n


@program((ramp(2, 3),))
class DefaultedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, times: int = 2, scale: Optional[float] = None):
        for _ in range(times):
            x = self.linear(x)
        return x if scale is None else x * scale


@program((ramp(2),))
class EmptySequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.downsample = None
        self.identity = nn.Identity()

    def forward(self, x):
        if self.downsample is not None:
            x = self.downsample(x)
        return self.identity(x)

"""Programs that keep something from call to call."""

from __future__ import annotations

from typing import List, Tuple

import torch
from torch import Tensor, nn

from tests.exporting.probes.registry import NEGATIVE, POSITIVE, probe


@probe("state.buffer_in_place")
class BufferInPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x.sum(0))
        return x + self.total


@probe("state.buffer_assigned")
class BufferAssigned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        before = self.last
        self.last = x * 2
        return before + x


@probe("state.buffer_returned")
class BufferReturned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        before = self.last
        self.last = x * 2
        return before


@probe("state.int_counter")
class IntCounter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


@probe("state.int_decides")
class IntDecides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > 2:
            return x * 10
        return x


@probe("state.flag")
class Flag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.is_first = True
        self.scale = 1.0

    def forward(self, x: Tensor) -> Tensor:
        if self.is_first:
            self.is_first = False
            self.scale = float(x.abs().max())
        return x / self.scale


@probe("state.tensor_attribute")
class TensorAttribute(nn.Module):
    memory: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.memory = torch.ones(4)

    def forward(self, x: Tensor) -> Tensor:
        self.memory = self.memory * 0.5 + x.mean(0)
        return x + self.memory


@probe("state.changed_in_branch")
class ChangedInBranch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("best", torch.zeros(()))
        self.hits = 0

    def forward(self, x: Tensor) -> Tensor:
        if x.max() > self.best:
            self.best = x.max()
            self.hits += 1
        return self.best * self.hits


@probe("state.changed_in_loop")
class ChangedInLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        while x.abs().sum() < 50:
            x = x * 2 + 0.25
            self.steps += 1
        return x + self.steps


@probe("state.list_of_tensors")
class ListOfTensors(nn.Module):
    memory: List[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.memory = [torch.zeros(4), torch.ones(4)]

    def forward(self, x: Tensor) -> Tensor:
        self.memory[0] = self.memory[0] + x.sum(0)
        return x + self.memory[0] * self.memory[1]


@probe("state.batch_norm_training", (POSITIVE,), ((NEGATIVE,),))
class BatchNormTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def eval(self) -> BatchNormTraining:
        return self.train()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


@probe("state.batch_norm_in_branch", (POSITIVE,), ((NEGATIVE,),))
class BatchNormInBranch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def eval(self) -> BatchNormInBranch:
        return self.train()

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        if x.sum() > 0:
            x = self.norm(x)
        mean = self.norm.running_mean
        assert mean is not None
        return x, mean * 1

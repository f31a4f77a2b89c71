"""What ``torchrun`` starts for test_distributed.py: the same training by eager's model and by programs of it, each
process with data of its own. Prints a line for each program."""

from __future__ import annotations

import copy
import os
import sys
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import rekindle
from tests.training.models import WAYS, batches, compiled


class Bag(nn.Module):
    """Has a buffer that processes share, and returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.inner = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.last = nn.Linear(16, 3)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        h = self.norm(torch.tanh(self.inner(self.words(x).mean(1))))
        return F.cross_entropy(self.last(h), target)


def train(model: nn.Module) -> list[float]:
    """Losses. Gradients of two batches are added before processes exchange them."""
    parallel: Any = DistributedDataParallel(model)
    steps = torch.optim.SGD(parallel.parameters(), lr=0.5)
    losses = []
    for index, (x, target) in enumerate(batches(6, seed=distributed.get_rank())):
        if index % 2 == 0:
            with parallel.no_sync():
                loss = parallel(x, target)
                loss.backward()
        else:
            loss = parallel(x, target)
            loss.backward()
            steps.step()
            steps.zero_grad()
        losses.append(loss.item())
    return losses


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(12)
    distributed.init_process_group("gloo")
    start = Bag().double()
    eager = copy.deepcopy(start)
    expected = train(eager)
    for strategy in ("simple", "native"):
        rekindle.set_execution_strategy(strategy)
        for way in WAYS:
            program = compiled(start, way)
            program.load_state_dict(start.state_dict())  # a trace has run the model once
            torch.testing.assert_close(train(program), expected, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(dict(program.state_dict()), dict(eager.state_dict()), rtol=1e-9, atol=1e-9)
            sys.stdout.write(f"process {distributed.get_rank()}: {strategy}, {way}: the same\n")  # in one piece
    sys.stdout.flush()
    distributed.barrier()
    distributed.destroy_process_group()
    os._exit(0)  # threads of gloo may outlive the group, and abort a process that ends in the ordinary way


if __name__ == "__main__":
    main()

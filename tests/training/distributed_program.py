"""What ``torchrun`` starts for test_distributed.py: the same training by eager's model and by programs of it, each
process with data of its own. Prints a line for each program."""

from __future__ import annotations

import copy
import os
import sys
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
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


def train(model: nn.Module, part: float = 1.0) -> list[float]:
    """Losses. Gradients of two batches, multiplied by ``part``, are added before processes exchange them."""
    parallel: Any = DistributedDataParallel(model)
    steps = torch.optim.SGD(parallel.parameters(), lr=0.5)
    losses = []
    for index, (x, target) in enumerate(batches(6, seed=distributed.get_rank())):
        if index % 2 == 0:
            with parallel.no_sync():
                loss = parallel(x, target)
                (loss * part).backward()
        else:
            loss = parallel(x, target)
            (loss * part).backward()
            steps.step()
            steps.zero_grad()
        losses.append(loss.item())
    return losses


def train_by_compiled_steps(program: nn.Module) -> list[float]:
    """Losses of ``train(program, 0.5)``, by steps that average the gradients of two batches."""
    parallel: Any = DistributedDataParallel(program)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.5)
    step = rekindle.compile_step(parallel, None, optimizer, accumulate=2)
    losses = [step(batch).item() for batch in batches(6, seed=distributed.get_rank())]
    assert not step.fallbacks, step.fallbacks
    return losses


def the_rest_of_an_epoch() -> list[tuple[Tensor, Tensor]]:
    """Parameters after an update by the gradients of the first of two calls: those of a compiled step, and of a loop in
    which the processes exchange these gradients."""
    torch.manual_seed(3)
    mine, theirs = DistributedDataParallel(rekindle.script(Bag())), DistributedDataParallel(Bag())
    theirs.load_state_dict(mine.state_dict())
    ((x, target),) = batches(1, seed=distributed.get_rank())
    step = rekindle.compile_step(mine, None, torch.optim.SGD(mine.parameters(), lr=0.5), accumulate=2)
    step((x, target))
    step.update()
    (theirs(x, target) / 2).backward()
    torch.optim.SGD(theirs.parameters(), lr=0.5).step()
    return list(zip(mine.parameters(), theirs.parameters(), strict=True))


def fully_sharded(way: str) -> tuple[list[float], dict[str, Tensor]]:
    """Losses and parameters of a model that FSDP2 shards: eager's, one that is compiled as a whole, and one of compiled
    parts."""
    torch.manual_seed(3)
    parts = [nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6), nn.LayerNorm(6)) for _ in range(2)]
    model: Any = nn.Sequential(*parts)
    if way == "whole":
        model = rekindle.script(model)
    else:
        for index in range(2):
            if way == "parts":
                model[index] = rekindle.script(model[index])
            fully_shard(model[index])
    fully_shard(model)
    steps = torch.optim.Adam(model.parameters(), lr=0.05)
    torch.manual_seed(distributed.get_rank())
    losses = []
    for _ in range(5):
        loss = model(torch.randn(4, 6)).square().mean()
        loss.backward()
        steps.step()
        steps.zero_grad()
        losses.append(loss.item())
    return losses, {name: each.full_tensor() for name, each in model.state_dict().items()}


def refusals() -> list[str]:
    """What is said of modules that can only be run by Python."""
    sharded: Any = nn.Sequential(nn.Linear(2, 2))
    fully_shard(sharded)
    mesh = init_device_mesh("cpu", (2,))
    parallel = parallelize_module(nn.Sequential(nn.Linear(2, 2)), mesh, {"0": ColwiseParallel()})
    found = []
    for module in (sharded, DistributedDataParallel(nn.Linear(2, 2)), parallel):
        try:
            rekindle.script(module)
        except rekindle.RekindleError as error:
            found.append(str(error).splitlines()[0])
    whole: Any = rekindle.script(nn.Sequential(nn.Linear(2, 2)))
    fully_shard(whole[0])
    try:
        whole(torch.ones(1, 2))
    except RuntimeError as error:
        found.append(str(error).splitlines()[1])
    return found


REFUSALS = [
    "the module 'FSDPSequential' is sharded by fully_shard, whose hooks only Python can run",
    "a DistributedDataParallel can only be run by Python",
    (
        "the module 'Linear' has hooks of torch.distributed (parallelize_module, distribute_module), which only Python "
        "can run"
    ),
    "Hint: fully_shard the compiled module as a whole, or compile its parts one by one and shard each",
]


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
    eager, program = copy.deepcopy(start), rekindle.script(copy.deepcopy(start))
    torch.testing.assert_close(train_by_compiled_steps(program), train(eager, 0.5), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(dict(program.state_dict()), dict(eager.state_dict()), rtol=1e-9, atol=1e-9)
    sys.stdout.write(f"process {distributed.get_rank()}: compile_step: the same\n")
    expected_losses, expected_state = fully_sharded("eager")
    for way in ("whole", "parts"):
        found_losses, found_state = fully_sharded(way)
        torch.testing.assert_close(found_losses, expected_losses)
        torch.testing.assert_close(found_state, expected_state)
        sys.stdout.write(f"process {distributed.get_rank()}: fully_shard, {way}: the same\n")
    for found, expected in the_rest_of_an_epoch():
        torch.testing.assert_close(found, expected)
    sys.stdout.write(f"process {distributed.get_rank()}: compile_step, the rest of an epoch: the same\n")
    assert refusals() == REFUSALS, refusals()
    sys.stdout.flush()
    distributed.barrier()
    distributed.destroy_process_group()
    os._exit(0)  # threads of gloo may outlive the group, and abort a process that ends in the ordinary way


if __name__ == "__main__":
    main()

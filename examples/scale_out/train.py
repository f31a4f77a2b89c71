"""Train a compiled model on several processes, and save it as an archive.

    torchrun --standalone --nproc-per-node=2 examples/scale_out/train.py ddp net.pt
    torchrun --standalone --nproc-per-node=2 examples/scale_out/train.py fsdp2 net.pt

The first process prints the loss of each epoch. With GPUs, each process takes one, and they exchange gradients by NCCL;
without, by gloo.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import rekindle

EPOCHS = 8


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.contract = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.contract(torch.nn.functional.gelu(self.expand(self.norm(x))))


def network() -> nn.Sequential:
    torch.manual_seed(0)  # all processes begin with the same parameters
    return nn.Sequential(nn.Linear(8, 32), Block(32), Block(32), nn.Linear(32, 1))


def distributed_model(way: str, device: torch.device) -> Any:
    """Compile first, distribute afterwards: hooks that Python has to run are in no compiled part."""
    net = network().to(device)
    if way == "ddp":
        return DistributedDataParallel(rekindle.script(net))
    for index in range(len(net)):
        net[index] = rekindle.script(net[index])
        fully_shard(net[index])  # each part is gathered before its forward pass, and freed after it
    fully_shard(net)
    return net


def train(model: Any, device: torch.device) -> list[float]:
    """Return the mean loss of each epoch, over all processes."""
    torch.manual_seed(1)
    inputs = torch.randn(256, 8)
    data = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
    sampler: DistributedSampler[Any] = DistributedSampler(data, shuffle=True)  # each process has a share of its own
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        total = torch.zeros(2, device=device)
        for x, target in DataLoader(data, batch_size=16, sampler=sampler):
            loss = nn.functional.mse_loss(model(x.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += torch.stack([loss.detach(), torch.ones_like(loss)])
        distributed.all_reduce(total)
        losses.append((total[0] / total[1]).item())
    return losses


def save(model: Any, way: str, path: str) -> None:
    """Gather the parameters and save an archive, which needs neither torch.distributed nor the classes above."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=options)  # all processes take part, the first gets all of it
    if distributed.get_rank() == 0:
        net = network()
        net.load_state_dict(state)
        rekindle.save(rekindle.script(net.eval()), path)


def main(way: str, path: str) -> None:
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        distributed.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ["LOCAL_WORLD_SIZE"])))
        distributed.init_process_group("gloo")
    model = distributed_model(way, device)
    losses = train(model, device)
    if distributed.get_rank() == 0:
        print(*(f"{loss:.4f}" for loss in losses), flush=True)
    save(model, way, path)
    distributed.barrier()
    distributed.destroy_process_group()
    if device.type == "cpu":
        os._exit(0)  # threads of gloo may outlive the group, and abort a process that ends in the ordinary way


if __name__ == "__main__":
    main(*sys.argv[1:])

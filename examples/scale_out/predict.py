"""Run an archive on a large set of inputs with several processes.

    torchrun --standalone --nproc-per-node=2 examples/scale_out/predict.py net.pt inputs.npy outputs.npy

PyTorch's DataLoader is the engine: its workers read batches ahead, each process runs the program on its share of them,
and writes the rows of its results to the one file. The last batch is padded, so that all batches have one size, for
which the program is compiled once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.utils.data import DataLoader, Dataset

import rekindle

BATCH = 64


class Rows(Dataset[Tensor]):
    """The rows of a file, which is mapped into memory: only what is read is loaded."""

    def __init__(self, path: str) -> None:
        self.rows = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(np.array(self.rows[index]))


def batches(rows: int, rank: int, processes: int) -> Iterator[list[int]]:
    """Yield the numbers of the rows of each batch of a process."""
    for start in range(rank * BATCH, rows, processes * BATCH):
        yield list(range(start, min(start + BATCH, rows)))


def predict(archive: str, source: str, target: str) -> None:
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    data = Rows(source)
    own = list(batches(len(data), rank, processes))
    program = rekindle.load(archive).eval()
    if rank == 0:
        with torch.inference_mode():
            shape = tuple(program(data[0][None]).shape[1:])
        np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=(len(data), *shape)).flush()
    distributed.barrier()
    results = np.lib.format.open_memmap(target, mode="r+")
    loader = DataLoader(data, batch_sampler=own, num_workers=2, multiprocessing_context="spawn")
    with torch.inference_mode():
        for numbers, batch in zip(own, loader, strict=True):
            padding = [0, 0] * (batch.dim() - 1) + [0, BATCH - len(batch)]
            results[numbers] = program(nn.functional.pad(batch, padding))[: len(batch)].numpy()
    results.flush()
    distributed.barrier()


if __name__ == "__main__":
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ["LOCAL_WORLD_SIZE"])))
    distributed.init_process_group("gloo")  # the processes only wait for each other
    predict(*sys.argv[1:])
    distributed.destroy_process_group()
    os._exit(0)  # threads of gloo may outlive the group, and abort a process that ends in the ordinary way

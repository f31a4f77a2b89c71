"""Devices on which calls are captured."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from rekindle.runtime.cuda_graphs.arguments import NotCapturable


class GraphDevice(Protocol):
    """Interface to a kind of device for captures. Tests implement it without a GPU."""

    def owns(self, tensor: Tensor) -> bool:
        """Return whether ``tensor`` is on a device of this kind."""

    def is_capturing(self) -> bool:
        """Return whether the caller captures a graph already."""

    def stream(self, device: torch.device) -> Hashable:
        """Return a key of the current stream of ``device``."""

    def prepared(self, device: torch.device) -> AbstractContextManager[object]:
        """Make ``device`` the current one within a ``with`` block, and restore its random number generator at the
        end."""

    def now(self) -> float:
        """Return the host time in seconds."""

    def synchronize(self) -> None:
        """Wait for the current device."""

    def capture(self, run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
        """Capture the work of ``run``, which may be called once before, on the current device. Return a function that
        replays it, and what ``run`` returned."""


class CudaGraphDevice:
    """NVIDIA GPUs of PyTorch. One capture may be in progress in a process."""

    _capturing: ClassVar = threading.Lock()

    def owns(self, tensor: Tensor) -> bool:
        return tensor.is_cuda

    def is_capturing(self) -> bool:
        return torch.cuda.is_current_stream_capturing()

    def stream(self, device: torch.device) -> Hashable:
        return torch._C._cuda_getCurrentRawStream(device.index)

    @contextlib.contextmanager
    def prepared(self, device: torch.device) -> Iterator[None]:
        with torch.cuda.device(device), torch.random.fork_rng([device.index]):
            yield

    def now(self) -> float:
        return time.perf_counter()

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def capture(self, run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
        with self._capturing:
            return self._capture(run)

    @staticmethod
    def _capture(run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
        stream, before = torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(before)
        with torch.cuda.stream(stream):
            run()  # what libraries set up for a new stream is not part of the graph
        before.wait_stream(stream)
        graph, pool, caches = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle(), torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)  # converted weights that are cached are freed with the cache
        try:
            numbers = torch.get_rng_state()
            with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                found = run()
        except RuntimeError:
            torch.cuda.set_stream(before)
            _recover_from_failed_capture(graph, pool)
            raise
        finally:
            torch.set_autocast_cache_enabled(caches)
        if not torch.equal(numbers, torch.get_rng_state()):
            raise NotCapturable("it draws random numbers on the CPU")
        return graph.replay, found


def _recover_from_failed_capture(graph: torch.cuda.CUDAGraph, pool: Any) -> None:
    """Restore the state of PyTorch after a failed capture: the memory pool of the capture stays open if CUDA did not
    end the capture, and the generator of random numbers counts for a graph until the next capture ends."""
    device = torch.cuda.current_device()
    try:
        graph.pool()
    except RuntimeError:  # the capture has not ended; else the graph releases its pool itself
        for close in (torch._C._cuda_endAllocateToPool, torch._C._cuda_releasePool):
            with contextlib.suppress(RuntimeError):
                close(device, pool)
    scratch, graph = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        scratch.add_(1.0)

"""A stand-in for ``torch.cuda`` on machines without a GPU: it records what programs call, and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import torch

STREAM, EVENT = torch.cuda.Stream, torch.cuda.Event


class FakeCuda:
    """Two devices, each with a current stream. ``calls`` has what was called, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.device = 0
        self.made = 0
        self.streams = {index: FakeStream(self, index, 0) for index in range(2)}

    def index(self, device: Any) -> int:
        if isinstance(device, str):
            device = torch.device(device)
        index = device.index if isinstance(device, torch.device) else device
        return self.device if index is None else int(index)

    def current_stream(self, device: Any = None) -> FakeStream:
        return self.streams[self.index(device)]

    def default_stream(self, device: Any = None) -> FakeStream:
        return FakeStream(self, self.index(device), 0)

    def current_device(self) -> int:
        return self.device

    def device_count(self) -> int:
        return 2

    def set_device(self, index: Any) -> None:
        self.device = self.index(index)
        self.calls.append(f"set_device {self.device}")

    def _exchange_device(self, index: int) -> int:
        before = self.device
        if index < 0:
            return -1
        self.device = index
        self.calls.append(f"device {index}")
        return before

    _maybe_exchange_device = _exchange_device

    def set_stream(self, stream: FakeStream) -> None:
        self.device = stream.device.index
        self.streams[self.device] = stream
        self.calls.append(f"set_stream {stream}")

    def synchronize(self, device: Any = None) -> None:
        self.calls.append(f"synchronize {self.index(device)}")

    def Stream(self, device: Any = None, priority: int = 0) -> FakeStream:
        self.made += 1
        return FakeStream(self, self.index(device), self.made, priority)

    def Event(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> FakeEvent:
        self.calls.append(f"event {enable_timing} {blocking} {interprocess}")
        return FakeEvent(self)


class FakeStream(STREAM):
    def __new__(cls, *arguments: Any) -> FakeStream:
        return object.__new__(cls)

    def __init__(self, cuda: FakeCuda, index: int, number: int, priority: int = 0) -> None:
        self.cuda = cuda
        self.device = torch.device("cuda", index)
        self.device_index, self.stream_id, self.priority = index, number, priority

    def __str__(self) -> str:
        return f"{self.device_index}.{self.stream_id}"

    def note(self, text: str) -> None:
        self.cuda.calls.append(f"{text} {self}")

    def query(self) -> bool:
        return self.stream_id == 0

    def synchronize(self) -> None:
        self.note("synchronize")

    def wait_stream(self, stream: FakeStream) -> None:
        self.note(f"wait_stream {stream}")

    def wait_event(self, event: FakeEvent) -> None:
        self.note("wait_event")

    def record_event(self, event: FakeEvent | None = None) -> FakeEvent:
        event = event or self.cuda.Event()
        event.record(self)
        return event


class FakeEvent(EVENT):
    def __new__(cls, *arguments: Any) -> FakeEvent:
        return object.__new__(cls)

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def record(self, stream: FakeStream | None = None) -> None:
        (stream or self.cuda.current_stream()).note("record")

    def wait(self, stream: FakeStream | None = None) -> None:
        (stream or self.cuda.current_stream()).note("wait")

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        self.cuda.calls.append("synchronize event")

    def elapsed_time(self, end_event: FakeEvent) -> float:
        return 1.5


_NAMES = (
    *("current_stream", "default_stream", "current_device", "device_count", "set_device", "_exchange_device"),
    *("_maybe_exchange_device", "set_stream", "synchronize", "Stream", "Event"),
)


@contextmanager
def fake_cuda() -> Iterator[FakeCuda]:
    """Replace what ``torch.cuda`` calls while a program runs. Programs are compiled before.

    PyTorch for CUDA has streams in C++, of which a stand-in cannot be one; tests/codegen/cuda/test_programs.py has real
    ones.
    """
    if torch.version.cuda is not None:
        pytest.skip("the stand-in for torch.cuda is for builds without CUDA")
    found = FakeCuda()
    replaced = {name: getattr(found, name) for name in _NAMES}
    replaced["is_available"] = lambda: True
    replaced["_get_device_index"] = lambda device, optional=False: found.index(device)
    with patch.multiple(torch.cuda, **replaced):
        yield found

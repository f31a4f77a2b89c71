"""Selection among implementations of an operator by timing them, once for each machine.

The first call with arguments of a kind times the candidates, unless an earlier process has: choices are stored on disk.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.launched_operation import NativeCall
from rekindle.codegen.llvm.engine import disk_cache, generator_state
from rekindle.codegen.llvm.target import host_target

_REVISION: Final = 5
"""Part of the key of choices on disk: increment it when the code of a candidate changes and its name does not."""
_ROUNDS: Final = 3
"""Number of measurement rounds of the candidates."""
_MEASURED_SECONDS: Final = 1e-4
"""The least time that a candidate is measured for in a round."""
_FIRST_CALLS: Final = 2
"""Minimum number of calls of a candidate in the first round: one of them may have the page faults of a large result,
and the candidate is not measured again if it takes long."""
_HOPELESS: Final = 2.0
"""A candidate that takes this multiple of the minimum time is not measured again."""
_WORTH_IT: Final = 0.9
"""A later candidate replaces an earlier one if it takes less than this fraction of its time: earlier ones need no
Python when they are launched, and times vary."""

_LARGE_BLOCK: Final = 31 << 20
"""Bytes of the block whose release has the C library keep smaller ones."""

Candidate = Callable[..., "Tensor | None"]
"""Function that returns the result for the arguments; None if it does not support them."""


@dataclass(frozen=True, slots=True, eq=False)
class NativeCandidate:
    """A candidate that native code can call without Python, and that is timed in this way. ``native_call`` returns the
    call data for arguments that ``run`` has accepted; None if only Python can make the call."""

    run: Candidate
    native_call: Callable[..., NativeCall | None]

    def __call__(self, *arguments: Any) -> Tensor | None:
        """Run the candidate; return None if it does not support the arguments."""
        return self.run(*arguments)


@dataclass(slots=True)
class Selection:
    """Selects the fastest of several implementations by timing them. ``candidates`` have names; the last one supports
    all arguments, and defines the errors. ``identity`` describes the operator: the choice is shared on disk among equal
    ones, and not stored if it is empty. ``written`` is the index of an argument that candidates may write to."""

    candidates: Mapping[str, Candidate]
    identity: str = ""
    written: int | None = None
    chosen: dict[Hashable, Candidate] = field(default_factory=dict)
    """By the kind of arguments."""

    def run(self, kind: Hashable, *arguments: Any) -> Tensor:
        """Return the result of the candidate that is fastest for arguments of this kind; that of the last candidate if
        the fastest does not support these arguments or raises RuntimeError."""
        candidate = self.chosen.get(kind)
        if candidate is None:
            candidate = self.chosen[kind] = self._choose(kind, arguments)
        result = _result_or_none(candidate, arguments)
        if result is None:
            result = self._last(*arguments)
        assert result is not None
        return result

    def native_call(self, kind: Hashable, *arguments: Any) -> NativeCall | None:
        """Return the call data of the candidate that was chosen for arguments of this kind; None if none was chosen, or
        only Python can call it."""
        candidate = self.chosen.get(kind)
        return candidate.native_call(*arguments) if isinstance(candidate, NativeCandidate) else None

    @property
    def _last(self) -> Candidate:
        return list(self.candidates.values())[-1]

    def _choose(self, kind: Hashable, arguments: tuple[Any, ...]) -> Candidate:
        disk = disk_cache() if self.identity else None
        if disk is None:
            return self.candidates[self.fastest(arguments)]
        key = self._key(kind)
        known = (disk.load(key) or b"").decode(errors="replace")
        if known not in self.candidates:
            known = self.fastest(arguments)
            disk.store(key, known.encode())
        return self.candidates[known]

    def _key(self, kind: Hashable) -> bytes:
        return machine_key("choice", self.identity, str(kind), " ".join(self.candidates))

    def fastest(self, arguments: tuple[Any, ...]) -> str:
        """Time the candidates that support the arguments; return the name of the fastest, with a preference for earlier
        ones (:data:`_WORTH_IT`)."""
        if self.written is not None and isinstance(arguments[self.written], Tensor):
            copy = arguments[self.written].clone()
            arguments = (*arguments[: self.written], copy, *arguments[self.written + 1 :])
        _settle_allocator()  # before the calls that are not timed: they have the page faults of a larger heap
        times = {
            name: float("inf")
            for name, candidate in self.candidates.items()
            if _result_or_none(candidate, arguments) is not None
        }
        if len(times) > 1:
            for number in range(_ROUNDS):
                least = min(times.values())
                for name, taken in times.items():
                    if taken <= least * _HOPELESS:
                        times[name] = min(
                            taken, _seconds(_call(self.candidates[name], arguments), _FIRST_CALLS if number == 0 else 1)
                        )
        best = next(iter(times), "") or list(self.candidates)[-1]
        for name, taken in times.items():
            if taken < times[best] * _WORTH_IT:
                best = name
        return best


def machine_key(*parts: str) -> bytes:
    """Return the key on disk of a measurement. It depends on the processor, the number of threads, PyTorch, the code
    generator, and ``parts``."""
    target = host_target()
    machine = f"{target.cpu} {target.features} {torch.get_num_threads()}"
    return "\n".join(["measured", str(_REVISION), generator_state(), machine, torch.__version__, *parts]).encode()


def _result_or_none(candidate: Candidate, arguments: tuple[Any, ...]) -> Tensor | None:
    """Return the result of a candidate; None if it does not support the arguments, or raises RuntimeError. The last
    candidate then reports the error."""
    try:
        return candidate(*arguments)
    except RuntimeError:
        return None


@cache
def _settle_allocator() -> None:
    """Make the C library reuse freed memory for results.

    It returns blocks above a threshold to the system, and raises the threshold to the size of the largest block that
    was freed, up to 32 MiB. Until then, a candidate is measured with the page faults of its result, which may take
    longer than its computation, and which later calls in a network do not have.
    """
    torch.empty(_LARGE_BLOCK, dtype=torch.uint8, device="cpu")


def _call(candidate: Candidate, arguments: tuple[Any, ...]) -> Callable[[], object]:
    """Return the function that is timed for a candidate, which has accepted these arguments: a launch without the
    candidate's Python code if later calls are launched so, since that code may take longer than a small kernel."""
    found = candidate.native_call(*arguments) if isinstance(candidate, NativeCandidate) else None
    if found is None:
        return partial(candidate, *arguments)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(found.kernel)
    parameters = (ctypes.c_int64 * len(found.parameters))(*found.parameters)
    tensors = [each.data_ptr() for each in arguments if isinstance(each, Tensor)]

    def launch() -> Tensor:
        dtype, sizes, strides = found.output  # the closure keeps the code and the weights alive
        output = torch.empty_strided(sizes, strides, dtype=dtype, device="cpu")
        pointers = (ctypes.c_void_p * (len(tensors) + 1))(*tensors, output.data_ptr())
        kernel(ctypes.addressof(pointers), ctypes.addressof(parameters), None)
        return output

    return launch


def _seconds(call: Callable[[], object], calls: int = 1) -> float:
    """Return the time of the fastest of several calls, at least ``calls``, in seconds."""
    # CPU time excludes other processes, but covers the calling thread only.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    least, total = float("inf"), 0.0
    while total < _MEASURED_SECONDS or calls > 0:
        started = clock()
        call()
        taken = clock() - started
        least, total, calls = min(least, taken), total + taken, calls - 1
    return least

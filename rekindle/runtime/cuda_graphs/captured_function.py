"""Functions whose calls are captured and replayed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.runtime.cuda_graphs.arguments import NotCapturable, described, is_intercepted, modes, with_tensors
from rekindle.runtime.cuda_graphs.attributes import Attributes, State, state_of, tensors_in
from rekindle.runtime.cuda_graphs.capturable import refusal_of
from rekindle.runtime.cuda_graphs.devices import CudaGraphDevice, GraphDevice
from rekindle.runtime.executed import groups_in
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.version import Version

WARM_UP: Final = 3
"""Number of calls of a kind that run without a graph, in which kernels are compiled."""
MAX_CAPTURES: Final = 16
"""Maximum number of captures of a version: each holds the memory of a call."""
_MAX_KINDS: Final = 256
"""Maximum number of kinds of calls that a version counts."""
_MAX_CHANGES: Final = 4
"""Number of captures that a version discards because attributes changed, before it stops capturing."""
_TIMED_RUNS: Final = 5
"""Number of calls that are timed, and of replays."""


def captured_function(version: Version) -> CapturedFunction:
    """Return what calls a version, or replays its calls."""
    found = version.captured
    if not isinstance(found, CapturedFunction):
        found = version.captured = CapturedFunction(version)
    return found


@dataclass(slots=True)
class _Capture:
    """A captured call: ``inputs`` and ``results`` are its own tensors, ``value`` is what it returned, ``held`` are the
    tensors of attributes, whose ``state`` was this."""

    inputs: list[Tensor]
    results: list[Tensor]
    value: Any
    replay: Callable[[], object]
    held: list[Tensor]
    state: State
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, given: list[Tensor]) -> Any:
        """Return the results for ``given``."""
        with self.lock:
            if len(given) == 1:
                self.inputs[0].copy_(given[0])
            else:
                torch._foreach_copy_(self.inputs, given)
            self.replay()
            return with_tensors(self.value, iter([result.clone() for result in self.results]))


class CapturedFunction:
    """Calls the function of ``version``, and replays it where that is possible.

    ``captures`` and ``replays`` are their numbers. ``reason`` is why a call was not captured, where there were enough
    calls of its kind.
    """

    def __init__(self, version: Version, device: GraphDevice | None = None) -> None:
        self.function = version.function
        self.replays = 0
        self.reason: str | None = None
        self._code = version.code
        self._for_completed = version.for_completed
        self._device: GraphDevice = CudaGraphDevice() if device is None else device
        self._known: dict[Hashable, int | _Capture | None] = {}
        """By kind of call: how many there were; then the capture, or None if there can be none."""
        self._attributes: Attributes | None = None
        self._is_refused: bool | None = None
        self._changes = 0
        self._lock = threading.Lock()

    @property
    def captures(self) -> int:
        return sum(isinstance(each, _Capture) for each in self._known.values())

    def __call__(self, *arguments: Any) -> Any:
        if self._is_refused or torch.is_grad_enabled() or is_intercepted():
            return self.function(*arguments)
        tensors: list[Tensor] = []
        try:
            key = tuple(described(each, tensors) for each in arguments)
        except NotCapturable as error:
            self.reason = str(error)
            return self.function(*arguments)
        if not tensors or not all(map(self._device.owns, tensors)) or self._device.is_capturing():
            return self.function(*arguments)
        device = tensors[0].device
        if any(each.device != device for each in tensors):
            return self.function(*arguments)
        key = (*key, modes(), device, self._device.stream(device))
        known = self._known.get(key, 0)
        if isinstance(known, _Capture):
            if self._attributes is not None and self._attributes.have_not_changed(arguments, known.state):
                self.replays += 1
                return known.run(tensors)
            self._changes += 1
            known = 0 if self._changes < _MAX_CHANGES else None
            self._known[key] = known
            self.reason = "attributes have changed since calls were captured"
        if known is None:
            return self.function(*arguments)
        if known < WARM_UP:
            self._count(key, known)
            return self.function(*arguments)
        with self._lock:
            known = self._known.get(key)
            if known == WARM_UP:  # and no other thread has captured it
                known = self._captured(key, device, arguments, tensors)
        return known.run(tensors) if isinstance(known, _Capture) else self.function(*arguments)

    def _count(self, key: Hashable, known: int) -> None:
        """Count a call that runs without a graph, and have its kernels compiled."""
        _compile_eagerly(self._code)
        if len(self._known) >= _MAX_KINDS:
            self._known = {each: found for each, found in self._known.items() if isinstance(found, _Capture)}
        self._known[key] = known + 1

    def _captured(
        self, key: Hashable, device: torch.device, arguments: Sequence[Any], tensors: list[Tensor]
    ) -> _Capture | None:
        """Capture a call; return None where that cannot be done."""
        self._known[key] = None  # whatever happens, it is tried once
        try:
            self._known[key] = made = self._capture(device, arguments, tensors)
        except NotCapturable as error:
            self.reason = str(error)
            return None
        return made

    def _capture(self, device: torch.device, arguments: Sequence[Any], tensors: list[Tensor]) -> _Capture:
        if self._is_refused is None:
            reason = refusal_of(self._code.graph)
            self._is_refused = reason is not None
            if reason is not None:
                raise NotCapturable(reason)
            self._attributes = Attributes(self._code.graph)
        assert self._attributes is not None
        if self.captures >= MAX_CAPTURES:
            raise NotCapturable(f"there are {MAX_CAPTURES} captures already")
        attributes = self._attributes.of(arguments)
        state, held = state_of(attributes), list(tensors_in(attributes))
        if any(each.device != device for each in held):
            raise NotCapturable("an attribute is on another device")
        if not all(map(_is_dense, tensors)):
            raise NotCapturable("elements of an argument share memory, or have gaps between them")
        with self._device.prepared(device):
            inputs = [each.clone().requires_grad_(each.requires_grad) for each in tensors]
            remaining = iter(inputs)
            own = [with_tensors(each, remaining) for each in arguments]
            function = self._function_of_capture(own)
            try:
                replay, value = self._device.capture(lambda: function(*own))
            except RuntimeError as error:
                raise NotCapturable(f"CUDA refuses: {str(error).splitlines()[0]}") from None
            results: list[Tensor] = []
            described(value, results)
            _check_results(results, [*inputs, *held], device)
            made = _Capture(inputs, results, value, replay, held, state)
            if self._seconds(lambda: made.run(tensors)) > self._seconds(lambda: self.function(*own)):
                raise NotCapturable("a replay takes the host longer than a call")
        return made

    def _seconds(self, run: Callable[[], Any]) -> float:
        """Return the time that ``run`` takes the host: the shortest of some."""
        times = []
        for _ in range(_TIMED_RUNS):
            began = self._device.now()
            run()
            times.append(self._device.now() - began)
        return min(times)

    def _function_of_capture(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        """Return the function that is captured for calls like this one, which have completed. Its kernels are
        compiled."""
        best = self._for_completed(arguments)
        if best is None:
            return self.function
        for _ in range(WARM_UP):
            _compile_eagerly(best.code)
            best.function(*arguments)
        return best.function


def _compile_eagerly(code: Code) -> None:
    """Mark the kernels of ``code`` for compilation in its next call."""
    for group in groups_in(code):
        group.compile_eagerly()


def _is_dense(tensor: Tensor) -> bool:
    """Return whether a copy has the same strides."""
    return torch.empty_like(tensor, device="meta").stride() == tensor.stride()


def _check_results(results: Sequence[Tensor], others: Sequence[Tensor], device: torch.device) -> None:
    """Check that copies may be returned in place of ``results``.

    Raises:
        NotCapturable: copies would be other tensors than a plain call returns.
    """
    seen = {each.untyped_storage().data_ptr() for each in others}
    for each in results:
        if each.device != device:
            raise NotCapturable("a result is on another device")
        storage = each.untyped_storage().data_ptr()
        if storage in seen and each.numel():
            raise NotCapturable("a result shares memory with an argument, an attribute or another result")
        if not _is_dense(each):
            raise NotCapturable("elements of a result share memory, or have gaps between them")
        seen.add(storage)

"""Interception of a run: PyTorch's function mode, calls that it does not intercept, and functions that are replaced
during the run."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from rekindle.program import torch_jit
from rekindle.scripting.python_values import REPLACED
from rekindle.tracing.recording.active import active_recorder, recording
from rekindle.tracing.recording.autocasting import no_cache
from rekindle.tracing.recording.operators import perform, record_unseen
from rekindle.tracing.recording.patches import knows_of_traces, replacements
from rekindle.tracing.recording.recorder import Recorder


class _TracingFunctionMode(TorchFunctionMode):
    """A mode that passes every call of PyTorch's C++ functions to the recorder of this thread."""

    def __torch_function__(
        self, func: Any, types_: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        recorder = active_recorder()
        keywords = kwargs or {}
        if recorder is None or recorder.within_calls:
            return func(*args, **keywords)
        if isinstance(func, types.FunctionType):
            method = _underlying_method(func)
            if method is None:
                # A library's own function that asked on its own whether a mode is on. What it calls is recorded.
                with self:
                    return func(*args, **keywords)
            func = method
        return perform(recorder, func, args, keywords)


def _underlying_method(function: types.FunctionType) -> Any:
    """Return the C++ method that the Python method ``function`` of tensors extends; None for other functions. C++
    reports such methods to modes by name, and modes receive the Python function of that name."""
    name = function.__name__
    return vars(torch._C.TensorBase).get(name) if vars(torch.Tensor).get(name) is function else None


class _TracingDispatchMode(TorchDispatchMode):
    """Intercepts the operators that reach PyTorch's dispatcher outside of a recorded composite call: those called from
    C++, and those of methods that do not support a function mode."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # which would import all of torch.compile

    def __torch_dispatch__(
        self, func: Any, types_: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        recorder = active_recorder()
        keywords = kwargs or {}
        if recorder is None or recorder.within_calls:
            result = func(*args, **keywords)
            if recorder is not None and recorder.casts is not None:
                recorder.casts.note(func, args, result)
            return result
        return record_unseen(recorder, func, args, keywords)


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """Record the tensor operations of this thread with ``recorder`` within the ``with`` block. Functions that no mode
    intercepts are replaced in all threads, and are restored when no thread records."""
    with _patches.applied(), recording(recorder), no_cache(), _TracingDispatchMode(), _TracingFunctionMode():  # type: ignore[no-untyped-call]
        yield


class _Patches:
    """The replaced functions, while any thread records. Each replacement first checks whether its own thread records,
    so that other threads are unaffected."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._undo: list[tuple[Any, str, Any]] = []

    @contextmanager
    def applied(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._take_back()

    def _apply(self) -> None:
        for owner, name, wrapper in replacements():
            self._wrap(owner, name, wrapper)
        if torch_jit.functions("is_tracing"):
            self._wrap(torch_jit.module(), "is_tracing", knows_of_traces)

    def _wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        original = vars(owner).get(name)
        self._undo.append((owner, name, original))
        replaced = getattr(owner, name, None) if original is None else original
        replacement = wrapper(replaced)
        if isinstance(replacement, types.FunctionType):
            setattr(replacement, REPLACED, replaced)
        setattr(owner, name, replacement)

    def _take_back(self) -> None:
        while self._undo:
            owner, name, original = self._undo.pop()
            if original is None:
                delattr(owner, name)  # it was inherited
            else:
                setattr(owner, name, original)


_patches: Final = _Patches()

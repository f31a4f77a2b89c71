"""Forked tasks: executions that run on the threads of the pool, in as many parts as they have waits."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

import torch

from rekindle.runtime.calls.tracebacks import foreign_frames
from rekindle.runtime.interpreter.futures import Future, task_pool


class Resumable(Protocol):
    """Interface of executions that can be suspended: :class:`rekindle.runtime.interpreter.state.InterpreterState` is
    one."""

    @property
    def awaited(self) -> Any:
        """The unfinished future that the execution waits for; None while it can run, and when it is finished."""

    def resume(self) -> Any:
        """Continue until it is finished or waits for an unfinished future. Return the result if it is finished, else
        None: a result may be None too, so test :attr:`awaited`. An error of the program is raised here."""

    def traceback(self, tail: TracebackType | None = None) -> TracebackType | None:
        """Return the traceback of the error that ended it; None if it has no entry."""


_AUTOCAST: Final = ("cpu", "cuda")
"""The devices whose autocast state is carried over to tasks."""


class ThreadMode(NamedTuple):
    """Thread-local modes of PyTorch that a task inherits: inference mode, the recording of gradients, and for each
    device whether operators are cast, and to which dtype; None if they are cast on no device."""

    inference: bool
    grad: bool
    autocast: tuple[tuple[bool, torch.dtype], ...] | None

    @classmethod
    def current(cls) -> ThreadMode:
        inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        if not torch._C._is_any_autocast_enabled():
            return _WITHOUT_AUTOCAST[inference][grad]
        autocast = tuple((torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _AUTOCAST)
        return cls(inference, grad, autocast)

    def apply(self) -> None:
        """Set all but inference mode, which only a context can set."""
        torch.set_grad_enabled(self.grad)
        if self.autocast is None:
            for device in _AUTOCAST:
                torch.set_autocast_enabled(device, False)
            return
        for device, (enabled, dtype) in zip(_AUTOCAST, self.autocast, strict=True):
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)


_WITHOUT_AUTOCAST: Final = tuple(
    tuple(ThreadMode(inference, grad, None) for grad in (False, True)) for inference in (False, True)
)
"""The modes of almost every thread, created once: every task reads its own three times."""


class _Task:
    __slots__ = ("execution", "future", "mode")

    def __init__(self, execution: Resumable) -> None:
        self.execution = execution
        self.future: Future[Any] = Future()
        self.mode = ThreadMode.current()

    def __call__(self) -> None:
        """Run on this thread until the task finishes or waits, under the modes in effect when it was suspended."""
        before = ThreadMode.current()
        value: Any = None
        error: BaseException | None = None
        try:
            if self.mode == before:
                value = self._resume()
            else:
                with torch.inference_mode(self.mode.inference):
                    self.mode.apply()
                    value = self._resume()
        except BaseException as caught:
            error = caught.with_traceback(self.execution.traceback(foreign_frames(caught.__traceback__)))
        if ThreadMode.current() != before:
            before.apply()
        awaited = self.execution.awaited
        try:
            if error is not None:
                self.future.set_exception(error)
            elif awaited is None:
                self.future.set_result(value)
            else:
                awaited.add_done_callback(self._go_on)
        finally:
            del error  # its traceback holds this frame, which must not hold it in turn

    def _resume(self) -> Any:
        value = self.execution.resume()
        if self.execution.awaited is not None:
            self.mode = ThreadMode.current()
        return value

    def _go_on(self, _: object) -> None:
        task_pool().submit(self)


class _Call:
    """A call of a Python function as an execution: it never waits for a future."""

    __slots__ = ("resume",)

    awaited: Any = None

    def __init__(self, function: Callable[[], Any]) -> None:
        self.resume = function

    def traceback(self, tail: TracebackType | None = None) -> TracebackType | None:
        return tail


def launch(execution: Resumable) -> Future[Any]:
    """Start an execution in the pool, under the modes of this thread; return its future.

    Modes that are Python objects belong to this thread: under these it runs here until it waits.
    """
    task = _Task(execution)
    if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
        task()
    else:
        task_pool().submit(task)
    return task.future


def launch_call(function: Callable[[], Any]) -> Future[Any]:
    """Start a call of a Python function in the pool, as :func:`launch` does; return its future."""
    return launch(_Call(function))

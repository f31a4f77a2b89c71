"""``fork``, ``awaitable`` and their waits as Python calls them. In a program they are instructions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch

from rekindle.ops.python.asynchrony import Await, Call
from rekindle.program.function import Function, Method
from rekindle.runtime.interpreter.futures import Future
from rekindle.runtime.interpreter.tasks import launch_call

T = TypeVar("T")


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """The future of ``func(*args, **kwargs)``, which runs on another thread; in a program as in Python.

    In a program, ``func`` is a function, a method, a module or an operator. In Python it is anything that can be
    called. A task that waits gives its thread back, if it is a compiled function or method; Python's functions stand
    still, and another thread stands in for theirs.

    Gradient mode, inference mode and autocasting go along. Where a ``TorchFunctionMode`` or a ``TorchDispatchMode``
    is active, which belongs to one thread, the call is made at once. An error of the call is raised where its result
    is waited for.

    Raises:
        ArgumentError: ``func`` is compiled, and the arguments do not fit its schema.
        TypeError: ``func`` cannot be called.
    """
    if isinstance(func, (Function, Method)):
        return func.launch(*args, **kwargs)
    if not callable(func):
        raise TypeError(f"fork takes something to call and its arguments, not a value of class '{type(func).__name__}'")
    return launch_call(lambda: func(*args, **kwargs))


def wait(future: Future[T] | torch.futures.Future[T]) -> T:
    """The value of ``future``, once it is there.

    Raises:
        Exception: whatever the task raised; the traceback shows the places in it and the one that waits.
        TypeError: it is no future.
    """
    if not isinstance(future, (Future, torch.futures.Future)):
        raise TypeError(f"wait takes a future, which fork gives, not a value of class '{type(future).__name__}'")
    return future.wait()


def awaitable(func: Callable[..., T], *args: Any, **kwargs: Any) -> Await[T]:
    """The result of ``func(*args, **kwargs)``, which whoever waits first computes; in a program as in Python.

    In a program, ``func`` is a function, a method, a module or an operator. In Python it is anything that can be
    called. The call sees its arguments as they are when it is made, and the modes of PyTorch that are set then. One
    that raises is made anew at the next wait. A result that nobody waits for is not computed.
    """
    return Await(Call(partial(func, **kwargs) if kwargs else func, args))


def awaitable_wait(awaitable: Await[T]) -> T:
    """The result of ``awaitable``, computed now if it has not been.

    Raises:
        Exception: whatever the call raises.
    """
    return awaitable.wait()


def awaitable_nowait(value: T) -> Await[T]:
    """An Await whose result is ``value``."""
    return Await.of(value)

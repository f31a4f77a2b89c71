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
    """Start ``func(*args, **kwargs)`` on another thread, and return the future of its result.

    Python code and compiled programs can both call it. In a program, ``func`` is a function, a method, a module or an
    operator. A compiled task that waits releases its thread. A Python task that waits blocks its thread, and another
    thread is started. Gradient mode, inference mode and autocasting are those of the caller. A ``TorchFunctionMode`` or
    ``TorchDispatchMode`` belongs to one thread: if one is active, ``func`` runs on the thread of the caller, and
    ``fork`` returns when it ends or waits.

    Args:
        func: what to call.

    Returns:
        A future. An error of the call is raised by :func:`wait`.

    Raises:
        ArgumentError: ``func`` is a compiled function or method, and the arguments do not fit its schema.
        TypeError: ``func`` cannot be called.

    Example:
        >>> futures = [rekindle.fork(torch.full, (2,), float(i)) for i in range(3)]
        >>> sum(rekindle.wait(each) for each in futures)
        tensor([3., 3.])
    """
    if isinstance(func, (Function, Method)):
        return func.launch(*args, **kwargs)
    if not callable(func):
        raise TypeError(f"fork takes something to call and its arguments, not a value of class '{type(func).__name__}'")
    return launch_call(lambda: func(*args, **kwargs))


def wait(future: Future[T] | torch.futures.Future[T]) -> T:
    """Return the value of ``future``, after it is computed.

    Args:
        future: what :func:`fork` or ``torch.jit.fork`` returned.

    Raises:
        Exception: whatever the task raised. The traceback shows its lines and the line that waits.
        TypeError: ``future`` is not a future.

    Example:
        >>> @rekindle.script
        ... def both(x):
        ...     future = rekindle.fork(torch.neg, x)
        ...     return rekindle.wait(future) + x.exp()
        >>> both(torch.zeros(2))
        tensor([1., 1.])
    """
    if not isinstance(future, (Future, torch.futures.Future)):
        raise TypeError(f"wait takes a future, which fork gives, not a value of class '{type(future).__name__}'")
    return future.wait()


def awaitable(func: Callable[..., T], *args: Any, **kwargs: Any) -> Await[T]:
    """Return the result of ``func(*args, **kwargs)`` as an :class:`Await`: it is computed when it is first waited for.

    Python code and compiled programs can both call it. In a program, ``func`` is a function, a method, a module or an
    operator. The arguments and PyTorch's modes are those of the moment when the Await is created. A call that raises is
    repeated at the next wait. A result that is not waited for is not computed.

    Args:
        func: what to call.

    Example:
        >>> result = rekindle.awaitable(torch.add, torch.ones(2), 1)
        >>> rekindle.awaitable_wait(result)
        tensor([2., 2.])
    """
    return Await(Call(partial(func, **kwargs) if kwargs else func, args))


def awaitable_wait(awaitable: Await[T]) -> T:
    """Return the result of ``awaitable``; compute it if it has not been.

    Args:
        awaitable: what :func:`rekindle.awaitable` or :func:`awaitable_nowait` returned.

    Raises:
        Exception: whatever the call raises.

    Example:
        >>> calls = []
        >>> lazy = rekindle.awaitable(calls.append, 1)
        >>> rekindle.awaitable_wait(lazy)
        >>> rekindle.awaitable_wait(lazy)
        >>> calls
        [1]
    """
    return awaitable.wait()


def awaitable_nowait(value: T) -> Await[T]:
    """Return an :class:`Await` whose result is ``value``.

    Args:
        value: any value.

    Example:
        >>> rekindle.awaitable_wait(rekindle.awaitable_nowait(3))
        3
    """
    return Await.of(value)

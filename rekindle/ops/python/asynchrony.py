"""Operators on asynchronous results: futures, awaits, and references to objects of other processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, Final, Generic, TypeVar, cast

import torch
from torch import Tensor

from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ir.types import AwaitType
from rekindle.ops.python.values import LATER
from rekindle.ops.registration.declare import declare, implements

T = TypeVar("T")


block_until_done: Final = LayerHook[Callable[[Any], None]]("rekindle.runtime.interpreter.futures")
"""Blocks the thread until another one has computed a result."""


class Await(Generic[T]):
    """A result that is computed when it is first waited for, and saved.

    Other threads that wait for it block until then, as for a future. An error is not saved: the next wait computes
    again.

    Example:
        >>> isinstance(rekindle.awaitable(torch.ones, 2), rekindle.Await)
        True
    """

    __slots__ = ("__weakref__", "_call", "_callbacks", "_given", "_is_running", "_lock", "_value")

    def __init__(self, call: Call[T] | None, value: T | None = None) -> None:
        self._lock = threading.Lock()
        self._call = call
        self._given = call
        self._value = value
        self._is_running = False
        self._callbacks: list[Callable[[Any], object]] = []

    @classmethod
    def of(cls, value: T) -> Await[T]:
        """Return an Await whose result is ``value``."""
        return cls(None, value)

    def is_nowait(self) -> bool:
        """Return whether the result is available without a computation."""
        return self._call is None

    def fn(self) -> Callable[..., T]:
        """Return the function that computes the result from :meth:`args`."""
        return (lambda value: value) if self._given is None else self._given.run

    def args(self) -> tuple[Any, ...]:
        """Return the arguments by position; of an Await whose result was given, that result."""
        return (self._value,) if self._given is None else tuple(self._given.arguments)

    def wait(self) -> T:
        """Return the result; compute it if it has not been. If the computation raises, so does this call, and the next
        one computes again. A call blocks while another thread computes."""
        while self._call is not None:
            call = self.claim()
            if call is None:
                block_until_done.get()(self)
                continue
            try:
                value = call()
            except BaseException:
                self.give_up()
                raise
            self.finish(value)
        return cast(T, self._value)

    # ---------------------------------------------------------------------------------- for those who compute in parts

    def claim(self) -> Call[T] | None:
        """Return the computation for the caller to run, which must then call :meth:`finish` or :meth:`give_up`; None
        if there is nothing to compute, or another thread computes it: :meth:`done` distinguishes these."""
        with self._lock:
            if self._is_running:
                return None
            self._is_running = self._call is not None
            return self._call

    def finish(self, value: T) -> None:
        """Set the computed value."""
        self._value = value
        self._call = None
        self.give_up()

    def give_up(self) -> None:
        """Release the claim: the computation is no longer running."""
        with self._lock:
            self._is_running = False
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def done(self) -> bool:
        """Return whether no thread is computing the result, so that waiting needs no other thread."""
        return not self._is_running

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call ``callback(self)`` once no thread is computing the result; immediately if none is."""
        with self._lock:
            if self._is_running:
                self._callbacks.append(callback)
                return
        callback(self)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the result, which is computed if need be: in Python an Await may be used as its
        result.

        Raises:
            AttributeError: ``name`` begins with two underscores, or the result has no such attribute.
        """
        if name.startswith("__"):
            raise AttributeError(f"'Await' has no attribute '{name}'")
        return getattr(self.wait(), name)

    def __repr__(self) -> str:
        return "<Await: done>" if self.is_nowait() else "<Await: not computed>"


LATER[AwaitType.kind].append(Await)


class Call(Generic[T]):
    """A call that is made later."""

    __slots__ = ("arguments", "function", "run")

    def __init__(self, run: Callable[..., T], arguments: Sequence[Any] = (), function: Any = None) -> None:
        self.run = run
        self.arguments = arguments
        self.function = function
        """The record of the function, where it is a compiled one: an interpreter then runs it itself."""

    def __call__(self) -> T:
        return self.run(*self.arguments)


declare(
    methodcaller("wait"),
    "aten::wait(Future(t) self) -> t",
    "prim::awaitable_wait(Await(t) self) -> t",
    effects=AliasAnalysisKind.CONSERVATIVE,
    side_effects=True,
)
declare(Await.of, "prim::awaitable_nowait(t self) -> Await(t)", effects=AliasAnalysisKind.CONSERVATIVE)

# --------------------------------------------------------------------------------------------------- remote references

# They are the objects of torch.distributed.rpc, which have these methods themselves.

for _name, _result in (
    ("confirmed_by_owner", "bool"),
    ("is_owner", "bool"),
    ("local_value", "t(*)"),
    ("owner", "__torch__.torch.classes.dist_rpc.WorkerInfo"),
    ("owner_name", "str"),
):
    declare(methodcaller(_name), f"aten::{_name}(RRef(t) self) -> {_result}", nondeterministic=True)


@implements("aten::to_here(RRef(t) self, float timeout=60.) -> t(*)", side_effects=True, nondeterministic=True)
def to_here(self: Any, timeout: float = 60.0) -> Any:
    """Return a copy of the value that another process owns. ``timeout`` is in seconds; 0 waits for ever."""
    return self.to_here(timeout)


@implements(
    "aten::dist_backward(int context_id, Tensor[] roots, bool retain_graph=False) -> ()",
    effects=AliasAnalysisKind.CONSERVATIVE,
    side_effects=True,
)
def distributed_backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Run backward through several processes; the gradients are collected in the context."""
    torch.distributed.autograd.backward(context_id, roots, retain_graph)  # type: ignore[attr-defined]

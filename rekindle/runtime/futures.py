"""``prim::fork``: a graph runs on another thread while the program goes on.

A task that has not been begun when someone waits for it is run by who waits, so that waiting for tasks that wait for
tasks never comes to a standstill, however few threads there are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from rekindle.errors import GraphError
from rekindle.ir.graph import Graph, Node
from rekindle.ir.registry import Effects, Operation
from rekindle.ops.declare import implements_for_node
from rekindle.runtime.code import Code
from rekindle.runtime.interpreter import InterpreterState


class Future:
    """The result of a fork, to be had with :meth:`wait`."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._begin = threading.Lock()
        self._finished = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None

    @classmethod
    def of(cls, value: Any) -> Future:
        """A future whose result is there already."""
        future = cls(lambda: value)
        future.run()
        return future

    def run(self) -> None:
        """Compute the result, unless someone else does or has."""
        if not self._begin.acquire(blocking=False):
            return
        compute, self._compute = self._compute, None
        assert compute is not None
        try:
            self._value = compute()
        except BaseException as error:
            self._error = error
        self._finished.set()

    def done(self) -> bool:
        """Whether the result, or an error, is there."""
        return self._finished.is_set()

    def wait(self) -> Any:
        """The result. An error of the computation is raised each time."""
        self.run()
        self._finished.wait()
        if self._error is not None:
            raise self._error
        return self._value

    value = wait


_pool: ThreadPoolExecutor | None = None


def start(compute: Callable[[], Any]) -> Future:
    """The future of ``compute()``, which begins when a thread is free, in the gradient mode of who asks."""
    if not _is_plain():
        return Future.of(compute())  # other modes belong to this thread and cannot be carried to another
    with_gradient = torch.is_grad_enabled()

    def in_mode() -> Any:
        with torch.set_grad_enabled(with_gradient):
            return compute()

    future = Future(in_mode)
    _threads().submit(future.run)
    return future


def _is_plain() -> bool:
    """Whether gradient mode is all that tells this thread from others."""
    return not (
        torch.is_inference_mode_enabled()
        or torch.is_autocast_enabled("cpu")
        or torch.is_autocast_enabled("cuda")
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
    )


def _threads() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603  (made when first needed)
    if _pool is None:
        _pool = ThreadPoolExecutor(torch.get_num_interop_threads(), thread_name_prefix="rekindle-fork")
    return _pool


@implements_for_node("prim::fork(...) -> ...", effects=Effects.CONSERVATIVE, side_effects=True)
def fork(node: Node) -> Operation:
    """Run the graph in attribute ``Subgraph`` on the inputs, on another thread."""
    graph = node["Subgraph"]
    if not isinstance(graph, Graph):
        raise GraphError("prim::fork needs a graph as its attribute 'Subgraph'")
    code = Code(graph, "fork")

    def begin(*inputs: Any) -> Future:
        return start(lambda: InterpreterState(code).run(inputs))

    return begin

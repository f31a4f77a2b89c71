"""Results that come later: futures, awaits, and references to objects of other processes."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

from rekindle.ir.registry import Effects
from rekindle.ops.declare import declare, implements

T = TypeVar("T")


class Await(Generic[T]):
    """A result that is computed when it is first waited for, and kept."""

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], T] | None, value: T | None = None) -> None:
        self._compute = compute
        self._value = value

    @classmethod
    def of(cls, value: T) -> Await[T]:
        """One whose result is there already."""
        return cls(None, value)

    def wait(self) -> T:
        """The result. An error of the computation is raised each time."""
        if self._compute is not None:
            self._value = self._compute()
            self._compute = None
        return cast(T, self._value)


declare(
    methodcaller("wait"),
    "aten::wait(Future(t) self) -> t",
    "prim::awaitable_wait(Await(t) self) -> t",
    effects=Effects.CONSERVATIVE,
    side_effects=True,
)
declare(Await.of, "prim::awaitable_nowait(t self) -> Await(t)", effects=Effects.CONSERVATIVE)

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
    """A copy of the value that another process owns. ``timeout`` is in seconds; 0 waits for ever."""
    return self.to_here(timeout)


@implements(
    "aten::dist_backward(int context_id, Tensor[] roots, bool retain_graph=False) -> ()",
    effects=Effects.CONSERVATIVE,
    side_effects=True,
)
def distributed_backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Backward through several processes; the gradients gather in the context."""
    torch.distributed.autograd.backward(context_id, roots, retain_graph)  # type: ignore[attr-defined]

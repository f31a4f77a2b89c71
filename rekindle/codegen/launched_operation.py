"""Operations with prepared constants (packed weights) whose kernels are launched without Python.

A :class:`LaunchedOperation` runs a node by Python, which chooses a kernel. Once the same sizes and strides have come
twice, it adds a launch of the chosen kernel to a :class:`~rekindle.codegen.llvm.call_sites.TensorCallSite`: from then
on, plans check the arguments, allocate the result and enter the kernel's machine code directly. Where no launch fits
(other sizes, gradients, modes, a subclass of Tensor, other weights), or the kernel refuses, Python runs the node as
before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import Tensor

from rekindle.codegen.kernel_eligibility import is_plain
from rekindle.codegen.llvm.call_sites import CachedLaunch, Fixed, Layout, TensorCallSite, is_available
from rekindle.ir.profiling import recorded
from rekindle.ir.subgraph_execution import PatchableOperation

_MAX_LAYOUTS: Final = 256
"""The maximum number of combinations of sizes and strides whose calls are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class NativeCall:
    """How machine code computes a Tensor from others: the fields of a
    :class:`~rekindle.codegen.llvm.call_sites.CachedLaunch` without the layouts of its inputs. ``keep`` holds the
    kernel's code and the objects at addresses in ``parameters``. It lives as long as the operation: a launch that is
    replaced may still run, without the GIL."""

    kernel: int
    parameters: Sequence[int]
    output: Layout
    keep: object


class LaunchedOperation(PatchableOperation):
    """Run a node by ``run``; see the module.

    The inputs at the positions ``read`` are the Tensors that kernels read (None where an optional one is missing);
    the others are constants, from which ``run`` and ``native_call`` may have prepared what they keep. ``native_call``
    returns how the kernel that ``run`` chooses is called with equal arguments; None where it needs Python. A profiler
    records calls by ``name``.
    """

    def __init__(
        self, name: str, run: Callable[..., Tensor], native_call: Callable[..., NativeCall | None], read: Sequence[int]
    ) -> None:
        super().__init__()
        self.name = name
        self.read = frozenset(read)
        self._run = run
        self._native_call = native_call
        self._site: TensorCallSite | None = None
        self._kept: list[object] = []
        self._kinds: list[str | Fixed] = []
        self._seen: dict[tuple[object, ...], int] = {}
        """Number of runs by Python of each combination of sizes and strides."""
        self._adding = threading.Lock()
        """Held while a launch is added. It is never waited for: a forked process may inherit it locked."""

    def __call__(self, *inputs: Any) -> Tensor:
        with recorded(self.name):
            result = self._run(*inputs)
        if is_available() and self._is_due(inputs) and self._adding.acquire(blocking=False):
            try:
                self._add(inputs)
            finally:
                self._adding.release()
        return result

    def _is_due(self, inputs: Sequence[Any]) -> bool:
        """Count a call with such inputs, and return whether to add a launch for them to the call site: in their second
        call, and again in the 4th, the 8th and so on, in case other launches have replaced theirs. Calls with Tensors
        for which :func:`is_plain` is False do not count."""
        tensors = [inputs[position] for position in self.read]
        if not all(each is None or is_plain(each) for each in tensors):
            return False
        key = tuple(None if each is None else (each.shape, each.stride()) for each in tensors)
        count = self._seen.get(key, 0) + 1
        if len(self._seen) >= _MAX_LAYOUTS:
            self._seen = {}
        self._seen[key] = count
        return count > 1 and count & (count - 1) == 0

    def _add(self, inputs: Sequence[Any]) -> None:
        found = self._native_call(*inputs)
        if found is None:
            return
        layouts: list[Layout | type | None] = []
        kinds: list[str | Fixed] = []
        for position, each in enumerate(inputs):
            is_read = position in self.read and isinstance(each, Tensor)
            layouts.append((each.dtype, tuple(each.shape), each.stride()) if is_read else None)
            kinds.append("tensor" if is_read else Fixed(each))
        if all(found.keep is not each for each in self._kept):
            self._kept.append(found.keep)
        launch = CachedLaunch(found.kernel, layouts, [found.output], found.parameters, found.keep, name=self.name)
        if self._site is None:
            self._site = site = TensorCallSite(kinds, self.__call__)
            self._kinds = kinds
            function = site.function
            site.function = _taken  # or the site and the function would keep each other alive
            site.add(launch)
            self.patch_call_sites(function)
        elif all(_is_same(known, kind) for known, kind in zip(self._kinds, kinds, strict=True)):
            self._site.add(launch)


def _is_same(known: str | Fixed, kind: str | Fixed) -> bool:
    if isinstance(known, Fixed) and isinstance(kind, Fixed):
        first, second = known.value, kind.value
        are_numbers = type(first) is type(second) and isinstance(first, int | float)
        return first is second or (are_numbers and repr(first) == repr(second))
    return known == kind


def _taken(*inputs: Any) -> Any:
    raise AssertionError("the function belongs to the plans that call it")

"""How a run is watched: PyTorch's function mode, and the few places that it does not see."""

from __future__ import annotations

import builtins
import math
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch
import torch.overrides
from torch.overrides import TorchFunctionMode

from rekindle.program.module import ScriptModule
from rekindle.tracing.active import active_recorder, recording
from rekindle.tracing.numbers import plain
from rekindle.tracing.operators import perform
from rekindle.tracing.places import current_place
from rekindle.tracing.recorder import Recorder
from rekindle.tracing.report import Baked


class _Watch(TorchFunctionMode):
    """Hands every call of PyTorch's C++ side to the recorder of this thread."""

    def __torch_function__(
        self, func: Any, types_: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        recorder = active_recorder()
        keywords = kwargs or {}
        if recorder is None:
            return func(*args, **keywords)
        if isinstance(func, types.FunctionType):
            # A library's own function that asked on its own whether a mode is on. What it calls is recorded.
            return func(*args, **keywords)
        return perform(recorder, func, args, keywords)


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """While the body runs, ``recorder`` records what this thread does to tensors."""
    with _patches.applied(), recording(recorder), _Watch():
        yield


# -------------------------------------------------------------------------------------------------------------- patches

_ASKS: Final = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
"""What PyTorch's Python functions ask before they run: whether somebody wants to run in their place. While this thread
records, nobody does: their bodies run, and the operators that these call are recorded."""

_MATH: Final = {"sqrt": "aten::sqrt", "log": "aten::log", "exp": "aten::exp"}
"""Functions of ``math`` that turn a size into a plain float before anybody sees it."""


class _Patches:
    """Replacements of functions for as long as some thread records. Each looks at its own thread first, so that others
    notice nothing."""

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
        for module in list(sys.modules.values()):
            if not getattr(module, "__name__", "").startswith("torch"):
                continue
            for name in _ASKS:
                if name in vars(module):
                    self._wrap(module, name, _asks_nobody)
        self._wrap(builtins, "len", _length)
        for name, kind in _MATH.items():
            self._wrap(math, name, partial(_of_number, kind))
        self._wrap(torch.nn.Module, "__call__", _in_scope)
        self._wrap(torch.Tensor, "__iter__", _iterated)
        self._wrap(torch.jit, "is_tracing", _is_tracing)

    def _wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        original = vars(owner)[name]
        self._undo.append((owner, name, original))
        setattr(owner, name, wrapper(original))

    def _take_back(self) -> None:
        while self._undo:
            owner, name, original = self._undo.pop()
            setattr(owner, name, original)


_patches: Final = _Patches()


def _asks_nobody(original: Callable[..., bool]) -> Callable[..., bool]:
    def has_torch_function(*args: Any) -> bool:
        return False if active_recorder() is not None else original(*args)

    return has_torch_function


def _length(original: Callable[[Any], int]) -> Callable[[Any], int]:
    """``len`` makes a plain int of whatever ``__len__`` gives."""

    def length(obj: Any, /) -> int:
        if isinstance(obj, torch.Tensor) and active_recorder() is not None and obj.dim() > 0:
            return obj.size(0)
        return original(obj)

    return length


def _of_number(kind: str, original: Callable[..., float]) -> Callable[..., float]:
    def function(*args: Any) -> float:
        recorder = active_recorder()
        if recorder is None or not args or not recorder.is_traced_number(args[0]) or args[1:]:
            return original(*args)
        found: float = recorder.arithmetic(kind, args, original(plain(args[0])))
        return found

    return function


def _in_scope(original: Callable[..., Any]) -> Callable[..., Any]:
    """What the parts of a traced module do stands in methods of their own."""

    def __call__(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        path = None if recorder is None or isinstance(self, ScriptModule) else recorder.place_of_module(self)
        if recorder is None or path is None:
            return original(self, *args, **kwargs)
        with recorder.scope(path, current_place()):
            result = original(self, *args, **kwargs)
            recorder.leave_module(self, path)
            return result

    return __call__


def _iterated(original: Callable[[torch.Tensor], Iterator[Any]]) -> Callable[[torch.Tensor], Iterator[Any]]:
    def __iter__(self: torch.Tensor) -> Iterator[Any]:
        recorder = active_recorder()
        if recorder is not None and self.dim() > 0 and recorder.known(self) is not None:
            recorder.bake_tensor("the number of turns of a loop over a tensor", self.size(0).__index__(), Baked.LOOP)
        return original(self)

    return __iter__


def _is_tracing(original: Callable[[], bool]) -> Callable[[], bool]:
    def is_tracing() -> bool:
        return active_recorder() is not None or original()

    return is_tracing

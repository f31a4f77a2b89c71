"""Traps that spring when a file of the package calls PyTorch's own TorchScript.

The traps do not wrap what they watch: they listen to the interpreter's profile events, which name every call and its
caller. So nothing changes its identity or its place on the stack, names that were imported long before are watched too,
and ``torch.jit`` continues to work for all other callers, as the oracle of the same test for instance. Two things
happen without an event, the construction of a C++ object and calling one; for these the classes' ``__init__`` and
``__call__`` are replaced in that time.

``torch._jit_internal`` is open: it holds the marks that decorators leave on Python objects, and the package reads them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch._ops

import rekindle
from tests.support import torchscript_names as names

PACKAGE = str(Path(rekindle.__file__).parent) + os.sep

_TORCH = Path(torch.__file__).parent
_JIT_FILES = frozenset(str(path) for path in (_TORCH / "jit").rglob("*.py"))
_OPS_FILE = str(_TORCH / "_ops.py")
# A decorated function is called by its decorator: who called that is who counts.
_GLUE_FILES = frozenset({contextlib.__file__, functools.__file__})


@contextlib.contextmanager
def forbidden_torchscript() -> Iterator[None]:
    """Within, a call of TorchScript whose immediate caller is a file of the package raises AssertionError.

    Forbidden are all functions in the files of ``torch.jit``, ``torch._C._jit_*`` and the other names of
    :mod:`tests.support.torchscript_names`, and the overloads in ``torch.ops`` that the dispatcher does not have. Where
    the package swallows the error, leaving raises it again. After the first one the traps are off: Python removes a
    profile function that raises.

    Watches this thread and those that ``threading`` starts within.

    Not seen are calls that C makes of C (``map(torch._C.parse_ir, texts)``); reading the source finds these names.
    """
    traps = _Traps()
    before, before_threads = sys.getprofile(), threading.getprofile()
    with _guarded_classes(traps):
        threading.setprofile(traps.on_event)
        sys.setprofile(traps.on_event)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before_threads)
    if traps.sprung:
        raise AssertionError("\n".join(traps.sprung))


_BUILTIN_CALLS = ("c_call", "c_return") if sys.version_info[:2] == (3, 12) else ("c_call",)
"""Python 3.12 reports calls of C++ methods only when they return."""


class _Traps:
    """The profile function, and what it caught."""

    def __init__(self) -> None:
        self.sprung: list[str] = []
        self._operators = names.dispatcher_operators()
        self._builtins = {id(value): name for name, value in _forbidden_builtins()}
        self._watched_files = _JIT_FILES | {_OPS_FILE}

    def on_event(self, frame: types.FrameType, event: str, argument: Any) -> None:
        # Runs at every call and return of the interpreter: what is not watched has to leave at once.
        if event == "call":
            if frame.f_code.co_filename in self._watched_files:
                self._on_call(frame)
        elif event in _BUILTIN_CALLS and frame.f_code.co_filename.startswith(PACKAGE):
            self._on_builtin_call(frame, argument)

    def _on_call(self, frame: types.FrameType) -> None:
        caller = _caller_of(frame)
        if caller is None or not caller.f_code.co_filename.startswith(PACKAGE):
            return
        code = frame.f_code
        if code.co_filename != _OPS_FILE:
            module = frame.f_globals.get("__name__", "torch.jit")
            self.spring(caller, f"{module}.{getattr(code, 'co_qualname', code.co_name)}")
        elif code in _OVERLOAD_CALLS:
            self._check_overload(caller, names.operator_name(frame.f_locals["self"]))
        elif code in _PACKET_CALLS:
            local = frame.f_locals
            self._check_packet(caller, local["self"], local["args"], local["kwargs"])

    def _on_builtin_call(self, frame: types.FrameType, function: Any) -> None:
        name = self._builtins.get(id(function))
        if name is not None:
            self.spring(frame, name)
        elif str(getattr(function, "__module__", "")).startswith("torch._ops."):
            for name in sorted(_operators_behind(function)):
                self._check_overload(frame, name)

    def _check_overload(self, caller: types.FrameType, name: str) -> None:
        if name not in self._operators and name not in names.dispatcher_operators():  # it may be new
            self.spring(caller, f"the operator {name}, which the dispatcher does not have")

    def _check_packet(
        self, caller: types.FrameType, packet: torch._ops.OpOverloadPacket, args: Any, kwargs: Any
    ) -> None:
        every = _overload_names(packet)
        if every <= self._operators:
            return
        base = packet._qualified_op_name
        try:
            overload = torch._C._jit_resolve_packet(base, *args, **kwargs)
        except RuntimeError:
            return  # no overload fits, so none will run: the call itself is about to say so
        self._check_overload(caller, base if overload == "default" else f"{base}.{overload}")

    def spring(self, caller: types.FrameType, what: str) -> None:
        """Reports a call of ``what`` from the frame ``caller``."""
        place = os.path.relpath(caller.f_code.co_filename, os.path.dirname(os.path.dirname(PACKAGE)))
        message = f"{place}:{caller.f_lineno} calls {what}: the package does not use TorchScript"
        self.sprung.append(message)
        raise AssertionError(message)


def _caller_of(frame: types.FrameType) -> types.FrameType | None:
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename in _GLUE_FILES:
        caller = caller.f_back
    return caller


# ------------------------------------------------------------------------------------------------------ operators


def _codes(cls: type, *methods: str) -> frozenset[types.CodeType]:
    return frozenset(vars(cls)[name].__code__ for name in methods if name in vars(cls))


_OVERLOAD_CALLS = _codes(torch._ops.OpOverload, "__call__", "redispatch", "decompose") | _codes(
    torch._ops.TorchBindOpOverload, "__call__"
)
_PACKET_CALLS = _codes(torch._ops.OpOverloadPacket, "__call__")


def _overload_names(packet: torch._ops.OpOverloadPacket) -> set[str]:
    base = packet._qualified_op_name
    return {base if name == "default" else f"{base}.{name}" for name in packet.overloads()}


def _operators_behind(function: Any) -> set[str]:
    """The operators that the function of an overload or a packet (``torch.ops.aten.add.int._op``) may run."""
    namespace = getattr(torch.ops, function.__module__.removeprefix("torch._ops."))
    for packet in vars(namespace).values():
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            continue
        if packet._op is function:
            return _overload_names(packet)
        for overload in vars(packet).values():
            if isinstance(overload, torch._ops.OpOverload) and function in (overload._op, overload._op_dk):
                return {names.operator_name(overload)}
    return set()


# ----------------------------------------------------------------------------------------- functions and classes of C++


def _forbidden_builtins() -> Iterator[tuple[str, Any]]:
    """The functions of C++ that are closed to the package, with their names."""
    for name, value in vars(torch._C).items():
        if not isinstance(value, type) and names.is_forbidden(f"torch._C.{name}") and callable(value):
            yield f"torch._C.{name}", value
    for cls, every_method in _forbidden_classes():
        for name, value in vars(cls).items():
            if isinstance(value, staticmethod) or (every_method and hasattr(value, "__func__")):
                yield f"torch._C.{cls.__name__}.{name}", value.__func__


def _forbidden_classes() -> Iterator[tuple[type, bool]]:
    """The classes of C++ whose constructor is closed to the package, and whether their methods are too."""
    for name, value in vars(torch._C).items():
        if isinstance(value, type) and name in names.CLASSES | names.READABLE_CLASSES:
            yield value, name in names.CLASSES
    for value in vars(torch._C._jit_tree_views).values():
        if isinstance(value, type):
            yield value, True


@contextlib.contextmanager
def _guarded_classes(traps: _Traps) -> Iterator[None]:
    absent = object()
    with contextlib.ExitStack() as undo:
        for cls, _ in _forbidden_classes():
            for method in ("__init__", "__call__"):
                original = vars(cls).get(method, absent)
                if original is absent:
                    continue
                setattr(cls, method, _guard(traps, f"torch._C.{cls.__name__}", original))
                undo.callback(setattr, cls, method, original)
        yield


def _guard(traps: _Traps, what: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_filename.startswith(PACKAGE):
            traps.spring(caller, what)
        return original(self, *args, **kwargs)

    return guarded

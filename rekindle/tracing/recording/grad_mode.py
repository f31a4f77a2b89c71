"""Gradient modes in traces: record ``with torch.no_grad():`` of traced code in the program.

The program has a region only around recorded operators. Each region is within the method in which it is entered.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, Final

import torch

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import NONE, TENSOR
from rekindle.scripting.library_values.context_managers import class_type_of
from rekindle.tracing.recording.active import active_recorder
from rekindle.tracing.source_locations import current_place


@dataclass(slots=True, eq=False)
class _Region:
    enabled: bool
    place: SourceRange
    manager: object = None
    """The context manager that the code entered; None for a mode that it set otherwise."""


class GradMode:
    """The gradient mode during a recording: the ``no_grad`` and ``enable_grad`` regions that the running code is in,
    and those that the graph is in. ``report`` records a fact for the trace report: the mode, its value, and the
    consequence."""

    def __init__(self, report: Callable[[str, str, str], None]) -> None:
        self._initial = torch.is_grad_enabled()
        self._wanted: list[_Region] = []
        self._entered: list[tuple[_Region, Value]] = []
        self._outer = 0
        """Number of ``_entered`` regions that belong to the methods around the recorded one."""
        self._report = report

    def enter(self, manager: object, enabled: bool, place: SourceRange) -> None:
        """Record that the code entered ``manager``, which set the mode; ``enabled`` is whether gradients are recorded
        since. A ``no_grad`` within the forward method of a ``torch.autograd.Function``, where they are off already, is
        ignored."""
        if not enabled and not getattr(manager, "prev", True) and _custom_function() is not None:
            return  # it was off there already
        self._wanted.append(_Region(enabled, place, manager))

    def leave(self, manager: object) -> None:
        """Record that the code left ``manager``, and with it every region entered since. An unknown manager is
        ignored."""
        for index in reversed(range(len(self._wanted))):
            if self._wanted[index].manager is manager:
                del self._wanted[index:]
                return

    def sync(self, graph: Graph) -> None:
        """Insert entries and exits of regions into the graph so that its regions match those of the running code. It is
        called before a node is recorded."""
        wanted = self._wanted_now()
        shared = self._outer
        for (region, _), other in zip(self._entered[shared:], wanted[shared:], strict=False):
            if region is not other:
                break
            shared += 1
        self._exit_to(graph, shared)
        for region in wanted[shared:]:
            self._entered.append((region, enter_mode(graph, region.enabled, region.place)))

    def _wanted_now(self) -> list[_Region]:
        """Return the regions for the next operator: those entered, and one more if the mode was set by other means."""
        outer = [region for region, _ in self._entered[: self._outer]]
        wanted = self._wanted if self._wanted[: len(outer)] == outer else outer
        known = wanted[-1].enabled if wanted else self._initial
        actual = torch.is_grad_enabled()
        if actual == known or (known and self._within_custom_function()):
            return wanted
        last = self._entered[len(wanted)][0] if len(self._entered) > len(wanted) else None
        if last is None or last.manager is not None or last.enabled != actual:
            last = _Region(actual, current_place())
        return [*wanted, last]

    def _exit_to(self, graph: Graph, count: int) -> None:
        while len(self._entered) > count:
            region, manager = self._entered.pop()
            exit_mode(graph, manager, region.place)

    def finish(self, graph: Graph) -> None:
        """Insert the exits of the regions that were entered in the method that ends."""
        self._exit_to(graph, self._outer)

    @contextmanager
    def method(self, graph: Graph) -> Iterator[None]:
        """Insert, at the end of the ``with`` block, the exits of the regions that were entered in it."""
        saved, self._outer = self._outer, len(self._entered)
        try:
            yield
        finally:
            self.finish(graph)
            self._outer = saved

    def _within_custom_function(self) -> bool:
        """Return whether the mode is off because a ``torch.autograd.Function`` runs. Its operators are recorded as
        if they were outside of it, so that gradients exist; the report names the function."""
        found = _custom_function()
        if found is None:
            return False
        function, frame = found
        is_own = function.__module__.startswith("torch.")
        # Whether arguments require grad in the example says nothing of later calls.
        if not is_own and any(isinstance(x, torch.Tensor) and _may_have_gradient(x) for x in _arguments(frame)):
            self._report(
                f"the backward method of {function.__name__}",
                "left out",
                "gradients are those of what its forward method calls",
            )
        return True


def _may_have_gradient(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _custom_function() -> tuple[type[torch.autograd.Function], FrameType] | None:
    """Return the ``torch.autograd.Function`` whose forward method runs, and the frame of that method; None if none
    runs. The caller of that method may have no frame: since PyTorch 2.15 ``apply`` is not a Python function."""
    methods = {
        function.forward.__code__: function
        for function in _subclasses(torch.autograd.Function)
        if isinstance(function.forward, FunctionType)
    }
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        function = methods.get(frame.f_code)
        if function is not None:
            return function, frame
        frame = frame.f_back
    return None


def _subclasses(cls: type[torch.autograd.Function]) -> Iterator[type[torch.autograd.Function]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def _arguments(frame: FrameType) -> list[object]:
    """Return the current values of the parameters of the function in ``frame``; of ``*args`` the items."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    found = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    if code.co_flags & inspect.CO_VARARGS:
        found.extend(frame.f_locals.get(code.co_varnames[count], ()))
    return found


def enter_mode(graph: Graph, enabled: bool, place: SourceRange) -> Value:
    """Insert the start of a region with or without gradients; return the context manager, an object of the class that
    scripted programs use. Gradients are recorded in the region if ``enabled``."""
    type = class_type_of(torch.enable_grad if enabled else torch.no_grad)
    made = graph.insert_node(graph.create("prim::CreateObject", types=[type], range=place)).output
    if "__init__" in type.methods:
        attributes = {"name": "__init__"}
        call = graph.create("prim::CallMethod", [made], types=[NONE], attributes=attributes, range=place)
        graph.insert_node(call)
    graph.insert_node(graph.create("prim::Enter", [made], types=[NONE], range=place))
    return made


def exit_mode(graph: Graph, manager: Value, place: SourceRange) -> None:
    """Insert the end of the region that :func:`enter_mode` started."""
    graph.insert_node(graph.create("prim::Exit", [manager], types=[TENSOR], range=place))


# --------------------------------------------------------------------------------------------------------- what is seen

MANAGERS: Final = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.inference_mode)


def entered(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a replacement of ``__enter__`` of a context manager that also notifies the recorder of this thread."""

    def __enter__(self: Any) -> Any:
        result = original(self)
        recorder = active_recorder()
        if recorder is not None:
            recorder.grad_mode.enter(self, torch.is_grad_enabled(), current_place())
        return result

    return __enter__


def left(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of ``__exit__`` of a context manager that also notifies the recorder of this thread."""

    def __exit__(self: Any, *error: Any) -> Any:
        recorder = active_recorder()
        if recorder is not None:
            recorder.grad_mode.leave(self)
        return original(self, *error)

    return __exit__

"""Type profiling and guards: ``prim::profile`` records the types of values, ``prim::Guard`` checks them.

The profile of a tensor is a :class:`~rekindle.ir.types.TensorType`; of a value that may be None, that type or
``NoneType``. The same list of conditions serves to test a value and to generate the test as Python source. These kinds
are not operators of programs: passes insert them into graphs for the runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch

from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import Operation
from rekindle.ir.types import NoneType, TensorType, Type

PLAIN_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)
"""The classes of tensors that types describe. Subclasses may behave differently."""

ProfileCallback = Callable[[Node], Callable[[object], None]]

recorders: Final[WeakKeyDictionary[Graph, ProfileCallback]] = WeakKeyDictionary()
"""The callbacks of profiled graphs: return for a ``prim::profile`` of the graph the function to call with each
value."""


def profile(node: Node) -> Operation:
    """Return the operation that returns its input; the profiling run records the input."""
    recorder = recorders.get(node.graph)
    if recorder is None:
        return _itself
    note = recorder(node)

    def see(value: Any) -> Any:
        note(value)
        return value

    return see


def _itself(value: Any) -> Any:
    return value


def guard(node: Node) -> Operation:
    """Return the operation that returns its input, after a check that it has the type of the output. It raises a
    RuntimeError for another value; a program that shall continue in that case has a ``prim::BailOut`` instead."""
    assumed = node.output.type
    test = guard_test(assumed)

    def insist(value: Any) -> Any:
        if not test(value):
            raise RuntimeError(f"a value was assumed to be {assumed}, but is {_describe(value)}")
        return value

    return insist


def _describe(value: object) -> str:
    return str(TensorType.of(value)) if isinstance(value, torch.Tensor) else type(value).__qualname__


Condition = tuple[str, object]
"""A Python expression as a format string, in which ``{x}`` is the tested value and ``{c}`` the constant beside it."""


def conditions(type: Type) -> list[Condition]:
    """Return the conditions for a value to be of ``type``, a tensor type or ``NoneType``: Python expressions that all
    have to be true, in the order in which to test them. Strides and unknown properties are not tested."""
    if isinstance(type, NoneType):
        return [("{x} is None", None)]
    assert isinstance(type, TensorType), f"cannot be guarded {type}"
    found: list[Condition] = [("{x}.__class__ in {c}", PLAIN_TENSORS), ("{x}.layout is {c}", torch.strided)]
    if type.dtype is not None:
        found.append(("{x}.dtype is {c}", type.dtype))
    if type.sizes is not None:
        found += _size_conditions(type.sizes)
    if type.device is not None:
        found.append(("{x}.is_cpu", None) if type.device == torch.device("cpu") else ("{x}.device == {c}", type.device))
    if type.requires_grad is not None:
        found.append(("{x}.requires_grad" if type.requires_grad else "not {x}.requires_grad", None))
    return found


def _size_conditions(sizes: tuple[int | None, ...]) -> list[Condition]:
    if None not in sizes:
        return [("{x}.shape == {c}", sizes)]
    known = [(index, size) for index, size in enumerate(sizes) if size is not None]
    return [
        (f"{{x}}.dim() == {len(sizes)}", None),
        *((f"{{x}}.shape[{index}] == {size}", None) for index, size in known),
    ]


@lru_cache(maxsize=1024)
def guard_test(type: Type) -> Callable[[object], bool]:
    """Return a function that checks whether a value conforms to ``type``."""
    names: dict[str, object] = {}
    parts = []
    for number, (text, constant) in enumerate(conditions(type)):
        names[f"c{number}"] = constant
        parts.append(text.format(x="x", c=f"c{number}"))
    test: Callable[[object], bool] = eval(f"lambda x: {' and '.join(parts)}", names)  # noqa: S307 (the text is generated here)
    return test

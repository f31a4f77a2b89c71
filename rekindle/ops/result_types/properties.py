"""Properties of tensors that programs query, other than elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.ir.scalar_types import number_of
from rekindle.ops.result_types.call import Call
from rekindle.ops.result_types.facts import Constant, Fact
from rekindle.ops.result_types.rules import Rules, each
from rekindle.ops.result_types.sizes import axis, product


def _constant(value: object) -> Sequence[Fact]:
    return () if value is None else (Constant(value),)


def _dtype(call: Call) -> Sequence[Fact]:
    return _constant(None if call.first.dtype is None else number_of(call.first.dtype))


def _device(call: Call) -> Sequence[Fact]:
    return _constant(call.first.device)


def _dim(call: Call) -> Sequence[Fact]:
    return _constant(call.first.rank)


def _numel(call: Call) -> Sequence[Fact]:
    return _constant(None if call.first.sizes is None else product(call.first.sizes))


def _size(call: Call) -> Sequence[Fact]:
    """Return the facts of ``size(self)``, a list of ints, or ``size(self, dim)``, an int. ``len(self)`` is the first
    size."""
    known = call.first.sizes
    if not isinstance(call.arguments[0], type(call.first)) or known is None:
        return ()
    if call.schema.name == "aten::size" and not call.has("dim"):
        return (tuple(None if size is None else Constant(size) for size in known),)
    place = axis(call.int("dim") if call.has("dim") else 0, len(known))
    return () if place is None or not known else _constant(known[place])


RULES: Final[Rules] = {
    "prim::dtype": _dtype,
    "prim::device": _device,
    "aten::dim": _dim,
    "aten::numel": _numel,
    **each(_size, "aten::size aten::len"),
}

"""Traced numbers: sizes of tensors, and numbers computed from them, with their values of the graph.

For the traced code a traced number is an int or a float. It also refers to the value of the graph that computes it.
Arithmetic on it is recorded. Comparisons are not: their result in this run is a constant, listed in the trace report.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch

from rekindle.tracing.recording.active import active_recorder

if TYPE_CHECKING:
    from rekindle.ir.graph import Value
    from rekindle.tracing.recording.recorder import Recorder


class TracedInt(int):
    """An int with the graph value that computes it."""

    _recorder: Recorder
    _value: Value

    # Objects of the same value are as good as each other outside of the trace.
    __hash__ = int.__hash__

    def __reduce__(self) -> Any:
        return (int, (int.__index__(self),))

    def __deepcopy__(self, memo: object) -> TracedInt:
        return self

    def __copy__(self) -> TracedInt:
        return self


class TracedFloat(float):
    """A float with the graph value that computes it."""

    _recorder: Recorder
    _value: Value

    __hash__ = float.__hash__

    def __reduce__(self) -> Any:
        return (float, (float.__add__(self, 0.0),))

    def __deepcopy__(self, memo: object) -> TracedFloat:
        return self

    def __copy__(self) -> TracedFloat:
        return self


TracedNumber = TracedInt | TracedFloat


def traced_number(recorder: Recorder, number: int | float, value: Value) -> TracedNumber:
    """Return ``number`` as a traced number with the graph value ``value``."""
    made: TracedNumber = TracedFloat(number) if isinstance(number, float) else TracedInt(number)
    made._recorder = recorder
    made._value = value
    return made


def value_of_number(number: object, recorder: Recorder) -> Value | None:
    """Return the graph value of ``number`` in the recording of ``recorder``; None if it is not a traced number of
    it."""
    if isinstance(number, (TracedInt, TracedFloat)) and getattr(number, "_recorder", None) is recorder:
        return number._value
    return None


def plain(number: Any) -> Any:
    """Return a traced number as an int or float without its graph value; other objects unchanged."""
    if isinstance(number, TracedInt):
        return int.__add__(number, 0)
    if isinstance(number, TracedFloat):
        return float.__add__(number, 0.0)
    return number


def all_plain(item: Any) -> Any:
    """Return ``item`` with plain numbers in place of traced ones, also within lists and tuples; a torch.Size becomes a
    list."""
    if isinstance(item, torch.Size):
        return [plain(part) for part in item]
    if type(item) in (list, tuple):
        return type(item)(all_plain(part) for part in item)
    return plain(item)


# ----------------------------------------------------------------------------------------------------------- arithmetic

_BINARY: Final[dict[str, tuple[Callable[[Any, Any], Any], str]]] = {
    "add": (operator.add, "aten::add"),
    "sub": (operator.sub, "aten::sub"),
    "mul": (operator.mul, "aten::mul"),
    "truediv": (operator.truediv, "aten::div"),
    "floordiv": (operator.floordiv, "aten::floordiv"),
    "mod": (operator.mod, "aten::remainder"),
    "pow": (operator.pow, "aten::pow"),
}
"""Operators on numbers whose TorchScript kind computes the same result as in Python."""

_UNRECORDED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
"""Operators that are not recorded: their result is a constant, the value of this run."""

_COMPARISONS: Final = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def _binary(run: Callable[[Any, Any], Any], kind: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: TracedNumber, other: Any) -> Any:
        if not isinstance(other, (int, float, complex)):
            if isinstance(other, (list, tuple, str)) and isinstance(self, int):
                _bake(self, "the length of a list, which is a size,", int.__index__(self))
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        result = run(plain(left), plain(right))
        if isinstance(other, complex):
            _bake(self, "a complex number that is computed from a size", result)
            return result
        recorder = self._recorder
        if active_recorder() is not recorder:
            return result
        return recorder.arithmetic(kind, (left, right), result)

    return method


def _unrecorded(run: Callable[[Any, Any], Any], name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: TracedNumber, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        result = run(plain(left), plain(right))
        _bake(self, f"the result of {name} on a size", result)
        return result

    return method


def _comparison(run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: TracedNumber, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        result = run(plain(self), plain(other))
        _bake(self, "a comparison of a size", result)
        return result

    return method


def _conversion(run: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    def method(self: TracedNumber) -> Any:
        result = run(plain(self))
        _bake(self, what, result)
        return result

    return method


def _unary(run: Callable[[Any], Any], kind: str) -> Callable[[Any], Any]:
    def method(self: TracedNumber) -> Any:
        result = run(plain(self))
        recorder = self._recorder
        if active_recorder() is not recorder:
            return result
        return recorder.arithmetic(kind, (self,), result)

    return method


def _pow(power: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def method(self: TracedNumber, other: Any, modulus: Any = None) -> Any:
        if modulus is None:
            return power(self, other)
        result = pow(plain(self), plain(other), plain(modulus))
        _bake(self, "pow() of a size and a modulus", result)
        return result

    return method


def _divmod(self: TracedNumber, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: TracedNumber, other: Any) -> Any:
    return other // self, other % self


def _round(self: TracedNumber, digits: int | None = None) -> Any:
    if digits is not None:
        result = round(plain(self), digits)
        _bake(self, "round() of a size to digits", result)
        return result
    return self if isinstance(self, int) else _ROUND(self)


def _format(self: TracedNumber, specification: str) -> str:
    result = format(plain(self), specification)
    _bake(self, "the text of a size", result)
    return result


def _method(cls: type, name: str) -> Callable[..., Any]:
    """Return the method ``name`` of ints or floats, with a result that is a constant."""

    def method(self: TracedNumber, *args: Any, **kwargs: Any) -> Any:
        result = getattr(cls, name)(plain(self), *args, **kwargs)
        _bake(self, f"{name}() of a size", result)
        return result

    return method


def _bake(number: TracedNumber, what: str, result: object) -> None:
    recorder = number._recorder
    if active_recorder() is recorder:
        recorder.bake_number(what, result)


_ROUND: Final = _unary(round, "aten::round")


def _fill(cls: type) -> None:
    methods: dict[str, Any] = {}
    for name, (run, kind) in _BINARY.items():
        methods[name] = _binary(run, kind, False)
        methods[f"r{name}"] = _binary(run, kind, True)
    for name, run in _UNRECORDED.items():
        if hasattr(cls, f"__{name}__"):
            methods[name] = _unrecorded(run, name, False)
            methods[f"r{name}"] = _unrecorded(run, name, True)
            methods["invert"] = lambda self: -self - 1
    for name, run in _COMPARISONS.items():
        methods[name] = _comparison(run)
    methods["hash"] = _conversion(hash, "a size that is looked up in a dict or set")
    methods["neg"] = _unary(operator.neg, "aten::neg")
    methods["floor"] = _unary(math.floor, "aten::floor")
    methods["ceil"] = _unary(math.ceil, "aten::ceil")
    methods["trunc"] = _unary(math.trunc, "aten::Int")
    methods["abs"] = _unary(abs, "prim::abs")
    methods["pos"] = lambda self: self
    methods["round"] = _round
    methods["pow"] = _pow(methods["pow"])
    methods["divmod"], methods["rdivmod"] = _divmod, _rdivmod
    methods["bool"] = _conversion(bool, "the truth of a size")
    methods["int"] = _conversion(int, "int() of a size")
    methods["float"] = _conversion(float, "float() of a size")
    for name in ("str", "repr"):
        methods[name] = _conversion(repr, "the text of a size")
    methods["format"] = _format
    for name, method in methods.items():
        setattr(cls, f"__{name}__", method)


for _name in ("as_integer_ratio", "bit_count", "bit_length", "to_bytes"):
    setattr(TracedInt, _name, _method(int, _name))
for _name in ("as_integer_ratio", "hex", "is_integer"):
    setattr(TracedFloat, _name, _method(float, _name))
_fill(TracedInt)
_fill(TracedFloat)


# ---------------------------------------------------------------------------------------------------------- conversions


class _Conversion(type):
    """Metaclass of substitutes for ``int`` and ``float`` in code that only converts with them and tests ``isinstance``.
    The originals convert any argument to a plain number; a call of a substitute keeps a traced number traced."""

    python: type

    def __instancecheck__(cls, item: object) -> bool:
        return isinstance(item, cls.python)

    def __call__(cls, *args: Any) -> Any:
        number = args[0] if len(args) == 1 else None
        recorder = active_recorder()
        if recorder is None or value_of_number(number, recorder) is None:
            return cls.python(*args)
        if isinstance(number, cls.python):
            return number
        return recorder.arithmetic(f"aten::{cls.python.__name__.capitalize()}", (number,), cls.python(plain(number)))


class KeptInt(metaclass=_Conversion):
    """Substitute for ``int`` that keeps traced numbers traced."""

    python = int


class KeptFloat(metaclass=_Conversion):
    """Substitute for ``float`` that keeps traced numbers traced."""

    python = float


KeptInt.__name__, KeptFloat.__name__ = "int", "float"

"""Symbolic sizes: record comparisons as guards, so that a kernel lowered for some sizes is valid for all that pass
them.

A :class:`SymbolicSize` is an int that records how it is computed from the sizes and strides of a kernel's inputs. Sums,
differences and products of symbolic sizes, and quotients by positive constants, rounded down, are symbolic sizes. A
comparison returns an ordinary bool, and records
the outcome as a guard: a result is valid for all sizes with the same outcomes. Any other use (``range(size)``,
``float(size)``) records the guard that the size has its present value.

A :class:`ShapeProgram` is made of the records. It checks the guards for other sizes, and computes the results. For ``x
+ y`` of vectors of equal length, other than 1, it is::

    w2 == w0, w0 != 1        the size and the stride of x are w0 and w1, those of y w2 and w3
    w1 == w4, w3 == w4       w4 is the constant 1
    -> w0                    the length of the loop, and of the result
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeGuard


class ShapeOp(IntEnum):
    """Operations of a shape program. Each has two ints as operands. The first four compute a new int; the others are
    guards."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    """Rounds down; the divisor is above 0."""
    EQUAL = 4
    DIFFERENT = 5
    LESS = 6
    NOT_LESS = 7


_FUNCTIONS: Final[tuple[Callable[[int, int], int], ...]] = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv),
    *(operator.eq, operator.ne, operator.lt, operator.ge),
)
_OPPOSITE: Final = {ShapeOp.EQUAL: ShapeOp.DIFFERENT, ShapeOp.LESS: ShapeOp.NOT_LESS}


@dataclass(slots=True, frozen=True)
class ShapeProgram:
    """A straight-line program on ints: it computes sizes from others, and checks guards. Ints are numbered: the
    ``given`` inputs, then ``constants``, then one for each step that computes one. ``results`` lists the numbers of the
    outputs."""

    given: int
    constants: tuple[int, ...]
    steps: tuple[tuple[ShapeOp, int, int], ...]
    results: tuple[int, ...]

    @property
    def words(self) -> int:
        """The total number of ints: inputs, constants and results of steps."""
        return self.given + len(self.constants) + sum(step < ShapeOp.EQUAL for step, _, _ in self.steps)

    def __call__(self, given: Sequence[int]) -> list[int] | None:
        """Run the program on the inputs ``given``; return its outputs, or None if a guard fails."""
        words = [*given, *self.constants]
        for step, a, b in self.steps:
            found = _FUNCTIONS[step](words[a], words[b])
            if step < ShapeOp.EQUAL:
                words.append(found)
            elif not found:
                return None
        return [words[each] for each in self.results]


class ShapeEnv:
    """Environment in which symbolic sizes record their guards."""

    def __init__(self) -> None:
        self._given: list[SymbolicSize] = []
        self._constants: dict[int, SymbolicSize] = {}
        self._steps: dict[tuple[ShapeOp, int, int], tuple[SymbolicSize, SymbolicSize, SymbolicSize | None]] = {}
        """By the step and the identities of its operands: these, and what it makes. In the order of questions."""

    def size(self, value: int) -> SymbolicSize:
        """Return the next input, which is ``value`` in this run, as a symbolic size."""
        self._given.append(SymbolicSize(self, value))
        return self._given[-1]

    def of(self, number: int | SymbolicSize) -> SymbolicSize:
        """Return ``number`` as a symbolic size: a constant, unless it is one already."""
        if isinstance(number, SymbolicSize):
            return number
        found = self._constants.get(number)
        if found is None:
            found = self._constants[number] = SymbolicSize(self, int(number))
        return found

    def computed(self, step: ShapeOp, a: SymbolicSize, b: SymbolicSize) -> SymbolicSize:
        """Record a computation, and return its result."""
        key = (step, id(a), id(b))
        if key not in self._steps:
            self._steps[key] = a, b, SymbolicSize(self, _FUNCTIONS[step](a.value, b.value))
        made = self._steps[key][2]
        assert made is not None
        return made

    def answer(self, step: ShapeOp, a: SymbolicSize, b: SymbolicSize) -> bool:
        """Return the outcome of a comparison, ``EQUAL`` or ``LESS``, and record it as a guard."""
        holds = bool(_FUNCTIONS[step](a.value, b.value))
        if a is not b:
            self._steps.setdefault((step if holds else _OPPOSITE[step], id(a), id(b)), (a, b, None))
        return holds

    def formula(self, results: Iterable[int | SymbolicSize]) -> ShapeProgram:
        """Return the program that computes ``results`` from the inputs, with all recorded guards."""
        wanted = [self.of(each) for each in results]
        needed = set(map(id, wanted))
        steps = []
        for (step, _, _), (a, b, made) in reversed(self._steps.items()):
            if made is None or id(made) in needed:
                needed |= {id(a), id(b)}
                steps.append((step, a, b, made))
        constants = {value: size for value, size in self._constants.items() if id(size) in needed}
        numbers = {id(size): number for number, size in enumerate([*self._given, *constants.values()])}
        written = []
        for step, a, b, made in reversed(steps):
            written.append((step, numbers[id(a)], numbers[id(b)]))
            if made is not None:
                numbers[id(made)] = len(numbers)
        return ShapeProgram(
            len(self._given), tuple(constants), tuple(written), tuple(numbers[id(each)] for each in wanted)
        )


class SymbolicSize:
    """An int that records in a :class:`ShapeEnv` how it is computed and compared. It compares and hashes as its
    ``value``."""

    __slots__ = ("_record", "value")

    def __init__(self, record: ShapeEnv, value: int) -> None:
        self._record = record
        self.value = value

    # ------------------------------------------------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> Any:
        if not _is_whole(other):
            return operator.add(self.__index__(), other)
        return self if _is(other, 0) else self._record.computed(ShapeOp.ADD, self, self._record.of(other))

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        if not _is_whole(other):
            return operator.sub(self.__index__(), other)
        return self if _is(other, 0) else self._record.computed(ShapeOp.SUBTRACT, self, self._record.of(other))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return self._record.computed(ShapeOp.SUBTRACT, self._record.of(0), self)

    def __mul__(self, other: Any) -> Any:
        if not _is_whole(other):
            return operator.mul(self.__index__(), other)
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else self._record.computed(ShapeOp.MULTIPLY, self, self._record.of(other))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is not int or other <= 0:
            return operator.floordiv(self.__index__(), other)
        return self if other == 1 else self._record.computed(ShapeOp.DIVIDE, self, self._record.of(other))

    # ----------------------------------------------------------------------------------------------------- comparisons

    def __eq__(self, other: object) -> bool:
        if not _is_whole(other):
            return isinstance(other, float) and self.__index__() == other
        return self._record.answer(ShapeOp.EQUAL, self, self._record.of(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)  # unlike sizes may go unnoticed, but equal ones are compared

    def __bool__(self) -> bool:
        return self != 0

    def __lt__(self, other: Any) -> bool:
        if not _is_whole(other):
            return bool(self.__index__() < other)
        return self._record.answer(ShapeOp.LESS, self, self._record.of(other))

    def __gt__(self, other: Any) -> bool:
        if not _is_whole(other):
            return bool(self.__index__() > other)
        return self._record.answer(ShapeOp.LESS, self._record.of(other), self)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    # ------------------------------------------------------------------------------------------------- other questions

    def __index__(self) -> int:
        """Return the value as an int, and record a guard that it has this value."""
        self._record.answer(ShapeOp.EQUAL, self, self._record.of(self.value))
        return self.value

    def __repr__(self) -> str:
        return str(self.__index__())

    def __format__(self, how: str) -> str:
        return format(self.__index__(), how)


def _is_whole(other: object) -> TypeGuard[int | SymbolicSize]:
    return isinstance(other, int | SymbolicSize)


def _is(number: int | SymbolicSize, value: int) -> bool:
    """Return whether ``number`` is not symbolic and equals ``value``."""
    return not isinstance(number, SymbolicSize) and number == value


def _binding(function: Callable[[Any, Any], Any]) -> Callable[[SymbolicSize, Any], Any]:
    return lambda self, other: function(self.__index__(), other)


def _binding_reversed(function: Callable[[Any, Any], Any]) -> Callable[[SymbolicSize, Any], Any]:
    return lambda self, other: function(other, self.__index__())


for _name in ("mod", "truediv", "pow", "and", "or", "xor", "lshift", "rshift"):
    _function = getattr(operator, f"__{_name}__")
    setattr(SymbolicSize, f"__{_name}__", _binding(_function))
    setattr(SymbolicSize, f"__r{_name}__", _binding_reversed(_function))
SymbolicSize.__rfloordiv__ = _binding_reversed(operator.floordiv)  # type: ignore[attr-defined]

"""Integer range analysis: an interval for each int of a graph, by abstract interpretation.

.. code-block:: text

    %steps : int = prim::Loop(%n, %true, %zero)
      block0(%i : int, %s : int):            # %i in [0, 2^63 - 2], %s in [0, 2^62]
        %r : int = aten::remainder(%i, %7)   # [0, 6]
        %t : int = aten::add(%s, %one)       # [1, 2^62 + 1]: cannot overflow
        -> (%true, %t)

The intervals hold for an execution with ints of 64 bits that stops where one overflows and where an operator raises an
error. Loops are repeated until their variables' intervals do not grow; a bound that grows is widened. A loop in a loop
starts from the intervals that it had in the iteration before, so that the work grows with the number of variables and
not exponentially with the depth. In the end, passes over the whole graph narrow what was widened too far.

Variables that loops only count up or down by small constants are not widened beyond :data:`MAX_COUNT`: no program
lives long enough for that. The loops of the program have to run their iterations one by one, as they do where they
check for interrupts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final, NamedTuple

from rekindle.analysis.constants import constant_int
from rekindle.analysis.raising import always_raises
from rekindle.ir.control_flow import Carried, LoopView, loop_of_parameter
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import INT

MIN: Final = -(2**63)
MAX: Final = 2**63 - 1

_MAX_STEP: Final = 2**7
MAX_COUNT: Final = 2**62
"""What additions of at most 2^7 each add up to in 2^55 executions: in a year, at one a nanosecond."""

_NARROWING_PASSES: Final = 8
"""The maximum number. Chains of variables that depend on each other take several."""

_MAX_LENGTH: Final = 2**60
"""No list or string has as many elements: they would not fit into the address space."""


class Interval(NamedTuple):
    """The ints from ``low`` to ``high``, both included."""

    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Whether all ints of the interval have 64 bits."""
        return self.low >= MIN and self.high <= MAX

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.low <= number <= self.high

    def clamped(self) -> Interval:
        """Return the ints of 64 bits in the interval; all of them if there is none, where an overflow is certain."""
        low, high = max(self.low, MIN), min(self.high, MAX)
        return Interval(low, high) if low <= high else FULL

    def joined(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))


class _Steps(NamedTuple):
    """How a value is computed from another one, its origin: by adding small constants with these signs, as often as
    the program executes the additions. The value itself is the origin if it is computed in another way."""

    origin: Value
    signs: frozenset[int]


FULL: Final = Interval(MIN, MAX)
_NATURAL: Final = Interval(0, MAX)

Transfer = Callable[..., Interval]
"""Function of the operands' intervals that returns the result's, which may exceed 64 bits."""


def _corners(function: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    results = [function(x, y) for x, y in product(a, b)]
    return Interval(min(results), max(results))


def sum_range(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.high + b.high)


def difference_range(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def product_range(a: Interval, b: Interval) -> Interval:
    return _corners(lambda x, y: x * y, a, b)


def _multiples(a: Interval, factor: int) -> Interval:
    """Return the products of ``a`` with a positive factor that have 64 bits: sums of these with small constants do not
    overflow either."""
    low, high = max(a.low, -(MAX // factor)), min(a.high, MAX // factor)
    return Interval(low * factor, high * factor) if low <= high else FULL


def _quotient(a: Interval, b: Interval) -> Interval:
    if b.low < 0:
        return FULL
    return _corners(lambda x, y: x // y, a, Interval(max(b.low, 1), max(b.high, 1)))


def _remainder(a: Interval, b: Interval) -> Interval:
    if a.low >= 0 and b.low >= 0:
        return Interval(0, max(min(a.high, b.high - 1), 0))
    return Interval(min(b.low + 1, 0), max(b.high - 1, 0))


def _absolute(a: Interval) -> Interval:
    ends = (abs(a.low), abs(a.high))
    return Interval(0 if 0 in a else min(ends), max(ends))


def _and(a: Interval, b: Interval) -> Interval:
    if a.low >= 0 or b.low >= 0:
        return Interval(0, min(each.high for each in (a, b) if each.low >= 0))
    return FULL


def _or(a: Interval, b: Interval) -> Interval:
    if a.low >= 0 and b.low >= 0:
        return Interval(0, 2 ** max(a.high, b.high).bit_length() - 1)
    return FULL


def _shifted_right(a: Interval, b: Interval) -> Interval:
    return Interval(0, a.high) if a.low >= 0 else a.joined(Interval(0, 0))


def _range_length(start: Interval, stop: Interval, step: Interval) -> Interval:
    distance = stop.high - start.low if step.low > 0 else start.high - stop.low if step.high < 0 else MAX
    return Interval(0, max(distance, 0))


_TRANSFERS: Final[dict[str, Transfer]] = {
    "aten::add": sum_range,
    "aten::sub": difference_range,
    "aten::neg": lambda a: Interval(-a.high, -a.low),
    "prim::abs": _absolute,
    "aten::floordiv": _quotient,
    "aten::remainder": _remainder,
    "prim::min": lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    "prim::max": lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
    "aten::__and__": _and,
    "aten::__or__": _or,
    "aten::__xor__": _or,
    "aten::__lshift__": lambda a, b: _NATURAL if a.low >= 0 else FULL,
    "aten::__rshift__": _shifted_right,
    "aten::__range_length": _range_length,
    "aten::__derive_index": lambda index, start, step: sum_range(start, product_range(index, step)),
}
"""By the kind of an operator whose operands and result are ints."""

_RESULTS: Final = {
    "aten::len": Interval(0, _MAX_LENGTH),
    "aten::ord": Interval(0, 0x10FFFF),
    "aten::Int.bool": Interval(0, 1),
}
"""By the kind, or the name with its overload, of an operator with other operands."""


class IntegerRanges:
    """The intervals of the ints of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._known: dict[Value, Interval] = {}
        self._steps: dict[Value, _Steps] = {}
        self._find_steps(graph.block)
        self._is_widened = self._is_narrowing = False
        self._run(graph.block)
        if self._is_widened:
            self._narrow(graph.block)

    def of(self, value: Value) -> Interval:
        """Return the interval of an int."""
        constant = constant_int(value)
        return self._known.get(value, FULL) if constant is None else Interval(constant, constant)

    # ------------------------------------------------------------------------------------------------------------ nodes

    def _run(self, block: Block) -> None:
        for node in block.nodes:
            match node.kind:
                case "prim::Constant":
                    pass
                case "prim::If":
                    self._run_if(node)
                case "prim::Loop":
                    self._run_loop(LoopView(node))
                case _ if len(node.outputs) == 1 and node.output.type == INT:
                    self._known[node.output] = self._result(node).clamped()

    def _result(self, node: Node) -> Interval:
        if all(value.type == INT for value in node.inputs):
            if node.kind == "aten::__derive_index" and is_index_of_range(node):
                return self._index_of_range(node)
            if node.kind == "aten::mul":
                return self._product(*node.inputs)
            transfer = _TRANSFERS.get(node.kind)
            return FULL if transfer is None else transfer(*map(self.of, node.inputs))
        operator = node.operator
        name = "" if operator is None else operator.schema.qualified_name
        return _RESULTS.get(node.kind) or _RESULTS.get(name) or FULL

    def _product(self, a: Value, b: Value) -> Interval:
        if a is b:
            return _square(self.of(a))
        for factor, other in ((constant_int(a), b), (constant_int(b), a)):
            if factor is not None and factor > 1:
                return _multiples(self.of(other), factor)
        return product_range(self.of(a), self.of(b))

    def _index_of_range(self, node: Node) -> Interval:
        loop = loop_of_parameter(node.inputs[0])
        assert loop is not None
        start, stop, step = map(self.of, LoopView(loop).trip_count.node.inputs)
        if step.low > 0:
            return Interval(start.low, max(stop.high - 1, start.low))
        if step.high < 0:
            return Interval(min(stop.low + 1, start.high), start.high)
        return start.joined(stop)

    # ----------------------------------------------------------------------------------------------------- control flow

    def _run_if(self, node: Node) -> None:
        for block in node.blocks:
            self._run(block)
        open_blocks = [block for block in node.blocks if not always_raises(block)]
        for index, output in enumerate(node.outputs):
            if output.type == INT and open_blocks:
                first, *others = (self.of(block.outputs[index]) for block in open_blocks)
                self._known[output] = first.joined(others[0]) if others else first

    def _run_loop(self, loop: LoopView) -> None:
        trips = self.of(loop.trip_count)
        self._known[loop.iteration] = Interval(0, max(trips.high - 1, 0))
        carried = [each for each in loop.carried if each.parameter.type == INT]
        if self._is_narrowing:
            self._narrow_parameters(carried)
            self._run(loop.body)
            self._narrow_parameters(carried)
        else:
            self._repeat(loop.body, carried)
        for each in carried:
            self._known[each.result] = self._known[each.parameter]

    def _repeat(self, body: Block, carried: Sequence[Carried]) -> None:
        """Repeat the body of a loop until the intervals of the loop-carried variables do not grow."""
        for each in carried:
            start = self.of(each.initial)
            self._known[each.parameter] = start.joined(self._known.get(each.parameter, start))
        limits = {each.parameter: self._limit(each) for each in carried}
        is_stable = False
        while not is_stable:
            self._run(body)
            is_stable = True
            for each in carried:
                known = self._known[each.parameter]
                grown = _widened(known, self.of(each.following), limits[each.parameter])
                is_stable = is_stable and grown == known
                self._known[each.parameter] = grown
            self._is_widened |= not is_stable

    def _narrow(self, block: Block) -> None:
        """Narrow what was widened, in passes over the whole graph until nothing changes.

        An interval that is computed from intervals that hold holds too, so that any number of passes is correct.
        """
        self._is_narrowing = True
        for _ in range(_NARROWING_PASSES):
            before = dict(self._known)
            self._run(block)
            if self._known == before:
                break

    def _narrow_parameters(self, carried: Sequence[Carried]) -> None:
        """Replace intervals of loop-carried variables by what they are before the loop and after an iteration, where
        that is less."""
        for each in carried:
            known, values = self._known[each.parameter], self.of(each.initial).joined(self.of(each.following))
            low, high = max(known.low, values.low), min(known.high, values.high)
            if low <= high:
                self._known[each.parameter] = Interval(low, high)

    def _limit(self, carried: Carried) -> Interval:
        """Return an interval that a loop-carried variable cannot leave, given how the loop steps it."""
        origin, signs = self._steps_of(carried.following)
        if origin is not carried.parameter:
            return FULL
        start = self.of(carried.initial)
        low = start.low - MAX_COUNT if -1 in signs else start.low
        high = start.high + MAX_COUNT if 1 in signs else start.high
        return Interval(low, high).clamped()

    # ----------------------------------------------------------------------------------------------------------- steps

    def _steps_of(self, value: Value) -> _Steps:
        return self._steps.get(value, _Steps(value, frozenset()))

    def _find_steps(self, block: Block) -> None:
        for node in block.nodes:
            match node.kind:
                case "aten::add" | "aten::sub":
                    self._steps[node.output] = self._steps_of_sum(node)
                case "prim::If":
                    self._find_steps_of_if(node)
                case "prim::Loop":
                    self._find_steps(node.blocks[0])
                    for each in LoopView(node).carried:
                        origin, signs = self._steps_of(each.following)
                        if origin is each.parameter:
                            before = self._steps_of(each.initial)
                            self._steps[each.result] = _Steps(before.origin, before.signs | signs)

    def _steps_of_sum(self, node: Node) -> _Steps:
        base, step, *_ = node.inputs
        if node.kind == "aten::add" and constant_int(base) is not None:
            base, step = step, base
        number = constant_int(step)
        if number is None or abs(number) > _MAX_STEP:
            return _Steps(node.output, frozenset())
        sign = (number > 0) - (number < 0)
        origin, signs = self._steps_of(base)
        return _Steps(origin, signs | {-sign if node.kind == "aten::sub" else sign})

    def _find_steps_of_if(self, node: Node) -> None:
        for block in node.blocks:
            self._find_steps(block)
        open_blocks = [block for block in node.blocks if not always_raises(block)]
        for index, output in enumerate(node.outputs):
            ways = [self._steps_of(block.outputs[index]) for block in open_blocks]
            if len({way.origin for way in ways}) == 1:
                signs = frozenset(sign for way in ways for sign in way.signs)
                self._steps[output] = _Steps(ways[0].origin, signs)


def _square(a: Interval) -> Interval:
    size = _absolute(a)
    return Interval(size.low**2, size.high**2)


def _widened(known: Interval, following: Interval, limit: Interval) -> Interval:
    """Return an interval that contains both; bounds that grow are moved to 0 or as far as ``limit``."""
    low, high = known
    if following.low < low:
        low = max(limit.low, 0 if following.low >= 0 else MIN)
    if following.high > high:
        high = min(limit.high, 0 if following.high <= 0 else MAX)
    return Interval(low, high)


def is_index_of_range(node: Node) -> bool:
    """Return whether an ``aten::__derive_index`` computes the elements of the range whose length is the trip count of
    the loop: then it lies between the ends of the range, and does not overflow."""
    index, start, step = node.inputs
    loop = loop_of_parameter(index)
    if loop is None or index.offset != 0:
        return False
    length = LoopView(loop).trip_count.node
    if length.kind != "aten::__range_length":
        return False
    first, _, stride = length.inputs
    return _are_equal(start, first) and _are_equal(step, stride)


def _are_equal(a: Value, b: Value) -> bool:
    return a is b or (constant_int(a) is not None and constant_int(a) == constant_int(b))

"""Nodes of the loop IR.

Buffers are numbered: the tensors that are read, then those that are written, then those that only the kernel sees. An
*access* describes how the loops of a nest step through a buffer. An *expression* computes one element; equal
expressions of a nest are one object, so that each is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rekindle.codegen.loop_ir.scalar_types import ScalarType


class AccessStride(Enum):
    """How an access advances from one iteration of the vectorized loop to the next."""

    STAYS = "0"
    """It does not: all iterations access one element."""
    NEXT = "1"
    """To the next element in memory."""
    STRIDE = "s"
    """By a number of bytes that the caller passes."""


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a loop nest to a buffer. The caller passes its start, and its stride along each loop, in bytes."""

    buffer: int
    scalar: ScalarType
    step: AccessStride
    is_fixed: bool = False
    """Whether it stays at one element in all loops of the nest."""
    is_invariant: bool = False
    """Whether it stays at one element in all reduction loops; without any, in the innermost loop."""


Datum = int | float | bool | str | None


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One element: ``kind`` applied to ``operands``.

    Kinds without operands: ``load`` (``payload`` is the number of an access), ``argument`` (of a number among those
    that are passed by value), ``given`` (of a number among those that are passed with the sizes),
    ``constant``, ``reduced`` (the number of a reduction that is complete), ``length`` (the trip count of the reduction
    loops). ``lookup`` loads through an access at an index: its operands are the index, the bound, and the stride in
    bytes; an index out of bounds is reported to the caller. ``checked`` is its first operand; a false second one is
    reported to the caller. ``cast`` converts to the type ``scalar``. The others are
    those that :class:`~rekindle.codegen.loop_ir.builder.Builder` makes, and names of mathematical functions.
    ``scan_sum`` and ``scan_product`` are those of all elements of a row up to this one.
    """

    kind: str
    scalar: ScalarType
    operands: tuple[Expression, ...] = ()
    payload: Datum = None


@dataclass(frozen=True, slots=True)
class Store:
    """Write an expression through an access."""

    access: int
    value: Expression


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduction of an expression: ``sum``, ``product``, ``maximum``, ``minimum``, ``any``, ``all``, or ``argmaximum``
    and ``argminimum``, which return the index of the first such element. ``result`` is the expression of the result,
    which has the type of ``value``, or is an i64."""

    kind: str
    value: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Phase:
    """One pass over the reduction loops."""

    stores: tuple[Store, ...] = ()
    reductions: tuple[Reduction, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopNest:
    """``rank`` nested loops. The last ``reduction_rank`` of them run once for each phase, and ``last`` stores values
    that do not depend on them. The iterations of the other loops are independent; without ``reduction_rank``, those of
    all loops.

    Vectors run along the innermost loop; with ``vectorizes_outer``, along the innermost loop that is not a reduction
    loop.
    """

    rank: int
    accesses: tuple[Access, ...]
    phases: tuple[Phase, ...]
    last: tuple[Store, ...] = ()
    reduction_rank: int = 0
    vectorizes_outer: bool = False
    is_ordered: bool = False
    """Whether elements of a row depend on those before them."""
    extra_parameters: int = 0
    """Number of additional parameters."""

    @property
    def is_full_reduction(self) -> bool:
        """Whether all loops are reduction loops, so that threads share the only row. False for rows whose elements
        depend on those before them."""
        return self.reduction_rank == self.rank and not self.is_ordered

    @property
    def reduction_loops(self) -> range:
        return range(self.rank - self.reduction_rank, self.rank)

    @property
    def vector_loop(self) -> int:
        """The index of the loop that is vectorized."""
        return self.rank - self.reduction_rank - 1 if self.vectorizes_outer else self.rank - 1

    @property
    def parameters(self) -> int:
        """The number of parameters: the sizes; for each access an offset and its strides in bytes; and the
        additional ones."""
        return self.rank + len(self.accesses) * (1 + self.rank) + self.extra_parameters


@dataclass(frozen=True, slots=True)
class MatmulNest:
    """``rank`` nested loops that multiply matrices: ``out[…, m, n]`` is the sum over ``k`` of ``a[…, m, k] * b[…, k,
    n]``. The last three loops are those of ``m``, ``n`` and ``k``; ``accesses`` are ``a``, ``b`` and ``out``.

    Vectors run along ``k`` if both factors are contiguous along it; otherwise (``vectorizes_outer``) along ``n``.
    """

    rank: int
    accesses: tuple[Access, Access, Access]
    vectorizes_outer: bool
    is_row: bool
    """Whether the loop of ``m`` has one iteration."""

    @property
    def parameters(self) -> int:
        """The number of parameters, counted as those of :class:`LoopNest`."""
        return self.rank + len(self.accesses) * (1 + self.rank)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Nests that run in order. ``arguments`` are the types of the arguments passed by value: i64 or f64. The buffers
    after those of the outputs are ``temporaries``, allocated for the duration of the call."""

    inputs: tuple[ScalarType, ...]
    outputs: tuple[ScalarType, ...]
    arguments: tuple[ScalarType, ...]
    nests: tuple[LoopNest | MatmulNest, ...]
    temporaries: tuple[ScalarType, ...] = ()
    has_gathers: bool = False
    """Whether there are lookups, which fail if an index is out of bounds."""
    has_checks: bool = False
    """Whether values are checked."""

    @property
    def may_fail(self) -> bool:
        """Whether lookups or checks may fail. Then an additional last buffer has a word that they set."""
        return self.has_gathers or self.has_checks

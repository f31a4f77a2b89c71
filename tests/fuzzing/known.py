"""Differences that docs/differences.md lists, and how a program that shows one is recognized.

The list is strict: each entry names the row by its beginning, and a test fails where the row is gone. A row is the
cause where eager Python that makes the conversions which it describes agrees in all that is seen, or where the program
without the passes that it is about agrees with eager Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol

import torch

from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen.fusion import FuseGraph
from rekindle.ir.graph import Node
from rekindle.ir.types import FLOAT, INT, NUMBER, TensorType
from rekindle.passes import Peephole, RemoveMutation
from rekindle.passes.simplification import dead_code_elimination
from tests.fuzzing.conversions import CONVERTED, Conversions

UNUSED: Final = "an unused operator on Tensors which would raise"
REORDERED: Final = "an operator on Tensors that raises, and the code after it"
WRITTEN: Final = "a Tensor that a derivative needs, and which is written to afterwards"
ROWS_WRITTEN: Final = "`for row in x: row *= 2` of an `x` that requires grad"

GRAD_FN: Final = '`str(row)`, `f"{row}"` of a Tensor that requires grad'
"""The comparison leaves out the name of a ``grad_fn`` in texts."""

ROWS: Final = (*CONVERTED, ROWS_WRITTEN, UNUSED, REORDERED, WRITTEN, GRAD_FN)


class Outcome(Protocol):
    """What comes of a program: see :class:`tests.fuzzing.judge.Verdict`."""

    status: str
    failure: str
    call: int
    detail: str


Attempt = Callable[[Conversions | None], Outcome]
"""Compares what a program does, which is compiled as it is, with eager Python that makes some conversions."""


@contextmanager
def _never(*passes: Any) -> Iterator[None]:
    """Leave some passes out."""
    before = [each.run for each in passes]
    for each in passes:
        each.run = lambda self, graph: False
    try:
        yield
    finally:
        for each, run in zip(passes, before, strict=True):
            each.run = run


@contextmanager
def without_dead_code_elimination() -> Iterator[None]:
    """Keep every operator on Tensors, whether its result is used or not, and arithmetic of ints and floats;
    backward graphs are not made, since they leave out what no gradient needs."""
    elimination = dead_code_elimination._Elimination
    before = elimination._is_needed

    def is_needed(self: Any, node: Node) -> bool:
        types = [each.type for each in (*node.inputs, *node.outputs)]
        is_mixed = FLOAT in types and (INT in types or NUMBER in types)
        return is_mixed or any(isinstance(type, TensorType) for type in types) or before(self, node)

    elimination._is_needed = is_needed  # type: ignore[method-assign]
    try:
        with _never(CreateDifferentiableGraphs):
            yield
    finally:
        elimination._is_needed = before  # type: ignore[method-assign]


@contextmanager
def rows_by_index() -> Iterator[None]:
    """Have Python go over the rows of a Tensor by index: ``unbind``, which it calls, forbids writes to its results."""
    before = torch.Tensor.__iter__

    def rows(self: torch.Tensor) -> Iterator[torch.Tensor]:
        return (self[index] for index in range(len(self))) if self.dim() else before(self)

    torch.Tensor.__iter__ = rows  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.__iter__ = before  # type: ignore[method-assign]


def row_of(found: Outcome, again: Callable[[], AbstractContextManager[Attempt]], within: tuple[str, ...] = ()) -> str:
    """The row that describes a finding, or an empty text.

    The program is compared again with eager Python that makes the conversions which rows describe, and executed again
    without the passes that other rows are about. These must leave no difference at all. ``within`` are the rows of
    which the effects are out of the way already.
    """
    with again() as attempt:
        row, others = _converted(attempt)
    if row:
        return row
    failures = {found.failure, *(each.failure for each in others if each.call > found.call)}
    if found.failure in _OF_AN_ERROR:
        failures |= {each.failure for each in others}
    for row, context in _contexts(failures, " ".join(each.detail for each in (found, *others))):
        if row in within:
            continue
        with context:
            with again() as attempt:
                rest = attempt(None)
            if rest.status == "passed":
                return row
            if other := row_of(rest, again, (*within, row)):
                return other
    return ""


def _converted(attempt: Attempt) -> tuple[str, list[Outcome]]:
    """The row of conversions that leave no difference, if any; otherwise, what differs.

    Sites are switched off one after the other: all of them convert first, then all but one of those that did something.
    """
    queue: deque[frozenset[int]] = deque([frozenset()])
    tried: set[frozenset[int]] = set()
    outcomes: list[Outcome] = []
    while queue and len(tried) < _MAX_ATTEMPTS:
        off = queue.popleft()
        if off in tried:
            continue
        tried.add(off)
        conversions = Conversions(off)
        outcome = attempt(conversions)
        if outcome.status == "passed":
            return min(conversions.active.values(), key=ROWS.index, default=""), []
        outcomes.append(outcome)
        queue.extend(off | {site} for site in conversions.active)
    return "", outcomes


_MAX_ATTEMPTS: Final = 48


def _contexts(failures: set[str], text: str) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    """The rows on what runs, and in which order, that may describe such failures, and how to execute without them."""
    if failures & {*_OF_AN_ERROR, "missing error"} and any(part in text for part in _FORBIDDEN_WRITES):
        yield ROWS_WRITTEN, rows_by_index()
    if failures & _OF_AN_ERROR:
        yield REORDERED, _never(FuseGraph)
    if failures & {*_OF_AN_ERROR, "missing error"}:
        yield UNUSED, every_operator()
    if "other error of backward" in failures:
        yield WRITTEN, every_operator(RemoveMutation, Peephole)


@contextmanager
def every_operator(*passes: Any) -> Iterator[None]:
    """Execute every operator on Tensors, none of them in a kernel, without ``passes``."""
    with _never(FuseGraph, *passes), without_dead_code_elimination():
        yield


_FORBIDDEN_WRITES: Final = (" is a view and ", "a leaf Variable that requires grad")
_OF_AN_ERROR: Final = frozenset(
    {"other error", "other text", "wrong state after an error", "wrong arguments after an error"}
)

"""Change counting: a pass requests permission before each change, so that changes can be logged, counted and limited
(LLVM: DebugCounter).

A pass calls :func:`may_change` before every single change. Each change leaves the graph valid, whether or not another
follows::

    if not may_change("fold", node):
        return False

The caller of the passes reads the counts in a :class:`ChangeCounter` and may set limits. A wrong change is found by
bisecting the limit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from rekindle.errors.debug_settings import passes_that_ran, settings
from rekindle.errors.log import GRAPH_UPDATE
from rekindle.ir.graph import Node
from rekindle.ir.text.printer import print_head


@dataclass(slots=True)
class ChangeCounter:
    """Counter of the changes of each pass, by name, with an optional maximum for each."""

    limits: Mapping[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def attributed_to(self, name: str) -> Attribution:
        """Return a context manager that attributes changes within its ``with`` block to the pass ``name``."""
        return Attribution(self, name)

    def may_change(self, name: str, what: str, subject: object) -> bool:
        """Return whether the pass ``name`` is below its limit; if so, count one more change. ``what`` and ``subject``
        describe the change; a subclass may record them."""
        count = self.counts.get(name, 0)
        limit = self.limits.get(name)
        if limit is not None and count >= limit:
            return False
        self.counts[name] = count + 1
        return True


class Attribution:
    """Context manager that attributes changes on this thread to a pass, and records that the pass ran. It is a class,
    since a generator takes twice as long to enter, and a compilation of a small graph enters dozens."""

    __slots__ = ("_current", "_token")

    def __init__(self, counter: ChangeCounter, name: str) -> None:
        self._current = counter, name

    def __enter__(self) -> None:
        passes_that_ran.add(self._current[1])
        self._token = _CURRENT.set(self._current)

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)


_CURRENT: Final[ContextVar[tuple[ChangeCounter, str] | None]] = ContextVar("rekindle.changes", default=None)


def may_change(what: str, subject: object) -> bool:
    """Return whether the running pass may do ``what`` with ``subject`` (a node, a value, anything with a ``repr``);
    if so, count and log the change.

    Outside of a :class:`ChangeCounter`, the result is True, and nothing is counted or logged. Within one, it is False
    if the pass has reached its limit.

    Example:
        >>> from rekindle.rewriting.changes import may_change
        >>> may_change("remove", "a node")
        True
    """
    current = _CURRENT.get()
    if current is None:
        return True
    log, name = current
    if not log.may_change(name, what, subject):
        return False
    logger = logger_of(name)
    if logger.isEnabledFor(GRAPH_UPDATE):
        text = print_head(subject, verbosity=settings().verbosity) if isinstance(subject, Node) else repr(subject)
        logger.log(GRAPH_UPDATE, "%s %s", what, text)
    return True


@cache
def logger_of(name: str) -> logging.Logger:
    """Return the logger of the pass ``name``."""
    return logging.getLogger(f"rekindle.passes.{name}")


def nested(name: str) -> AbstractContextManager[None]:
    """Return a context manager that attributes changes within its ``with`` block to the pass ``name``, which the
    running pass calls. It does nothing if no pass runs under a counter."""
    current = _CURRENT.get()
    return nullcontext() if current is None else current[0].attributed_to(name)

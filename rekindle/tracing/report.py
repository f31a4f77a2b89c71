"""Trace report: the properties of the example that a trace holds constant, as a readable list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from rekindle.errors import SourceRange
from rekindle.errors.html_output import paragraph, table


class Baked(Enum):
    """The kinds of properties that a trace fixes when it is recorded."""

    NUMBER = "number"
    """A number out of a tensor: ``x.item()``, ``int(x)``, ``x.tolist()``."""
    BRANCH = "branch"
    """A truth value that the code may have branched on: ``if x.sum() > 0``, ``if x.size(0) > 3``."""
    LOOP = "loop"
    """The trip count of a loop over a tensor."""
    SIZE = "size"
    """Sizes that PyTorch's own code passed to an operator, whose computation the trace cannot observe."""
    CONSTANT = "constant"
    """A tensor that is neither an input nor computed from one, nor part of the module."""
    DTYPE = "dtype"
    """A dtype that the program names."""
    DEVICE = "device"
    """A device that the program names."""
    STATE = "state"
    """A setting of PyTorch that was in force, such as autocast, or an effect of the code that the trace does not
    repeat."""


@dataclass(slots=True, frozen=True)
class BakedFact:
    """One assumption of the trace: its kind, its value for the example, and the source location in the user's code."""

    kind: Baked
    what: str
    value: str
    place: SourceRange

    @property
    def line(self) -> str:
        """The file and the line; empty where they are not known."""
        return self.place.place.rpartition(":")[0] if self.place.is_known else ""

    def __str__(self) -> str:
        where = f" ({self.line})" if self.line else ""
        return f"{self.kind.value}: {self.what} was {self.value}{where}"


_NO_FACTS: Final = "the trace assumes nothing but what its operators do"


@dataclass(slots=True)
class TraceReport:
    """The assumptions about later calls that were found while a trace was recorded; empty if there are none."""

    facts: list[BakedFact] = field(default_factory=list)
    _seen: set[object] = field(default_factory=set, repr=False)

    def add(self, kind: Baked, what: str, value: object, place: SourceRange) -> bool:
        """Record a fact, unless the same fact is recorded for this location already. Return whether it is new."""
        key = (kind, what, place.place, str(value))
        if key in self._seen:
            return False
        self._seen.add(key)
        self.facts.append(BakedFact(kind, what, str(value), place))
        return True

    def __iter__(self) -> Iterator[BakedFact]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    def __str__(self) -> str:
        if not self.facts:
            return _NO_FACTS
        return "the trace assumes that\n" + "\n".join(f"  {fact}" for fact in self.facts)

    def _repr_html_(self) -> str:
        if not self.facts:
            return paragraph(_NO_FACTS)
        rows = [(fact.kind.value, fact.what, fact.value, fact.line) for fact in self.facts]
        return paragraph("The trace assumes:") + table(("kind", "what", "value in the example", "place"), rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the object in IPython on a terminal."""
        printer.text(str(self))

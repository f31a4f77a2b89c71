"""A program that was to be fused as a whole, and is not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rekindle.errors.exceptions import RekindleError
from rekindle.errors.source import SourceRange


@dataclass(frozen=True, slots=True)
class FusionBlocker:
    """``what`` runs outside of kernels, ``count`` times in the program: an operator, or several that were to be one
    kernel. ``reason`` says why, ``hint`` what to do about it."""

    what: str
    reason: str
    hint: str
    range: SourceRange
    count: int = 1

    def times(self, count: int) -> FusionBlocker:
        """The same, ``count`` times."""
        return replace(self, count=count)

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" × {self.count}"
        place = self.range.highlight()
        return "\n".join([f"{self.what}{times}: {self.reason}", *([place] if place else []), f"Hint: {self.hint}"])


class NotFusedError(RekindleError):
    """Within :func:`rekindle.require_fused`, the program ``name`` runs operators outside of kernels: ``blockers`` has
    all of them."""

    def __init__(self, name: str, blockers: tuple[FusionBlocker, ...]) -> None:
        self.name = name
        self.blockers = blockers
        head = f"'{name}' is not fused as a whole: this runs outside of kernels"
        super().__init__("\n\n".join([head, *map(str, blockers)]))

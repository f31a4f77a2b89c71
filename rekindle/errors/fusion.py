"""The error for a program that ``rekindle.require_fused`` finds to be not fused as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rekindle.errors.exceptions import RekindleError
from rekindle.errors.source import SourceRange


@dataclass(frozen=True, slots=True)
class FusionBlocker:
    """An operator that runs outside of kernels, or several that could not be one kernel. It occurs ``count`` times in
    the program.

    ``reason`` is why it is not in a kernel, and ``hint`` a suggestion.

    Example:
        >>> in_order = rekindle.script(lambda x: torch.sort(x)[0])
        >>> try:
        ...     with rekindle.require_fused():
        ...         in_order(torch.zeros(4))
        ... except rekindle.errors.NotFusedError as error:
        ...     print(error.blockers[0].what, error.blockers[0].reason, sep=": ")
        aten::sort: kernels do not know this operator
    """

    what: str
    reason: str
    hint: str
    range: SourceRange
    count: int = 1

    def times(self, count: int) -> FusionBlocker:
        """Return a copy with the number of occurrences ``count``."""
        return replace(self, count=count)

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" × {self.count}"
        place = self.range.highlight()
        return "\n".join([f"{self.what}{times}: {self.reason}", *([place] if place else []), f"Hint: {self.hint}"])


class NotFusedError(RekindleError):
    """Error of :func:`rekindle.require_fused`: the program ``name`` runs operators outside of kernels, listed in
    ``blockers``.

    Example:
        >>> in_order = rekindle.script(lambda x: torch.sort(x)[0])
        >>> try:
        ...     with rekindle.require_fused():
        ...         in_order(torch.zeros(4))
        ... except rekindle.errors.NotFusedError as error:
        ...     print(len(error.blockers))
        1
    """

    def __init__(self, name: str, blockers: tuple[FusionBlocker, ...]) -> None:
        self.name = name
        self.blockers = blockers
        head = f"'{name}' is not fused as a whole: this is outside of kernels"
        super().__init__("\n\n".join([head, *map(str, blockers)]))

"""Why a program cannot leave for Export IR: all reasons in one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rekindle.errors.exceptions import RekindleError
from rekindle.errors.source import UNKNOWN_RANGE, SourceRange


class ExportProblem(RekindleError, RuntimeError):
    """One reason why a program cannot be expressed in Export IR: what it is, where it stands, what to write instead,
    and the functions (by name, and where each was called) that led there."""

    def __init__(
        self,
        message: str,
        range: SourceRange = UNKNOWN_RANGE,
        *,
        hint: str | None = None,
        callers: Sequence[tuple[str, SourceRange]] = (),
    ) -> None:
        self.message = message
        self.range = range
        self.hint = hint
        self.callers = tuple(callers)
        super().__init__(message)

    def __str__(self) -> str:
        parts = [self.message]
        if self.range.is_known:
            parts.append(self.range.highlight(0))
        for name, place in reversed(self.callers):
            if place.is_known:
                parts.append(f"'{name}' is called here:\n{place.highlight(0)}")
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)


class ExportError(RekindleError, RuntimeError):
    """A program that cannot be exported as it is. ``problems`` holds every reason that was found, in the order in which
    the program comes to them."""

    def __init__(self, name: str, problems: Iterable[ExportProblem]) -> None:
        self.name = name
        self.problems = tuple(problems)
        super().__init__(name)

    def __str__(self) -> str:
        count = len(self.problems)
        if count == 1:
            return f"'{self.name}' cannot be exported: {self.problems[0]}"
        parts = [f"'{self.name}' cannot be exported, for {count} reasons."]
        parts += [f"{number}. {problem}" for number, problem in enumerate(self.problems, 1)]
        return "\n\n".join(parts)

"""Errors of the export to Export IR: all blockers in one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rekindle.errors.exceptions import RekindleError
from rekindle.errors.source import UNKNOWN_RANGE, SourceRange


class ExportProblem(RekindleError, RuntimeError):
    """One reason why a program cannot be expressed in Export IR.

    It has the problem, its source location, what to write instead, and the functions that were being exported with the
    lines of their calls. ``in_draft`` is what a draft does instead; None if no draft can leave it out.

    Example:
        >>> print(rekindle.errors.ExportProblem("a list of unknown length").message)
        a list of unknown length
    """

    def __init__(
        self,
        message: str,
        range: SourceRange = UNKNOWN_RANGE,
        *,
        hint: str | None = None,
        callers: Sequence[tuple[str, SourceRange]] = (),
        in_draft: str | None = None,
    ) -> None:
        self.message = message
        self.range = range
        self.hint = hint
        self.callers = tuple(callers)
        while self.range.source.is_library and self.callers:
            *outer, (_, self.range) = self.callers
            self.callers = tuple(outer)
        self.in_draft = in_draft
        super().__init__(message)

    def with_draft(self, in_draft: str) -> ExportProblem:
        """Return a copy with ``in_draft`` as the behavior of a draft."""
        return ExportProblem(self.message, self.range, hint=self.hint, callers=self.callers, in_draft=in_draft)

    @property
    def key(self) -> tuple[str, str]:
        """Key that is equal for the same reason at the same location, on any path to it: one change fixes it."""
        if not self.range.is_known:
            return self.message, ""
        return self.hint or self.message, self.range.place

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
    """A program that cannot be exported. ``problems`` has every reason, in the order of the program.

    ``is_draft`` is True if a draft was requested, and there is a reason that a draft cannot leave out.

    Example:
        >>> @rekindle.script
        ... def positions(x):
        ...     return [i for i in range(x.size(0)) if bool(x[i] > 0)]
        >>> try:
        ...     rekindle.to_exported(positions, (torch.ones(3),))
        ... except rekindle.errors.ExportError as error:
        ...     print(len(error.problems) > 0)
        True
    """

    def __init__(self, name: str, problems: Iterable[ExportProblem], *, is_draft: bool = False) -> None:
        self.name = name
        self.problems = tuple(problems)
        self.is_draft = is_draft
        super().__init__(name)

    def __str__(self) -> str:
        count = len(self.problems)
        summary = f"'{self.name}' cannot be exported" + (", not even as a draft" if self.is_draft else "")
        if count == 1:
            return f"{summary}: {self.problems[0]}"
        return "\n\n".join([f"{summary}, for {count} reasons.", *_numbered(self.problems)])


class DraftWarning(UserWarning):
    """Warning that an exported program is a draft, which differs from the compiled program.

    ``problems`` has the reasons, each with what the draft does instead.

    Example:
        >>> issubclass(rekindle.errors.DraftWarning, UserWarning)
        True
    """

    def __init__(self, name: str, problems: Iterable[ExportProblem]) -> None:
        self.name = name
        self.problems = tuple(problems)
        super().__init__(name)

    def __str__(self) -> str:
        count = len(self.problems)
        places = "one place" if count == 1 else f"{count} places"
        texts = [f"{problem}\nIn the draft: {problem.in_draft}" for problem in self.problems]
        return "\n\n".join(
            [f"the exported program is a draft, which differs from '{self.name}' in {places}.", *_numbered(texts)]
        )


def _numbered(items: Sequence[object]) -> list[str]:
    return [f"{number}. {item}" for number, item in enumerate(items, 1)]

"""Why a program cannot leave for Export IR: all reasons in one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rekindle.errors.exceptions import RekindleError
from rekindle.errors.source import UNKNOWN_RANGE, SourceRange


class ExportProblem(RekindleError, RuntimeError):
    """One reason why a program cannot be expressed in Export IR: what it is, where it stands, what to write instead,
    and the functions (by name, and where each was called) that led there. ``in_draft`` says what a draft does in its
    place; None where there can be no draft."""

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
        """The same reason, with what a draft does in its place."""
        return ExportProblem(self.message, self.range, hint=self.hint, callers=self.callers, in_draft=in_draft)

    @property
    def key(self) -> tuple[str, str]:
        """Equal for the same reason at the same place, however the program comes there: it is mended in one way."""
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
    """A program that cannot be exported as it is. ``problems`` holds every reason that was found, in the order in which
    the program comes to them. ``is_draft`` where a draft was asked for, which is refused only where there is a reason
    that no draft gets round."""

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
    """An exported program is a draft: it is not the program that was compiled. ``problems`` holds the reasons, each
    with what the draft does instead."""

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

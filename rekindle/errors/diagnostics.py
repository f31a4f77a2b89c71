"""Error recovery: collect several compile errors, and report them together.

Each function that is compiled has a :class:`Diagnostics` of its own. An error is added to it, and the compiler
continues after the failed construct. At the end, one error is raised as it is, and several as a :class:`ProgramErrors`.
The caller of the function adds these to its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rekindle.errors.causes import Cause
from rekindle.errors.exceptions import CascadingError, CompileError
from rekindle.errors.source import SourceRange

MAX_REPORTED: Final = 20
"""Number of problems that are reported in full; the rest are only counted."""

MAX_ALIKE: Final = 3
"""Number of problems with the same message that are reported one by one; more are grouped."""

MAX_LINES: Final = 3
"""Maximum number of lines of a message that is reported beside others (a call that fits no overload lists all
candidates), and of locations listed for one problem."""


class ProgramErrors(CompileError):
    r"""Several problems of one program. ``errors`` has each once, in the order of the source.

    ``range`` and ``cause`` are those of the first.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(x):\n    a = y\n    b = z')
        ... except rekindle.errors.ProgramErrors as error:
        ...     print(len(error.errors))
        2
    """

    def __init__(self, errors: Iterable[CompileError]) -> None:
        self._errors = in_order(errors)
        first = self._errors[0]
        others = len(self._errors) - 1
        message = f"{first.message} (and {others} more {'problem' if others == 1 else 'problems'})"
        super().__init__(message, first.range, hint=first.hint, cause=first.cause, edit=first.edit, frames=first.frames)

    @property
    def errors(self) -> tuple[CompileError, ...]:
        return self._errors

    def __str__(self) -> str:
        groups = _by_message(self._errors)
        count, places = len(groups), len(self._errors)
        where = "" if count == places else f", in {places} places,"
        parts = [f"{_problems(count)}{where} {'keeps' if count == 1 else 'keep'} this from being compiled."]
        for number, (error, *others) in enumerate(groups[:MAX_REPORTED], 1):
            parts.append(f"{number}. {error.cause}{_line(error.range)}: {_describe(error)}{_places(others)}")
        if count > MAX_REPORTED:
            parts.append(f"… and {count - MAX_REPORTED} more: 'errors' of this exception holds them all.")
        return "\n\n".join(parts)


def _problems(count: int) -> str:
    return f"{count} {'problem' if count == 1 else 'problems'}"


def _by_message(errors: Sequence[CompileError]) -> list[list[CompileError]]:
    """Return ``errors`` in groups: all errors of the same class with the same message and hint, if there are more than
    :data:`MAX_ALIKE`, such as a class that is missing in many places; each other error alone."""
    found: dict[object, list[CompileError]] = {}
    for error in errors:
        found.setdefault((type(error), error.message, error.hint), []).append(error)
    alike = {id(error): group for group in found.values() if len(group) > MAX_ALIKE for error in group}
    return [alike.get(id(error), [error]) for error in errors if id(error) not in alike or alike[id(error)][0] is error]


def _places(errors: Sequence[CompileError]) -> str:
    """Return a line break, and a line with the locations of at most :data:`MAX_LINES` of the other occurrences of a
    problem; an empty string if there are none."""
    ranges = [error.range for error in errors if error.range is not None and error.range.is_known]
    shown = [f"{range.source.filename or 'the text'}:{range.line}" for range in ranges[:MAX_LINES]]
    more = len(errors) - len(shown)
    listed = ", ".join([*shown, *([f"and {more} more"] if more else [])])
    return f"\nThe same in {_count_of_places(len(errors))}: {listed}" if errors else ""


def _count_of_places(count: int) -> str:
    return "another place" if count == 1 else f"{count} other places"


def _describe(error: CompileError) -> str:
    lines = error.message.split("\n")
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"  … ({len(lines) - MAX_LINES} more lines)"]
    text = error.text("\n".join(lines), error.suggestion)
    return text if error.edit is None else f"{text}\nEdit: {error.edit}"


def _line(range: SourceRange | None) -> str:
    """Return `` in line 3`` for a known range in a source without a file; an empty string for other ranges."""
    if range is None or not range.is_known or range.source.filename is not None:
        return ""
    return f" in line {range.line}"


def in_order(errors: Iterable[CompileError]) -> tuple[CompileError, ...]:
    """Return the distinct problems in ``errors`` in source order; files in the order in which they first occur.

    Errors of the same class with the same message at the same location are one problem, and for invalid classes those
    at other locations too."""
    found: dict[object, CompileError] = {}
    files: dict[object, int] = {}
    for error in (single for each in errors for single in each.errors):
        files.setdefault(_file(error.range), len(files))
        # An error in a class is reported once, not at each use.
        place = None if error.cause is Cause.INVALID_CLASS else _place(error.range)
        found.setdefault((place, type(error), error.message), error)
    return tuple(sorted(found.values(), key=lambda error: (files[_file(error.range)], *_position(error.range))))


def _file(range: SourceRange | None) -> object:
    if range is None or not range.is_known:
        return None
    return range.source.filename or range.source.text


def _position(range: SourceRange | None) -> tuple[int, int]:
    return (0, 0) if range is None or not range.is_known else (range.line, range.column)


def _place(range: SourceRange | None) -> object:
    return (_file(range), _position(range))


class Diagnostics:
    """Collector of the compile errors of one unit: a function, a class, a module, or a source text."""

    def __init__(self) -> None:
        self.problems: list[CompileError] = []
        self._given_up: CascadingError | None = None

    @property
    def has_failed(self) -> bool:
        """Whether there is an error, so that the unit cannot be compiled."""
        return bool(self.problems) or self._given_up is not None

    def add(self, error: CompileError) -> None:
        """Record an error. A :class:`CascadingError` is recorded apart: it is reported only if there is no other."""
        if isinstance(error, CascadingError):
            self._given_up = error
        else:
            self.problems.append(error)

    def forget_since(self, reported: list[CompileError]) -> None:
        """Restore the errors to ``reported``, those recorded at the start of an emission that is restarted. Clear the
        record of errors that follow from others."""
        self.problems[:] = reported
        self._given_up = None

    def raise_all(self) -> None:
        """Raise the recorded errors, if there are any.

        Raises:
            CompileError: there is one. It is a CascadingError if no error was recorded but one that follows from
                another.
            ProgramErrors: there are several.
        """
        errors = in_order(self.problems)
        if len(errors) > 1:
            raise ProgramErrors(errors)
        if errors:
            raise errors[0]
        if self._given_up is not None:
            raise self._given_up

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Record a compile error that is raised in the ``with`` block, and continue after the block.

        Other exceptions than RecursionError are suppressed if an error was recorded earlier: they are taken to follow
        from it.
        """
        try:
            yield
        except CompileError as error:
            self.add(error)
        except RecursionError:
            raise
        except Exception:
            if not self.has_failed:
                raise  # else it comes from what is missing

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Recover from a compile error in the ``with`` block as :meth:`recovering` does, and call :meth:`raise_all` at
        its end.

        Raises:
            CompileError: there is an error. Several are raised as :class:`ProgramErrors`.
        """
        with self.recovering():
            yield
        self.raise_all()

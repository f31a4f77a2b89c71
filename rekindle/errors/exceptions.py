"""The errors that users meet. Each has a class, a place and, where there is one, a way out."""

from __future__ import annotations

import platform
import sys
import traceback
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.errors.causes import Cause, Edit
from rekindle.errors.frames import CompilationFrame, current_frames
from rekindle.errors.source import SourceRange


class RekindleError(Exception):
    """The base of every error that this package raises on its own account."""


class CompileError(RekindleError, RuntimeError):
    """A program that cannot be compiled. It is a RuntimeError for the sake of code written for ``torch.jit``, which
    catches that.

    ``message`` says what is wrong, ``range`` where, ``cause`` what kind of problem it is, ``hint`` what to do about it,
    ``edit`` how the source could be changed, ``frames`` which functions were being compiled (the outermost first).
    ``str()`` puts them together. What is wrong within a function of the package's own texts is wrong at its call.
    """

    CAUSE: ClassVar[Cause] = Cause.UNSUPPORTED_CONSTRUCT
    """The cause where none is given."""
    HINT_IS_FOR_CALLERS: ClassVar[bool] = False
    """Whether the hint says how to call the program, and not what to change at the place of the problem."""

    def __init__(
        self,
        message: str,
        range: SourceRange | None = None,
        *,
        hint: str | None = None,
        cause: Cause | None = None,
        edit: Edit | None = None,
        frames: tuple[CompilationFrame, ...] | None = None,
    ) -> None:
        self.message = message
        self.range = range
        self.hint = hint
        self.cause = cause or self.CAUSE
        self.edit = edit
        self.frames = current_frames() if frames is None else frames
        while self.range is not None and self.range.source.is_library and self.frames:
            *outer, function = self.frames
            self.range, self.edit, self.frames = function.called_from, None, tuple(outer)
        super().__init__(message)

    @property
    def suggestion(self) -> str:
        """What to do: the hint, or what helps against most problems with this cause."""
        return self.hint or self.cause.advice

    @property
    def errors(self) -> tuple[CompileError, ...]:
        """The problems that this tells of: itself, or those of a :class:`ProgramErrors`."""
        return (self,)

    def __str__(self) -> str:
        return self.text(self.message, self.hint)

    def text(self, message: str, hint: str | None) -> str:
        """``message`` with what else is known: the place, the functions being compiled, the hint."""
        parts = [message]
        if self.range is not None and self.range.is_known:
            parts.append(self.range.highlight())
        for frame in reversed(self.frames):
            if frame.called_from is not None and frame.called_from.is_known:
                parts.append(f"'{frame.name}' is compiled because it is used here:\n{frame.called_from.highlight()}")
            elif frame.reason:
                parts.append(f"'{frame.name}' is compiled because {frame.reason}")
        if hint:
            package = None if self.range is None or self.HINT_IS_FOR_CALLERS else self.range.source.package
            parts.append(f"Hint: {hint}" if package is None else f"Hint for the authors of '{package}': {hint}")
        return "\n".join(parts)


class ParseError(CompileError):
    """Text that is not a program, a schema, a type or a graph."""

    CAUSE = Cause.INVALID_SYNTAX


class UnsupportedError(CompileError):
    """Python that the language leaves out."""


@dataclass(slots=True, frozen=True)
class MissingName:
    """The text and the class of Python's error where a variable is read that nothing is assigned to. ``block`` is the
    block of the graph that would have read it."""

    text: str
    class_name: str
    block: object


class UndefinedNameError(CompileError):
    """A name or an attribute that does not exist, or does not exist on every path that leads here."""

    CAUSE = Cause.UNDEFINED_NAME
    missing: MissingName | None = None
    """Where it is the name of a variable: what Python raises."""


class TypeMismatchError(CompileError):
    """A value whose type does not fit where it stands."""

    CAUSE = Cause.TYPE_MISMATCH


class SchemaError(CompileError):
    """A call that fits no overload; the message shows each candidate and why it does not fit."""

    CAUSE = Cause.TYPE_MISMATCH


class NotScriptableError(CompileError):
    """A Python object that cannot become part of a program."""

    CAUSE = Cause.DYNAMIC_BEHAVIOUR


class UnknownLibraryClassError(CompileError):
    """A class that is written in C++, of whose methods nothing is known yet. Told once for each class."""

    CAUSE = Cause.INVALID_CLASS
    HINT_IS_FOR_CALLERS = True


class CascadingError(CompileError):
    """Something that needs what could not be compiled. It is no problem of its own, and no user sees it."""


class TracingError(CompileError):
    """A run that cannot be recorded, or a recording that does not hold."""

    HINT_IS_FOR_CALLERS = True


class DifferentiationError(CompileError):
    """A program that has no derivative as a program."""

    HINT_IS_FOR_CALLERS = True


class CaptureError(CompileError):
    """A program that PyTorch captured holds what has no form here."""


class RuleError(CompileError):
    """A rewrite rule that cannot be, or whose replacement does something else than its pattern."""


class BatchingError(CompileError):
    """A program cannot be made one for a batch as it was asked for."""

    HINT_IS_FOR_CALLERS = True


class GraphError(RekindleError, RuntimeError):
    """A misuse of the graph API. The graph is left as it was. It is a RuntimeError for the sake of code written for
    ``torch.jit``, which catches that."""


class VerificationError(RekindleError, RuntimeError):
    """A graph that breaks an invariant, with the IR around the place."""


class ArgumentError(RekindleError, TypeError, RuntimeError):
    """A compiled function called with arguments that do not fit its schema: a TypeError, as in Python, and a
    RuntimeError, as in ``torch.jit``."""


class InternalError(RekindleError):
    """A bug in this package, never the user's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}\nThis is a bug in rekindle. Please report it with the program that you compiled and this "
            "message."
        )


_BUGS: Final = (AssertionError, AttributeError, LookupError, NameError, NotImplementedError, TypeError, ValueError)


def is_bug(error: BaseException) -> bool:
    """Return whether an exception shows a bug of this package: its own code raised one of Python's for programmers."""
    if not isinstance(error, _BUGS) or isinstance(error, RekindleError) or error.__traceback__ is None:
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "rekindle"


def bug_while(error: BaseException, doing: str) -> InternalError:
    """Return what tells a user of a bug: what was done, the exception, and the versions that a report needs."""
    loaded = ((name, getattr(sys.modules.get(name), "__version__", "unknown")) for name in ("rekindle", "torch"))
    versions = ", ".join(f"{name} {number}" for name, number in (*loaded, ("Python", platform.python_version())))
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return InternalError(f"rekindle failed with {what}\n{doing}\n({versions})")

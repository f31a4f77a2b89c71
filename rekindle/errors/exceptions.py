"""Exception classes. A compile error has a source location, a cause and, where there is one, a hint."""

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
    """Base class of the errors that this package raises for its own reasons.

    Example:
        >>> issubclass(rekindle.errors.CompileError, rekindle.RekindleError)
        True
    """


class CompileError(RekindleError, RuntimeError):
    r"""Error of a program that cannot be compiled. It is a RuntimeError too, which code written for ``torch.jit``
    catches.

    ``message`` is the problem, ``range`` its source location, ``cause`` its kind, ``hint`` a suggestion, ``edit`` a
    change of the source that would help, and ``frames`` the functions being compiled, the outermost first (by default
    those of this thread). ``str()`` has the message, the location, the frames and the hint. A location in this
    package's own sources is replaced by that of the call in the user's program, and ``edit`` by None.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(x):\n    return y')
        ... except rekindle.errors.CompileError as error:
        ...     print(error.message, error.cause.value, sep='; ')
        the name 'y' is not defined; undefined name
    """

    CAUSE: ClassVar[Cause] = Cause.UNSUPPORTED_CONSTRUCT
    """The cause of an error that is constructed without one."""
    HINT_IS_FOR_CALLERS: ClassVar[bool] = False
    """Whether the hint explains how to call the program, rather than what to change at the location of the problem."""

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
        """The suggestion: the hint, or the default advice for this cause."""
        return self.hint or self.cause.advice

    @property
    def errors(self) -> tuple[CompileError, ...]:
        """The problems that this error reports: itself, or those of a :class:`ProgramErrors`."""
        return (self,)

    def __str__(self) -> str:
        return self.text(self.message, self.hint)

    def text(self, message: str, hint: str | None) -> str:
        """Return ``message`` with the source location, the functions being compiled (the innermost first), and ``hint``
        if it is not None."""
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
    r"""A text that is not a program, a schema, a type or a graph.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(x:\n')
        ... except rekindle.errors.ParseError as error:
        ...     print(type(error).__name__)
        ParseError
    """

    CAUSE = Cause.INVALID_SYNTAX


class UnsupportedError(CompileError):
    r"""A construct of Python that programs cannot have.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(x):\n    global y\n    return x')
        ... except rekindle.errors.UnsupportedError as error:
        ...     print(type(error).__name__)
        UnsupportedError
    """


@dataclass(slots=True, frozen=True)
class MissingName:
    """The message and the class of Python's error for the read of an unassigned variable. ``block`` is the block of the
    graph that would have read it."""

    text: str
    class_name: str
    block: object


class UndefinedNameError(CompileError):
    r"""A name or an attribute that does not exist, or not on every path.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(x):\n    return y')
        ... except rekindle.errors.UndefinedNameError as error:
        ...     print(error.message)
        the name 'y' is not defined
    """

    CAUSE = Cause.UNDEFINED_NAME
    missing: MissingName | None = None
    """For a variable that is not assigned on every path: the error that Python raises. Else None."""


class TypeMismatchError(CompileError):
    r"""A value whose type does not fit its use.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(n: int) -> str:\n    return n')
        ... except rekindle.errors.TypeMismatchError as error:
        ...     print("str" in error.message)
        True
    """

    CAUSE = Cause.TYPE_MISMATCH


class SchemaError(CompileError):
    r"""A call that fits no signature. For an operator, the message has each overload and why it does not fit.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit('def f(x):\n    return torch.relu(x, x, x)')
        ... except rekindle.errors.SchemaError as error:
        ...     print('aten::relu' in str(error))
        True
    """

    CAUSE = Cause.TYPE_MISMATCH


class NotScriptableError(CompileError):
    """A Python object that cannot become part of a program.

    Example:
        >>> try:
        ...     rekindle.script(3)
        ... except rekindle.errors.NotScriptableError as error:
        ...     print(type(error).__name__)
        NotScriptableError
    """

    CAUSE = Cause.DYNAMIC_BEHAVIOUR


class UnknownLibraryClassError(CompileError):
    """A C++ class (``torch.classes``) whose methods are not known. See :func:`rekindle.add_torchbind_schemas`.

    Example:
        >>> try:
        ...     raise rekindle.errors.UnknownLibraryClassError('space.Stack is not known')
        ... except rekindle.errors.UnknownLibraryClassError as error:
        ...     print(error.message)
        space.Stack is not known
    """

    CAUSE = Cause.INVALID_CLASS
    HINT_IS_FOR_CALLERS = True


class CascadingError(CompileError):
    """Error of a construct that depends on one that could not be compiled. It is not reported beside the original
    error."""


class TracingError(CompileError):
    """A run that cannot be recorded, or a recording that is not valid.

    Example:
        >>> try:
        ...     rekindle.trace(lambda x: print, torch.ones(1))
        ... except rekindle.errors.TracingError as error:
        ...     print(type(error).__name__)
        TracingError
    """

    HINT_IS_FOR_CALLERS = True


class DifferentiationError(CompileError):
    """A program from which no derivative can be compiled.

    Example:
        >>> try:
        ...     rekindle.grad(lambda x: x.size(0))
        ... except rekindle.errors.DifferentiationError as error:
        ...     print(type(error).__name__)
        DifferentiationError
    """

    HINT_IS_FOR_CALLERS = True


class CaptureError(CompileError):
    """Part of a program captured by PyTorch that cannot be imported. Several are a :class:`ProgramErrors`.

    Example:
        >>> try:
        ...     raise rekindle.errors.CaptureError('aten::unknown has no form here')
        ... except rekindle.errors.CaptureError as error:
        ...     print(error.message)
        aten::unknown has no form here
    """


class RuleError(CompileError):
    """A rewrite rule that is not valid, or whose replacement computes something else than its pattern.

    Example:
        >>> rule = rekindle.rewrite(lambda x: x)
        >>> try:
        ...     rule(lambda x: x)
        ... except rekindle.errors.RuleError as error:
        ...     print(type(error).__name__)
        RuleError
    """


class BatchingError(CompileError):
    """A program that :func:`rekindle.vmap` cannot batch as requested.

    Example:
        >>> try:
        ...     rekindle.vmap(lambda x: x + torch.rand(1))(torch.ones(2))
        ... except rekindle.errors.BatchingError as error:
        ...     print(type(error).__name__)
        BatchingError
    """

    HINT_IS_FOR_CALLERS = True


class GraphError(RekindleError, RuntimeError):
    """A misuse of the graph API.

    It is a RuntimeError too, which code written for ``torch.jit`` catches.

    Example:
        >>> try:
        ...     rekindle.script(lambda x: x + 1).graph.find_node('aten::add').destroy()
        ... except rekindle.errors.GraphError as error:
        ...     print(type(error).__name__)
        GraphError
    """


class VerificationError(RekindleError, RuntimeError):
    """A graph that violates an invariant. The verifier's message shows the IR around the node.

    Example:
        >>> try:
        ...     raise rekindle.errors.VerificationError('a value is used before it is defined')
        ... except rekindle.errors.VerificationError as error:
        ...     print(error)
        a value is used before it is defined
    """


class ArgumentError(RekindleError, TypeError, RuntimeError):
    """A call of a compiled function with arguments that do not fit its schema.

    It is a TypeError, as in Python, and a RuntimeError, as in ``torch.jit``.

    Example:
        >>> try:
        ...     rekindle.script(lambda x: x + 1)()
        ... except rekindle.errors.ArgumentError as error:
        ...     print("x" in str(error))
        True
    """


class InternalError(RekindleError):
    """A bug in this package. The message ends with a request to report it.

    Example:
        >>> try:
        ...     raise rekindle.errors.InternalError('no such case')
        ... except rekindle.errors.InternalError as error:
        ...     print(isinstance(error, rekindle.RekindleError))
        True
    """

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}\nThis is a bug in rekindle. Please report it with the program that you compiled and this "
            "message."
        )


_BUGS: Final = (AssertionError, AttributeError, LookupError, NameError, NotImplementedError, TypeError, ValueError)


def is_bug(error: BaseException) -> bool:
    """Return whether an exception shows a bug of this package: it is an AttributeError, KeyError or the like, not a
    :class:`RekindleError`, and the innermost frame of its traceback is in ``rekindle``."""
    if not isinstance(error, _BUGS) or isinstance(error, RekindleError) or error.__traceback__ is None:
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "rekindle"


def bug_while(error: BaseException, doing: str) -> InternalError:
    """Return an error that reports a bug. Its message contains the exception, what was being done (``doing``), and the
    versions of rekindle, PyTorch and Python."""
    loaded = ((name, getattr(sys.modules.get(name), "__version__", "unknown")) for name in ("rekindle", "torch"))
    versions = ", ".join(f"{name} {number}" for name, number in (*loaded, ("Python", platform.python_version())))
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return InternalError(f"rekindle failed with {what}\n{doing}\n({versions})")

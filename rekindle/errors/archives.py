"""Errors of archives: files that are broken, too large or unsafe, and programs that cannot be saved.

These are RuntimeErrors for the sake of code written for ``torch.jit``, which catches that.
"""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors.exceptions import RekindleError


class ArchiveError(RekindleError, RuntimeError):
    """An archive that cannot be read.

    ``message`` is the problem, ``member`` the file within the archive (None for the whole), and ``hint`` a suggestion
    (None if there is none). ``str()`` has all of them.

    Example:
        >>> try:
        ...     rekindle.load(b'not an archive')
        ... except rekindle.errors.ArchiveError as error:
        ...     print(error.member)
        None
    """

    def __init__(self, message: str, *, member: str | None = None, hint: str | None = None) -> None:
        self.message = message
        self.member = member
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        where = "" if self.member is None else f" (in '{self.member}')"
        hint = "" if self.hint is None else f"\nHint: {self.hint}"
        return f"{self.message}{where}{hint}"


class CorruptArchiveError(ArchiveError):
    """A file that is not an archive, is truncated, or contradicts itself.

    Example:
        >>> try:
        ...     rekindle.load(b'not an archive')
        ... except rekindle.errors.CorruptArchiveError as error:
        ...     print(type(error).__name__)
        CorruptArchiveError
    """


class ArchiveLimitError(ArchiveError):
    """An archive that exceeds a limit: see :class:`rekindle.ArchiveLimits`.

    Example:
        >>> rekindle.save(rekindle.script(torch.nn.ReLU()), "relu.pt")
        >>> try:
        ...     rekindle.load("relu.pt", limits=rekindle.ArchiveLimits(members=1))
        ... except rekindle.errors.ArchiveLimitError as error:
        ...     print(type(error).__name__)
        ArchiveLimitError
    """


class UnsafeArchiveError(ArchiveError):
    """An archive that requests what loading never does: import a module, run code, access a file.

    Example:
        >>> issubclass(rekindle.errors.UnsafeArchiveError, rekindle.errors.ArchiveError)
        True
    """


class UnsupportedArchiveError(ArchiveError):
    """A valid archive of a kind that this package does not read.

    Example:
        >>> torch.save({"a": torch.ones(1)}, "weights.pt")
        >>> try:
        ...     rekindle.load("weights.pt")
        ... except rekindle.errors.ArchiveError as error:
        ...     print(type(error).__name__)
        UnsupportedArchiveError
    """


class SaveError(RekindleError, RuntimeError):
    """A program that holds something that an archive cannot hold. Nothing is written.

    ``path`` is the attribute path of the part that cannot be saved: ``encoder.layers.0.callback``.

    Example:
        >>> @rekindle.ignore
        ... def log(x: torch.Tensor) -> torch.Tensor:
        ...     return x
        >>> f = rekindle.script(lambda x: log(x))
        >>> try:
        ...     rekindle.save(f, "f.pt")
        ... except rekindle.errors.SaveError as error:
        ...     print("not saved")
        not saved
    """

    def __init__(self, message: str, *, path: str = "", hint: str | None = None) -> None:
        self.message = message
        self.path = path
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        hint = "" if self.hint is None else f"\nHint: {self.hint}"
        return f"{where}{self.message}{hint}"


class MissingLibraryError(RekindleError, RuntimeError):
    """A call of an operator or a class of a library that is not installed.

    Example:
        >>> issubclass(rekindle.errors.MissingLibraryError, rekindle.RekindleError)
        True
    """


class ArchiveWarning(UserWarning):
    """Warning that ``torch.jit.load`` rejects a saved archive, or reads it as another program than rekindle does.

    ``problems`` has the reasons, each with its place.

    Example:
        >>> issubclass(rekindle.errors.ArchiveWarning, UserWarning)
        True
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        places = "one place" if count == 1 else f"{count} places"
        return "\n".join(
            [f"the archive is for rekindle.load: torch.jit.load reads it in another way, in {places}", *self.problems]
        )

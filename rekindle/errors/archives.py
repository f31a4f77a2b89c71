"""What goes wrong with archives: files that are broken, too large or unsafe, and programs that cannot be saved.

These are RuntimeErrors for the sake of code written for ``torch.jit``, which catches that.
"""

from __future__ import annotations

from rekindle.errors.exceptions import RekindleError


class ArchiveError(RekindleError, RuntimeError):
    """An archive that cannot be read.

    ``message`` says what is wrong, ``member`` in which file of the archive (None for the archive as a whole), ``hint``
    what to do about it. ``str()`` puts them together.
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
    """A file that is no archive, is cut off, or contradicts itself."""


class ArchiveLimitError(ArchiveError):
    """An archive that asks for more than the limits allow. They can be set: see ``rekindle.ArchiveLimits``."""


class UnsafeArchiveError(ArchiveError):
    """An archive that asks for what loading never does: to import, to run, to reach a file."""


class UnsupportedArchiveError(ArchiveError):
    """An archive that is well-formed but of a kind that cannot be read here."""


class SaveError(RekindleError, RuntimeError):
    """A program that cannot be saved: it holds what an archive cannot hold. Nothing was written.

    ``path`` leads to the part that cannot be saved: ``encoder.layers.0.callback``.
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
    """A call of an operator or of a class that a library brings which is not installed here."""

"""Exit codes, and the errors that end a command."""

from __future__ import annotations

from typing import Final

import click

OK: Final = 0
NO: Final = 1
"""The command succeeded, with a negative result: the archives differ, ``--check`` found a difference, the program
raised an error, or something that ``doctor`` tried does not work."""
TROUBLE: Final = 2
"""The command could not do its work: it was called wrongly, a file cannot be read or written."""
INTERRUPTED: Final = 130
"""Someone pressed Ctrl-C; shells use this number too."""


class Trouble(click.ClickException):
    """The command cannot do its work (exit code 2)."""

    exit_code = TROUBLE


class ProgramFailed(click.ClickException):
    """The program that was run raised an error, or cannot be exported, imported or built (exit code 1).

    The message may have several lines: those of a compile or export error with its source location.
    """

    exit_code = NO


def first_line(error: BaseException) -> str:
    """Return the first line of the message of ``error``, or the name of its class if the message is empty.

    Of an OSError, return the description of its ``errno``, without the file name.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__

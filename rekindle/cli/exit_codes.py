"""Exit codes, and the errors that end a command."""

from __future__ import annotations

from typing import Final

import click

OK: Final = 0
NO: Final = 1
"""The command succeeded, with a negative result: the archives differ, the program raised an error."""
TROUBLE: Final = 2
"""The command could not do its work: it was called wrongly, a file cannot be read or written."""
INTERRUPTED: Final = 130
"""Someone pressed Ctrl-C; shells use this number too."""


class Trouble(click.ClickException):
    """The command cannot do its work (exit code 2). The message is one line."""

    exit_code = TROUBLE


class ProgramFailed(click.ClickException):
    """The program that was run raised an error (exit code 1). The message is one line."""

    exit_code = NO


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its class, if the message is empty."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__

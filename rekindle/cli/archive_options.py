"""Options of commands that read archives, and how they report errors of the file. Nothing here loads an archive."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from typing import Final

import click

from rekindle.archive.limits import DEFAULT_LIMITS, ArchiveLimits
from rekindle.cli.exit_codes import Trouble, first_line
from rekindle.errors import RekindleError

LIMITS: Final = tuple(field.name for field in dataclasses.fields(ArchiveLimits))


def _limits(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> ArchiveLimits:
    """Parse the values of ``--limit`` (``code_bytes=1000``) and return the default limits with these changes.

    Raises:
        BadParameter: there is no limit of that name, or the value is not a decimal number.
    """
    changed = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name not in LIMITS:
            raise click.BadParameter(f"there is no limit '{name}'; there are {', '.join(LIMITS)}", context, parameter)
        if not number.isdecimal():
            raise click.BadParameter(f"'{text}' sets no limit: write {name}=1000000", context, parameter)
        changed[name] = int(number)
    return dataclasses.replace(DEFAULT_LIMITS, **changed)


limit_option = click.option(
    "--limit",
    "limits",
    multiple=True,
    callback=_limits,
    metavar="NAME=NUMBER",
    help="Change a limit on what reading the archive may take, in bytes or a count; the limits are "
    f"{', '.join(LIMITS)}. May be given several times.",
)
method_option = click.option(
    "--method", default=None, metavar="NAME", help="The method to show; of a submodule, by its path: layer1.0.forward."
)


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Convert errors of reading the file ``path``, within the ``with`` block, to one line with its name.

    Raises:
        Trouble: the block raised an OSError or a RekindleError.
    """
    try:
        yield
    except OSError as error:
        raise Trouble(f"{path}: {first_line(error)}") from None
    except RekindleError as error:
        raise Trouble(f"{path}: {first_line(error)}{_way_out(error)}") from None


def _way_out(error: RekindleError) -> str:
    """Return the hint of an error in parentheses, for users of the command line; an empty string if there is none.

    A hint about an argument of a Python function is replaced by one about an option, or omitted.
    """
    hint = getattr(error, "hint", None) or ""
    limit = re.search(r"ArchiveLimits\((\w+)=", hint)
    if limit is not None:
        return f" (if you trust the file, raise the limit: --limit {limit[1]}=NUMBER)"
    if "map_location" in hint:
        return " (move it: --map cpu)"
    return f" ({hint.rstrip('.')})" if hint and "=" not in hint else ""

"""Names of an archive's members: reject those on whose interpretation file systems or readers disagree."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from rekindle.errors import CorruptArchiveError, UnsafeArchiveError

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def check_name(name: str) -> None:
    """Reject a name that could lead out of a folder when the archive is unpacked, or that systems read differently.

    Raises:
        UnsafeArchiveError: the name is empty, absolute, has a backslash, control characters or empty parts, or has
            ``.`` or ``..`` as a part.
    """
    reason = _why_unsafe(name)
    if reason is not None:
        raise UnsafeArchiveError(
            f"The archive has a member whose name {reason}.",
            member=printable(name),
            hint="PyTorch does not write such names; do not trust this file.",
        )


def _why_unsafe(name: str) -> str | None:
    if not name:
        return "is empty"
    if _CONTROL.search(name):
        return "holds control characters"
    if "\\" in name:
        return "holds a backslash"
    if name.startswith("/") or name[1:2] == ":":
        return "is an absolute path"
    parts = name.removesuffix("/").split("/")
    if ".." in parts:
        return "leads out of its folder"
    if "." in parts or "" in parts:
        return "has empty parts"
    return None


def check_distinct(names: list[str]) -> None:
    """Reject names that are equal, or equal but for their case or for how their accents are encoded: readers would pick
    different ones.

    Raises:
        CorruptArchiveError: two names are equal.
        UnsafeArchiveError: two names are nearly equal.
    """
    exact: set[str] = set()
    folded: dict[str, str] = {}
    for name in names:
        if name in exact:
            raise CorruptArchiveError("The archive has two members of this name.", member=printable(name))
        exact.add(name)
        key = name.casefold() if name.isascii() else unicodedata.normalize("NFKC", name).casefold()
        other = folded.setdefault(key, name)
        if other is not name:
            raise UnsafeArchiveError(
                f"The archive has two members whose names differ in their case alone: this one and "
                f"'{printable(other)}'. Readers would pick different ones.",
                member=printable(name),
            )


def printable(name: str) -> str:
    """Return the first 200 characters of ``name`` for a message, with escapes for those that cannot be printed."""
    short = name if len(name) <= 200 else name[:200] + "…"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in short)


def top_folder(names: list[str]) -> str:
    """Return the folder that holds all members, with the slash. Its name is arbitrary.

    Raises:
        CorruptArchiveError: there is more than one, or a member is outside of it.
    """
    tops = {name.partition("/")[0] if "/" in name else "" for name in names}
    if len(tops) != 1 or "" in tops:
        raise CorruptArchiveError(
            "The members of the archive are not in one folder, as PyTorch writes them.",
            hint="If the file was repacked, pack its top folder too: zip -r model.pt model/",
        )
    return tops.pop() + "/"

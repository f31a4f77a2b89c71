"""Producer version: bound the release of PyTorch that wrote an archive, by undocumented traits of its output.

The format version counts only some of the changes that releases made. Other marks date an archive further:

- up to 1.2, the layout is another one, with ``model.json``; 1.3 wrote the data after the code, 1.4 before it;
- up to 1.11, the debug information of a file is a bare tuple; from 1.12 on it has a table of strings, and says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

Release = tuple[int, int]
"""``(1, 10)`` for PyTorch 1.10."""

_BY_VERSION: Final[dict[int, Release]] = {1: (1, 5), 2: (1, 6)}
"""By format version, the first release that no longer wrote it."""


class Members(Protocol):
    """The members of an archive by name, without the common folder."""

    @property
    def names(self) -> Collection[str]: ...

    def read(self, name: str) -> bytes: ...


def older_than(archive: Members, version: int) -> Release | None:
    """Return the earliest release of PyTorch that the archive is known to be older than; None if nothing indicates one.
    ``version`` is its format version.

    The bound is not always the tightest: 1.12 and later cannot be distinguished.
    """
    bounds = [_BY_VERSION.get(max(version, 1)), _by_debug_information(archive)]
    if version == 1:
        bounds.append(_by_layout(archive))
    return min((bound for bound in bounds if bound is not None), default=None)


def _by_layout(archive: Members) -> Release | None:
    """Return a release that the archive is older than, by its members and their order; None if they show nothing.

    ``(1, 3)`` for an archive with ``model.json``, which 1.3 replaced; ``(1, 4)`` if ``data.pkl`` follows the code, as
    1.3 wrote it.
    """
    names = list(archive.names)
    if "model.json" in names:
        return (1, 3)
    first_code = next((index for index, name in enumerate(names) if name.startswith("code/")), len(names))
    return (1, 4) if "data.pkl" in names[first_code:] else None


def _by_debug_information(archive: Members) -> Release | None:
    """Return ``(1, 12)`` for an archive whose first debug records lack the table of strings, which that release
    introduced; else None."""
    for name in archive.names:
        if name.startswith("code/") and name.endswith(".debug_pkl"):
            return None if b"FORMAT_WITH_STRING_TABLE" in archive.read(name)[:64] else (1, 12)
    return None

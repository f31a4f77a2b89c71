"""What release an archive is older than, over all golden archives."""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from pathlib import Path

from rekindle.archive.producer_version import older_than
from tests.archive.golden_archives import golden_archives

NEXT = {
    **{(1, minor): (1, 3) for minor in (0, 1, 2)},
    (1, 3): (1, 4),
    (1, 4): (1, 5),
    (1, 5): (1, 6),
    **{(1, minor): (1, 12) for minor in range(6, 12)},
}
"""What is known of the archives of a release."""


class Members:
    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path)

    @property
    def names(self) -> Collection[str]:
        return [name.partition("/")[2] for name in self._file.namelist()]

    def read(self, name: str) -> bytes:
        top = self._file.namelist()[0].partition("/")[0]
        return self._file.read(f"{top}/{name}")


def test_every_golden_archive_is_dated() -> None:
    for archive in golden_archives():
        major, minor = (int(part) for part in archive.name.partition("/")[0].split("."))
        members = Members(archive.path)
        (version,) = (name for name in members.names if name.endswith("version"))
        told = older_than(members, int(members.read(version)))
        assert told == NEXT.get((major, minor)), archive.name

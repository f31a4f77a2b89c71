"""The program texts of an archive, with source locations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.archive.code.debug_records import DebugRecords
from rekindle.archive.legacy import LegacyProgram
from rekindle.archive.pickles.reader import read_pickle
from rekindle.archive.pickles.records import Pickle
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.errors import ArchiveLimitError, CorruptArchiveError, Source, TextLimit

_FOLDER: Final = "code/"
_SUFFIX: Final = ".py"


class ArchiveSources:
    """The sources of an archive by qualifier: that of ``__torch__.a.b`` is the member ``code/__torch__/a/b.py``."""

    def __init__(self, reader: ArchiveReader, legacy: LegacyProgram | None = None) -> None:
        """Read sources through ``reader``. ``legacy`` is the program of an archive of PyTorch 1.0 to 1.2, else None."""
        self._reader = reader
        self._legacy = None if legacy is None else legacy.texts
        self._bytes = 0
        self._limit = TextLimit(
            reader.limits.code_tokens,
            "If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(code_tokens=…).",
        )

    def qualifiers(self) -> list[str]:
        """Return the qualifiers of the archive's sources, in the order of the archive."""
        if self._legacy is not None:
            return list(self._legacy)
        names = (name for name in self._reader.names if name.startswith(_FOLDER) and name.endswith(_SUFFIX))
        return [name[len(_FOLDER) : -len(_SUFFIX)].replace("/", ".") for name in names]

    def read(self, qualifier: str) -> Source | None:
        """Return the source of a qualifier, with its debug records; None if the archive has none. Each call for a
        member of the archive counts towards the limit of ``code_bytes``.

        Raises:
            ArchiveError: the member is damaged or not UTF-8, or the texts read so far exceed the limit.
        """
        member = f"{_FOLDER}{qualifier.replace('.', '/')}{_SUFFIX}"
        if self._legacy is not None:
            return self._source(self._legacy[qualifier], member) if qualifier in self._legacy else None
        if member not in self._reader:
            return None
        self._bytes += self._reader.entry(member).size
        limit = self._reader.limits.code_bytes
        if self._bytes > limit:
            raise ArchiveLimitError(
                f"The texts of the archive are longer than {limit} bytes.",
                member=member,
                hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(code_bytes=…).",
            )
        try:
            text = self._reader.read(member).decode("utf-8")
        except UnicodeDecodeError:
            raise CorruptArchiveError("The text is not UTF-8.", member=member) from None
        source = self._source(text, member)
        debug = f"{member}.debug_pkl"
        if debug in self._reader:
            source.origin = DebugRecords(self._pickle_reader(debug), text).origin
        return source

    def _source(self, text: str, member: str) -> Source:
        return Source(text, member, limit=self._limit)

    def _pickle_reader(self, member: str) -> Callable[[], Pickle]:
        return lambda: read_pickle(self._reader.view(member), member, self._reader.limits)

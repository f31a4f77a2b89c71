"""The storage for what is compiled now: one file for a module with all that it calls."""

from __future__ import annotations

from typing import Final, Protocol


class Storage(Protocol):
    """The interface of a storage for compiled functions, such as
    :class:`~rekindle.codegen.llvm.disk_cache.DiskCache`."""

    def load(self, key: bytes) -> bytes | None:
        """Return the bytes stored under ``key``; None if there are none."""

    def store(self, key: bytes, payload: bytes) -> bool:
        """Store ``payload`` under ``key``; return whether it was stored."""


current_storage: Final[list[Storage]] = []
"""The storage for the functions being compiled, the innermost last; without any, each function has a file."""

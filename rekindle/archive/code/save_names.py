"""Names of classes and functions in an archive: their own names, made unique within the archive.

A program's own names depend on what the process compiled before (``___torch_mangle_7``); those of an archive must not,
for the same program to give the same file.
"""

from __future__ import annotations

from typing import Final

from rekindle.frontend.python_printer import NamedType
from rekindle.frontend.python_printer.names import as_identifier, qualified_name
from rekindle.ir.mangling import demangled
from rekindle.ir.types import LIBRARY_CLASSES

ROOT: Final = "__torch__"


class SaveNames:
    """Assigns a unique name to each named type, in order of first use."""

    def __init__(self) -> None:
        self._names: dict[NamedType, str] = {}
        self._taken: set[str] = set()
        self._next = 0

    def name_of(self, type: NamedType) -> str:
        """Return the name of ``type`` in the archive. The first call for a type assigns the name."""
        known = self._names.get(type)
        if known is None:
            known = self._names[type] = self._new_name(qualified_name(type))
            self._taken.add(known)
        return known

    def named(self) -> list[NamedType]:
        """Return the types that have a name so far, in the order of assignment."""
        return list(self._names)

    def _new_name(self, name: str) -> str:
        if name.startswith(LIBRARY_CLASSES):
            return name
        parts = [as_identifier(part) for part in demangled(name).split(".")]
        if parts[0] != ROOT:
            parts.insert(0, ROOT)
        plain = ".".join(parts)
        candidate = plain
        while candidate in self._taken:
            candidate = ".".join([*parts[:-1], f"___torch_mangle_{self._next}", parts[-1]])
            self._next += 1
        return candidate

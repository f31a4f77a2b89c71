"""One file for what is made of a program whose source is stored: facts about it, evaluations, and optimized graphs.

A compiled Python function that was stored, and not edited since, has a digest that covers it with all its dependences
(:class:`~rekindle.ir.graph_function.StoredForm`). A process that finds such a function on disk knows the digest before
any graph is decoded, and finds under it everything that earlier processes made of the program: the graphs that it was
compiled to are decoded only if a call needs a version that none of them made.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.llvm.disk_cache import DiskCache
from rekindle.ir.bitcode.references import Encoded, NotEncodable, References, marshalled
from rekindle.ir.graph_function import GraphFunction, stored_program
from rekindle.ir.types import ClassType

MAX_BYTES: Final = 4 << 20
"""Total size in bytes above which a file keeps the payloads of the last compilation alone."""


@dataclass(slots=True)
class ProgramFile:
    """The payloads stored for one program, by key. They are in the file ``key`` of ``disk``, and in memory only during
    a compilation, which :meth:`write` ends."""

    disk: DiskCache
    key: bytes
    _found: dict[bytes, bytes] | None = None
    _new: dict[bytes, bytes] = field(default_factory=dict)

    def load(self, key: bytes) -> bytes | None:
        """Return the bytes stored under ``key``; None if there are none."""
        key = _short(key)
        return self._new.get(key, self._payloads().get(key))

    @property
    def is_filled(self) -> bool:
        """Whether the file has any payload."""
        return bool(self._payloads())

    def _payloads(self) -> dict[bytes, bytes]:
        """Return what the file has; it is read once in a compilation."""
        if self._found is None:
            self._found = _read(self.disk, self.key)
        return self._found

    def store(self, key: bytes, payload: bytes) -> bool:
        """Keep ``payload`` until :meth:`write`."""
        self._new[_short(key)] = payload
        return True

    def write(self) -> None:
        """Write the file if there is anything new, with what other processes have added since it was read."""
        if self._new:
            written = {**_read(self.disk, self.key), **self._new}
            if sum(map(len, written.values())) > MAX_BYTES:
                written = self._new
            self.disk.store(self.key, marshalled(tuple(written.items())))
        self._found, self._new = None, {}


def _read(disk: DiskCache, key: bytes) -> dict[bytes, bytes]:
    payload = disk.load(key)
    return {} if payload is None else dict(marshal.loads(payload))


def _short(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program that is as it is stored. ``digest`` identifies it; ``references`` are the class types to which its
    graphs may refer."""

    digest: bytes
    references: References

    @classmethod
    def of(cls, record: GraphFunction) -> StoredProgram | None:
        """Return the program of a function; None if it is not stored, was edited since, or has types that cannot be
        encoded."""
        functions = stored_program(record)
        form = record.stored
        if functions is None or form is None:
            return None
        references = References()
        for type in form.types:
            references.add(type)
        if len(references.objects) != len(form.types):
            return None
        flags = (record.is_from_class, record.is_from_archive, record.takes_tensors_as_numbers)
        try:
            encoded = marshalled((form.digest, flags, _classes(form.types)))
        except NotEncodable:
            return None
        return cls(hashlib.sha256(encoded).digest(), references)


def _classes(types: Sequence[ClassType]) -> Encoded:
    """Describe class types apart from the types of their slots, which the digest covers."""
    return tuple(
        [
            (
                *(type.is_module, type.is_incomplete, type.is_frozen, type.is_open, tuple(type.constants)),
                tuple([(slot.name, slot.kind, slot.is_dynamic, slot.is_declared) for slot in type.attributes.values()]),
            )
            for type in types
        ]
    )

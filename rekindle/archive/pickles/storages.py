"""The bytes of tensors on their way into an archive: each storage once."""

from __future__ import annotations

import ctypes

import torch

from rekindle.archive.writer import Bytes


class StorageTable:
    """The storages of one folder of an archive, numbered in the order of their first use."""

    def __init__(self) -> None:
        self._keys: dict[int, str] = {}
        self._storages: list[torch.UntypedStorage] = []

    def key(self, storage: torch.UntypedStorage) -> str:
        """Return the name of the archive's member that has the contents of ``storage``. A new storage gets the next
        number."""
        identity = storage._cdata
        known = self._keys.get(identity)
        if known is None:
            known = self._keys[identity] = str(len(self._storages))
            self._storages.append(storage)  # kept alive, and its identity its own
        return known

    def contents(self) -> list[tuple[str, Bytes]]:
        """Return the name and the bytes of each storage. Bytes of storages on the CPU are views of their memory; a
        storage on the device ``meta`` has none."""
        return [(str(index), _bytes_of(storage)) for index, storage in enumerate(self._storages)]


def _bytes_of(storage: torch.UntypedStorage) -> Bytes:
    if storage.device.type == "meta" or storage.nbytes() == 0:
        return b""
    if storage.device.type != "cpu":
        storage = storage.cpu()
    # A view of the memory: an array of ctypes, which the storage is attached to, so that it lives as long.
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    memory._storage = storage  # type: ignore[attr-defined]
    return memoryview(memory).cast("B")

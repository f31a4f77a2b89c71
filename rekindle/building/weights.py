"""Layout of the tensors of a module in a file that libraries map into memory.

A header of 64 bytes (:func:`rekindle.building.runtime.instances.map_weights`) is followed by the storages, each at a
multiple of 64 bytes. Tensors that share a storage share it in the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.runtime.instances import FIRST_FACTOR, GOLDEN, HEADER_BYTES, MAGIC, SECOND_FACTOR

_FORMAT: Final = 1


@dataclass(slots=True)
class Weights:
    """The contents of a weights file, to which tensors are added."""

    storages: dict[tuple[int, int], int] = field(default_factory=dict)
    """Byte offset of each storage in the file, by address and size in bytes."""
    kept: list[torch.UntypedStorage] = field(default_factory=list)
    size: int = HEADER_BYTES

    def add(self, tensor: Tensor) -> int:
        """Add a tensor's storage to the file, unless it is there; return the byte offset of the tensor's first element.

        Raises:
            NotBuildable: it is not a dense tensor on the CPU, or is quantized.
        """
        if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            raise NotBuildable(f"a weight is a tensor of layout {tensor.layout} on '{tensor.device}'")
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        storage = tensor.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes())
        if key not in self.storages:
            self.storages[key] = self.size
            self.kept.append(storage)
            self.size += (storage.nbytes() + 63) // 64 * 64
        return self.storages[key] + int(tensor.storage_offset()) * tensor.element_size()

    def content(self, identity: int) -> bytes:
        """Return the bytes of the file, whose header contains ``identity``, the number that ties it to its library."""
        body = bytearray(self.size - HEADER_BYTES)
        for storage, start in zip(self.kept, self.storages.values(), strict=True):
            count = storage.nbytes()
            data = torch.tensor([], dtype=torch.uint8).set_(storage, 0, (count,)) if count else torch.empty(0)  # type: ignore[call-overload]
            body[start - HEADER_BYTES : start - HEADER_BYTES + count] = data.numpy().tobytes()
        numbers = (MAGIC, _FORMAT, identity, self.size, checksum(bytes(body)))
        return struct.pack("<4Qq", *numbers).ljust(HEADER_BYTES, b"\0") + bytes(body)


def checksum(data: bytes) -> int:
    """Return the same checksum as :func:`rekindle.building.runtime.instances.checksum`."""
    if not data:
        return 0
    words = torch.frombuffer(bytearray(data), dtype=torch.int64)
    total = 0
    for start in range(0, len(words), _SLICE):
        part = words[start : start + _SLICE]
        part = part + torch.arange(start + 1, start + len(part) + 1) * GOLDEN
        part = (part ^ ((part >> 30) & (2**34 - 1))) * FIRST_FACTOR
        part = (part ^ ((part >> 27) & (2**37 - 1))) * SECOND_FACTOR
        total += int((part ^ ((part >> 31) & (2**33 - 1))).sum())
    total %= 2**64
    return total - 2**64 if total >= 2**63 else total


_SLICE: Final = 1 << 16
"""Number of words that are hashed at once, which fit in the cache."""

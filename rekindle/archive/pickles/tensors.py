"""Conversion of tensor records to tensors, whose memory is the mapped file where that is possible."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from rekindle.archive.pickles.globals import Malformed, device_called
from rekindle.archive.pickles.records import QuantizerRecord, SparseRecord, StorageRecord, TensorRecord
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.archive.zip_files.names import printable
from rekindle.errors import ArchiveError, ArchiveLimitError, CorruptArchiveError

MapLocation: TypeAlias = (
    str | torch.device | Mapping[str, str | torch.device] | Callable[[torch.UntypedStorage, str], Any] | None
)
"""Placement of tensors: a device for all of them; a dict from the devices of the archive to others; a function that
takes a storage on the CPU and the name of its device and returns the storage to use, or None for the default."""

_ALIGNMENT = 64


class TensorLoader:
    """Loader of the tensors in one folder of an archive (``data``, ``constants`` or ``tensors``), each placed on a
    device by ``map_location``. Tensors with the same storage record share a storage.
    """

    def __init__(self, reader: ArchiveReader, folder: str, map_location: MapLocation = None) -> None:
        self._reader = reader
        self._folder = folder
        self._map_location = map_location
        self._storages: dict[str, torch.UntypedStorage] = {}
        self._tensors: dict[int, tuple[object, torch.Tensor]] = {}
        self._swap = reader.byte_order() != sys.byteorder

    def tensor(self, record: TensorRecord | SparseRecord) -> torch.Tensor:
        """Return the tensor of a record: the same tensor each time for the same record.

        Raises:
            ArchiveError: the storage is missing or has another size, the record is invalid, or the device is not
                available.
            ValueError: ``map_location`` is of an unsupported class.
            TypeError: ``map_location`` returned, or a dict contains, a value that is not a device or a storage.
            RuntimeError: ``map_location`` leads to a name that is not a device.
        """
        known = self._tensors.get(id(record))
        if known is None:
            if isinstance(record, TensorRecord) and record.quantizer is None:
                made = self._dense(record)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of kinds that PyTorch means to remove, or has not finished
                    made = self._dense(record) if isinstance(record, TensorRecord) else self._sparse(record)
            known = self._tensors[id(record)] = (record, made)  # the record stays alive, and its id its own
        return known[1]

    # ------------------------------------------------------------------------------------------------------ tensors

    def _dense(self, record: TensorRecord) -> torch.Tensor:
        storage = self._storage(record.storage)
        try:
            empty = self._empty(record, storage.device)
            empty.set_(storage, record.offset, record.sizes, record.strides)
        except ArchiveError:  # of the tensors that it is quantized with
            raise
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise self._broken(record.storage, f"PyTorch refuses a tensor: {_first_line(error)}") from None
        for name in record.bits:
            empty = empty.conj() if name == "conj" else torch._neg_view(empty)
        return self._finish(empty, record.requires_grad, record.storage)

    def _empty(self, record: TensorRecord, device: torch.device) -> torch.Tensor:
        quantizer = record.quantizer
        if quantizer is None:
            return torch.empty(0, dtype=record.dtype, device=device)
        if isinstance(quantizer, QuantizerRecord):
            return torch._empty_affine_quantized(
                [0], scale=quantizer.scale, zero_point=quantizer.zero_point, dtype=record.dtype, device=device
            )
        sizes = [0] * len(record.sizes)
        sizes[quantizer.axis] = record.sizes[quantizer.axis]
        scales, zero_points = self.tensor(quantizer.scales), self.tensor(quantizer.zero_points)
        return torch._empty_per_channel_affine_quantized(
            sizes, scales=scales, zero_points=zero_points, axis=quantizer.axis, dtype=record.dtype, device=device
        )

    def _sparse(self, record: SparseRecord) -> torch.Tensor:
        parts = [self.tensor(part) for part in record.parts]
        storage = record.parts[-1].storage
        try:
            if record.layout == torch.sparse_coo:
                made = torch.sparse_coo_tensor(parts[0], parts[1], record.sizes, check_invariants=True)
            else:
                compressed: Any = torch.sparse_compressed_tensor
                made = compressed(*parts, record.sizes, layout=record.layout, check_invariants=True)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise self._broken(storage, f"PyTorch refuses a sparse tensor: {_first_line(error)}") from None
        return self._finish(made, record.requires_grad, storage)

    def _finish(self, tensor: torch.Tensor, requires_grad: bool, storage: StorageRecord) -> torch.Tensor:
        if not requires_grad:
            return tensor
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise self._broken(storage, f"a tensor of {tensor.dtype} cannot take gradients")
        return tensor.detach().requires_grad_()

    # ----------------------------------------------------------------------------------------------------- storages

    def _storage(self, record: StorageRecord) -> torch.UntypedStorage:
        found = self._storages.get(record.key)
        if found is None:
            found = self._storages[record.key] = self._place(record)
        return found

    def _place(self, record: StorageRecord) -> torch.UntypedStorage:
        """Read a storage, and return it on its device: that of the archive, or the one that ``map_location``
        determines. A storage on ``meta`` stays there."""
        if record.location == "meta":
            self._check_claim(record)
            return torch.UntypedStorage(record.nbytes, device="meta")
        storage = self._read(record)
        wanted = self._wanted(storage, record)
        if isinstance(wanted, torch.UntypedStorage):
            return wanted
        return storage if wanted.type == "cpu" else self._moved(storage, wanted, record)

    def _check_claim(self, record: StorageRecord) -> None:
        limit = self._reader.limits.empty_tensor_bytes
        if record.nbytes > limit:
            raise ArchiveLimitError(
                f"A tensor without content claims to have {record.nbytes} bytes; the limit is {limit}.",
                member=self._member(record),
                hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(empty_tensor_bytes=…).",
            )

    def _wanted(self, storage: torch.UntypedStorage, record: StorageRecord) -> torch.device | torch.UntypedStorage:
        """Return the device that ``map_location`` determines for a storage, or the storage that the caller's function
        returned.

        Raises:
            ValueError: ``map_location`` is of an unsupported class.
            TypeError: ``map_location`` returned, or a dict contains, a value that is not a device or a storage.
            RuntimeError: ``map_location`` leads to a name that is not a device.
            CorruptArchiveError: the archive names an unknown device.
        """
        wanted: Any = self._map_location
        if isinstance(wanted, Mapping):
            wanted = wanted.get(record.location)
        elif callable(wanted) and not isinstance(wanted, torch.device):
            wanted = wanted(storage, record.location)
            wanted = getattr(wanted, "untyped", lambda made=wanted: made)()
        if isinstance(wanted, (torch.UntypedStorage, torch.device)):
            return wanted
        if wanted is None:
            try:
                return device_called(record.location)
            except Malformed as problem:
                raise self._broken(record, str(problem)) from None
        if not isinstance(wanted, str) and wanted is self._map_location:
            kind = type(wanted).__name__
            raise ValueError(f"map_location is a device, the name of one, a dict or a function, but is a {kind}")
        if not isinstance(wanted, str):
            raise TypeError(f"map_location leads to a {type(wanted).__name__}, which is neither a device nor a storage")
        return torch.device(wanted)

    def _moved(
        self, storage: torch.UntypedStorage, device: torch.device, record: StorageRecord
    ) -> torch.UntypedStorage:
        if device.type == "meta":
            return torch.UntypedStorage(storage.nbytes(), device="meta")
        try:
            moved: torch.UntypedStorage = storage.to(device=device)
            return moved
        except (RuntimeError, AssertionError, NotImplementedError, AttributeError, TypeError) as error:
            # PyTorch reports some missing devices with an error of its own.
            why = "" if isinstance(error, TypeError) else f": {_first_line(error)}"
            if device.type == record.location.partition(":")[0]:
                place, hint = "is on", 'Say where tensors are to go: map_location="cpu".'
            else:
                place, hint = "is to go to", "Give map_location a device that is here."
            raise ArchiveError(
                f"A tensor of the archive {place} '{device}', where PyTorch cannot put it{why}",
                member=self._member(record),
                hint=hint,
            ) from None

    def _read(self, record: StorageRecord) -> torch.UntypedStorage:
        member = self._member(record)
        size = self._reader.entry(member).size
        if size != record.nbytes:
            raise CorruptArchiveError(
                f"A tensor's storage of {record.nbytes} bytes has {size} in the archive.", member=member
            )
        if size == 0:
            self._reader.view(member)
            return torch.UntypedStorage(0)
        data = torch.frombuffer(self._reader.writable(member, _ALIGNMENT), dtype=torch.uint8)
        return (self._swapped(data, record.dtype) if self._swap else data).untyped_storage()

    @staticmethod
    def _swapped(data: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return the bytes of each number in reverse order; a complex number is two."""
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        return data if width == 1 else data.view(-1, width).flip(1).contiguous()

    def _member(self, record: StorageRecord) -> str:
        return f"{self._folder}/{printable(record.key)}"

    def _broken(self, record: StorageRecord, problem: str) -> CorruptArchiveError:
        return CorruptArchiveError(f"A tensor is broken: {problem}.", member=self._member(record))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip().rstrip(".") or type(error).__name__

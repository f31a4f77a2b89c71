"""The memory of a capture: its own copies of arguments, and the copies of its results that calls return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor

from rekindle.runtime.cuda_graphs.arguments import NotCapturable

_MAX_GAPS: Final = 4
"""How many times as many elements as a tensor has may lie between its first and its last, to be copied together."""


class OwnArguments:
    """Copies of the arguments ``given``, with their strides. Each call writes its arguments to them.

    Raises:
        NotCapturable: too much memory lies between the elements of an argument.
    """

    def __init__(self, given: Sequence[Tensor]) -> None:
        self.tensors: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._lengths: list[int | None] = []
        """Number of elements to copy, where an argument has gaps or elements in the same place."""
        for each in given:
            length = None if _is_dense(each) else _length(each)
            if length is not None and length > _MAX_GAPS * each.numel():
                raise NotCapturable("an argument has large gaps between its elements")
            target = (each if length is None else _flat(each, length)).clone()
            own = target if length is None else target.as_strided(each.shape, each.stride())
            self.tensors.append(own.requires_grad_(each.requires_grad))
            self._targets.append(target)
            self._lengths.append(length)
        self._are_dense = not any(length is not None for length in self._lengths)

    def write(self, given: list[Tensor]) -> None:
        """Copy the arguments of a call, which have the same sizes, strides and types."""
        if not self._are_dense:
            pairs = zip(given, self._lengths, strict=True)
            given = [each if length is None else _flat(each, length) for each, length in pairs]
        _copy_all(self._targets, given)


@dataclass(frozen=True, slots=True)
class _View:
    """A view of a tensor, whose first element is ``offset`` elements after that of the tensor in memory."""

    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    def of(self, tensor: Tensor) -> Tensor:
        return tensor.as_strided(self.size, self.stride, tensor.storage_offset() + self.offset)


_OriginKind = Literal["argument", "parameter", "attribute", "copy"]


@dataclass(frozen=True, slots=True)
class _Origin:
    """Which tensor a result is, or is a ``view`` of."""

    kind: _OriginKind
    index: int
    view: _View | None = None


class ResultCopies:
    """What a call returns in place of ``results``, which the next replay overwrites.

    A result that is one of ``arguments`` or ``parameters``, or a view of one, is that of the call. One that has the
    memory of one of the ``attributes`` has it in each call. All others are copies. Results that share memory have
    copies that share memory.

    Raises:
        NotCapturable: no copy can take the place of a result.
    """

    def __init__(
        self,
        results: Sequence[Tensor],
        arguments: Sequence[Tensor],
        parameters: Sequence[Tensor],
        attributes: Sequence[Tensor],
        device: torch.device,
    ) -> None:
        self._attributes = attributes
        self._sources: list[Tensor] = []
        """The tensors to copy."""
        themselves: dict[int, _Origin] = {}
        """The origins of tensors that are results, by their ids."""
        owners: dict[int, _Origin] = {}
        tables: dict[_OriginKind, Sequence[Tensor]]
        tables = {"argument": arguments, "parameter": parameters, "attribute": attributes}
        for kind, tensors in tables.items():
            for index, each in enumerate(tensors):
                origin = themselves.setdefault(id(each), _Origin(kind, index))
                owners.setdefault(_storage(each), origin)
        tables["copy"] = self._sources
        fresh = [each for each in results if not each.numel() or _storage(each) not in owners]
        for tensors in _by_storage(fresh):
            source = _source_of(tensors)
            owners[_storage(source)] = themselves[id(source)] = _Origin("copy", len(self._sources))
            self._sources.append(source)
        self._origins: list[_Origin] = []
        for each in results:
            if each.device != device:
                raise NotCapturable("a result is on another device")
            if not each.numel() and id(each) not in themselves:
                themselves[id(each)] = _Origin("copy", len(self._sources))
                self._sources.append(each)
            if id(each) in themselves:
                self._origins.append(themselves[id(each)])
                continue
            found = owners[_storage(each)]
            base = tables[found.kind][found.index]
            if base.dtype is not each.dtype:
                raise NotCapturable("a result is a view of a tensor of another dtype")
            offset = int(each.storage_offset() - base.storage_offset())
            self._origins.append(_Origin(found.kind, found.index, _View(each.size(), each.stride(), offset)))
        if any(each.requires_grad for each in self._sources):  # unlike its copy
            raise NotCapturable("a result requires a gradient")
        if all(each.kind != "attribute" for each in self._origins):
            self._attributes = ()  # so that a capture does not keep them alive

    def of(self, given: Sequence[Tensor], parameters: Sequence[Tensor]) -> Iterator[Tensor]:
        """Yield the results of a replay with the arguments ``given`` and the ``parameters``."""
        copies = [torch.empty_like(each) for each in self._sources]
        _copy_all(copies, self._sources)
        tables: dict[_OriginKind, Sequence[Tensor]]
        tables = {"argument": given, "parameter": parameters, "attribute": self._attributes, "copy": copies}
        for origin in self._origins:
            tensor = tables[origin.kind][origin.index]
            yield tensor if origin.view is None else origin.view.of(tensor)


def _copy_all(targets: list[Tensor], sources: list[Tensor]) -> None:
    if len(targets) == 1:
        targets[0].copy_(sources[0])
    elif targets:
        torch._foreach_copy_(targets, sources)


def _by_storage(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return ``tensors`` that have elements, in groups that share memory."""
    found: dict[int, list[Tensor]] = {}
    for each in tensors:
        if each.numel():
            found.setdefault(_storage(each), []).append(each)
    return list(found.values())


def _source_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return a tensor without gaps that has all elements of ``tensors``, which share memory: one of them if possible,
    so that the others are views of it.

    Raises:
        NotCapturable: none of the tensors has all elements, and they have several dtypes.
    """
    begin = min(each.storage_offset() for each in tensors)
    end = max(each.storage_offset() + _length(each) for each in tensors)
    for each in tensors:
        if each.storage_offset() == begin and _length(each) == end - begin and _is_dense(each):
            return each
    if len({each.dtype for each in tensors}) > 1:
        raise NotCapturable("a result is a view of a tensor of another dtype")
    return tensors[0].as_strided((end - begin,), (1,), begin)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _length(tensor: Tensor) -> int:
    """Return the number of elements from the first to the last of ``tensor``, in memory."""
    if not tensor.numel():
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _flat(tensor: Tensor, length: int) -> Tensor:
    return tensor.as_strided((length,), (1,), tensor.storage_offset())


def _is_dense(tensor: Tensor) -> bool:
    """Return whether a copy has the same strides."""
    return torch.empty_like(tensor, device="meta").stride() == tensor.stride()

"""Type profiles of a program, recorded while it runs.

::

    recording = ProfilingRecord(graph)            # a copy of the graph with prim::profile in it
    Code(recording.graph, name)             # runs as any other, on any number of threads
    recording.finish()                      # writes what was seen into the graph
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Final

import torch

from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import NONE, TensorType, Type
from rekindle.ops.tensor.profiling import PLAIN_TENSORS, recorders
from rekindle.passes.speculation.insert_profiling import PROFILE, PROFILED_TYPE, InsertProfiling


@dataclass(slots=True)
class TensorProfile:
    """The record of one ``prim::profile`` node. ``type`` fits all recorded tensors (dtype, device, sizes, strides and
    ``requires_grad``); None if there was no tensor. ``nones`` counts values that were None, and ``opaque_tensors``
    those of tensors that types do not describe: subclasses and sparse tensors. ``seen`` counts all values,
    ``contiguous`` the contiguous tensors that types describe."""

    seen: int = 0
    type: TensorType | None = None
    nones: int = 0
    opaque_tensors: int = 0
    contiguous: int = 0

    def note(self, value: object) -> None:
        """Merge one more value into the record."""
        self.seen += 1
        if value is None:
            self.nones += 1
        elif type(value) not in PLAIN_TENSORS or value.layout is not torch.strided:  # type: ignore[attr-defined]
            self.opaque_tensors += 1
        else:
            assert isinstance(value, torch.Tensor)
            self.contiguous += value.is_contiguous()
            found = TensorType.of(value)
            self.type = found if self.type is None else self.type.merge(found)

    @property
    def merged_type(self) -> Type | None:
        """The type that fits all recorded values: a tensor type or NoneType; None if no type does, or nothing was
        recorded."""
        if self.opaque_tensors or not self.seen:
            return None
        if self.nones:
            return NONE if self.nones == self.seen else None
        return self.type


class ProfilingRecord:
    """A copy of a graph that records the types of its values as it runs; several threads may run it at once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph.copy()
        self.records: dict[Node, TensorProfile] = {}
        self._lock = Lock()
        InsertProfiling().run(self.graph)
        for node in self.graph.find_nodes(PROFILE):
            self.records[node] = TensorProfile()
        recorders[self.graph] = partial(_recorder, weakref.ref(self))  # which must not keep the graph alive

    def note(self, record: TensorProfile, value: object) -> None:
        """Merge one more value into ``record``."""
        with self._lock:
            record.note(value)

    def note_arguments(self, arguments: Sequence[object]) -> None:
        """Record the types of arguments as the start of a call would."""
        for node, record in self.records.items():
            if node.input.node is self.graph.param_node:
                self.note(record, arguments[node.input.offset])

    def finish(self) -> Graph:
        """Return the graph with the profiled types, as ``prim::profile[profiled_type=Float(2, 3)]``. More calls may be
        profiled afterwards."""
        with self._lock:
            for node, record in self.records.items():
                profiled = record.merged_type
                node.attributes.pop(PROFILED_TYPE, None)
                if profiled is not None:
                    node.set_attribute(PROFILED_TYPE, profiled)
        return self.graph


def _recorder(reference: weakref.ref[ProfilingRecord], node: Node) -> Callable[[object], None]:
    recording = reference()
    record = None if recording is None else recording.records.get(node)
    return _ignore if recording is None or record is None else partial(recording.note, record)


def _ignore(value: object) -> None:
    pass


_profiled_runs: Final = [1]


def profiled_runs() -> int:
    """Return the number of calls of a function that are profiled before it is specialized."""
    return _profiled_runs[0]


def set_profiled_runs(count: int) -> int:
    """Set how many calls the strategy ``"profiling"`` records before it specializes a function; return the number
    before.

    It applies to functions that are optimized from now on.

    Args:
        count: the number of calls, at least 1.

    Raises:
        ValueError: ``count`` is less than 1.

    Example:
        >>> before = rekindle.set_profiled_runs(3)
        >>> rekindle.set_profiled_runs(before)
        3
    """
    if count < 1:
        raise ValueError(f"at least one call has to be watched, not {count}")
    before, _profiled_runs[0] = _profiled_runs[0], count
    return before

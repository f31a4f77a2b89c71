"""Compiled derivative formulas on disk, in one file, so that a new process need not compile those that another one has.

The key of the file covers the files of this package, and so the texts of all formulas. A process reads the file when it
needs the first formula, and writes it, with what other processes have added since, when it has compiled others.
"""

from __future__ import annotations

import logging
import marshal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rekindle.autodiff.formula import compiled_formulas
from rekindle.codegen.llvm.disk_cache import DiskCache
from rekindle.codegen.llvm.engine import disk_cache
from rekindle.ir.bitcode.reader import GraphReader
from rekindle.ir.bitcode.references import NotEncodable, References, marshalled
from rekindle.ir.bitcode.writer import GraphWriter
from rekindle.ir.graph import Graph
from rekindle.runtime.strategies import graph_cache

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class FormulaCache:
    """Compiled formulas in a file on disk. Implements :class:`rekindle.autodiff.formula.CompiledFormulas`."""

    _disk: DiskCache | None = None
    _key: bytes = b""
    _known: dict[str, bytes] = field(default_factory=dict)
    """The graphs in the file, by the texts that they were compiled from."""
    _new: dict[str, bytes] = field(default_factory=dict)
    """Those to be written."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, text: str, build: Callable[[], Graph]) -> Graph:
        """Return the graph that ``text`` is compiled to, from disk or from ``build``."""
        disk = disk_cache()
        if disk is None or graph_cache.are_passes_watched():
            return build()
        with self._lock:
            self._open(disk)
            payload = self._known.get(text)
        if payload is not None:
            return GraphReader(marshal.loads(payload), References()).graph(0)
        graph = build()
        writer = GraphWriter(References())
        try:
            writer.add(graph)
            payload = marshalled(writer.bundle())
        except NotEncodable as reason:
            _LOG.debug("not kept on disk: a formula has %s", reason)
            return graph
        with self._lock:
            self._known[text] = self._new[text] = payload
        return graph

    def write(self) -> None:
        """Write the formulas that were compiled since, if there are any."""
        with self._lock:
            if self._disk is None or not self._new:
                return
            written = _read(self._disk, self._key)
            written.update(self._new)
            self._new.clear()
            self._disk.store(self._key, marshalled(tuple(written.items())))

    def _open(self, disk: DiskCache) -> None:
        """Read the file of ``disk``, unless it has been read."""
        key = marshalled(("formulas", graph_cache.process_description()))
        if disk is not self._disk or key != self._key:
            self._disk, self._key = disk, key
            self._known = _read(disk, key)
            self._new.clear()


def _read(disk: DiskCache, key: bytes) -> dict[str, bytes]:
    payload = disk.load(key)
    return {} if payload is None else dict(marshal.loads(payload))


compiled_formulas.provide(FormulaCache())

"""Optimized graphs on disk, so that a new process need not optimize what another one has.

A file holds the graph that passes made of a function, under a key that covers all that they read: the function with
all that it calls (:mod:`rekindle.ir.bitcode.digest`), what was assumed of the call, PyTorch, the machine, and the files
of this package. Functions whose source is stored unchanged are described by the digest of that, and share one file
(:mod:`rekindle.runtime.strategies.stored_programs`). Attributes of modules are checked against the values that they
had: partial evaluation reads some of them, which ones depends on their values, and a file has a list of them for each
variant.

Graphs that refer to what only one process has, such as functions of Python, are not kept. Nor is anything where passes
are watched: where the environment requests their log, for a limit of their changes or for verification, and where users
have added passes.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from rekindle.analysis.attribute_writes import AttributeKey
from rekindle.analysis.effects import CALLS
from rekindle.codegen.fusion import Blocker, blockers_of, note_blockers, was_fused
from rekindle.codegen.llvm.engine import disk_cache
from rekindle.errors.debug_settings import settings
from rekindle.ir.bitcode.digest import ProgramDescription, describe
from rekindle.ir.bitcode.reader import GraphReader, check_operators
from rekindle.ir.bitcode.references import MARSHAL_VERSION, Encoded, NotEncodable, marshalled
from rekindle.ir.bitcode.writer import GraphWriter
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.types import TensorType
from rekindle.passes import PartialEvaluation, Pass
from rekindle.passes.simplification.partial_evaluation import (
    PRESENT,
    UNKNOWN,
    AttributeRead,
    Attributes,
    ModulePath,
)
from rekindle.runtime.strategies.argument_spec import (
    ArgumentPath,
    ArgumentProperty,
    ArgumentSpecCreator,
    PropertyQuery,
)
from rekindle.runtime.strategies.call_facts import ProgramFacts
from rekindle.runtime.strategies.stored_programs import ProgramFile, StoredProgram
from rekindle.runtime.user_passes import has_user_passes

_LOG: Final = logging.getLogger(__name__)
_NONE: Final = marshal.dumps(None, MARSHAL_VERSION)

_FORMAT: Final = 2
"""Counts the changes of the format."""
MIN_NODES: Final = 40
"""Smaller programs, with the functions that they call, are optimized as fast as they are looked up."""
_MAX_VARIANTS: Final = 4
"""Maximum number of cached evaluations of a function that differ in the attributes of its modules."""


class Storage(Protocol):
    """The interface of what stores graphs: a folder with a file for each, or the file of one program."""

    def load(self, key: bytes) -> bytes | None:
        """Return the bytes stored under ``key``; None if there are none."""

    def store(self, key: bytes, payload: bytes) -> bool:
        """Store ``payload`` under ``key``; return whether it was stored."""


class Decisions(Protocol):
    """The interface of the decisions by which a graph is built. They are provisional if one of them would have needed a
    measurement, and the decisions are made without: not ``measures``."""

    is_provisional: bool

    @property
    def measures(self) -> bool:
        """Return whether what is needed is measured."""


class Evaluated:
    """A graph after :class:`~rekindle.passes.PartialEvaluation`, decoded when it is first needed. ``creator`` makes the
    specs of its calls."""

    __slots__ = ("_graph", "_read", "creator")

    def __init__(self, read: Callable[[], Graph], queries: Sequence[PropertyQuery], input_count: int) -> None:
        self._read = read
        self._graph: Graph | None = None
        self.creator = ArgumentSpecCreator(lambda: self.graph, queries, input_count)

    @classmethod
    def of(cls, graph: Graph) -> Evaluated:
        """Return a graph that is in memory."""
        return cls(lambda: graph, ArgumentSpecCreator.of(graph).queries, len(graph.inputs))

    @property
    def graph(self) -> Graph:
        """The graph."""
        if self._graph is None:
            self._graph = self._read()
        return self._graph


@dataclass(slots=True)
class GraphCache:
    """The optimized graphs of one function that are stored on ``disk``. ``file`` is ``disk`` if that is the file of one
    program, which :meth:`write` writes; otherwise None."""

    disk: Storage
    program: ProgramDescription | StoredProgram
    pipeline: tuple[str, ...]
    file: ProgramFile | None = None

    @classmethod
    def of_function(cls, record: GraphFunction, passes: Sequence[Pass]) -> GraphCache | None:
        """Return the cache of what ``passes`` produce for a function; None if such results are not stored. If the
        function is as it is stored, its graph is not decoded."""
        disk = disk_cache()
        if disk is None or are_passes_watched():
            return None
        program = StoredProgram.of(record)
        if program is None:
            return cls.of(record.graph, passes)
        names = tuple([each.name for each in passes])
        file = ProgramFile(disk, marshalled(("program", program.digest, names, process_description())))
        return cls(file, program, names, file)

    @classmethod
    def of(cls, graph: Graph, passes: Iterable[Pass]) -> GraphCache | None:
        """Return the cache of what ``passes`` produce for the function of ``graph``; None if such results are not
        stored."""
        disk = disk_cache()
        if disk is None or are_passes_watched() or _nodes(graph, MIN_NODES) < MIN_NODES:
            return None
        try:
            return cls(disk, describe(graph), tuple([each.name for each in passes]))
        except NotEncodable as reason:
            _LOG.debug("not kept on disk: the program depends on %s", reason)
            return None

    @property
    def is_filled(self) -> bool:
        """Whether an earlier process has stored something in the file of the program."""
        return self.file is not None and self.file.is_filled

    def write(self) -> None:
        """Write what was stored since the last time, if it is in the file of the program."""
        if self.file is not None:
            self.file.write()

    def evaluated(self, evaluation: PartialEvaluation, build: Callable[[], Graph]) -> tuple[Evaluated, DerivedGraphs]:
        """Return the graph of the function after ``evaluation``, from disk or from ``build``, and the cache of graphs
        derived from it. The assumptions of the evaluation are set as if it had run."""
        known = tuple([(index, "" if fact is PRESENT else repr(fact)) for index, fact in evaluation.known.items()])
        key = marshalled(("evaluated", *self._key(), known, evaluation.with_types))
        payload = self.disk.load(key)
        variants = () if payload is None else marshal.loads(payload)
        for answers, relied_on, encoded, queries, input_count in variants:
            assumed = _assumed(evaluation.attributes, answers)
            read = None if assumed is None else self.reader(encoded)
            if assumed is not None and read is not None:
                evaluation.assumptions.update(assumed[each] for each in relied_on)
                found = Evaluated(read, _decoded_queries(queries), input_count)
                return found, DerivedGraphs(self, (key, answers))
        recorded = None if evaluation.attributes is None else RecordedAttributes(evaluation.attributes)
        evaluation.attributes = recorded
        graph = build()
        found = Evaluated.of(graph)
        answers = () if recorded is None else recorded.encoded()
        relied_on = tuple(map(_encoded_read, evaluation.assumptions))
        if {read for read, _ in answers}.issuperset(relied_on):
            encoded = self.encoded(graph)
            if encoded is not None:
                variant = answers, relied_on, encoded, _encoded_queries(found.creator), len(graph.inputs)
                self.disk.store(key, marshalled((variant, *variants[: _MAX_VARIANTS - 1])))
        return found, DerivedGraphs(self, (key, answers))

    def facts(self, find: Callable[[], ProgramFacts]) -> ProgramFacts:
        """Return the facts about the function that follow from its graph and those of the functions that it calls:
        from disk or from ``find``."""
        key = marshalled(("facts", *self._key()))
        payload = self.disk.load(key)
        if payload is not None:
            return ProgramFacts(*marshal.loads(payload))
        found = find()
        self.disk.store(key, marshalled((found.inputs, found.runs_unknown_code, found.keeps_types)))
        return found

    def derived(self) -> DerivedGraphs:
        """Return the cache of graphs derived from the unoptimized graph of the function."""
        return DerivedGraphs(self, self._key())

    def _key(self) -> Encoded:
        return self.program.digest, self.pipeline, process_description()

    def encoded(self, graph: Graph) -> Encoded | None:
        """Encode a graph that was derived from the function; None if it cannot be encoded."""
        writer = GraphWriter(self.program.references)
        try:
            number = writer.add(graph)
            blockers = tuple([(each.kind, writer.range(each.range), each.reason) for each in blockers_of(graph)])
            bundle = marshalled(writer.bundle())
        except NotEncodable as reason:
            _LOG.debug("not kept on disk: the graph has %s", reason)
            return None
        return bundle, number, blockers if was_fused(graph) else None, writer.foreign_operators

    def decoded(self, encoded: Encoded) -> Graph | None:
        """Decode a graph; None if its data are invalid in this process."""
        read = self.reader(encoded)
        return None if read is None else read()

    def reader(self, encoded: Encoded) -> Callable[[], Graph] | None:
        """Return a function that decodes a graph; None if its data are invalid in this process."""
        bundle, number, blockers, foreign = encoded
        try:
            check_operators(foreign)
        except NotEncodable as reason:
            _LOG.info("not read from disk: the graph has %s", reason)
            return None

        def read() -> Graph:
            reader = GraphReader(marshal.loads(bundle), self.program.references)
            graph = reader.graph(number)
            if blockers is not None:
                note_blockers(graph, [Blocker(kind, reader.range(place), reason) for kind, place, reason in blockers])
            return graph

        return read


@dataclass(slots=True)
class DerivedGraphs:
    """The stored graphs that are derived from one graph, which ``key`` identifies."""

    function: GraphCache
    key: Encoded

    def find(
        self, name: tuple[object, ...], build: Callable[[], Graph | None], decisions: Decisions | None = None
    ) -> Graph | None:
        """Return the graph stored under ``name``, else the result of ``build``, which is then stored. Both may be None.
        Graphs of provisional ``decisions`` are stored separately: they are returned if there is no other and the
        decisions do not measure, and make them provisional."""
        for is_provisional in (False,) if decisions is None or decisions.measures else (False, True):
            payload = self.function.disk.load(self._key_of(name, is_provisional))
            found = None if payload is None or payload == _NONE else self.function.decoded(marshal.loads(payload))
            if found is not None or payload == _NONE:
                if decisions is not None:
                    decisions.is_provisional = is_provisional
                return found
        graph = build()
        encoded = None if graph is None else self.function.encoded(graph)
        if graph is None or encoded is not None:
            key = self._key_of(name, decisions is not None and decisions.is_provisional)
            self.function.disk.store(key, marshalled(encoded))
        return graph

    def _key_of(self, name: tuple[object, ...], is_provisional: bool) -> bytes:
        return marshalled(("provisional" if is_provisional else "made", self.key, repr(name)))


# ---------------------------------------------------------------------------------------------------------- attributes


@dataclass(slots=True)
class RecordedAttributes:
    """Attributes of modules that record each read with its result."""

    attributes: Attributes
    answers: dict[AttributeRead, object] = field(default_factory=dict)

    def value_of(self, read: AttributeRead) -> object:
        """Return the value of an attribute, and record it."""
        found = self.answers[read] = self.attributes.value_of(read)
        return found

    def is_written(self, key: AttributeKey) -> bool:
        """Return whether the program may write to the attribute."""
        return self.attributes.is_written(key)

    def encoded(self) -> Encoded:
        """Return the recorded reads and their results, encoded."""
        return tuple([(_encoded_read(read), _encoded_answer(value)) for read, value in self.answers.items()])


def _assumed(attributes: Attributes | None, answers: Encoded) -> dict[Encoded, tuple[AttributeRead, object]] | None:
    """Return by encoded read the values of ``attributes``; None if they differ from the stored ``answers``."""
    found: dict[Encoded, tuple[AttributeRead, object]] = {}
    for encoded, answer in answers:
        index, names, name = encoded
        read = AttributeRead(ModulePath(index, names), name)
        value = UNKNOWN if attributes is None else attributes.value_of(read)
        if _encoded_answer(value) != answer:
            return None
        found[encoded] = read, value
    return found


def _encoded_queries(creator: ArgumentSpecCreator) -> Encoded:
    return tuple(
        [(each.argument.input, each.argument.path, each.queried.name, each.may_be_none) for each in creator.queries]
    )


def _decoded_queries(queries: Encoded) -> Sequence[PropertyQuery]:
    # The indices become part of Python code, so that nothing but ints is taken from a file.
    return [
        PropertyQuery(ArgumentPath(int(input), tuple(map(int, path))), ArgumentProperty[name], may_be_none)
        for input, path, name, may_be_none in queries
    ]


def _encoded_read(read: AttributeRead) -> Encoded:
    return read.module.input, read.module.names, read.name


def _encoded_answer(value: object) -> Encoded:
    """Encode the value of an attribute: two values with the same assumable properties have equal codes."""
    if value is UNKNOWN:
        return "unknown"
    if isinstance(value, TensorType):
        return str(value.dtype), str(value.device), value.rank
    return type(value).__name__, repr(value)


def _nodes(graph: Graph, limit: int) -> int:
    """Return the number of nodes of ``graph`` and of the functions that it calls, each counted once per call. Stop at
    ``limit``: a result of at least ``limit`` means that there are that many or more, or that a called function is not
    compiled."""
    found = 0
    for node in graph.all_nodes():
        if node.kind in CALLS:
            callee = called_function(node)
            if callee is None or not callee.is_defined or callee.is_recursive:
                return limit
            found += _nodes(callee.graph, limit - found)
        found += 1
        if found >= limit:
            break
    return found


def are_passes_watched() -> bool:
    """Return whether passes are observed, so that nothing may be read from disk."""
    debug = settings()
    return bool(debug.levels or debug.limits or debug.verify or has_user_passes())


# --------------------------------------------------------------------------------------------------------- the process


def process_description() -> Encoded:
    """Describe what compiled and optimized graphs depend on besides the program and the call."""
    return _environment(), str(torch.get_default_dtype()), str(torch.get_default_device()), torch.get_num_threads()


@cache
def _environment() -> bytes:
    """Return a digest of PyTorch, Python, the machine and the files of this package."""
    described: list[Any] = [_FORMAT, sys.version, torch.__version__, platform.machine(), sys.platform]
    described.append(torch.backends.cpu.get_cpu_capability())
    described.append(sorted(_files(Path(__file__).parents[2])))
    return hashlib.sha256(repr(described).encode()).digest()


def _files(folder: str | Path) -> list[tuple[str, int, int]]:
    """Return the Python files of a folder and those within, with their sizes and when they were changed."""
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                found.append((entry.path, status.st_size, status.st_mtime_ns))
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _files(entry.path)
    return found

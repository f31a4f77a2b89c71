"""Inspection of archives without loading them: their records and texts are read, and nothing is compiled or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rekindle.archive.code.program_index import ProgramIndex
from rekindle.archive.code.sources import ArchiveSources
from rekindle.archive.legacy import MODEL, read_legacy
from rekindle.archive.limits import DEFAULT_LIMITS, ArchiveLimits
from rekindle.archive.pickles.reader import read_pickle
from rekindle.archive.pickles.records import Pickle, PickledObject, SparseRecord, TensorRecord
from rekindle.archive.producer_version import older_than
from rekindle.archive.summary import (
    ArchiveSummary,
    AttributeSummary,
    ClassSummary,
    MemberSummary,
    MethodSummary,
    ModuleSummary,
    OperatorSummary,
    TensorSummary,
)
from rekindle.archive.upgraders import upgraders_of
from rekindle.archive.zip_files.container import ArchiveReader, FileLike
from rekindle.archive.zip_files.names import printable
from rekindle.errors import UNKNOWN_RANGE, ArchiveLimitError, CorruptArchiveError
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.types import LIBRARY_CLASSES
from rekindle.ops.registration.libraries import package_of
from rekindle.ops.tensor.torchbind_objects import is_installed

_EXTRA: Final = "extra/"


def inspect(f: FileLike, *, limits: ArchiveLimits = DEFAULT_LIMITS) -> ArchiveSummary:
    """Describe an archive: its methods and schemas, modules, parameters, buffers, and operators, and which are missing
    here.

    Nothing is built or run, and tensors are not read, so that their sizes do not affect the time.

    Args:
        f: a path, a file open for reading, or bytes.
        limits: limits on the sizes that the archive declares; an archive that exceeds one is rejected.

    Raises:
        OSError: the file cannot be read.
        ArchiveError: the file is not an archive of a program, is broken or unsafe, or exceeds a limit.
        CompileError: a source is not a program, or a class in it is broken.
        TypeError: ``f`` is not a path, a file open in binary mode, or bytes.

    Example:
        >>> rekindle.save(rekindle.script(torch.nn.Linear(3, 2)), "net.pt")
        >>> summary = rekindle.inspect("net.pt")
        >>> [method.name for method in summary.methods]
        ['forward']
        >>> [(tensor.name, tensor.shape) for tensor in summary.parameters]
        [('weight', (2, 3)), ('bias', (2,))]
    """
    reader = ArchiveReader(f, limits)
    with gc_paused(), room_to_recurse(UNKNOWN_RANGE):
        return _Inspector(reader).summary()


class _Inspector:
    """Builder of the summary of one archive."""

    def __init__(self, reader: ArchiveReader) -> None:
        self.reader = reader
        self.version = reader.version()
        self.older_than = older_than(reader, self.version)
        legacy = read_legacy(reader) if MODEL in reader else None
        if legacy is None:
            reader.check_program()
            data, constants = self._read_pickle("data.pkl"), self._read_pickle("constants.pkl")
            root: object = data.value
            self.constants = constants.value if isinstance(constants.value, tuple) else ()
            self.classes = [*data.classes, *constants.classes]
        else:
            root, self.constants, self.classes = legacy.root, tuple(legacy.constants), []
        if not isinstance(root, PickledObject):
            raise CorruptArchiveError("The archive holds no module.", member="data.pkl")
        self.root = root
        self.outline = ProgramIndex(ArchiveSources(reader, legacy), upgraders_of(self.version, self.older_than))

    def _read_pickle(self, member: str) -> Pickle:
        return read_pickle(self.reader.view(member), member, self.reader.limits)

    def summary(self) -> ArchiveSummary:
        reader, outline = self.reader, self.outline
        modules = _Modules(outline, reader.limits)
        modules.visit(self.root, "")
        members = [MemberSummary(name, (entry := reader.entry(name)).size, entry.stored_size) for name in reader.names]
        return ArchiveSummary(
            size=reader.size,
            version=self.version,
            older_than=None if self.older_than is None else ".".join(map(str, self.older_than)),
            byte_order=reader.byte_order(),
            root=self.root.name,
            methods=tuple(MethodSummary(name, str(schema)) for name, schema in outline.schemas(self.root.name)),
            modules=tuple(modules.modules),
            parameters=tuple(modules.parameters),
            buffers=tuple(modules.buffers),
            attributes=tuple(modules.attributes),
            constants=tuple(_tensors_among(self.constants)),
            operators=tuple(self._operators()),
            missing_classes=tuple(self._missing_classes()),
            members=tuple(members),
            extra_files={
                member.name.removeprefix(_EXTRA): member.size for member in members if member.name.startswith(_EXTRA)
            },
        )

    def _operators(self) -> Iterator[OperatorSummary]:
        calls: Counter[str] = Counter(self.outline.operators())
        for kind, count in sorted(calls.items()):
            yield OperatorSummary(kind, count, package_of(kind.partition("::")[0]), not self.outline.names.knows(kind))

    def _missing_classes(self) -> Iterator[ClassSummary]:
        used = dict.fromkeys([*self.classes, *self.outline.library_classes()])
        for name in used:
            if name.startswith(LIBRARY_CLASSES) and not is_installed(name):
                yield ClassSummary(name, package_of(name.removeprefix(LIBRARY_CLASSES).partition(".")[0]))


@dataclass(slots=True)
class _Modules:
    """Collector of the modules in an archive and their contents, each object once, like ``named_modules()`` and
    ``named_parameters()``."""

    outline: ProgramIndex
    limits: ArchiveLimits
    modules: list[ModuleSummary] = field(default_factory=list)
    parameters: list[TensorSummary] = field(default_factory=list)
    buffers: list[TensorSummary] = field(default_factory=list)
    attributes: list[AttributeSummary] = field(default_factory=list)
    seen: dict[int, object] = field(default_factory=dict)

    def visit(self, record: PickledObject, path: str, depth: int = 0) -> None:
        """Add the module of ``record``, its contents and its submodules to the lists. ``path`` is its path from the
        root, empty for the root.

        Raises:
            ArchiveLimitError: modules are nested deeper than the limit.
            CompileError: the class of a module is broken.
        """
        if not self._is_new(record):
            return
        if depth > self.limits.nesting:
            raise ArchiveLimitError(
                f"The modules of the archive nest deeper than {self.limits.nesting}.",
                member="data.pkl",
                hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(nesting=…).",
            )
        self.modules.append(ModuleSummary(path, record.name))
        state = record.state if isinstance(record.state, dict) else {}
        parts: list[tuple[str, PickledObject]] = []
        for slot in self.outline.slots(record.name):
            name = f"{path}.{slot.name}" if path else slot.name
            value = state.get(slot.name)
            if slot.kind != "attribute" and isinstance(value, (TensorRecord, SparseRecord)):
                if self._is_new(value):
                    (self.parameters if slot.kind == "parameter" else self.buffers).append(_tensor(name, value))
            elif isinstance(value, PickledObject) and self.outline.is_module(value.name):
                parts.append((name, value))
            else:
                self.attributes.append(AttributeSummary(name, slot.type.annotation))
        for name, part in parts:
            self.visit(part, name, depth + 1)

    def _is_new(self, record: object) -> bool:
        if id(record) in self.seen:
            return False
        self.seen[id(record)] = record
        return True


def _tensors_among(constants: tuple[object, ...]) -> Iterator[TensorSummary]:
    for index, value in enumerate(constants):
        if isinstance(value, (TensorRecord, SparseRecord)):
            yield _tensor(f"c{index}", value)


def _tensor(name: str, record: TensorRecord | SparseRecord) -> TensorSummary:
    """Return the summary of a tensor. The size of a sparse one is that of its indices and values."""
    parts = record.parts if isinstance(record, SparseRecord) else (record,)
    nbytes = 0
    for part in parts:
        count = 1
        for size in part.sizes:
            count *= size
        nbytes += count * part.dtype.itemsize
    return TensorSummary(
        name,
        tuple(record.sizes),
        str(record.dtype).removeprefix("torch."),
        printable(parts[-1].storage.location),
        nbytes,
        record.requires_grad,
    )

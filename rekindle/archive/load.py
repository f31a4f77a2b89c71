"""Load archives as programs."""

from __future__ import annotations

from typing import Any

from rekindle.archive.code.sources import ArchiveSources
from rekindle.archive.legacy import FOLDER, MODEL, LegacyProgram, read_legacy
from rekindle.archive.limits import DEFAULT_LIMITS, ArchiveLimits
from rekindle.archive.pickles.reader import read_pickle
from rekindle.archive.pickles.records import Pickle, PickledObject
from rekindle.archive.pickles.setstate_sandbox import SetStateSandbox
from rekindle.archive.pickles.tensors import MapLocation, TensorLoader
from rekindle.archive.pickles.values import ValueBuilder
from rekindle.archive.producer_version import older_than
from rekindle.archive.python_results import RECORD, read_results
from rekindle.archive.upgraders import upgraders_of
from rekindle.archive.zip_files.container import ArchiveReader, FileLike
from rekindle.errors import UNKNOWN_RANGE, CorruptArchiveError
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.text.type_parser import custom_class
from rekindle.program.modules.module import ScriptModule
from rekindle.program.sources.source_importer import SourceImporter


def load(
    f: FileLike,
    map_location: MapLocation = None,
    _extra_files: dict[str, Any] | None = None,
    *,
    limits: ArchiveLimits = DEFAULT_LIMITS,
    mmap: bool = True,
    allow_setstate: bool = True,
) -> ScriptModule:
    """Load the module in an archive that PyTorch or this package wrote.

    Loading executes nothing from the archive, except ``__setstate__`` of the program's own classes. That runs in this
    package's interpreter, without operators that access files or the system. ``allow_setstate=False`` rejects archives
    that need it.

    Args:
        f: a path, a file open for reading, or bytes.
        map_location: where tensors are placed: a device, a dict from the devices of the archive to others, or a
            function that takes a storage and the name of its device.
        _extra_files: a dict whose keys name extra files; their bytes become its values. A key without such a file
            keeps its value.
        limits: limits on the sizes that the archive declares; an archive that exceeds one is rejected.
        mmap: map a file instead of reading it. Tensors then share its pages until they are written to, which never
            changes the file. The file must not be truncated while they are in use; :func:`save` replaces it, which is
            safe.
        allow_setstate: whether objects may be created by their own ``__setstate__``.

    Returns:
        A compiled module.

    Raises:
        OSError: the file cannot be read.
        ArchiveError: the file is not an archive of a program, is broken or unsafe, or exceeds a limit.
        CompileError: a source is not a program, or a class is missing. Methods are compiled later, on first use.
        TypeError: ``f`` is not a path, a file open in binary mode, or bytes.

    Example:
        >>> rekindle.save(rekindle.script(torch.nn.Linear(3, 2)), "net.pt")
        >>> net = rekindle.load("net.pt", map_location="cpu")
        >>> net(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """
    reader = ArchiveReader(f, limits, use_mmap=mmap)
    reader.check_program()
    with gc_paused(), room_to_recurse(UNKNOWN_RANGE):
        module = _Loader(reader, map_location, limits, allow_setstate).module()
    for name in _extra_files or ():
        assert _extra_files is not None
        if f"extra/{name}" in reader:
            _extra_files[name] = reader.read(f"extra/{name}")
    return module


class _Loader:
    """Loader of one archive: its sources, constants and attributes."""

    def __init__(
        self, reader: ArchiveReader, map_location: MapLocation, limits: ArchiveLimits, allow_setstate: bool
    ) -> None:
        self.reader = reader
        self.map_location = map_location
        self.limits = limits
        self.allow_setstate = allow_setstate
        version = reader.version()
        self.legacy = read_legacy(reader) if MODEL in reader else None
        self.constants: list[object] = []
        self.importer = SourceImporter(
            ArchiveSources(reader, self.legacy).read,
            self.constants,
            preferred=upgraders_of(version, older_than(reader, version)),
            missing_class=custom_class,
        )
        self.setter = SetStateSandbox(limits, allow_setstate, reader.size)

    def module(self) -> ScriptModule:
        """Return the module of the archive. Call it once: it adds to the table of constants.

        Raises:
            ArchiveError: a pickle is broken or unsafe, or does not hold a module.
            CompileError: a source is not a program.
        """
        if self.legacy is not None:
            return self.legacy_module(self.legacy)
        constants = self.values("constants")
        if not isinstance(constants, tuple):
            raise CorruptArchiveError("The constants are not a tuple.", member="constants.pkl")
        self.constants += constants
        module = self.values("data")
        if not isinstance(module, ScriptModule):
            raise CorruptArchiveError("The archive holds no module.", member="data.pkl")
        if RECORD in self.reader:
            read_results(module, self.reader.read(RECORD))
        return module

    def legacy_module(self, program: LegacyProgram) -> ScriptModule:
        """Build the module of an archive of PyTorch 1.0 to 1.2, and return it. Its constants are added to
        ``constants``."""
        tensors = TensorLoader(self.reader, FOLDER, self.map_location)
        self.constants += [tensors.tensor(record) for record in program.constants]
        builder = ValueBuilder(
            MODEL, self.importer, tensors, self.limits, self.setter.run, allow_setstate=self.allow_setstate
        )
        module = builder.build(program.root)
        assert isinstance(module, ScriptModule)
        return module

    def values(self, name: str) -> Any:
        """Return the value of the pickle ``data.pkl`` or ``constants.pkl``; ``name`` is the name without the suffix.

        Raises:
            ArchiveError: the pickle is missing or broken, does not fit the program, or ``data`` is not an object.
            CompileError: a class that the pickle needs is not a valid program.
        """
        member = f"{name}.pkl"
        pickle = self.read_pickle(member)
        if name == "data" and not isinstance(pickle.value, PickledObject):
            raise CorruptArchiveError("The archive holds no module.", member=member)
        tensors = TensorLoader(self.reader, name, self.map_location)
        builder = ValueBuilder(
            member, self.importer, tensors, self.limits, self.setter.run, allow_setstate=self.allow_setstate
        )
        return builder.build(pickle.value)

    def read_pickle(self, member: str) -> Pickle:
        return read_pickle(self.reader.view(member), member, self.limits)

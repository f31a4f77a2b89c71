"""Summary of the contents of an archive, made without loading it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, frozen=True)
class MethodSummary:
    """A method of the module, and its schema as in ``str(module.method.schema)``."""

    name: str
    schema: str


@dataclass(slots=True, frozen=True)
class ModuleSummary:
    """A module: its path (``encoder.layers.0``; empty for the root), and the qualified name of its class."""

    path: str
    type_name: str


@dataclass(slots=True, frozen=True)
class TensorSummary:
    """A tensor. ``nbytes`` is the size of its elements; ``dtype`` has the form ``float32``, ``device`` ``cuda:0``."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    nbytes: int
    requires_grad: bool

    @property
    def count(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(slots=True, frozen=True)
class AttributeSummary:
    """A module attribute other than a parameter, buffer or submodule, and its type (``Dict[str, int]``)."""

    name: str
    type: str


@dataclass(slots=True, frozen=True)
class OperatorSummary:
    """An operator that the program calls by name (``aten::linear``): how many calls there are, the package that
    registers it (None if that is PyTorch or unknown), and whether it is missing in this process."""

    kind: str
    calls: int
    package: str | None
    is_missing: bool


@dataclass(slots=True, frozen=True)
class ClassSummary:
    """A C++ class that the program uses, and the package that registers it, None if unknown."""

    name: str
    package: str | None


@dataclass(slots=True, frozen=True)
class MemberSummary:
    """A file in the archive: its size in bytes, and how many bytes it takes in the archive."""

    name: str
    size: int
    stored_size: int


@dataclass(slots=True, frozen=True)
class ArchiveSummary:
    """The result of :func:`rekindle.inspect`. ``print`` shows most of it."""

    size: int
    """Bytes of the file."""
    version: int
    """The version of the archive's format, an int from 1 on."""
    older_than: str | None
    """A release of PyTorch that the archive is older than (``1.12``); None if nothing indicates one."""
    byte_order: str
    """``little`` or ``big``: the order of bytes in tensors."""
    root: str
    """The qualified name of the module's class."""
    methods: tuple[MethodSummary, ...]
    modules: tuple[ModuleSummary, ...]
    """All modules, each once; the root first."""
    parameters: tuple[TensorSummary, ...]
    buffers: tuple[TensorSummary, ...]
    attributes: tuple[AttributeSummary, ...]
    constants: tuple[TensorSummary, ...]
    """Constant tensors of the program."""
    operators: tuple[OperatorSummary, ...]
    missing_classes: tuple[ClassSummary, ...]
    members: tuple[MemberSummary, ...]
    extra_files: dict[str, int]
    """Extra files: the size in bytes by name."""

    @property
    def missing_operators(self) -> tuple[OperatorSummary, ...]:
        """The operators that neither PyTorch nor an imported library registers."""
        return tuple(operator for operator in self.operators if operator.is_missing)

    @property
    def parameter_count(self) -> int:
        """The total number of elements of all parameters."""
        return sum(tensor.count for tensor in self.parameters)

    @property
    def parameter_bytes(self) -> int:
        """The total size of the elements of all parameters, in bytes."""
        return sum(tensor.nbytes for tensor in self.parameters)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as dicts, lists, strings, numbers and None, for JSON. Properties are not included."""
        found = _plain(dataclasses.asdict(self))
        assert isinstance(found, dict)
        return found

    def __str__(self) -> str:
        release = f", older than PyTorch {self.older_than}" if self.older_than else ""
        lines = [f"{self.root}: format {self.version}{release}, {self.size:,} bytes"]
        lines += [f"  {method.schema}" for method in self.methods]
        lines.append(
            f"{len(self.modules)} modules, {len(self.parameters)} parameters of {self.parameter_count:,} elements "
            f"({self.parameter_bytes:,} bytes), {len(self.buffers)} buffers"
        )
        for tensor in (*self.parameters, *self.buffers):
            lines.append(f"  {tensor.name}: {tensor.dtype}{list(tensor.shape)} on {tensor.device}")
        lines.append(f"operators: {', '.join(f'{operator.kind} ({operator.calls})' for operator in self.operators)}")
        missing = [(operator.kind, operator.package) for operator in self.missing_operators]
        missing += [(found.name, found.package) for found in self.missing_classes]
        lines += [
            f"missing: {name}" + (f", from the package '{package}'" if package else "") for name, package in missing
        ]
        lines += [f"extra file: {name}, {size:,} bytes" for name, size in self.extra_files.items()]
        return "\n".join(lines)


def _plain(value: object) -> object:
    """Return a copy of ``value`` in which all tuples are lists."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value

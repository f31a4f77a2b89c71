"""``rekindle inspect``: the contents of an archive, without loading it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from rekindle.archive.limits import ArchiveLimits
from rekindle.cli.archive_options import limit_option, reading
from rekindle.cli.console import json_option, write_heading, write_json, write_line, write_table
from rekindle.cli.progress import working
from rekindle.errors.deferred_imports import deferred_function

if TYPE_CHECKING:
    from rekindle.archive.summary import ArchiveSummary, TensorSummary

summarize = deferred_function("rekindle.archive.inspect", "inspect")
"""Imports PyTorch, which ``--help`` does not need."""

_IN_ALL: Final = frozenset({"training", "_is_full_backward_hook"})
"""Attributes that every module has; they are not listed."""
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


@click.command()
@click.argument("archive")
@click.option("--attributes", is_flag=True, help="List attributes other than tensors too.")
@click.option("--members", is_flag=True, help="List the files in the archive too.")
@limit_option
@json_option
def inspect(archive: str, attributes: bool, members: bool, limits: ArchiveLimits, as_json: bool) -> None:
    """Describe ARCHIVE without loading it.

    Prints methods, parameters, buffers, sizes and operators, and which operators are not registered here. Nothing in
    the file is built or run, and tensors are not read: this is safe and quick for any file.
    """
    with working(f"Reading {archive}"), reading(archive):
        found: ArchiveSummary = summarize(archive, limits=limits)
    if as_json:
        write_json(found.as_dict())
        return
    write_heading(found.root)
    release = f", older than PyTorch {found.older_than}" if found.older_than else ""
    write_line(f"format {found.version}{release}, {size_of(found.size)}, {found.byte_order}-endian")
    write_line(f"{counted(len(found.modules), 'module')}, {counted(found.parameter_count, 'number')} in parameters")
    _section("methods")
    for method in found.methods:
        write_line(f"  {method.schema}")
    _missing(found)
    files = [(name, size_of(size)) for name, size in found.extra_files.items()]
    _write_rows("extra files", ("  name", ">size"), files)
    _write_rows("operators", ("  kind", ">calls"), [(item.kind, str(item.calls)) for item in found.operators])
    _tensors("parameters", found.parameters)
    _tensors("buffers", found.buffers)
    _tensors("tensors of the program", found.constants)
    if attributes:
        others = [(item.name, item.type) for item in found.attributes if item.name.rpartition(".")[2] not in _IN_ALL]
        _write_rows("attributes", ("  name", "type"), others)
    if members:
        rows = [(item.name, size_of(item.size), size_of(item.stored_size)) for item in found.members]
        _write_rows("members", ("  name", ">size", ">stored"), rows)


def _section(title: str) -> None:
    write_heading(f"\n{title}")


def _write_rows(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    rows = list(rows)
    if rows:
        _section(title)
        write_table(columns, [(f"  {row[0]}", *row[1:]) for row in rows])


def _tensors(title: str, tensors: tuple[TensorSummary, ...]) -> None:
    count = sum(tensor.count for tensor in tensors)
    size = sum(tensor.nbytes for tensor in tensors)
    _write_rows(
        f"{title}: {counted(count, 'number')}, {size_of(size)}",
        ("  name", "type", "shape", "device", ">size"),
        [(each.name, each.dtype, str(list(each.shape)), each.device, size_of(each.nbytes)) for each in tensors],
    )


def _missing(found: ArchiveSummary) -> None:
    missing = [*((item.kind, item.package) for item in found.missing_operators)]
    missing += [(item.name, item.package) for item in found.missing_classes]
    _write_rows("missing here", ("  name", "package"), [(name, package or "unknown") for name, package in missing])


def counted(number: int, name: str) -> str:
    """Return a number with a noun: ``1 module``, ``1,024 modules``."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def size_of(nbytes: int) -> str:
    """Return a readable number of bytes: ``412 bytes``, ``1.5 MiB``."""
    size, unit = float(nbytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return counted(nbytes, "byte") if unit == 0 else f"{size:.1f} {_UNITS[unit]}"

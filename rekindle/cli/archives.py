"""Archives as commands open them."""

from __future__ import annotations

from typing import Any, Final

import click
import torch

from rekindle.archive.limits import DEFAULT_LIMITS, ArchiveLimits
from rekindle.archive.load import load
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.cli.archive_options import reading
from rekindle.cli.progress import working
from rekindle.program.function import Method
from rekindle.program.modules.module import ScriptModule

_EXTRA: Final = "extra/"


def device_called(text: str) -> torch.device:
    """Return the device with this name, which must be available.

    Raises:
        UsageError: the text does not name a device, or a tensor cannot be created there.
    """
    try:
        device = torch.device(text)
        torch.empty(0, device=device)
    except Exception:  # whatever the device's library raises
        raise click.UsageError(f"there is no device '{text}' here") from None
    return device


def open_archive(path: str, limits: ArchiveLimits = DEFAULT_LIMITS, map_location: Any = "cpu") -> ScriptModule:
    """Load the module in an archive. ``map_location`` is as for :func:`rekindle.load`; by default, tensors are placed
    on the CPU.

    Raises:
        Trouble: the file cannot be read, or is not a valid archive within ``limits``.
    """
    with working(f"Loading {path}"), reading(path):
        return load(path, map_location=map_location, limits=limits)


def extra_files(path: str, limits: ArchiveLimits) -> dict[str, bytes]:
    """Return the contents of the extra files of an archive (those of ``_extra_files``), by name.

    Raises:
        Trouble: the file cannot be read, or is not a valid archive within ``limits``.
    """
    with reading(path):
        reader = ArchiveReader(path, limits)
        names = [name for name in reader.names if name.startswith(_EXTRA)]
        return {name.removeprefix(_EXTRA): reader.read(name) for name in names}


def methods_of(module: ScriptModule) -> list[str]:
    """Return the names of a module's methods: ``forward`` first, the others in order. Names that begin with ``__`` are
    omitted."""
    names = [name for name in module.script_type.methods if not name.startswith("__")]
    return sorted(names, key=lambda name: name != "forward")


def find_method(module: ScriptModule, path: str) -> Method:
    """Return a method by its path, such as ``encoder.forward``: the path of a submodule, and the name.

    Raises:
        UsageError: there is no such submodule, or it has no such method; the message lists the methods that it has.
    """
    where, _, name = path.rpartition(".")
    try:
        part = module.get_submodule(where)
    except AttributeError:
        raise click.UsageError(f"there is no part '{where}'") from None
    record = part.script_type.methods.get(name) if isinstance(part, ScriptModule) else None
    if record is None:
        known = ", ".join(methods_of(part)) if isinstance(part, ScriptModule) else ""
        raise click.UsageError(f"there is no method '{path}'; there are: {known or 'none'}")
    return Method(part, record)


def all_methods(module: ScriptModule) -> dict[str, Method]:
    """Return the methods of a module and of its submodules, by path (``encoder.forward``)."""
    found = {}
    for path, part in module.named_modules(remove_duplicate=False):
        if isinstance(part, ScriptModule):
            for name in methods_of(part):
                found[f"{path}.{name}" if path else name] = Method(part, part.script_type.methods[name])
    return found

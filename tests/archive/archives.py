"""Archives to read in tests: written by PyTorch, unpacked, changed, and packed again."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import torch

from rekindle.archive.writer import ArchiveWriter


def written_by_torch(program: Any, extra_files: Mapping[str, Any] | None = None) -> bytes:
    """The archive that ``torch.jit.save`` writes for a module or a function."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(program), buffer, _extra_files=dict(extra_files or {}))
    return buffer.getvalue()


def members_of(archive: bytes) -> dict[str, bytes]:
    """The members, by their names without the top folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def with_members(members: Mapping[str, bytes | None]) -> bytes:
    """An archive of these members; those that are None are left out."""
    writer = ArchiveWriter()
    for name, content in members.items():
        if content is not None:
            writer.add(name, content)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def changed(archive: bytes, **members: bytes | None) -> bytes:
    """The archive with members replaced, added, or, where they are None, left out. In their names, ``__`` stands for
    a slash and a trailing ``_`` for ``.pkl``."""
    return with_members({**members_of(archive), **members})

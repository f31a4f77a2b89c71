"""Resource limits of archives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True, frozen=True)
class ArchiveLimits:
    """Limits on the size of an archive. An archive that exceeds one raises :class:`~rekindle.errors.ArchiveLimitError`.
    The defaults admit the archives that people save, and keep a small hostile file from exhausting memory or time.
    ``decompressed`` and the limits with ``bytes`` in their names are in bytes. ``ratio`` is decompressed to compressed
    size. The others are counts.

    Example:
        >>> from dataclasses import replace
        >>> limits = replace(rekindle.ArchiveLimits(), ratio=1000)
        >>> rekindle.save(rekindle.script(torch.nn.ReLU()), "relu.pt")
        >>> rekindle.load("relu.pt", limits=limits)(torch.tensor([-1.0]))
        tensor([0.])
    """

    members: int = 200_000
    """Maximum number of files in the archive."""
    decompressed: int = 4 << 30
    """The maximum total size in bytes of all compressed members after decompression. Stored members have the size that
    they have in the file."""
    ratio: int = 200
    """Maximum compression ratio of a member of more than a mebibyte."""
    pickle_bytes: int = 256 << 20
    """Maximum length of a pickle."""
    pickle_opcodes: int = 5_000_000
    """Maximum number of instructions of a pickle. A list of numbers has one for each number."""
    pickle_memo: int = 2_000_000
    """Maximum number of objects in the memo of a pickle, the table by which it refers to objects again."""
    nesting: int = 200
    """Maximum nesting depth of values in an archive: modules, lists, tuples, dicts, objects."""
    type_nesting: int = 50
    """Maximum nesting depth of types: ``List[Dict[str, Tensor]]`` has depth three."""
    code_bytes: int = 16 << 20
    """Maximum total length of the program texts. Reading them takes about two seconds a mebibyte."""
    code_tokens: int = 2_000_000
    """Maximum number of tokens (names, numbers, operators, ends of lines) of one program text."""
    empty_tensor_bytes: int = 1 << 40
    """Maximum size of the storage of a tensor on the device ``meta``, which has no bytes in the archive."""
    steps: int = 1_000_000
    """Maximum number of steps, of about two microseconds each, of ``__setstate__`` of all objects together. An archive
    has an additional step for each 500 of its bytes."""
    setstate_bytes: int = 256 << 20
    """Maximum number of bytes that ``__setstate__`` of all objects together may allocate, including freed ones; an
    archive may use four times its own size in addition."""


DEFAULT_LIMITS: Final = ArchiveLimits()

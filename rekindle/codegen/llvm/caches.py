"""Sizes of the processor's caches, by which kernels choose the order of their work."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNKNOWN: Final = 1 << 20
"""Assumed size in bytes of a second-level cache whose size the system does not report."""
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def second_level_cache(folder: Path = _FOLDER) -> int:
    """Return the size in bytes of the second-level cache of a core, as Linux reports it in ``folder``; 1 MiB if it is
    not known."""
    for cache_of_core in sorted(folder.glob("index*")):
        try:
            level, size = ((cache_of_core / name).read_text().strip() for name in ("level", "size"))
            if level == "2":
                return int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)
        except (OSError, ValueError, IndexError):
            continue
    return _UNKNOWN

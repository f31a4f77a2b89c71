"""``save`` of compiled modules and functions: a hook that a higher layer implements."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from rekindle.errors.layer_hooks import LayerHook

ExtraFiles = Mapping[str, str | bytes]

save_program: Final = LayerHook[Callable[[Any, Any, ExtraFiles | None], None]]("rekindle.archive")
"""Writes a program to a path or into a file."""


class Savable:
    """Mixin of objects that can be written to an archive."""

    __slots__ = ()

    def save(self, f: Any, _extra_files: ExtraFiles | None = None) -> None:
        """Write the object to the path or file ``f``: see :func:`rekindle.save`."""
        save_program.get()(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: ExtraFiles | None = None) -> bytes:
        """Return the bytes that :meth:`save` would write."""
        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

"""Hooks between layers: what a layer needs of a higher one, which provides it when it is imported.

::

    save_program: Final = LayerHook[Callable[[Any, Any], None]]("rekindle.archive")      # in program
    save_program.provide(save)                                                           # in archive
    save_program.get()(module, path)                                                     # in program

A folder imports only from lower ones, so that a lower layer cannot import what it needs of a higher one.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from rekindle.errors.exceptions import InternalError

_T = TypeVar("_T")


class LayerHook(Generic[_T]):
    """A value that a lower layer uses and the module ``provider`` of a higher layer sets at import."""

    __slots__ = ("_provider", "_value")

    def __init__(self, provider: str, default: _T | None = None) -> None:
        self._provider = provider
        self._value = default

    def provide(self, value: _T) -> None:
        """Set the value. A second call replaces the first."""
        self._value = value

    def get(self) -> _T:
        """Return the value.

        Raises:
            InternalError: the provider has not been imported, and there is no default.
        """
        if self._value is None:
            raise InternalError(f"{self._provider} was not imported")
        return self._value

"""The names that program text sees: those of the Python frame that compiles it."""

from __future__ import annotations

from types import FrameType

from rekindle.frontend.sugared_values.base import Resolver
from rekindle.program.sources import compilation_unit
from rekindle.scripting.resolver import PythonResolver


def resolver_of_frame(frame: FrameType) -> Resolver:
    """Return a resolver of the local names of a frame, as they are now, and of its global names."""
    return PythonResolver(dict(frame.f_locals), frame.f_globals)


compilation_unit.resolver_of_frame.provide(resolver_of_frame)

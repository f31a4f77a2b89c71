"""The target machine of generated code: this machine, or an older one that ``REKINDLE_CPU`` names."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from rekindle.codegen.llvm.library import llvm
from rekindle.errors import RekindleError

VARIABLE: Final = "REKINDLE_CPU"
"""The environment variable that names a machine: ``native`` or one of :data:`LEVELS`."""

_SSE2: Final = ("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_V2: Final = (*_SSE2, "crc32", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3: Final = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4: Final = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

LEVELS: Final = {"x86-64": _SSE2, "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""The levels of the x86-64 architecture, each with the features that its processors have at least."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of processor: LLVM's name of it, and its features (``+avx2,-avx512f``).

    ``vector_bits`` is the width of its vector registers.
    """

    cpu: str
    features: str
    has_libraries: bool = True
    """Whether code may call the functions of PyTorch's libraries, SLEEF's among them."""

    def without_libraries(self) -> Target:
        """Return the same processor as a target for code that calls no libraries."""
        return replace(self, has_libraries=False)

    def has(self, feature: str) -> bool:
        """Return whether the processor has a feature, by LLVM's name: ``fma``, ``avx512f``, ``neon`` …"""
        return f"+{feature}" in self.features.split(",")

    @property
    def vector_bits(self) -> int:
        if self.has("avx512f"):
            return 512
        return 256 if self.has("avx") else 128


@cache
def native_target() -> Target:
    """Return the target of this machine."""
    features = llvm().get_host_cpu_features()
    return Target(llvm().get_host_cpu_name(), features.flatten())


@cache
def named_target(name: str) -> Target:
    """Return the target that a value of the environment variable :data:`VARIABLE` names.

    Raises:
        RekindleError: there is none of this name, or this machine is of another architecture or older.
    """
    native = native_target()
    if name in ("", "native"):
        return native
    if name not in LEVELS:
        raise RekindleError(f"{VARIABLE} is 'native' or one of {', '.join(LEVELS)}, not '{name}'")
    lacking = [feature for feature in LEVELS[name] if not native.has(feature)]
    if lacking:
        machine = f"This processor ({platform.machine()})"
        raise RekindleError(f"{machine} cannot run code for '{name}', which {VARIABLE} names: it has no {lacking[0]}")
    return Target(name, ",".join(f"+{feature}" for feature in LEVELS[name]))


def host_target() -> Target:
    """Return the default target: this machine, or the one that :data:`VARIABLE` names.

    Raises:
        RekindleError: the variable names an unknown target, or one whose code this machine cannot run.
    """
    return named_target(os.environ.get(VARIABLE, ""))

"""Upgraders: keep the semantics of operators that have changed since an archive was written.

An archive has the semantics of the release that wrote it. If an operator has changed since, functions with the old
signature take precedence over the operators of the same name while the archive's text is read, and are inlined into
their callers. They are written in TorchScript, with today's operators.

When an archive was written is known from its format version, and from other marks
(:mod:`rekindle.archive.producer_version`) where the release changed an operator without a new version. PyTorch itself
upgrades only the former.

Operators that PyTorch has removed since are functions of the same kind (:mod:`rekindle.archive.removed_operators`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rekindle.archive.producer_version import Release
from rekindle.archive.removed_operators import REMOVED_OPERATORS
from rekindle.frontend.calls.torchscript_builtins import read_functions
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import REGISTRY


@dataclass(slots=True, frozen=True)
class Upgrade:
    """Functions that replace operators in archives older than a format version, or than a release.

    ``text`` is their TorchScript source. One of ``version`` and ``release`` is None. ``namespace`` is that of the
    operators.
    """

    text: str
    version: int | None = None
    release: Release | None = None
    namespace: str = "aten"

    def applies(self, version: int, older_than: Release | None) -> bool:
        """Return whether the upgrade applies to an archive of this format version, which is known to be older than the
        release ``older_than``, if that is not None."""
        if self.version is not None:
            return version < self.version
        return older_than is not None and self.release is not None and older_than <= self.release


_DIVISION: Final = """
def div(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")

def div(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")

def div(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode="trunc", out=out)

def div_(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div_(self, other)
    return torch.div_(self, other, rounding_mode="trunc")

def div_(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div_(self, other)
    return torch.div_(self, other, rounding_mode="trunc")
"""
"""Division of ints truncated the quotient."""

_OPTIONS: Final = (
    "dtype: Optional[int] = None, layout: Optional[int] = None, "
    "device: Optional[Device] = None, pin_memory: Optional[bool] = None"
)
_PASSED_ON: Final = "dtype=dtype, layout=layout, device=device, pin_memory=pin_memory"

_FULL: Final = f"""
def full(size: List[int], fill_value: number, *, {_OPTIONS}) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), {_PASSED_ON})
    return torch.full(size, fill_value, {_PASSED_ON})

def full(size: List[int], fill_value: number, *, names: Optional[List[str]], {_OPTIONS}) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), {_PASSED_ON})
    return torch.full(size, fill_value, {_PASSED_ON})
"""
"""Up to version 4, ``full`` returned floats, whatever the number."""

_LINSPACE: Final = f"""
def linspace(start: number, end: number, steps: Optional[int] = None, *, {_OPTIONS}) -> Tensor:
    return torch.linspace(start, end, 100 if steps is None else steps, {_PASSED_ON})

def linspace(start: number, end: number, steps: Optional[int] = None, *, out: Tensor) -> Tensor:
    return torch.linspace(start, end, 100 if steps is None else steps, out=out)
"""
"""The default of ``steps`` was 100."""

_LOGSPACE: Final = f"""
def logspace(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, *, {_OPTIONS}) -> Tensor:
    return torch.logspace(start, end, 100 if steps is None else steps, base, {_PASSED_ON})

def logspace(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, *, out: Tensor) -> Tensor:
    return torch.logspace(start, end, 100 if steps is None else steps, base, out=out)
"""

_GELU: Final = """
def gelu(self: Tensor) -> Tensor:
    return torch.gelu(self, approximate="none")
"""
"""The operator had no argument ``approximate``."""

_FLOOR_DIVIDE: Final = """
def floor_divide(self: Tensor, other: Tensor) -> Tensor:
    return torch.div(self, other, rounding_mode="trunc")

def floor_divide(self: Tensor, other: number) -> Tensor:
    return torch.div(self, other, rounding_mode="trunc")

def floor_divide(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    return torch.div(self, other, rounding_mode="trunc", out=out)

def floor_divide_(self: Tensor, other: Tensor) -> Tensor:
    return torch.div_(self, other, rounding_mode="trunc")

def floor_divide_(self: Tensor, other: number) -> Tensor:
    return torch.div_(self, other, rounding_mode="trunc")
"""
"""The quotient was truncated, not rounded down."""

_ROUND: Final = """
def round(a: float) -> float:
    below = torch.floor(abs(a)) if torch.isfinite(a) else 0
    nearest = float(below + 1 if abs(a) - below >= 0.5 else below)
    return torch.copysign(nearest, a) if torch.isfinite(a) else a
"""
"""Halves were rounded away from zero, as C does."""

_TENSOR: Final = "".join(
    f"""
def tensor({name}: {type}, *, dtype: Optional[int] = None, device: Optional[Device] = None,
           requires_grad: bool = False) -> Tensor:
    return torch.tensor({name}, dtype=7 if dtype is None else dtype, device=device, requires_grad=requires_grad)
"""
    for name, type in (("t", "float"), ("data", "List[float]"), ("data", "List[List[float]]"))
)
"""Floats of a script made tensors of float64, whatever the default dtype."""

_ARANGE: Final = f"""
def arange(end: number, *, {_OPTIONS}) -> Tensor:
    if dtype is None:
        return torch.arange(float(end), {_PASSED_ON})
    return torch.arange(end, {_PASSED_ON})

def arange(start: number, end: number, *, {_OPTIONS}) -> Tensor:
    if dtype is None:
        return torch.arange(float(start), end, {_PASSED_ON})
    return torch.arange(start, end, {_PASSED_ON})

def arange(start: number, end: number, step: number, *, {_OPTIONS}) -> Tensor:
    if dtype is None:
        return torch.arange(float(start), end, step, {_PASSED_ON})
    return torch.arange(start, end, step, {_PASSED_ON})
"""
"""In a script, the elements were floats, whatever the bounds."""

_SHAPE: Final = """
def shape(self: Tensor) -> List[int]:
    return self.size()
"""
"""``shape`` was an operator of the namespace ``prim``."""

_SIZES: Final = """
def list_with_default(list: List[int], defaults: List[int]) -> List[int]:
    assert len(defaults) > len(list)
    return list
"""
"""A list of ints could not hold None for an omitted size, so no default was used."""

_CLAMP: Final = "".join(
    f"""
def clamp{suffix}(self: Tensor, min: Optional[number] = None, max: Optional[number] = None) -> Tensor:
    if self.is_floating_point():
        return torch.clamp{suffix}(self, min, max)
    low: Optional[int] = None if min is None else int(min)
    high: Optional[int] = None if max is None else int(max)
    return torch.clamp{suffix}(self, low, high)

def clamp_min{suffix}(self: Tensor, min: number) -> Tensor:
    if self.is_floating_point():
        return torch.clamp_min{suffix}(self, min)
    return torch.clamp_min{suffix}(self, int(min))

def clamp_max{suffix}(self: Tensor, max: number) -> Tensor:
    if self.is_floating_point():
        return torch.clamp_max{suffix}(self, max)
    return torch.clamp_max{suffix}(self, int(max))
"""
    for suffix in ("", "_")
)
"""The result of an integer tensor was an integer tensor: bounds were truncated to ints."""

_GRIDS: Final = """
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int) -> Tensor:
    return torch.grid_sampler(input, grid, interpolation_mode, padding_mode, True)

def affine_grid_generator(theta: Tensor, size: List[int]) -> Tensor:
    return torch.affine_grid_generator(theta, size, True)
"""
"""Corners were always aligned, and there was no argument for it."""

UPGRADES: Final = (
    Upgrade(_DIVISION, version=4),
    Upgrade(_FULL, version=5),
    Upgrade(_LINSPACE, version=8),
    Upgrade(_LOGSPACE, version=9),
    Upgrade(_GELU, version=10),
    Upgrade(_GRIDS, release=(1, 3)),
    Upgrade(_ARANGE, release=(1, 4)),
    Upgrade(_SIZES, release=(1, 5)),
    Upgrade(_SHAPE, release=(1, 5), namespace="prim"),
    Upgrade(_TENSOR, release=(1, 6)),
    Upgrade(_ROUND, release=(1, 7)),
    Upgrade(_CLAMP, release=(1, 12)),
    Upgrade(_FLOOR_DIVIDE, release=(1, 13)),
)
"""The changes of semantics, each with the criterion for an archive that precedes it."""


def upgraders_of(version: int, older_than: Release | None = None) -> Callable[[str], Sequence[GraphFunction]]:
    """Return a function from an operator kind to its upgraders: functions that replace the operator in an archive of
    this format version. ``older_than`` is a release that the archive is older than, if that is known."""
    functions = _functions(version, older_than)

    def find(kind: str) -> Sequence[GraphFunction]:
        return functions.get(kind, ())

    return find


@lru_cache(maxsize=32)
def _functions(version: int, older_than: Release | None) -> dict[str, list[GraphFunction]]:
    found: dict[str, list[GraphFunction]] = {}
    for upgrade in UPGRADES:
        if upgrade.applies(version, older_than):
            for kind, record in read_functions(upgrade.text, upgrade.namespace):
                found.setdefault(kind, []).append(record)
    for text in REMOVED_OPERATORS:
        for kind, record in read_functions(text):
            if not REGISTRY.overloads(kind):
                found.setdefault(kind, []).append(record)
    return found

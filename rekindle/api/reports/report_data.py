"""Data model of :func:`rekindle.report`."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from rekindle.api.environment import collect_env
from rekindle.api.reports.report_html import report_html
from rekindle.api.reports.report_page import report_page
from rekindle.api.reports.report_text import report_text
from rekindle.codegen.compiled_kernels import CodeOrigin
from rekindle.codegen.llvm.engine import NativeCode
from rekindle.ir.graph import Graph
from rekindle.runtime.strategies.profiling_strategy import Counters


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """A node, and its source line: ``file`` is empty and ``line`` 0 if it has none."""

    kind: str
    file: str
    line: int
    source: str


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Machine code: the ``seconds`` of compiling or loading it, and its origin. ``memory``: already present in this
    process; ``disk``: cached by an earlier process; ``compiled``: new. ``target`` is LLVM's name of the processor."""

    seconds: float
    origin: CodeOrigin
    target: str
    _code: NativeCode = field(repr=False, compare=False)

    @property
    def llvm(self) -> str:
        """The LLVM IR before LLVM's passes."""
        return self._code.text

    @property
    def optimized_llvm(self) -> str:
        """The LLVM IR after LLVM's passes."""
        return self._code.optimized()

    @property
    def assembly(self) -> str:
        """The assembly of the machine code."""
        return self._code.assembly()


@dataclass(frozen=True, slots=True)
class KernelReport:
    """A kernel that computes ``operators``, for ``inputs`` and ``outputs`` of these layouts: ``f32[2, 8]``, with
    strides if they are not contiguous. ``text`` is its loop IR."""

    operators: tuple[OperatorReport, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    text: str
    machine: MachineCode

    @property
    def llvm(self) -> str:
        """The LLVM IR before LLVM's passes."""
        return self.machine.llvm

    @property
    def assembly(self) -> str:
        """The assembly of the kernel."""
        return self.machine.assembly


@dataclass(frozen=True, slots=True)
class FusionGroupReport:
    """Operators of a fusion group, and the kernels compiled for it: one for each kind of inputs. ``fallbacks``
    counts the calls that ran the operators one by one, by reason; ``refusals`` are the reasons why there was no
    kernel. ``places`` is the number of occurrences in the graph."""

    operators: tuple[OperatorReport, ...]
    kernels: tuple[KernelReport, ...]
    fallbacks: dict[str, int]
    refusals: tuple[str, ...]
    places: int = 1


@dataclass(frozen=True, slots=True)
class NativeRegionReport:
    """Loops and arithmetic on numbers and lists of numbers, which are compiled together. ``machine`` is None as long as
    there is no machine code, and an execution plan runs them."""

    operators: tuple[OperatorReport, ...]
    machine: MachineCode | None


@dataclass(frozen=True, slots=True)
class Unfused:
    """An operator that computes tensors and is not in a kernel. ``is_library``: it is a matrix product, a convolution
    or attention, which a library runs as intended."""

    operator: OperatorReport
    reason: str
    is_library: bool


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard: the ``value`` of this name is assumed to be of ``type``. If it is not, the call bails out; that happened
    ``taken`` times. ``is_at_entry``: the guard runs before any operator."""

    value: str
    type: str
    taken: int
    is_at_entry: bool


@dataclass(frozen=True, slots=True)
class Differentiable:
    """Operators with a backward graph of their own, in ``places`` occurrences; ``parts`` are the graphs that were
    needed so far."""

    operators: tuple[OperatorReport, ...]
    parts: tuple[GraphReport, ...]
    places: int = 1


@dataclass(frozen=True, slots=True)
class CudaGraphReport:
    """The CUDA graphs of a version (:func:`rekindle.set_cuda_graphs`): how many calls were captured, how many were
    replayed, and why others could not be; None if none was refused."""

    captures: int
    replays: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class GraphReport:
    """A graph that is compiled as a unit: a version of the function, or a part of one.

    ``title`` says which one it is, ``arguments`` are the inputs with what is known of their types, ``runs_as`` is what
    runs it: a plan in machine code or in Python, or the interpreter. ``seconds`` is the time that its passes and its
    plan took, 0 if that is not known. ``cuda_graphs`` is None unless CUDA graphs are on.
    """

    title: str
    arguments: tuple[str, ...]
    runs_as: Literal["native plan", "plan", "interpreter"]
    seconds: float
    groups: tuple[FusionGroupReport, ...]
    regions: tuple[NativeRegionReport, ...]
    differentiable: tuple[Differentiable, ...]
    unfused: tuple[Unfused, ...]
    guards: tuple[Guard, ...]
    graph: Graph = field(repr=False, compare=False)
    cuda_graphs: CudaGraphReport | None = None

    def walk(self) -> Iterator[GraphReport]:
        """Yield this report, then those of its forward and backward graphs, recursively."""
        yield self
        for each in self.differentiable:
            for part in each.parts:
                yield from part.walk()


@dataclass(frozen=True, slots=True)
class LoopFallbackReport:
    """An operator that a batched function computes in a loop over the examples (:func:`rekindle.vmap`), and the reason.
    The kind ``prim::vmap`` means that the whole program runs in a loop."""

    operator: OperatorReport
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The versions of a function that calls have run, one for each kind of arguments. ``str()`` of it is text.

    ``one_by_one`` lists the operators that a batched function computes in a loop over the examples. ``profile`` has the
    counts of the strategy ``"profiling"``, and is None under other strategies.

    Example:
        >>> @rekindle.script
        ... def double(x):
        ...     return x * 2
        >>> print(rekindle.report(double))
        double: the strategy is 'native', and no call has optimized it yet
    """

    name: str
    strategy: str
    versions: tuple[GraphReport, ...]
    profile: Counters | None = None
    one_by_one: tuple[LoopFallbackReport, ...] = ()

    @property
    def parts(self) -> tuple[GraphReport, ...]:
        """The reports of all versions, and of the graphs within them."""
        return tuple(part for version in self.versions for part in version.walk())

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        """The kernels of all parts."""
        return tuple(kernel for part in self.parts for group in part.groups for kernel in group.kernels)

    @property
    def regions(self) -> tuple[NativeRegionReport, ...]:
        """The native regions of all parts."""
        return tuple(region for part in self.parts for region in part.regions)

    @property
    def machines(self) -> tuple[MachineCode, ...]:
        """All machine code: of kernels and of regions."""
        regions = [region.machine for region in self.regions if region.machine is not None]
        return (*(kernel.machine for kernel in self.kernels), *regions)

    @property
    def unfused(self) -> tuple[Unfused, ...]:
        """Operators of all parts that run outside of kernels, except matrix products, convolutions and attention."""
        return tuple(each for part in self.parts for each in part.unfused if not each.is_library)

    @property
    def origins(self) -> dict[CodeOrigin, int]:
        """Number of compiled functions by origin: compiled, read from disk, or present already."""
        found = [machine.origin for machine in self.machines]
        return {origin: found.count(origin) for origin in _ORIGINS}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can represent, with the text of kernels and graphs, but without LLVM IR
        and assembly."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain

    def save(self, path: str | Path) -> Path:
        """Write the report to ``path``, and return the path.

        If the name ends with ``.json``, the file holds :meth:`to_dict` and the environment as JSON; otherwise it is a
        page with the texts of graphs and kernels and with :func:`rekindle.collect_env`. Source files are named without
        their folders.
        """
        path = Path(path)
        if path.suffix == ".json":
            data = {"environment": collect_env().to_dict(), "report": _without_folders(self.to_dict())}
            path.write_text(json.dumps(data, indent=1), encoding="utf-8")
        else:
            path.write_text(report_page(self), encoding="utf-8")
        return path

    def __str__(self) -> str:
        return report_text(self)

    def _repr_html_(self) -> str:
        return report_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the object in IPython on a terminal."""
        printer.text(str(self))


_ORIGINS: Final[tuple[CodeOrigin, ...]] = ("compiled", "disk", "memory")


def _without_folders(value: Any) -> Any:
    """Return the data of a report with file names without folders, and the texts of graphs without source locations."""
    if isinstance(value, list):
        return [_without_folders(item) for item in value]
    if isinstance(value, dict):
        found = {key: _without_folders(item) for key, item in value.items()}
        if isinstance(found.get("file"), str):
            found["file"] = Path(found["file"]).name
        if isinstance(found.get("graph"), str):
            found["graph"] = _PLACE.sub("", found["graph"])
        return found
    return value


_PLACE: Final = re.compile(r" # \S.*$", re.MULTILINE)


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value) if not each.name.startswith("_")]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Graph) else value

"""``rekindle.report``: what calls of a function run, and what became machine code."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from rekindle.api.drop_in.entry_points import entry_point_of
from rekindle.api.reports.report_data import (
    CudaGraphReport,
    Differentiable,
    FusionGroupReport,
    GraphReport,
    Guard,
    KernelReport,
    LoopFallbackReport,
    MachineCode,
    NativeRegionReport,
    OperatorReport,
    Report,
    Unfused,
)
from rekindle.api.reports.unfused_nodes import NO_FUSION, unfused_nodes
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from rekindle.codegen.compiled_kernels import KernelLaunch
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.layout import Layout, contiguous_strides
from rekindle.codegen.native.region_executor import NativeRegion
from rekindle.codegen.value_descriptors import scalar_of
from rekindle.errors import SourceRange
from rekindle.importing.compiled_graphs import CompiledGraph, graphs_of
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.passes.canonicalization.inlining import inline
from rekindle.program.function import Function, Method
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.cuda_graphs.captured_function import CapturedFunction, ReplayedFunction
from rekindle.runtime.executable import Executable
from rekindle.runtime.executed import owner_of, places_of
from rekindle.runtime.executor import STRATEGIES
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.strategies.bailouts import Bailout
from rekindle.runtime.strategies.profiling_strategy import ProfilingStrategy
from rekindle.runtime.version import RunsAs, Strategy, Version, runs_as, underlying_code
from rekindle.transforms.vmap.loop_fallbacks import loops_over_examples


def report(f: Any, /) -> Report:
    """Report what calls of a compiled program have run so far: kernels with the operators that each covers, operators
    outside of kernels with the reason, backward graphs, guards, and compile times in seconds.

    Args:
        f: a compiled function, method or module, or a result of ``torch.compile(…, backend="rekindle")``.

    Returns:
        Plain data, which ``str()`` formats. There are no versions before the first call.

    Raises:
        TypeError: ``f`` is not compiled, or is overloaded.

    Example:
        >>> gate = rekindle.script(lambda x, y: torch.sigmoid(x) * torch.tanh(y))
        >>> with torch.no_grad():
        ...     for _ in range(5):
        ...         _ = gate(torch.ones(8, 8), torch.ones(8, 8))
        >>> (kernel,) = rekindle.report(gate).kernels
        >>> [operator.kind for operator in kernel.operators]
        ['aten::sigmoid', 'aten::tanh', 'aten::mul']
    """
    compiled = graphs_of(f)
    if compiled is not None:
        return _of_compiled(f, compiled)
    if not isinstance(f, (Function, Method, ScriptModule)):
        raise TypeError(
            f"rekindle.report takes a function, a method or a module that rekindle has compiled, but got {f!r}: "
            "script, trace or load it, and call it first"
        )
    record = entry_point_of(f).record
    strategy = _strategy_of(record)
    name = record.name.rsplit(".", 1)[-1]
    looped = tuple(_one_by_one(record))
    if strategy is None:
        return Report(name, SETTINGS.strategy, (), one_by_one=looped)
    versions = _versions_of(strategy)
    profile = dataclasses.replace(strategy.counters) if isinstance(strategy, ProfilingStrategy) else None
    return Report(name, name_of(strategy), tuple(versions), profile, looped)


def _one_by_one(record: GraphFunction) -> Iterator[LoopFallbackReport]:
    graph = record.graph.copy()
    inline(graph)
    for each in loops_over_examples(graph):
        yield LoopFallbackReport(_operator_at(each.kind, each.range), each.reason)


def _of_compiled(f: Any, graphs: Sequence[CompiledGraph]) -> Report:
    """Return the report of the functions that a result of ``torch.compile`` consists of."""
    parts: list[GraphReport] = []
    for graph in graphs:
        for function in graph.functions:
            strategy = _strategy_of(function._record)
            if strategy is not None:
                parts += _versions_of(strategy, f"[{graph.compile_id}] {function.name}, ")
    return Report(getattr(f, "__name__", type(f).__name__), SETTINGS.strategy, tuple(parts))


def _strategy_of(record: GraphFunction) -> Strategy | None:
    executable = record.executable
    return executable.strategy if isinstance(executable, Executable) else None


def _versions_of(strategy: Strategy, prefix: str = "") -> list[GraphReport]:
    return [
        dataclasses.replace(
            part_of(f"{prefix}version {number}", version.code, how=version.runs_as, seconds=version.seconds),
            cuda_graphs=_cuda_graphs(version),
        )
        for number, version in enumerate(strategy.versions, start=1)
    ]


def _cuda_graphs(version: Version) -> CudaGraphReport | None:
    captured = version.captured
    if not isinstance(captured, CapturedFunction):
        return None
    return CudaGraphReport(captured.captures, captured.replays, captured.reason)


def name_of(strategy: Strategy) -> str:
    """Return the name of the strategy for :func:`rekindle.set_execution_strategy`; of one without a name, its class."""
    for name, make in STRATEGIES.items():
        if type(strategy) is make:
            return name
    return type(strategy).__name__


def part_of(title: str, code: Code, *, how: RunsAs, seconds: float = 0.0) -> GraphReport:
    """Return the report of the graph that ``code`` runs. ``how`` is what runs it: a plan or the interpreter;
    ``seconds`` is the time that its compilation took."""
    groups: list[FusionGroupReport] = []
    regions: list[NativeRegionReport] = []
    differentiable: list[Differentiable] = []
    guards: list[Guard] = []
    places = places_of(code)
    reported: set[object] = set()
    for instruction in code.instructions:
        owner = owner_of(instruction)
        if isinstance(owner, (DifferentiableOperation, FusionExecutor)):
            if owner in reported:
                continue
            reported.add(owner)
        if isinstance(instruction.constant, Bailout):
            guards.append(_guard(instruction.node, instruction.constant))
        elif isinstance(owner, NativeRegion):
            regions.append(_region(owner))
        elif isinstance(owner, DifferentiableOperation):
            differentiable.append(_differentiable(owner, places[owner]))
        elif isinstance(owner, FusionExecutor):
            groups.append(_group(owner, places[owner]))
            for inner in filter(None, map(underlying_code, list(owner.split_executors.values()))):
                groups += part_of(title, inner, how=how).groups
    return GraphReport(
        title=title,
        arguments=tuple(f"%{value.name} : {value.type}" for value in code.graph.inputs),
        runs_as=how,
        seconds=seconds,
        groups=tuple(groups),
        regions=tuple(regions),
        differentiable=tuple(differentiable),
        unfused=tuple(
            Unfused(operator_of(each.node), each.reason, each.is_library) for each in unfused_nodes(code.graph)
        ),
        guards=tuple(guards),
        graph=code.graph,
    )


def _group(group: FusionExecutor, places: int) -> FusionGroupReport:
    operators = operators_of(group.graph)
    launches = [launch for launch in list(group.launches.values()) if launch is not None]
    kernels = tuple(_kernel(operators, launch) for launch in launches)
    return FusionGroupReport(operators, kernels, dict(group.fallbacks), tuple(group.failures), places)


def _kernel(operators: tuple[OperatorReport, ...], launch: KernelLaunch) -> KernelReport:
    code = launch.kernel.code
    return KernelReport(
        operators=operators,
        inputs=tuple(map(_layout, launch.inputs)),
        outputs=tuple(map(_layout, launch.outputs)),
        text=launch.kernel.text,
        machine=MachineCode(launch.seconds, launch.origin, code.target.cpu, code),
    )


def _layout(of: Layout | type) -> str:
    if isinstance(of, type):
        return of.__name__
    text = f"{scalar_of(of.dtype)}{list(of.sizes)}"
    return text if of.strides == contiguous_strides(of.sizes) else f"{text} with strides {list(of.strides)}"


def _region(region: NativeRegion) -> NativeRegionReport:
    code = region.code
    machine = None
    if code is not None:
        machine = MachineCode(code.seconds, "disk" if code.from_cache else "compiled", code.target.cpu, code)
    return NativeRegionReport(operators_of(region.graph), machine)


def _differentiable(operation: DifferentiableOperation, places: int) -> Differentiable:
    parts = []
    for piece in operation.pieces():
        code = underlying_code(piece.function)
        if code is not None:
            part = part_of(piece.title, code, how=runs_as(piece.function))
            if isinstance(piece.replayed, ReplayedFunction):
                part = dataclasses.replace(part, cuda_graphs=_cuda_graphs(piece.replayed.version))
            parts.append(_once_for_each_size(part) if piece.specializes else part)
    return Differentiable(operators_of(operation.graph), tuple(parts), places)


def _once_for_each_size(part: GraphReport) -> GraphReport:
    """Return the report ``part`` with another reason for operators that are unfused because the strategy makes no
    kernels: the graph runs only once for new sizes. Strategies other than ``native`` leave it unchanged."""
    if SETTINGS.strategy != "native":
        return part
    reasons = {NO_FUSION: "this graph runs once for new sizes, before there is one for these sizes"}
    unfused = tuple(dataclasses.replace(each, reason=reasons.get(each.reason, each.reason)) for each in part.unfused)
    return dataclasses.replace(part, unfused=unfused)


def _guard(node: Node, bailout: Bailout) -> Guard:
    guarded, *_ = node.inputs
    return Guard(guarded.name, str(bailout.type), bailout.taken, bailout.is_at_entry)


def operators_of(graph: Graph) -> tuple[OperatorReport, ...]:
    """Return a report of each node of a graph, nested blocks included, except constants."""
    return tuple(operator_of(node) for node in graph.all_nodes() if node.kind != "prim::Constant")


def operator_of(node: Node) -> OperatorReport:
    """Return the report of a node: its operator and its source line."""
    return _operator_at(node.kind, node.range)


def _operator_at(kind: str, range: SourceRange) -> OperatorReport:
    place = range.original
    if not place.is_known:
        return OperatorReport(kind, "", 0, "")
    line = place.source.line(place.source.line_index(place.start)).strip()
    return OperatorReport(kind, place.source.filename or "", place.line, line)

"""A report as text for people."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:  # the report's own __str__ is written here
    from rekindle.api.reports.report_data import (
        Differentiable,
        FusionGroupReport,
        GraphReport,
        KernelReport,
        LoopFallbackReport,
        MachineCode,
        OperatorReport,
        Report,
        Unfused,
    )

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def report_text(report: Report) -> str:
    """Format ``report`` as text: versions, what became machine code, and what did not."""
    lines = [f"{report.name}: the strategy is '{report.strategy}'"]
    loops = list(_by_reason("in loops over the examples of batches", report.one_by_one))
    if not report.versions:
        return "\n".join([f"{lines[0]}, and no call has optimized it yet", *loops])
    count = len(report.versions)
    lines[0] += f", with {_count(count, 'version')}"
    lines += [*_summary(report), *loops]
    for version in report.versions:
        lines += ["", *_part(version)]
    return "\n".join(lines)


def _summary(report: Report) -> Iterator[str]:
    if report.machines:
        parts = [f"{count} {_ORIGINS[origin]}" for origin, count in report.origins.items() if count]
        seconds = sum(machine.seconds for machine in report.machines)
        kernels, regions = len(report.kernels), len(report.machines) - len(report.kernels)
        what = [_count(kernels, "kernel")] * bool(kernels) + [_count(regions, "native region")] * bool(regions)
        yield f"{' and '.join(what)}: {', '.join(parts)}, in {_time(seconds)}"
    if report.profile is not None:
        profile = report.profile
        yield (
            f"{_count(profile.profiled_calls, 'call')} watched, {_count(profile.guards, 'guard')}, "
            f"{_count(profile.entry_failures, 'call')} left at the entry, {profile.bailouts} in the middle"
        )


_ORIGINS: Final = {"compiled": "compiled", "disk": "read from disk", "memory": "there already"}


def _part(part: GraphReport) -> Iterator[str]:
    how = "in the interpreter" if part.runs_as == "interpreter" else f"as a {part.runs_as}"
    took = f", made in {_time(part.seconds)}" if part.seconds else ""
    yield f"{part.title}, {how}{took}"
    if part.title.startswith("version"):
        yield f"  for {', '.join(part.arguments) or 'no arguments'}"
    if part.cuda_graphs is not None:
        graphs = part.cuda_graphs
        yield f"  CUDA graphs: {_count(graphs.captures, 'call')} captured, {_count(graphs.replays, 'call')} replayed"
        if graphs.reason is not None:
            yield f"    not captured: {graphs.reason}"
    numbers = itertools.count(1)
    for group in part.groups:
        yield from _indented(_group(group, numbers))
    for region in part.regions:
        state = "run by a plan so far" if region.machine is None else f"machine code, {_machine(region.machine)}"
        yield f"  native region, {state}"
        yield from _indented(_operators(region.operators), 4)
    for differentiable in part.differentiable:
        yield from _indented(_differentiable(differentiable))
    if part.guards:
        yield f"  {_count(len(part.guards), 'guard')}"
        for guard in part.guards:
            taken = f": failed {_count(guard.taken, 'time')}" if guard.taken else ""
            yield f"    %{guard.value} is {guard.type}{taken}"
    yield from _indented(_by_reason("in no kernel", part.unfused))


def _group(group: FusionGroupReport, numbers: Iterator[int]) -> Iterator[str]:
    if not group.kernels:
        which = "that no kernel was made for" if group.fallbacks or group.refusals else "that has not run"
        yield f"a group {which}{_in(group.places)}"
    for kernel in group.kernels:
        yield f"kernel {next(numbers)}, {_machine(kernel.machine)}{_in(group.places)}"
        yield f"  for {_layouts(kernel)}"
    yield from _indented(_operators(group.operators))
    for why, count in group.fallbacks.items():
        yield f"  ran one by one {_count(count, 'time')}: {why}"
    for why in dict.fromkeys(group.refusals):
        yield f"  no kernel: {why}"


def _in(places: int) -> str:
    return f", in {places} places" if places > 1 else ""


def _layouts(kernel: KernelReport) -> str:
    return f"{', '.join(kernel.inputs)} -> {', '.join(kernel.outputs)}"


def _differentiable(differentiable: Differentiable) -> Iterator[str]:
    yield f"a graph with a backward of its own{_in(differentiable.places)}"
    yield from _indented(_operators(differentiable.operators))
    for part in differentiable.parts:
        yield from _indented(_part(part))


def _by_reason(title: str, left_out: Sequence[Unfused | LoopFallbackReport]) -> Iterator[str]:
    """Yield the lines on operators that are not in kernels or not batched, grouped by reason."""
    if left_out:
        yield title
    for why, found in _by(left_out, lambda each: each.reason).items():
        yield f"  {why}:"
        yield from _indented(_operators([each.operator for each in found]), 4)


def _operators(operators: Sequence[OperatorReport]) -> Iterator[str]:
    """Yield each source line, followed by a line with its operators; only the latter if no source line is known."""
    for (file, line, source), found in _by(operators, lambda each: (each.file, each.line, each.source)).items():
        counted = Counter(each.kind for each in found)
        kinds = ", ".join(kind if count == 1 else f"{kind} × {count}" for kind, count in counted.items())
        if not source:
            yield f"{kinds}"
        else:
            yield f"{Path(file).name}:{line}: {source}" if file else source
            yield f"  {kinds}"


def _by(items: Sequence[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Group the items by key, in order of their first occurrence."""
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def _machine(machine: MachineCode) -> str:
    return f"{_ORIGINS[machine.origin]} in {_time(machine.seconds)}"


def _indented(lines: Iterator[str], by: int = 2) -> Iterator[str]:
    return (f"{' ' * by}{line}" for line in lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"

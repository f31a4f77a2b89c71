"""Provenance: the source locations and modules that the nodes of an exported program come from.

The tracer copies the dict ``custom`` of :mod:`torch.fx.traceback` to every node that it creates, and passes and
decompositions keep it. While the program runs, the dict holds the index of the current source location. At the end,
:func:`write_provenance` replaces it with the metadata that Export IR specifies: ``stack_trace``, ``nn_module_stack``
and ``source_fn_stack``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx
from torch.fx import traceback as fx_traceback

from rekindle.errors import SourceRange
from rekindle.ir.graph import Node

MARK: Final = "rekindle"


@dataclass(slots=True, frozen=True, eq=False)
class CallFrame:
    """A function on the call stack of a node: its name, the location of its call, and the module whose method it is."""

    name: str
    qualified_name: str
    called_from: SourceRange | None = None
    path: str | None = None
    class_name: str = ""


@dataclass(slots=True)
class ProvenanceTable:
    """The source locations of the recorded nodes, by index."""

    known: list[tuple[tuple[CallFrame, ...], Node]] = field(default_factory=list)
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)

    def enter(self, steps: tuple[CallFrame, ...], node: Node) -> None:
        """Attribute the nodes recorded from now on to ``node``."""
        key = (id(steps), id(node))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.known)
            self.known.append((steps, node))
        fx_traceback.current_meta["custom"] = {MARK: number}


def write_provenance(program: torch.export.ExportedProgram, places: ProvenanceTable) -> None:
    """Write the source location of every node of ``program`` other than a placeholder into its metadata, and remove the
    index from ``custom``. A node without a location gets that of the node before it; at the start, the first one."""
    for module in _graph_modules(program.graph_module):
        last = _first_mark(module)
        for node in module.graph.nodes:
            mark = _mark_of(node)
            custom = node.meta.get("custom")
            if isinstance(custom, dict):
                kept = {key: value for key, value in custom.items() if not _is_ours(key)}
                if kept:
                    node.meta["custom"] = kept
                else:
                    del node.meta["custom"]
            if node.op == "placeholder":
                continue
            if node.op == "output":
                node.meta["val"] = fx.map_arg(node.args[0], lambda each: each.meta.get("val"))
            # A node without a location of its own (the size of an input, a check) gets that of the node next to it.
            last = last if mark is None else mark
            if last is not None and last < len(places.known):
                _write(node, *places.known[last])
            if node.op == "call_function":
                node.meta.setdefault("val", None)


def _is_ours(key: str) -> bool:
    return key == MARK or key.startswith("_torchdynamo_disable")


def _mark_of(node: torch.fx.Node) -> int | None:
    custom = node.meta.get("custom")
    found = custom.get(MARK) if isinstance(custom, dict) else None
    return found if isinstance(found, int) else None


def _first_mark(module: torch.fx.GraphModule) -> int | None:
    return next((mark for node in module.graph.nodes if (mark := _mark_of(node)) is not None), None)


def _graph_modules(root: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    for module in root.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield module


def _write(made: torch.fx.Node, steps: tuple[CallFrame, ...], node: Node) -> None:
    made.meta["stack_trace"] = stack_trace(steps, node.range)
    made.meta["nn_module_stack"] = _module_stack(steps)
    made.meta["source_fn_stack"] = _source_functions(steps, made, node)


def stack_trace(steps: tuple[CallFrame, ...], range: SourceRange) -> str:
    """Return the source lines that led to a location, in the format of Python's tracebacks."""
    lines: list[str] = []
    ranges = [*(step.called_from for step in steps[1:]), range]
    for step, place in zip(steps, ranges, strict=True):
        if place is None or not place.is_known:
            continue
        original = place.original
        source = original.source
        if source.is_library:
            continue
        text = source.line(source.line_index(original.start)).strip()
        lines.append(f'  File "{source.filename or "<string>"}", line {original.line}, in {step.name}\n    {text}\n')
    return "".join(lines)


def _module_stack(steps: tuple[CallFrame, ...]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for step in steps:
        if step.path is not None:
            suffix = "___" + step.path.replace(".", "_") if step.path else "__"
            found.setdefault(f"L__self{suffix}", (step.path, step.class_name))
    return found


def _source_functions(steps: tuple[CallFrame, ...], made: torch.fx.Node, node: Node) -> list[tuple[str, Any]]:
    """Return the name and object of each function of torch and module class of ``torch.nn`` on the call stack of a
    node, the outermost first. If there is none, return the name and the operator of the node itself."""
    found: list[tuple[str, Any]] = []
    for step in steps:
        target: Any = None
        if step.path is not None and step.class_name.startswith("torch.nn."):
            target, name = _named(step.class_name), step.path.replace(".", "_") or step.name
        elif step.qualified_name.startswith("__torch__.torch."):
            target, name = _named(step.qualified_name.removeprefix("__torch__.")), step.name
        else:
            continue
        if target is not None:
            found.append((name, target))
    if not found and made.op == "call_function":
        found.append((node.kind.rpartition("::")[2], made.target))
    return found


def _named(qualified_name: str) -> Any:
    """Return the class or function of torch with this name; None if there is none."""
    module_name, _, name = qualified_name.rpartition(".")
    try:
        return getattr(importlib.import_module(module_name), name, None)
    except ImportError:
        return None

"""Rewrite the devices in programs: ``torch.zeros(3, device="cuda:0")`` in a program that has to run without a GPU.

Traced programs contain many. ``map_location`` alone changes the devices of tensors, and not those in programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import torch

from rekindle.frontend.python_printer import named_types_in
from rekindle.ir.attributes import constant_attribute
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType, FunctionType, Type
from rekindle.program.modules.module import ScriptModule

DeviceMap: TypeAlias = Callable[[torch.device], torch.device]


def map_devices(module: ScriptModule, to: DeviceMap) -> None:
    """Change the devices in a module: in its programs, those of its submodules and of all functions that they call, and
    in its attributes. ``to`` maps old devices to new ones.

    Graphs and attributes are changed in place. Tensors are not moved, and strings that a program converts to devices at
    run time are not changed.
    """
    parts = [part for part in module.modules() if isinstance(part, ScriptModule)]
    for record in _functions(part.script_type for part in parts):
        _map_constants(record.graph, to)
        record.executable = None
    for part in parts:
        for name, slot in part.script_type.attributes.items():
            if slot.kind == "attribute" and name not in part._modules and hasattr(part, name):
                value = getattr(part, name)
                mapped = _mapped(value, to)
                if mapped is not value:
                    setattr(part, name, mapped)


def _functions(types: Iterable[Type]) -> Iterator[GraphFunction]:
    """Yield the methods of classes, and the functions and methods that these reference, each once."""
    pending, seen = list(types), set[int]()
    while pending:
        found = pending.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        records: list[GraphFunction] = []
        if isinstance(found, ClassType):
            records = [*found.methods.values(), *found.static_methods.values()]
            pending += [named for slot in found.attributes.values() for named in named_types_in(slot.type)]
        elif isinstance(found, FunctionType):
            records = [found.function]
        for record in records:
            yield record
            for node in record.graph.all_nodes():
                pending += [named for value in node.outputs for named in named_types_in(value.type)]


def _map_constants(graph: Graph, to: DeviceMap) -> None:
    for node in graph.all_nodes():
        if node.kind == "prim::Constant" and "value" in node.attributes:
            value = node.output.to_python()
            mapped = _mapped(value, to)
            if mapped is not value:
                attribute, _ = constant_attribute(mapped)
                assert attribute is not None
                node.set_attribute("value", attribute)
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                _map_constants(inner, to)


def _mapped(value: Any, to: DeviceMap) -> Any:
    """Return a copy of the value in which devices are mapped, except in keys of dicts; the same object if no device
    changes."""
    if isinstance(value, torch.device):
        mapped = to(value)
        return value if mapped == value else mapped
    if isinstance(value, (list, tuple)):
        items = [_mapped(item, to) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    if isinstance(value, dict):
        entries = {key: _mapped(item, to) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value

"""Methods that list the contents of a module: ``self.layers.items``, ``self.named_children``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import torch

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple
from rekindle.ir.graph import Graph
from rekindle.ir.types import NONE, InterfaceType
from rekindle.scripting.modules.module_types import ConcreteModuleType

_DICT_VIEWS: Final = ("keys", "values", "items")
_TREE_VIEWS: Final = (
    *("children", "named_children", "modules", "named_modules"),
    *("parameters", "named_parameters", "buffers", "named_buffers"),
)


def is_view_of_items(concrete: ConcreteModuleType, name: str) -> bool:
    """Return whether ``name`` is ``keys``, ``values`` or ``items`` of an ``nn.ModuleDict`` or ``nn.ParameterDict``
    whose class does not override it."""
    if name not in _DICT_VIEWS or not concrete.facts.is_dict:
        return False
    return getattr(getattr(concrete.python_class, name), "__module__", None) == torch.nn.ModuleDict.__module__


def is_view_of_parts(concrete: ConcreteModuleType, name: str) -> bool:
    """Return whether ``name`` is a method of ``nn.Module`` that lists submodules or tensors, and the class does not
    override it."""
    return name in _TREE_VIEWS and getattr(torch.nn.Module, name) is getattr(concrete.python_class, name)


@dataclass(eq=False)
class ModuleView(SugaredValue):
    """A method that lists the contents of a module. A loop over the list is unrolled."""

    module: SugaredValue
    concrete: ConcreteModuleType
    view: str

    @property
    def description(self) -> str:
        return f"the method '{self.view}'"

    def call(self, call: CallSite) -> SugaredValue:
        if call.args or call.kwargs:
            raise UnsupportedError(f"'{self.view}' takes no arguments in a program", call.range)
        pairs = list(self._pairs(call.range, call.graph))
        if self.view == "keys":
            return SugaredTuple([_name(name, call.range, call.graph) for name, _ in pairs])
        if self.view == "items" or self.view.startswith("named_"):
            return SugaredTuple([SugaredTuple([_name(name, call.range, call.graph), found]) for name, found in pairs])
        return SugaredTuple([found for _, found in pairs])

    def _pairs(self, range: SourceRange, graph: Graph) -> Iterator[tuple[str, SugaredValue]]:
        module, facts = self.module, self.concrete.facts
        if self.view in _DICT_VIEWS:
            return ((name, module.attribute(range, graph, name)) for name in facts.items)
        what = self.view.removeprefix("named_")
        if what == "children":
            names = (name for name in facts.submodules if name not in facts.repeated_children)
            return ((name, module.attribute(range, graph, name)) for name in names)
        parts = _walk(module, self.concrete, "", range, graph, facts.repeated)
        if what == "modules":
            return ((path, part) for path, part, _ in parts)
        return (
            (_joined(path, name), part.attribute(range, graph, name))
            for path, part, concrete in parts
            if isinstance(concrete, ConcreteModuleType)
            for name, slot in concrete.type.attributes.items()
            if slot.kind == what[:-1] and slot.type != NONE and _joined(path, name) not in facts.repeated
        )


_Part: TypeAlias = "tuple[str, SugaredValue, ConcreteModuleType | InterfaceType]"


def _walk(
    module: SugaredValue,
    concrete: ConcreteModuleType | InterfaceType,
    path: str,
    range: SourceRange,
    graph: Graph,
    repeated: frozenset[str],
) -> Iterator[_Part]:
    """Yield the module and those within it, each with the path to it and its type, except those at the paths
    ``repeated``."""
    yield path, module, concrete
    if isinstance(concrete, ConcreteModuleType):
        for name, part in concrete.facts.submodules.items():
            below = _joined(path, name)
            if below not in repeated:
                yield from _walk(module.attribute(range, graph, name), part, below, range, graph, repeated)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _name(name: str, range: SourceRange, graph: Graph) -> SugaredValue:
    return SimpleValue(graph.insert_constant(name, range=range))

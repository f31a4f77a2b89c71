"""Modules whose parameters and other values are constants of their programs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from rekindle.analysis.attribute_writes import nodes_within
from rekindle.analysis.effects import OWN_GRAPH
from rekindle.frontend.sugared_values.classes import ObjectBinding
from rekindle.ir.attributes import ConstantObject, map_items
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassAttribute, ClassType, TensorType, Type
from rekindle.passes import Pass, run_passes
from rekindle.program.modules.module import ScriptModule
from rekindle.program.names import unique_name

TensorMap = Callable[[torch.Tensor], torch.Tensor]


class FrozenModule(ScriptModule):
    """A module that :func:`rekindle.freeze` made.

    Parameters and buffers that are never written to are constants of its program. ``to()``, ``half()`` and similar
    methods convert these constants too, if they are tensors.
    """

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> FrozenModule:
        super()._apply(fn, recurse)
        with torch.no_grad():
            self._set_type(_Changed(self, fn).type)
        return self

    def _set_type(self, type: ClassType) -> None:
        own = self.__dict__
        own["_rekindle_type"] = type
        own["_rekindle_binding"] = ObjectBinding(type)


class InferenceModule(FrozenModule):
    """A frozen module whose programs are written for this machine: ``passes`` have run on them.

    If it is saved, the archive has the frozen module from which it was made, which runs on any machine.
    """

    @classmethod
    def of(cls, module: FrozenModule, passes: Sequence[Pass]) -> InferenceModule:
        """Return a copy of ``module`` with ``passes`` run on its methods. The copy shares its attributes and submodules
        with ``module``, which is unchanged."""
        made = cls.__new__(cls)
        made.__dict__.update(copy.copy(module).__dict__)
        made.__dict__["_rekindle_passes"] = tuple(passes)
        made._write_programs()
        return made

    def _write_programs(self) -> None:
        own = self.__dict__
        own["_rekindle_plain_type"] = self.script_type
        changed = _Changed(self, lambda tensor: tensor)
        for record in (*changed.type.methods.values(), *changed.type.pre_hooks, *changed.type.hooks):
            run_passes(record.graph, own["_rekindle_passes"])
        self._set_type(changed.type)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> InferenceModule:
        self._set_type(self.__dict__["_rekindle_plain_type"])
        super()._apply(fn, recurse)
        self._write_programs()
        return self

    def _as_saved(self) -> FrozenModule:
        plain = FrozenModule.__new__(FrozenModule)
        plain.__dict__.update(self.__dict__)
        plain._set_type(self.__dict__["_rekindle_plain_type"])
        return plain


class _Changed:
    """Builder of a class like that of a frozen module, with other tensors as constants: ``fn`` of each. The result is
    ``type``. The old class is unchanged, since copies of the module share it."""

    def __init__(self, module: FrozenModule, fn: TensorMap) -> None:
        old = module.script_type
        self.fn = fn
        self.tensors: dict[int, torch.Tensor] = {}
        self.type = ClassType(unique_name(old.name), is_module=True)
        self.types: dict[Type, Type] = {old: self.type}
        for name, slot in old.attributes.items():
            held = module._modules.get(name)
            if isinstance(held, ScriptModule):
                self.types[slot.type] = held.script_type
            self.type.attributes[name] = ClassAttribute(name, self.types.get(slot.type, slot.type), slot.kind)
        self.type.methods.update((name, self._method(record)) for name, record in old.methods.items())
        self.type.pre_hooks.extend(map(self._method, old.pre_hooks))
        self.type.hooks.extend(map(self._method, old.hooks))

    def _method(self, record: GraphFunction) -> GraphFunction:
        graph = record.graph.copy()
        graph.self_value.type = self.type
        self._change(graph)
        made = GraphFunction(
            f"{self.type.name}.{record.basename}",
            docstring=record.docstring,
            left_out=record.left_out,
            is_from_archive=record.is_from_archive,
            result_in_python=record.result_in_python,
            takes_tensors_as_numbers=record.takes_tensors_as_numbers,
        )
        own = replace(record.schema.arguments[0], type=self.type)
        made.define(graph, replace(record.schema, arguments=(own, *record.schema.arguments[1:])))
        return made

    def _change(self, graph: Graph) -> None:
        for node in nodes_within(graph):
            if node.kind == "prim::GetAttr":
                owner = node.input.type
                slot = owner.attribute_type(node.get_string("name")) if isinstance(owner, ClassType) else None
                if isinstance(slot, ClassType) and slot.is_module:
                    node.output.type = slot
            subgraph = node.attributes.get("Subgraph")
            if node.kind in OWN_GRAPH and isinstance(subgraph, Graph):
                for parameter, value in zip(subgraph.inputs, node.inputs, strict=True):
                    parameter.type = value.type
            if node.kind == "prim::Constant":
                self._change_constant(node)

    def _change_constant(self, node: Node) -> None:
        value = node.attributes.get("value")
        if isinstance(value, torch.Tensor):
            moved = node.attributes["value"] = self._moved(value)
            if isinstance(node.output.type, TensorType) and node.output.type.is_refined:
                node.output.type = TensorType.of(moved)
        elif isinstance(value, ConstantObject):
            node.attributes["value"] = ConstantObject(self._moved_within(value.value))

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        known = self.tensors.get(id(tensor))
        if known is None:
            known = self.tensors[id(tensor)] = self.fn(tensor)
        return known

    def _moved_within(self, value: Any) -> Any:
        return self._moved(value) if isinstance(value, torch.Tensor) else map_items(self._moved_within, value)

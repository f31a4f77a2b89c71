"""Freezing: replace reads of module attributes that nothing writes to by constants.

The module is copied. In the copy, every submodule gets a class of its own, since the program of a class must hold for
all its instances; calls of submodules are inlined, so that it is known of which submodule a method reads an attribute.
Then constants replace attributes until nothing changes: once ``training`` is False, a branch that would have written to
an attribute is removed. Attributes that are no longer read, written to or preserved are removed.

Submodules with uses other than reads and writes of their attributes (passed to Python, put into lists, swapped) are
unchanged with all their submodules, and so are those that the user preserves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from rekindle.analysis.attribute_writes import AttributeKey, nodes_within, slot_of, written_attributes
from rekindle.errors import NotScriptableError
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassAttribute, ClassType, Type
from rekindle.passes import (
    Freezing,
    Pass,
    RoundWeights,
    inline,
    run_passes,
)
from rekindle.passes.frozen_modules.freezing import can_be_constant
from rekindle.program.modules.frozen_module import FrozenModule, InferenceModule
from rekindle.program.modules.module import ScriptModule
from rekindle.program.modules.submodule_values import ModuleValues, is_class
from rekindle.program.names import unique_name
from rekindle.program.snapshots import as_constant, copy_constants, objects_in, snapshot
from rekindle.runtime.pipelines import FREEZING_CLEANUP, FREEZING_NUMERICS, FREEZING_SIMPLIFICATION, MACHINE_SPECIFIC

_Key: TypeAlias = tuple[int, str]
"""The identity of a module, and the name of something that it has."""


def frozen(
    module: ScriptModule, preserved: Sequence[str] = (), *, numerics: bool = True, evaluating: bool = False
) -> ScriptModule:
    """Return a frozen copy of ``module``, in which attributes that nothing writes to are constants; ``module`` is
    unchanged.

    ``preserved`` names attributes, submodules and methods to keep; ``a.b`` is the attribute ``b`` of the submodule
    ``a``. Without ``numerics`` the results of the copy are bitwise identical. With ``evaluating`` the copy is in
    evaluation mode. If a method uses ``module`` itself other than to read and write its attributes, as when it passes
    it to Python, the copy is not frozen.

    Raises:
        NotScriptableError: the module has no attribute or method of a name in ``preserved``, or no method to freeze.
        CompileError: a method cannot be compiled.
    """
    memo: dict[int, Any] = {}
    root = snapshot(module, memo)
    if evaluating:
        root.eval()
    result = _Freezer(root, preserved, memo).freeze()
    for part in result.modules():
        if isinstance(part, FrozenModule):
            optimize_methods(part, numerics=numerics)
    return result


def for_inference(
    module: ScriptModule, preserved: Sequence[str] = (), weights: torch.dtype | None = None
) -> ScriptModule:
    """Return a copy of ``module`` in evaluation mode, frozen, with programs for this machine. If :func:`frozen` returns
    a copy that is not frozen, return that.

    ``preserved`` and the errors are those of :func:`frozen`. Unless ``weights`` is None, the weights of large linear
    maps are rounded to that dtype.
    """
    result = frozen(module, preserved, evaluating=True)
    if weights is not None:
        for part in result.modules():
            if isinstance(part, FrozenModule):
                _round_weights(part, weights)
    return InferenceModule.of(result, MACHINE_SPECIFIC) if isinstance(result, FrozenModule) else result


def _round_weights(module: ScriptModule, dtype: torch.dtype) -> None:
    type = module.script_type
    for record in (*type.methods.values(), *type.pre_hooks, *type.hooks):
        if run_passes(record.graph, (RoundWeights(dtype),)):
            simplify(record.graph, FREEZING_CLEANUP)
            record.executable = None


def optimize_methods(module: ScriptModule, *, numerics: bool) -> None:
    """Optimize the graphs of the methods and hooks of a frozen module, whose constants are private, in place. With
    ``numerics`` results may be rounded differently."""
    type = module.script_type
    for record in (*type.methods.values(), *type.pre_hooks, *type.hooks):
        graph = record.graph
        simplify(graph, FREEZING_SIMPLIFICATION)
        while numerics and run_passes(graph, FREEZING_NUMERICS):
            simplify(graph, FREEZING_SIMPLIFICATION)
        simplify(graph, FREEZING_CLEANUP)
        record.executable = None


class _Freezer:
    def __init__(self, root: ScriptModule, preserved: Sequence[str], memo: dict[int, Any]) -> None:
        self.root = root
        self.memo = memo
        self.records: dict[_Key, GraphFunction] = {}
        """The methods of the frozen module, hooks among them, by owner and name."""
        self.owners: dict[_Key, ScriptModule] = {}
        self.graphs: dict[_Key, Graph] = {}
        self.kept: set[_Key] = set()
        """The attributes that the caller preserves, by owner and name."""
        self.kept_parts: set[int] = set()
        self.types: dict[int, ClassType] = {}
        """The new classes, by the identity of their only module; unchanged submodules have none."""
        self.modules: dict[Type, ScriptModule] = {}
        """The modules of the new classes."""
        type = root.script_type
        for record in (*methods_named(type, "forward"), *type.pre_hooks, *type.hooks):
            self._keep_method(root, record)
        for name in preserved:
            self._keep_named(name)
        if not self.records:
            raise NotScriptableError(
                f"the module '{root.original_name}' has no method 'forward' to freeze",
                hint="name the methods to keep: rekindle.freeze(module, preserved_attrs=['method'])",
            )

    def freeze(self) -> ScriptModule:
        self._give_types(self._resolve())
        if id(self.root) not in self.types:
            return self.root
        graphs = list(self.graphs.values())
        while True:
            for graph in graphs:
                simplify(graph, FREEZING_SIMPLIFICATION)
            freezing = Freezing(self._fixed_values(graphs))
            changes = [freezing.run(graph) for graph in graphs]
            if not any(changes):
                break
        return self._assembled()

    # ---------------------------------------------------------------------------------------------------- what is kept

    def _keep_named(self, dotted: str) -> None:
        *path, name = dotted.split(".")
        owner = self.root
        for part in path:
            inner = owner._modules.get(part)
            if not isinstance(inner, ScriptModule):
                raise self._unknown(dotted)
            owner = inner
        records = methods_named(owner.script_type, name)
        if name in owner.script_type.attributes:
            self.kept.add((id(owner), name))
            if owner._modules.get(name) is not None:
                self.kept_parts.add(id(owner._modules[name]))
        elif not records:
            raise self._unknown(dotted)
        for record in records:
            self._keep_method(owner, record)

    def _unknown(self, name: str) -> NotScriptableError:
        return NotScriptableError(
            f"the module '{self.root.original_name}' has no attribute or method '{name}' that could be preserved"
        )

    def _keep_method(self, owner: ScriptModule, record: GraphFunction) -> None:
        key = id(owner), record.basename
        if key not in self.records:
            self.records[key], self.owners[key] = record, owner
            self.graphs[key] = record.graph.copy()
            _inline_within(self.graphs[key])
            copy_constants(self.graphs[key], self.memo)

    # ---------------------------------------------------------------------------------------------- a class each module

    def _resolve(self) -> ModuleValues:
        """Return the submodule that each value of the methods is. Inline the calls through interfaces whose callee is
        thereby known."""
        while True:
            methods = [(self.owners[key], graph) for key, graph in self.graphs.items()]
            found = ModuleValues(self.root, methods, self.kept_parts)
            changes = [found.narrow(graph) for graph in self.graphs.values()]
            if not any(changes):
                return found
            for graph in self.graphs.values():
                _inline_within(graph)

    def _give_types(self, values: ModuleValues) -> None:
        for part in self.root.modules():
            if isinstance(part, ScriptModule) and id(part) not in values.whole:
                made = self.types[id(part)] = ClassType(unique_name(part.script_type.name), is_module=True)
                self.modules[made] = part
        for part in self.modules.values():
            for name, slot in part.script_type.attributes.items():
                held = part._modules.get(name) if is_class(slot.type) else None
                type = self.types.get(id(held), slot.type)
                self.types[id(part)].attributes[name] = ClassAttribute(name, type, slot.kind)
        for value, part in values.known.items():
            value.type = self.types.get(id(part), value.type)
        for key in [key for key, owner in self.owners.items() if id(owner) not in self.types]:
            del self.graphs[key], self.records[key], self.owners[key]  # it keeps all its methods

    # ----------------------------------------------------------------------------------------- what becomes a constant

    def _fixed_values(self, graphs: Sequence[Graph]) -> dict[AttributeKey, Any]:
        """Return the attributes to replace, with their constants: the graphs read them, nothing writes to them, the
        caller does not preserve them, and :func:`can_be_constant` holds for their values."""
        read = {
            slot_of(node)
            for graph in graphs
            for node in nodes_within(graph)
            if node.kind == "prim::GetAttr" and node.input.type in self.modules
        }
        found: dict[AttributeKey, Any] = {}
        for type, name in read - self._written(graphs):
            part = self.modules[type]
            if name not in part._modules and (id(part), name) not in self.kept:
                value = getattr(part, name)
                if can_be_constant(value):
                    found[type, name] = value
        constants: dict[int, Any] = {}
        return {slot: as_constant(value, constants) for slot, value in found.items()}

    def _written(self, graphs: Sequence[Graph]) -> set[AttributeKey]:
        """Return the attributes that graphs may write to, and those that share memory with one of them, with an
        attribute that the user preserves, or with an attribute of an unchanged submodule."""
        found = written_attributes(graphs)
        held: dict[AttributeKey, set[int]] = {
            (type, name): objects_in(getattr(part, name))
            for type, part in self.modules.items()
            for name in part.script_type.attributes
            if name not in part._modules and hasattr(part, name)
        }
        reachable: set[int] = set()
        for part in self.root.modules():
            if id(part) not in self.types and isinstance(part, ScriptModule):
                for name in part.script_type.attributes:
                    reachable |= objects_in(getattr(part, name, None))
        for identity, name in self.kept:
            if identity in self.types:
                reachable |= held.get((self.types[identity], name), set())
        while True:
            for slot in found:
                reachable |= held.get(slot, set())
            more = {slot for slot, objects in held.items() if objects & reachable} - found
            if not more:
                return found
            found |= more

    # --------------------------------------------------------------------------------------------------- the new module

    def _assembled(self) -> FrozenModule:
        used: dict[int, set[str]] = {identity: set() for identity in self.types}
        for identity, name in self.kept:
            if identity in self.types:
                used[identity].add(name)
        for graph in self.graphs.values():
            for node in nodes_within(graph):
                if node.kind in ("prim::GetAttr", "prim::SetAttr"):
                    type, name = slot_of(node)
                    if type in self.modules:
                        used[id(self.modules[type])].add(name)
        methods = {key[0] for key in self.records}
        self._keep_ways(self.root, used, methods)
        made: dict[int, FrozenModule] = {}
        for part in self.modules.values():
            made[id(part)] = FrozenModule._of_type(self.types[id(part)])  # type: ignore[assignment]
        for part in self.modules.values():
            _fill(made, part, used[id(part)])
        self._define_methods()
        result = made[id(self.root)]
        result._take_hooks(self.root)
        return result

    def _keep_ways(self, part: ScriptModule, used: dict[int, set[str]], methods: set[int]) -> bool:
        """Add to ``used[id(part)]`` the names of the submodules in which something is kept. Return whether ``part`` is
        kept: it has a preserved name, an attribute that methods read or write, a method (its id is in ``methods``), or
        such a submodule."""
        if id(part) in self.kept_parts:
            return True
        names = used.get(id(part))
        if names is None:
            return False  # it stays as it is where something reads it
        for name, inner in part._modules.items():
            if isinstance(inner, ScriptModule) and self._keep_ways(inner, used, methods):
                names.add(name)
        return bool(names) or id(part) in methods

    def _define_methods(self) -> None:
        root = self.root.script_type
        for key, graph in self.graphs.items():
            old, type = self.records[key], self.types[key[0]]
            made = GraphFunction(
                f"{type.name}.{old.basename}",
                docstring=old.docstring,
                left_out=old.left_out,
                is_from_archive=old.is_from_archive,
                result_in_python=old.result_in_python,
                takes_tensors_as_numbers=old.takes_tensors_as_numbers,
            )
            own = replace(old.schema.arguments[0], type=type)
            made.define(graph, replace(old.schema, arguments=(own, *old.schema.arguments[1:])))
            if old in root.pre_hooks:
                type.pre_hooks.append(made)
            elif old in root.hooks:
                type.hooks.append(made)
            else:
                type.methods[old.basename] = made


def _fill(made: dict[int, FrozenModule], part: ScriptModule, names: set[str]) -> None:
    """Copy ``training`` and the attributes of ``part`` in ``names`` to ``made[id(part)]``, the module that replaces it.
    Delete the other attributes from the class of that module."""
    new = made[id(part)]
    new.__dict__["training"] = part.training
    attributes = new.script_type.attributes
    for name in list(attributes):
        if name not in names:
            del attributes[name]
        elif name in part._modules:
            held = part._modules[name]
            new._modules[name] = made.get(id(held), held)
        elif name in part._parameters:
            new._parameters[name] = part._parameters[name]
        elif name in part._buffers:
            new._buffers[name] = part._buffers[name]
            if name in part._non_persistent_buffers_set:
                new._non_persistent_buffers_set.add(name)
        elif hasattr(part, name):
            new.__dict__[name] = getattr(part, name)


def methods_named(type: ClassType, name: str) -> list[GraphFunction]:
    """Return the method ``name`` of a class as a list, or its overloads; empty if there are none."""
    found = type.find_method(name)
    if found is not None:
        return [found]
    overloads: list[GraphFunction] = []
    while f"{name}__{len(overloads)}" in type.methods:
        overloads.append(type.methods[f"{name}__{len(overloads)}"])
    return overloads


def _inline_within(graph: Graph) -> None:
    """Inline calls in ``graph`` (see :func:`inline`), also in the subgraphs of its nodes."""
    inline(graph)
    for node in graph.all_nodes():
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                _inline_within(inner)


def simplify(graph: Graph, passes: Sequence[Pass]) -> None:
    """Run ``passes`` on a graph in place, and on the subgraphs of its nodes."""
    run_passes(graph, passes)
    for node in graph.all_nodes():
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                simplify(inner, passes)

"""Build the points-to graph: the rules by kind of node that fill an alias tracker (TorchScript: MemoryDAGBuilder).

The analysis is flow-insensitive: it ignores the order of nodes. A node adds to what its results may point to, to the
contents of the containers that it writes to, and to the list of writes. An operator has the effects of its summary
(:mod:`rekindle.analysis.aliasing.alias_summaries`). Kinds defined by the IR itself have a rule each, below. An unknown
operator may do anything to its inputs and to the wildcard set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import getattr_static
from typing import Final

import torch

from rekindle.analysis.aliasing.alias_summaries import AccessPath, alias_summary_of
from rekindle.analysis.aliasing.alias_tracker import AliasTracker, Element
from rekindle.analysis.effects import DEFERRED_SUBGRAPH_KINDS, INLINE_SUBGRAPH_KINDS, WAITS, is_conservative
from rekindle.analysis.mutability import ITEM, KEY, is_immutable, may_share_memory, part_type, parts_of
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import AliasAnalysisKind, Operator
from rekindle.ir.types import (
    ANY,
    TENSOR,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)


class AliasTrackerBuilder:
    """Visits the nodes of a graph, and keeps the elements of its values."""

    def __init__(self, tracker: AliasTracker, *, is_frozen: bool = False) -> None:
        self.tracker = tracker
        self.is_frozen = is_frozen
        self.elements: dict[Value, Element] = {}
        self.writers: dict[Node, list[Element]] = {}
        """Elements that each node writes to, for nodes that write to known memory."""
        self.unknown: set[Node] = set()
        self.later: list[Node] = []
        """The nodes that start a task, which runs in parallel with the nodes after them."""
        self.lasting: list[Element] = []
        """Elements that outlive the call and that no caller has: constants, the attributes of a frozen module."""
        self._constants: dict[int, Element] = {}
        self._attributes: dict[tuple[Type, str], Element] = {}
        self._joins: list[list[Element]] = []

    # --------------------------------------------------------------------------------------------------------- elements

    def element(self, value: Value) -> Element | None:
        """Return the element of ``value``; None if it is immutable. A value without a rule is fresh."""
        found = self.elements.get(value)
        if found is None and not is_immutable(value.type):
            found = self.elements[value] = self.tracker.fresh(value.type)
        return found

    def _mutable(self, values: Iterable[Value]) -> Iterator[tuple[Value, Element]]:
        for value in values:
            element = self.element(value)
            if element is not None:
                yield value, element

    def _set(self, value: Value, targets: Sequence[Element]) -> None:
        """Record that ``value`` may be any of ``targets``, in addition to what was recorded before."""
        known = self.elements.get(value)
        if known is None:
            if targets and not is_immutable(value.type):
                self.elements[value] = self.tracker.between(value.type, targets)
        else:
            for target in targets:
                self.tracker.point(known, target)

    def _set_to_values(self, value: Value, sources: Iterable[Value]) -> None:
        self._set(value, [element for _, element in self._mutable(sources)])

    def _part(self, element: Element, whole: Type, way: Sequence[str | int]) -> tuple[Element | None, Type]:
        """Return the element at the access path ``way`` (a sequence of keys) in an element of type ``whole``, and its
        type. If a type on the path is immutable, return None and that type."""
        for key in way:
            whole = part_type(whole, key)
            if is_immutable(whole):
                return None, whole
            element = self.tracker.part(element, key, whole)
        return element, whole

    # ----------------------------------------------------------------------------------------------------------- visits

    def visit_graph(self, graph: Graph) -> None:
        """Visit a whole function: its inputs, its nodes, and then the deferred constraints."""
        for value in graph.inputs:
            if not is_immutable(value.type):
                self.elements[value] = self._input(value.type)
        self.visit_block(graph.block)
        self.finish()

    def finish(self) -> None:
        """Apply the deferred constraints, after all nodes are visited: unify the targets of values that may be one
        object."""
        joins, self._joins = self._joins, []
        for members in joins:
            for element in members:
                for other in _all_targets(element):
                    for target in members:
                        self.tracker.point(other, target)

    def _input(self, type: Type) -> Element:
        """Return the element of an argument. A tuple is immutable, so it has parts of its own."""
        if not isinstance(type, TupleType):
            return self.tracker.world(type).input
        element = self.tracker.fresh(type)
        for index, part in enumerate(type.elements):
            if not is_immutable(part):
                self.tracker.store(element, index, self._input(part), part)
        return element

    def visit_block(self, block: Block) -> None:
        for node in block.nodes:
            self.visit(node)

    def visit(self, node: Node) -> None:
        """Visit one node, with its blocks and its subgraph: bind its outputs to elements, and record what it writes."""
        rule = _RULES.get(node.kind)
        if rule is not None:
            rule(self, node)
            return
        operator = node.operator
        if operator is None or node.blocks or is_conservative(node):
            for block in node.blocks:
                self.visit_block(block)
            self._visit_unknown(node)
        elif operator.effects is not AliasAnalysisKind.PURE:
            self._visit_operator(node, operator)

    def _visit_unknown(self, node: Node) -> None:
        """Apply the most conservative rule: inputs escape, and outputs are in the wildcard set."""
        self.unknown.add(node)
        for block in node.blocks:
            for value, element in self._mutable(block.outputs):
                self.tracker.escape(element, value.type)
            for value in block.inputs:
                self._set_outside(value)
        for value, element in self._mutable(node.inputs):
            self.tracker.escape(element, value.type)
        for value in node.outputs:
            self._set_outside(value)

    def _set_outside(self, value: Value) -> None:
        if not is_immutable(value.type):
            self._set(value, [self.tracker.world(value.type).read])

    # -------------------------------------------------------------------------------------------------------- operators

    def _visit_operator(self, node: Node, operator: Operator) -> None:
        plan = alias_summary_of(operator)
        if plan.is_plain:
            return
        for slot, source in plan.stores:
            self._store(node, slot, source)
        for place in plan.escapes:
            found, type = self._at(node.inputs, place)
            if found is not None:
                self.tracker.escape(found, type)
        for number, output in enumerate(node.outputs):
            if not is_immutable(output.type):
                self._set_result(node, number, output)
        written = [self._at(node.inputs, place)[0] for place in plan.writes]
        for argument, flag in plan.writes_if:
            if not _is_false(node.inputs[flag]):
                written.append(self.element(node.inputs[argument]))
        found_writes = [element for element in written if element is not None]
        if found_writes:
            self.writers[node] = found_writes
        if plan.merges_storages:
            self._joins.append([element for _, element in self._mutable(node.inputs)])

    def _at(self, values: Sequence[Value], place: AccessPath) -> tuple[Element | None, Type]:
        number, way = place
        if number >= len(values):
            return None, ANY
        value = values[number]
        element = self.element(value)
        return (None, value.type) if element is None else self._part(element, value.type, way)

    def _set_result(self, node: Node, number: int, output: Value) -> None:
        operator = node.operator
        assert operator is not None
        plan = alias_summary_of(operator)
        by_path = {place[1]: sources for place, sources in plan.sources.items() if place[0] == number}
        found: list[Element] = [e for e, _ in (self._at(node.inputs, s) for s in by_path.get((), ())) if e is not None]
        if (number, ()) in plan.from_wildcard:
            found.append(self.tracker.world(output.type).read)
        if plan.may_alias_inputs and not by_path.get(()):
            found += [self.tracker.fresh(output.type), *self._parts_like(node.inputs, output.type)]
        if found:
            self._set(output, found)
        result = self.element(output)
        assert result is not None
        for way, sources in by_path.items():
            if way:
                for source in sources:
                    self._put(result, output.type, way, *self._at(node.inputs, source))
        if plan.may_alias_inputs:
            for key, part in parts_of(output.type):
                if (key,) not in by_path and not is_immutable(part):
                    for element in self._parts_like(node.inputs, part):
                        self.tracker.store(result, key, element, part)

    def _store(self, node: Node, slot: AccessPath, source: AccessPath) -> None:
        """Record that argument ``slot`` may hold ``source`` after the node."""
        home = self.element(node.inputs[slot[0]])
        if home is not None:
            self._put(home, node.inputs[slot[0]].type, slot[1], *self._at(node.inputs, source))

    def _put(
        self, home: Element, type: Type, way: tuple[str | int, ...], content: Element | None, content_type: Type
    ) -> None:
        """Record that ``content`` is stored at the end of the access path ``way`` in the element ``home`` of
        ``type``."""
        inner, _ = self._part(home, type, way[:-1])
        if content is not None and inner is not None:
            self.tracker.store(inner, way[-1], content, content_type)

    def _parts_like(self, values: Iterable[Value], type: Type) -> list[Element]:
        """Return the elements of ``values``, and of all that they hold, that may share memory with a value of
        ``type``."""
        found: list[Element] = []
        pending = [(element, value.type) for value, element in self._mutable(values)]
        while pending:
            element, actual = pending.pop()
            if may_share_memory(actual, type):
                found.append(element)
            for key, part in parts_of(actual):
                if not is_immutable(part):
                    pending.append((self.tracker.part(element, key, part), part))
        return found

    # ---------------------------------------------------------------------------------------- rules: values, containers

    def _visit_constant(self, node: Node) -> None:
        value = node.attributes.get("value")
        type = node.output.type
        if value is not None and not is_immutable(type):
            inner = value.value if isinstance(value, ConstantObject) else value
            self.elements[node.output] = self._constant(inner, type)

    def _constant(self, value: object, type: Type) -> Element:
        """Return the element of a constant. Tensors that share storage have one element, to which a caller may refer
        unless the module is frozen. A list or a dict is fresh, since the program gets a copy each time. Other objects
        are in the wildcard set."""
        if isinstance(type, OptionalType):
            return self._constant(value, type.element)
        if isinstance(value, (list, tuple, dict)):
            element = self.tracker.fresh(type)
            for key, content, part in _contents(value, type):
                if not is_immutable(part):
                    self.tracker.store(element, key, self._constant(content, part), part)
            return element
        if isinstance(value, torch.Tensor):
            known = self._constants.get(_storage_key(value))
            if known is not None:
                return known
            element = self._constants[_storage_key(value)] = self.tracker.fresh(TENSOR)
            self.lasting.append(element)
            if not self.is_frozen:
                self.tracker.point(self.tracker.world(TENSOR).input, element)
            return element
        return self.tracker.world(type).read

    def _visit_nothing(self, node: Node) -> None:
        """Bind fresh outputs; nothing is written to."""

    def _visit_new_object(self, node: Node) -> None:
        """Bind a fresh object. Before its first assignment an attribute has the value in the class, which other code
        shares."""
        type, element = node.output.type, self.element(node.output)
        if element is None or not isinstance(type, ClassType) or type.python_class is None:
            return
        for name, slot in type.attributes.items():
            if not is_immutable(slot.type) and _has_shared_value(type.python_class, name):
                self.tracker.store(element, f".{name}", self.tracker.world(slot.type).read, slot.type)

    def _visit_same(self, node: Node) -> None:
        """Bind the result to the first input."""
        for output in node.outputs[:1]:
            self._set_to_values(output, node.inputs[:1])

    def _visit_views(self, node: Node) -> None:
        """Bind every result to a view of the first input."""
        for output in node.outputs:
            self._set_to_values(output, node.inputs[:1])

    def _visit_tuple(self, node: Node) -> None:
        self._fill(node.output, enumerate(node.inputs))

    def _visit_list(self, node: Node) -> None:
        self._fill(node.output, ((ITEM, value) for value in node.inputs))

    def _visit_dict(self, node: Node) -> None:
        self._fill(node.output, (((KEY, ITEM)[index % 2], value) for index, value in enumerate(node.inputs)))

    def _fill(self, made: Value, contents: Iterable[tuple[str | int, Value]]) -> None:
        element = self.element(made)
        if element is None:
            return
        for key, value in contents:
            content = self.element(value)
            if content is not None:
                self.tracker.store(element, key, content, value.type)

    def _visit_unpack_tuple(self, node: Node) -> None:
        for index, output in enumerate(node.outputs):
            self._take(node.input, output, index)

    def _visit_unpack_list(self, node: Node) -> None:
        for output in node.outputs:
            self._take(node.input, output, ITEM)

    def _visit_tuple_index(self, node: Node) -> None:
        whole, place = node.inputs
        owner, index = whole.type, place.node.attributes.get("value")
        if isinstance(owner, TupleType) and isinstance(index, int) and index < 0:
            index += len(owner.elements)
        if isinstance(owner, TupleType) and isinstance(index, int) and 0 <= index < len(owner.elements):
            self._take(whole, node.output, index)
        else:
            self._set(node.output, self._parts_like([whole], node.output.type))

    def _visit_tuple_slice(self, node: Node) -> None:
        owner = node.input.type
        beg, end, step = (node.attributes.get(name, default) for name, default in (("beg", 0), ("end", 0), ("step", 1)))
        element, made = self.element(node.input), self.element(node.output)
        if made is None or element is None:
            return
        assert isinstance(owner, TupleType)
        assert isinstance(beg, int)
        assert isinstance(end, int)
        assert isinstance(step, int)
        for index, (source, type) in enumerate(list(enumerate(owner.elements))[beg:end:step]):
            if not is_immutable(type):
                self.tracker.store(made, index, self.tracker.part(element, source, type), type)

    def _take(self, container: Value, output: Value, key: str | int) -> None:
        """Record that ``output`` is the element of ``container`` under ``key``."""
        element = self.element(container)
        if not is_immutable(output.type) and element is not None:
            self._set(output, [self.tracker.part(element, key, output.type)])

    def _visit_get_attribute(self, node: Node) -> None:
        name, owner = node.get_string("name"), node.input.type
        is_module = isinstance(owner, (ClassType, InterfaceType)) and owner.is_module
        if self.is_frozen and is_module and not isinstance(node.output.type, (ClassType, InterfaceType)):
            self._set_frozen_attribute(node.output, owner, name)
        else:
            self._take(node.input, node.output, f".{name}")

    def _set_frozen_attribute(self, output: Value, owner: Type, name: str) -> None:
        """Bind an attribute of a module with private values: the same memory for all modules of one class."""
        if not is_immutable(output.type):
            self._set(output, [self._frozen_attribute(owner, name, output.type)])

    def _frozen_attribute(self, owner: Type, name: str, type: Type) -> Element:
        element = self._attributes.get((owner, name))
        if element is None:
            element = self._attributes[owner, name] = self.tracker.fresh(type)
            self.lasting.append(element)
            self._fill_with_new(element, type)
        return element

    def _fill_with_new(self, element: Element, type: Type) -> None:
        for key, part in parts_of(type):
            if not is_immutable(part):
                content = self.tracker.fresh(part)
                self.tracker.store(element, key, content, part)
                self._fill_with_new(content, part)

    def _visit_set_attribute(self, node: Node) -> None:
        target, value = node.inputs
        owner, content = self.element(target), self.element(value)
        assert owner is not None
        self.writers[node] = [owner]
        if content is None:
            return
        name, type, content_type = node.get_string("name"), target.type, value.type
        slot = type.attribute_type(name) if isinstance(type, ClassType) and type.is_module else None
        if self.is_frozen and slot is not None and not isinstance(slot, (ClassType, InterfaceType)):
            self.tracker.point(self._frozen_attribute(type, name, slot), content)
        else:
            self.tracker.store(owner, f".{name}", content, content_type)

    # ---------------------------------------------------------------------------------------------- rules: control flow

    def _visit_if(self, node: Node) -> None:
        for block in node.blocks:
            self.visit_block(block)
        for index, output in enumerate(node.outputs):
            self._set_to_values(output, [block.outputs[index] for block in node.blocks])

    def _visit_loop(self, node: Node) -> None:
        view = LoopView(node)
        if not view.is_complete:
            self.visit_block(view.body)
            self._visit_unknown(node)
            return
        for variable in view.carried:
            if not is_immutable(variable.parameter.type):
                self.elements[variable.parameter] = self.tracker.blank(variable.parameter.type)
                self._set_to_values(variable.parameter, [variable.initial])
        self.visit_block(view.body)
        for variable in view.carried:
            self._set_to_values(variable.parameter, [variable.following])
            self._set_to_values(variable.result, [variable.parameter])

    def _visit_with(self, node: Node) -> None:
        for block in node.blocks:
            self.visit_block(block)

    def _visit_gradient(self, node: Node) -> None:
        """Bind each output to the result of the node's block."""
        self.visit_block(node.blocks[0])
        for output, result in zip(node.outputs, node.blocks[0].outputs, strict=True):
            self._set_to_values(output, [result])

    def forget(self, node: Node) -> None:
        """Remove what is recorded about ``node`` and the nodes in its blocks; the caller is about to remove it."""
        self.writers.pop(node, None)
        self.unknown.discard(node)
        if node in self.later:
            self.later.remove(node)
        for block in node.blocks:
            for inner in block.nodes:
                self.forget(inner)
        for output in node.outputs:
            self.elements.pop(output, None)

    # ------------------------------------------------------------------------------------------------- rules: subgraphs

    def _visit_run_now(self, node: Node) -> None:
        subgraph = node.attributes.get("Subgraph")
        if not isinstance(subgraph, Graph) or len(subgraph.inputs) != len(node.inputs):
            self._visit_unknown(node)
            return
        self._visit_subgraph(node, subgraph)
        for output, result in zip(node.outputs, subgraph.outputs, strict=True):
            self._set_to_values(output, [result])

    def _visit_run_later(self, node: Node) -> None:
        self.later.append(node)
        subgraph = node.attributes.get("Subgraph")
        if isinstance(subgraph, Graph) and len(subgraph.inputs) == len(node.inputs) and len(subgraph.outputs) == 1:
            self._visit_subgraph(node, subgraph)
            self._fill(node.output, [(ITEM, subgraph.outputs[0])])
            return
        for block in node.blocks:  # not lifted yet
            self.visit_block(block)
        self._visit_unknown(node)

    def _visit_subgraph(self, node: Node, subgraph: Graph) -> None:
        for parameter, value in zip(subgraph.inputs, node.inputs, strict=True):
            self._set_to_values(parameter, [value])
        self.visit_block(subgraph.block)

    def _visit_wait(self, node: Node) -> None:
        """Bind the result to the value of the future; other effects of a wait belong to the task that it waits for."""
        self._take(node.input, node.output, ITEM)


_RULES: Final[dict[str, Callable[[AliasTrackerBuilder, Node], None]]] = {
    "prim::Constant": AliasTrackerBuilder._visit_constant,
    **dict.fromkeys(("prim::Uninitialized", "prim::BailoutTemplate"), AliasTrackerBuilder._visit_nothing),
    "prim::CreateObject": AliasTrackerBuilder._visit_new_object,
    **dict.fromkeys(
        (
            *("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional"),
            *("prim::profile", "prim::Guard", "prim::BailOut"),
        ),
        AliasTrackerBuilder._visit_same,
    ),
    "prim::ConstantChunk": AliasTrackerBuilder._visit_views,
    "prim::TupleConstruct": AliasTrackerBuilder._visit_tuple,
    "prim::ListConstruct": AliasTrackerBuilder._visit_list,
    "prim::DictConstruct": AliasTrackerBuilder._visit_dict,
    "prim::TupleUnpack": AliasTrackerBuilder._visit_unpack_tuple,
    "prim::ListUnpack": AliasTrackerBuilder._visit_unpack_list,
    "prim::TupleIndex": AliasTrackerBuilder._visit_tuple_index,
    "prim::TupleSlice": AliasTrackerBuilder._visit_tuple_slice,
    "prim::GetAttr": AliasTrackerBuilder._visit_get_attribute,
    "prim::SetAttr": AliasTrackerBuilder._visit_set_attribute,
    "prim::If": AliasTrackerBuilder._visit_if,
    "prim::Loop": AliasTrackerBuilder._visit_loop,
    "prim::With": AliasTrackerBuilder._visit_with,
    "prim::GradOf": AliasTrackerBuilder._visit_gradient,
    **dict.fromkeys(INLINE_SUBGRAPH_KINDS, AliasTrackerBuilder._visit_run_now),
    **dict.fromkeys(DEFERRED_SUBGRAPH_KINDS, AliasTrackerBuilder._visit_run_later),
    **dict.fromkeys(WAITS, AliasTrackerBuilder._visit_wait),
}


def _has_shared_value(cls: type, name: str) -> bool:
    """Return whether the body of a class, or of a base, has a value other than a descriptor for the attribute
    ``name``."""
    found = getattr_static(cls, name, None)
    return found is not None and not hasattr(type(found), "__get__")


def _is_false(value: Value) -> bool:
    constant = value.node.attributes.get("value") if value.node.kind == "prim::Constant" else None
    return isinstance(constant, int) and constant == 0


def _storage_key(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(tensor)  # sparse, or opaque


def _contents(value: object, type: Type) -> Iterator[tuple[str | int, object, Type]]:
    """Yield the contents of a constant container, with their access paths and types."""
    if isinstance(value, list) and isinstance(type, ListType):
        for item in value:
            yield ITEM, item, type.element
    elif isinstance(value, tuple) and isinstance(type, TupleType):
        for index, (item, part) in enumerate(zip(value, type.elements, strict=True)):
            yield index, item, part
    elif isinstance(value, dict) and isinstance(type, DictType):
        for key, item in value.items():
            yield KEY, key, type.key
            yield ITEM, item, type.value


def _all_targets(element: Element) -> list[Element]:
    """Return ``element`` and all elements that it may point to, directly or through others."""
    found = {element: None}
    pending = [element]
    while pending:
        for other in pending.pop().points_to:
            if other not in found:
                found[other] = None
                pending.append(other)
    return list(found)

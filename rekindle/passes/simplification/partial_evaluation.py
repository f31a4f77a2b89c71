"""Evaluate a graph partially: inline calls, fold constants and choose decided branches in one walk.

.. code-block:: text

    graph(%self : Net, %x : Tensor):                                   graph(%self : Net, %x : Tensor):
      %f : Function = prim::Constant[name="noisy"]()                     %2 : int = prim::Constant[value=2]()
      %t : bool = prim::GetAttr[name="training"](%self)                  %5 : Tensor = aten::mul(%x, %2)
      %y : Tensor = prim::CallFunction(%f, %x, %t)           becomes     return (%5)
      return (%y)

where ``training`` is known to be False, and ``noisy`` doubles ``x`` if its second argument is False. A callee is
evaluated before it is inlined, once for all calls of it of which the same is known, so that branches that are never
taken are neither inlined nor looked at by later passes.

What is known of the inputs, and of the attributes of modules, is given by ``known`` and ``attributes``. The result is
right where ``assumptions`` hold: the attributes that were read, with the values that they had. Calls that
:class:`~rekindle.passes.canonicalization.inlining.Inlining` leaves are left here too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, Protocol

from rekindle.analysis.attribute_writes import AttributeKey, slot_of
from rekindle.analysis.constants import constant_key, is_constant
from rekindle.analysis.effects import is_immutable
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.types import NONE, ClassType, OptionalType
from rekindle.passes.canonicalization.inlining import call_arguments, replace_call
from rekindle.passes.canonicalization.lower_simple_tuples import lower_tuple
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.constant_propagation import (
    decided_branch,
    fold_node,
    inline_branch,
    merge_outputs,
    remove_dead_loop,
    remove_invariants,
)
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.passes.simplification.peephole import PEEPHOLE_RULES
from rekindle.rewriting.changes import may_change
from rekindle.rewriting.node_rules import AliasFacts, RewriteSite


class ModulePath(NamedTuple):
    """A module: the number of an input of a graph, and the names of the submodules that lead from there."""

    input: int
    names: tuple[str, ...] = ()

    def submodule(self, name: str) -> ModulePath:
        return ModulePath(self.input, (*self.names, name))


class AttributeRead(NamedTuple):
    """An attribute of a module."""

    module: ModulePath
    name: str

    def within(self, module: ModulePath) -> AttributeRead:
        """Return the same attribute, where ``module`` is passed for the input that the path starts from."""
        return AttributeRead(ModulePath(module.input, module.names + self.module.names), self.name)


_MAX_DEPTH: Final = 100
"""How deep calls nest that are evaluated: each level takes a few frames of Python's stack."""

UNKNOWN: Final = object()
"""What :meth:`Attributes.value_of` returns where nothing may be assumed."""
PRESENT: Final = object()
"""What is known of an input that is not None."""


class Attributes(Protocol):
    """The values of attributes of the modules among the inputs of a graph."""

    def value_of(self, read: AttributeRead) -> object:
        """Return a bool, a number, a string or None that the attribute is known to hold; otherwise ``UNKNOWN``."""

    def is_written(self, key: AttributeKey) -> bool:
        """Return whether the program may write to the attribute, of whichever module."""


@dataclass(slots=True)
class PartialEvaluation:
    """See the module.

    ``known`` gives, by the numbers of inputs, the constants that they are, or ``PRESENT``. After :meth:`run`,
    ``assumptions`` has the attributes that the graph relies on, with their values.
    """

    name: ClassVar[str] = "partial_evaluation"
    known: Mapping[int, object] = field(default_factory=dict)
    attributes: Attributes | None = None
    assumptions: dict[AttributeRead, object] = field(default_factory=dict)

    def run(self, graph: Graph) -> bool:
        changed = self._bind(graph)
        modules = [ModulePath(index) if is_module(value) else None for index, value in enumerate(graph.inputs)]
        walk = _Walk(_Callees(self.attributes), graph, modules)
        changed |= walk.block(graph.block)
        self.assumptions.update(walk.reads)
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed

    def _bind(self, graph: Graph) -> bool:
        """Let the graph use what is known of its inputs; returns whether there is anything."""
        changed = False
        first = graph.block.return_node.next
        for index, fact in self.known.items():
            value = graph.inputs[index]
            if not value.has_uses or not may_change("use what is known of", value):
                continue
            if fact is PRESENT:
                assert isinstance(value.type, OptionalType), "only an Optional can be known to be present"
                new = graph.create("prim::unchecked_unwrap_optional", types=[value.type.element])
            else:
                new = graph.create_constant(fact, NONE if fact is None else None)
            new.insert_before(first)
            value.replace_all_uses_with(new.output)
            if fact is PRESENT:
                new.add_input(value)
            changed = True
        return changed


def is_module(value: Value) -> bool:
    """Return whether ``value`` is a module whose class is known."""
    return isinstance(value.type, ClassType) and value.type.is_module


@dataclass(slots=True)
class _Callee:
    """A callee, evaluated for calls of which the same is known. ``reads`` are the attributes that it relies on, by
    paths from its inputs."""

    graph: Graph
    reads: dict[AttributeRead, object]


@dataclass(slots=True)
class _Callees:
    """The callees that have been evaluated so far."""

    attributes: Attributes | None
    evaluated: dict[tuple[GraphFunction, Hashable], list[_Callee]] = field(default_factory=dict)
    depth: int = 0
    """How many callees are being evaluated, each for a call in the one before."""

    def value_of(self, read: AttributeRead) -> object:
        return UNKNOWN if self.attributes is None else self.attributes.value_of(read)

    def is_written(self, key: AttributeKey) -> bool:
        return self.attributes is None or self.attributes.is_written(key)

    def specialized(
        self, record: GraphFunction, arguments: Sequence[Value], modules: Sequence[ModulePath | None]
    ) -> _Callee:
        """Return the callee for a call with ``arguments``, of which ``modules`` are the modules that are known."""
        key = record, tuple(map(_known_of, arguments, record.graph.inputs))
        candidates = self.evaluated.setdefault(key, [])
        for each in candidates:
            if all(self._holds(read, value, modules) for read, value in each.reads.items()):
                return each
        graph = record.graph.copy()
        for value, parameter in zip(arguments, graph.inputs, strict=True):
            if _is_known_constant(value):
                constant = graph.create_clone(value.node, _no_inputs)
                graph.block.prepend(constant)
                parameter.replace_all_uses_with(constant.output)
            elif isinstance(parameter.type, OptionalType) and value.type == parameter.type.element:
                parameter.set_type(value.type)
        walk = _Walk(self, graph, modules)
        self.depth += 1
        walk.block(graph.block)
        self.depth -= 1
        run_nested(DeadCodeElimination(), graph)
        found = _Callee(graph, walk.reads)
        candidates.append(found)
        return found

    def _holds(self, read: AttributeRead, value: object, modules: Sequence[ModulePath | None]) -> bool:
        module = modules[read.module.input]
        return module is not None and same_constant(self.value_of(read.within(module)), value)


def _known_of(value: Value, parameter: Value) -> Hashable:
    """What a callee is specialized to, of one of its arguments."""
    if _is_known_constant(value):
        return constant_key(value.node)
    return isinstance(parameter.type, OptionalType) and value.type == parameter.type.element


def _is_known_constant(value: Value) -> bool:
    return is_constant(value) and is_immutable(value.type)


def _no_inputs(value: Value) -> Value:
    raise AssertionError("a constant has no inputs")


def same_constant(left: object, right: object) -> bool:
    """Return whether two bools, numbers, strings or None are indistinguishable: -0.0 is not 0.0, and 1 is not True."""
    return type(left) is type(right) and left == right and (left != 0 or repr(left) == repr(right))


class _Walk:
    """Evaluates one graph. ``modules`` are the modules that are passed for its inputs, where they are known."""

    def __init__(self, callees: _Callees, graph: Graph, modules: Sequence[ModulePath | None]) -> None:
        self.callees = callees
        self.graph = graph
        self.passed = modules
        self.modules: dict[Value, ModulePath] = {
            value: ModulePath(index)
            for index, (value, path) in enumerate(zip(graph.inputs, modules, strict=True))
            if path is not None
        }
        """The modules that are known in the graph, by paths from its inputs."""
        self.reads: dict[AttributeRead, object] = {}
        self.aliases = AliasFacts(graph, disabled=True)

    def block(self, block: Block) -> bool:
        changed = False
        node = block.return_node.next
        while node is not block.return_node:
            before = node.prev
            did, node = self._visit(node, before)
            changed |= did
        return changed

    def _visit(self, node: Node, before: Node) -> tuple[bool, Node]:
        """Evaluate ``node``; returns whether anything changed, and the node to visit next."""
        following = node.next
        match node.kind:
            case "prim::Constant":
                return False, following
            case "prim::GetAttr":
                return self._attribute(node), following
            case "prim::CallFunction" | "prim::CallMethod":
                return self._call(node), following
            case "prim::If":
                return self._branch(node, before)
            case "prim::Loop":
                return self._loop(node), following
            case "prim::TupleUnpack" | "prim::TupleIndex" | "prim::TupleSlice":
                return lower_tuple(node), following
        changed = False
        for block in node.blocks:
            changed |= self.block(block)
        changed |= self._simplify(node)
        return (not node.blocks and fold_node(node)) or changed, following

    def _simplify(self, node: Node) -> bool:
        changed = False
        for rule in PEEPHOLE_RULES.get(node.kind, ()):
            changed |= rule(RewriteSite(node, "simplify", self.aliases))
        return changed

    def _attribute(self, node: Node) -> bool:
        """Note which module a submodule is; replace an attribute whose value is known by a constant."""
        module = self.modules.get(node.input)
        owner = node.input.type
        if module is None or not isinstance(owner, ClassType):
            return False
        name = node.get_string("name")
        if is_module(node.output):
            self.modules[node.output] = module.submodule(name)
            return False
        slot = owner.attributes.get(name)
        if slot is None or slot.kind != "attribute" or slot.is_dynamic or not is_immutable(node.output.type):
            return False
        read = AttributeRead(module, name)
        value = self.callees.value_of(AttributeRead(self._passed(module), name))
        if value is UNKNOWN or self.callees.is_written(slot_of(node)) or not may_change("assume the value of", node):
            return False
        constant = node.graph.create_constant(value, range=node.range)
        if not constant.output.type.is_subtype_of(node.output.type):
            return False
        constant.callstack = node.callstack
        self.reads[read] = value
        node.replace_with(constant.insert_before(node).output)
        return True

    def _call(self, call: Node) -> bool:
        record = called_function(call)
        if record is None or record.is_recursive or self.callees.depth >= _MAX_DEPTH:
            return False
        if not may_change("inline", call):
            return False
        arguments = call_arguments(call)
        local = [self.modules.get(value) for value in arguments]
        passed = [None if path is None else self._passed(path) for path in local]
        callee = self.callees.specialized(record, arguments, passed)
        for read, value in callee.reads.items():
            module = local[read.module.input]
            assert module is not None, "a path starts from an input that is a known module"
            self.reads[read.within(module)] = value
        replace_call(call, record, callee.graph)
        return True

    def _passed(self, path: ModulePath) -> ModulePath:
        """Return the path of a module from the inputs of the outermost graph."""
        base = self.passed[path.input]
        assert base is not None, "a path starts from an input that is a known module"
        return ModulePath(base.input, base.names + path.names)

    def _branch(self, node: Node, before: Node) -> tuple[bool, Node]:
        chosen = decided_branch(node)
        if chosen is not None and may_change("choose a branch of", node):
            inline_branch(node, chosen)
            return True, before.next
        changed = False
        for block in node.blocks:
            changed |= self.block(block)
        changed |= merge_outputs(node) | self._simplify(node)
        for output, *results in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
            if isinstance(output.type, OptionalType) and all(each.type == output.type.element for each in results):
                output.set_type(output.type.element)
                changed = True
        return changed, node.next

    def _loop(self, node: Node) -> bool:
        if remove_dead_loop(node):
            return True
        changed = remove_invariants(node)
        changed |= self.block(LoopView(node).body)
        return remove_invariants(node) or changed

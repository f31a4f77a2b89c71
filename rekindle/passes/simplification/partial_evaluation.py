"""Evaluate a graph partially: inline calls, fold constants and select branches in one traversal.

.. code-block:: text

    graph(%self : Net, %x : Tensor):                                   graph(%self : Net, %x : Tensor):
      %f : Function = prim::Constant[name="noisy"]()                     %2 : int = prim::Constant[value=2]()
      %t : bool = prim::GetAttr[name="training"](%self)                  %5 : Tensor = aten::mul(%x, %2)
      %y : Tensor = prim::CallFunction(%f, %x, %t)           becomes     return (%5)
      return (%y)

where ``training`` is known to be False, and ``noisy`` doubles ``x`` if its second argument is False. A callee is
evaluated before it is inlined, once for all calls with the same known arguments. So branches that are never taken are
neither inlined nor visited by later passes. Small callees are inlined first.

``known``, ``types`` and ``attributes`` specify what is known of the inputs and of module attributes. The result is
valid while ``assumptions`` hold: the attributes that were read, with their values. Calls that
:class:`~rekindle.passes.canonicalization.inlining.Inlining` does not inline are not inlined here either.

With ``with_types``, dtype, rank and device of tensors are propagated too, and queries of them folded. This includes
queries that follow from the types of parameters and buffers; these types become assumptions. Tensors must keep their
types for their lifetime, and the program may not turn on autocast: ``keeps_types`` checks this.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, Protocol

from rekindle.analysis.attribute_writes import AttributeKey, nodes_within, slot_of
from rekindle.analysis.constants import constant_key, is_constant
from rekindle.analysis.effects import is_immutable, may_write, writes_modes
from rekindle.analysis.object_identity import are_distinct_objects
from rekindle.analysis.transfer_functions import TransferFunctions, fact_of_input
from rekindle.analysis.type_propagation import may_reshape
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.types import NONE, TENSOR, ClassAttribute, ClassType, OptionalType, TensorType, Type
from rekindle.ops.result_types.facts import Constant, Fact
from rekindle.passes.canonicalization.inlining import call_arguments, replace_call
from rekindle.passes.canonicalization.lower_simple_tuples import lower_tuple
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.constant_propagation import (
    decided_branch,
    fold_node,
    inline_branch,
    merge_outputs,
    propagate_condition,
    remove_dead_loop,
    remove_invariants,
)
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.passes.simplification.peephole import PEEPHOLE_RULES, known_by_type
from rekindle.passes.simplification.type_refinement import TYPE_QUERIES
from rekindle.rewriting.changes import may_change
from rekindle.rewriting.node_rules import AliasFacts, RewriteSite


class ModulePath(NamedTuple):
    """A module among the arguments: the index of an input of the graph, and the names of the submodules that lead to
    the module."""

    input: int
    names: tuple[str, ...] = ()

    def submodule(self, name: str) -> ModulePath:
        return ModulePath(self.input, (*self.names, name))


class AttributeRead(NamedTuple):
    """A read of an attribute of a module: the path of the module, and the name."""

    module: ModulePath
    name: str

    def within(self, module: ModulePath) -> AttributeRead:
        """Return the same read relative to the caller, which passes ``module`` for the input where the path starts."""
        return AttributeRead(ModulePath(module.input, module.names + self.module.names), self.name)


_SMALL: Final = 24
"""Maximum number of nodes of a callee that is inlined before it is evaluated: evaluating another copy is cheaper than
sharing one."""
_MAX_OPERATORS: Final = 8
"""Maximum number of operators between a tensor and the parameters that its type is inferred from."""
_IDENTITY_TESTS: Final = frozenset({"aten::__is__", "aten::__isnot__"})
_MAX_DEPTH: Final = 100
"""Maximum nesting depth of callees that are evaluated before they are inlined: each level takes a few frames of
Python's stack."""

UNKNOWN: Final = object()
"""Result of :meth:`Attributes.value_of` for attributes about which nothing may be assumed."""
PRESENT: Final = object()
"""Fact about an input: it is not None."""


class Attributes(Protocol):
    """The values of attributes of the modules among the inputs of a graph."""

    def value_of(self, read: AttributeRead) -> object:
        """Return the known value of an attribute: a bool, number, string or None; for a tensor, its type with dtype,
        device and rank. Otherwise return ``UNKNOWN``."""

    def is_written(self, key: AttributeKey) -> bool:
        """Return whether the program may write to this attribute of any module of the class."""


@dataclass(slots=True)
class PartialEvaluation:
    '''Evaluate a graph partially: inline calls, fold constants and select branches in one traversal. The docstring of
    the module shows the IR before and after.

    ``known`` has constants by the numbers of inputs, ``PRESENT``, or the member of a Union that an input is. ``types``
    has the types of tensors. After ``run``, ``assumptions`` has the attributes that the graph relies on, with their
    values.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import PartialEvaluation, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : bool = prim::Constant[value=1]()
        ...   %2 : Tensor = prim::If(%1)
        ...     block0():
        ...       %3 : Tensor = aten::neg(%x)
        ...       -> (%3)
        ...     block1():
        ...       -> (%x)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [PartialEvaluation()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %3 : Tensor = aten::neg(%x)
          return (%3)
    '''

    name: ClassVar[str] = "partial_evaluation"
    known: Mapping[int, object] = field(default_factory=dict)
    types: Mapping[int, TensorType] = field(default_factory=dict)
    attributes: Attributes | None = None
    with_types: bool = False
    assumptions: dict[AttributeRead, object] = field(default_factory=dict)

    def run(self, graph: Graph) -> bool:
        changed = self._bind(graph)
        modules = [ModulePath(index) if is_module(value) else None for index, value in enumerate(graph.inputs)]
        walk = _Walk(_Callees(self.attributes, self.with_types), graph, modules)
        changed |= walk.block(graph.block)
        self.assumptions.update(walk.reads)
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed

    def _bind(self, graph: Graph) -> bool:
        """Apply the known facts about inputs to the graph; returns whether it has changed."""
        changed = False
        first = graph.block.return_node.next
        for index, type in self.types.items():
            if isinstance(graph.inputs[index].type, TensorType) and may_change("refine", graph.inputs[index]):
                graph.inputs[index].set_type(type)
                changed = True
        for index, fact in self.known.items():
            value = graph.inputs[index]
            if not value.has_uses or not may_change("use what is known of", value):
                continue
            if fact is PRESENT:
                assert isinstance(value.type, OptionalType), "only an Optional can be known to be present"
                new = graph.create("prim::unchecked_unwrap_optional", types=[self.types.get(index, value.type.element)])
            elif isinstance(fact, TensorType):
                new = graph.create("prim::unchecked_cast", types=[fact])
            else:
                new = graph.create_constant(fact, NONE if fact is None else None)
            new.insert_before(first)
            value.replace_all_uses_with(new.output)
            if new.kind != "prim::Constant":
                new.add_input(value)
            changed = True
        return changed


def is_module(value: Value) -> bool:
    """Return whether ``value`` is a module whose class is known."""
    return isinstance(value.type, ClassType) and value.type.is_module


@dataclass(slots=True)
class _Callee:
    """A function evaluated for calls with the same known facts about arguments. ``reads`` are the attributes on which
    the result depends, by paths from its inputs."""

    graph: Graph
    reads: dict[AttributeRead, object]


class _Identity(NamedTuple):
    """What is known of the identity of a call's tensor arguments. ``same`` has the index of each argument that is also
    passed earlier, and the first index where it is; ``distinct`` the pairs of indices of different objects."""

    same: tuple[tuple[int, int], ...]
    distinct: frozenset[tuple[int, int]]


@dataclass(slots=True)
class _Callees:
    """The callees that have been evaluated so far."""

    attributes: Attributes | None
    with_types: bool
    evaluated: dict[tuple[GraphFunction, Hashable, _Identity | None], list[_Callee]] = field(default_factory=dict)
    identity_tests: dict[GraphFunction, bool] = field(default_factory=dict)
    depth: int = 0
    """Nesting depth of callees being evaluated."""

    def value_of(self, read: AttributeRead) -> object:
        return UNKNOWN if self.attributes is None else self.attributes.value_of(read)

    def is_written(self, key: AttributeKey) -> bool:
        return self.attributes is None or self.attributes.is_written(key)

    def tests_identity(self, record: GraphFunction) -> bool:
        """Return whether a function, or one that it calls, tests whether two tensors are the same object."""
        found = self.identity_tests.get(record)
        if found is None:
            self.identity_tests[record] = False  # for recursive calls: at worst, less is known
            found = self.identity_tests[record] = any(map(self._may_test_identity, nodes_within(record.graph)))
        return found

    def _may_test_identity(self, node: Node) -> bool:
        if node.kind in _IDENTITY_TESTS:
            return all(isinstance(value.type, TensorType) for value in node.inputs)
        called = called_function(node)
        return called is not None and self.tests_identity(called)

    def specialized(
        self,
        record: GraphFunction,
        arguments: Sequence[Value],
        modules: Sequence[ModulePath | None],
        identity: _Identity | None,
    ) -> _Callee:
        """Return the function evaluated for a call with ``arguments``; that of an earlier call, if the same is known.
        ``modules`` has the paths of the arguments that are known modules."""
        key = record, tuple(map(_known_of, arguments, record.graph.inputs)), identity
        candidates = self.evaluated.setdefault(key, [])
        for each in candidates:
            if all(self._holds(read, value, modules) for read, value in each.reads.items()):
                return each
        graph = record.graph.copy()
        for value, parameter in zip(arguments, graph.inputs, strict=True):
            if _is_known_constant(value):
                constant = graph.create_clone(value.node)
                graph.block.prepend(constant)
                parameter.replace_all_uses_with(constant.output)
            elif _is_narrower(value, parameter):
                parameter.set_type(value.type)
        walk = _Walk(self, graph, modules)
        if identity is not None:
            for index, first in identity.same:
                if graph.inputs[first].type.is_subtype_of(graph.inputs[index].type):
                    graph.inputs[index].replace_all_uses_with(graph.inputs[first])
            walk.distinct = {frozenset((graph.inputs[i], graph.inputs[j])) for i, j in identity.distinct}
        self.depth += 1
        walk.block(graph.block)
        self.depth -= 1
        if self.with_types:
            walk.refine_results()
        run_nested(DeadCodeElimination(), graph)
        found = _Callee(graph, walk.reads)
        candidates.append(found)
        return found

    def _holds(self, read: AttributeRead, value: object, modules: Sequence[ModulePath | None]) -> bool:
        module = modules[read.module.input]
        return module is not None and same_constant(self.value_of(read.within(module)), value)


def _known_of(value: Value, parameter: Value) -> Hashable:
    """Return the key of what a function is specialized to for an argument: a constant, or a type that is narrower than
    the parameter's; None if nothing more is known."""
    if _is_known_constant(value):
        return constant_key(value.node)
    return value.type if _is_narrower(value, parameter) else None


def _is_narrower(value: Value, parameter: Value) -> bool:
    """Return whether more is known of an argument than the parameter's type: the dtype, rank or device of a tensor, or
    that it is not None."""
    declared = parameter.type.element if isinstance(parameter.type, OptionalType) else parameter.type
    if isinstance(value.type, TensorType) and isinstance(declared, TensorType):
        return value.type != parameter.type and not declared.is_refined
    return isinstance(parameter.type, OptionalType) and value.type == declared


def _is_known_constant(value: Value) -> bool:
    return is_constant(value) and is_immutable(value.type)


def same_constant(left: object, right: object) -> bool:
    """Return whether two bools, numbers, strings or None are indistinguishable: -0.0 is not 0.0, also as a part of a
    complex number, and 1 is not True. NaN counts as different from itself."""
    return type(left) is type(right) and left == right and repr(left) == repr(right)


_TRANSFER: Final = TransferFunctions(any_modes=True)


def _fact_of(value: Value) -> Fact:
    """Return what is known about an input of a node, for the transfer functions."""
    if is_constant(value):
        return fact_of_input(value)
    if value.node.kind == "prim::ListConstruct":
        return None if _may_be_written(value) else tuple(map(_fact_of, value.node.inputs))
    return value.type if isinstance(value.type, TensorType) else None


def _may_be_refined(output: Value) -> bool:
    return isinstance(output.type, TensorType) and not output.type.is_refined


def _refine(output: Value, fact: TensorType) -> bool:
    """Write the known dtype, rank and device of a tensor into its type. Return whether the type was changed."""
    is_integral = fact.dtype is not None and not (fact.dtype.is_floating_point or fact.dtype.is_complex)
    sizes = None if fact.rank is None else (None,) * fact.rank
    type = TensorType(fact.dtype, fact.device, sizes, requires_grad=False if is_integral else None)
    if not type.is_refined or not may_change("refine", output):
        return False
    output.set_type(type)
    return True


def _may_be_written(value: Value) -> bool:
    """Return whether items of ``value`` may change after it is made: a user writes to the list, or passes it on."""
    if isinstance(value.type, TensorType) or is_immutable(value.type):
        return False
    return not all(_only_reads(use.user) for use in value.uses)


def _only_reads(node: Node) -> bool:
    """Return whether a node neither writes to a list among its inputs, nor passes it on."""
    if node.kind != "prim::ListUnpack" and (node.operator is None or node.blocks or may_write(node)):
        return False
    return all(isinstance(output.type, TensorType) or is_immutable(output.type) for output in node.outputs)


def _unpack_list(node: Node) -> bool:
    """Replace the results of unpacking a list that the graph constructs by its items. Return whether anything
    changed."""
    items = _items_at(node, node.input)
    if items is None or len(items) != len(node.outputs) or not may_change("unpack", node):
        return False
    for output, item in zip(node.outputs, items, strict=True):
        output.replace_all_uses_with(item)
    node.destroy()  # it may not raise: the list has as many items
    return True


def _items_at(reader: Node, whole: Value) -> list[Value] | None:
    """Return the items that a list has when ``reader`` runs: those of a list literal, and those that the same block
    appends before. Return None if they are not known."""
    literal = whole.node
    if literal.kind != "prim::ListConstruct":
        return None
    items, appends = list(literal.inputs), 0
    for use in whole.uses:
        if use.user.kind == "aten::append" and use.offset == 0 and not use.user.has_uses:
            appends += 1
        elif not _only_reads(use.user):
            return None
    if appends and reader.owning_block is not literal.owning_block:
        return None
    node = literal
    while appends and (node := node.next) is not reader and node.kind != "prim::Return":
        if node.kind == "aten::append" and node.inputs[0] is whole:
            items.append(node.inputs[1])
            appends -= 1
    return None if appends else items


def keeps_types(graphs: Iterable[Graph]) -> bool:
    """Return whether tensors are known to keep dtype, rank and device, and no mode but that of gradients to change,
    while a program of ``graphs`` runs."""
    for graph in graphs:
        for node in nodes_within(graph):
            changes_mode = writes_modes(node) and node.kind != "aten::set_grad_enabled"
            if changes_mode and called_function(node) is None:
                return False
            if may_reshape(node) or (is_foreign(node.kind) and may_write(node)):
                return False
    return True


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
        self.distinct: set[frozenset[Value]] = set()
        """Pairs of inputs that are known to be different objects."""
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
                return self._call(node)
            case "prim::If":
                return self._branch(node, before)
            case "prim::Loop":
                return self._loop(node), following
            case "prim::TupleUnpack" | "prim::TupleIndex" | "prim::TupleSlice":
                return lower_tuple(node), following
            case "prim::ListUnpack":
                return _unpack_list(node), following
        changed = False
        for block in node.blocks:
            changed |= self.block(block)
        changed |= self._simplify(node)
        if self.callees.with_types and not node.blocks:
            changed |= self._fold_query(node) or self._propagate_facts(node)
        return (not node.blocks and fold_node(node)) or changed, following

    def _fold_query(self, node: Node) -> bool:
        """Replace a query of a known property of a tensor by a constant. Return whether it was replaced."""
        if node.kind not in TYPE_QUERIES or not isinstance(node.inputs[0].type, TensorType):
            return False
        queried, *_ = node.inputs
        assert isinstance(queried.type, TensorType)
        known = known_by_type(node, queried.type)
        if known is None and queried.node.kind == "prim::GetAttr":
            known = self._known_of_attribute(node, queried.node)
        elif known is None:
            refined = self._refined_by_attributes(queried)
            known = None if refined is None else known_by_type(node, refined)
        return known is not None and RewriteSite(node, "fold", self.aliases).fold(known)

    def _refined_by_attributes(self, value: Value) -> TensorType | None:
        """Refine the type of a tensor that operators compute from parameters and buffers, and return it; None if
        nothing is known. The types of parameters and buffers that were read become assumptions even then."""
        if not _may_be_refined(value):
            return None
        fact = self._fact_by_attributes(value, self.reads, _MAX_OPERATORS)
        is_refined = isinstance(fact, TensorType) and _refine(value, fact)
        return value.type if is_refined and isinstance(value.type, TensorType) else None

    def refine_results(self) -> None:
        """Refine the types of tensors that the graph returns, as far as they follow from the types of parameters
        and buffers, which the caller does not look up itself."""
        for value in self.graph.outputs:
            self._refined_by_attributes(value)

    def _fact_by_attributes(self, value: Value, reads: dict[AttributeRead, object], depth: int) -> Fact:
        """Return the fact about ``value`` that holds if parameters and buffers have the types in ``reads``. Those
        that it depends on are added to ``reads``."""
        node = value.node
        known = _fact_of(value)
        if known is not None and known != TENSOR:
            return known
        if node.kind == "prim::GetAttr":
            found = self._read_of(node)
            type = None if found is None else self._type_of_attribute(node, *found)
            if found is None or type is None:
                return known
            reads[found[0]] = type
            return type
        if depth == 0 or node.blocks or node.operator is None or len(node.outputs) != 1 or _may_be_written(value):
            return known
        facts = [self._fact_by_attributes(each, reads, depth - 1) for each in node.inputs]
        return next(iter(_TRANSFER.results(node, facts)), known)

    def _type_of_attribute(self, node: Node, read: AttributeRead, slot: ClassAttribute) -> TensorType | None:
        """Return dtype, device and rank of a parameter or a buffer, if they may be assumed; else None."""
        if slot.kind == "attribute" or self.callees.is_written(slot_of(node)):
            return None
        value = self.callees.value_of(AttributeRead(self._passed(read.module), read.name))
        return value if isinstance(value, TensorType) else None

    def _known_of_attribute(self, query: Node, attribute: Node) -> object:
        """Return the result of a query of a parameter or a buffer, and record it as an assumption."""
        found = self._read_of(attribute)
        type = None if found is None else self._type_of_attribute(attribute, *found)
        if found is None or type is None:
            return None
        known = known_by_type(query, type)
        if known is not None:
            self.reads[found[0]] = type
        return known

    def _read_of(self, node: Node) -> tuple[AttributeRead, ClassAttribute] | None:
        """Return the attribute that a ``prim::GetAttr`` reads, if its module is known; else None."""
        module = self.modules.get(node.input)
        owner = node.input.type
        name = node.get_string("name")
        slot = owner.attributes.get(name) if isinstance(owner, ClassType) else None
        return None if module is None or slot is None or slot.is_dynamic else (AttributeRead(module, name), slot)

    def _propagate_facts(self, node: Node) -> bool:
        """Refine the types of tensors that the node computes; fold its result if it follows from known lists. Return
        whether anything changed."""
        reads_list = any(value.node.kind == "prim::ListConstruct" for value in node.inputs)
        if not reads_list and not any(_may_be_refined(output) for output in node.outputs):
            return False
        changed = False
        for output, fact in zip(node.outputs, _TRANSFER.results(node, list(map(_fact_of, node.inputs))), strict=False):
            if isinstance(fact, TensorType) and _may_be_refined(output):
                changed |= _refine(output, fact)
            elif isinstance(fact, Constant) and len(node.outputs) == 1 and is_immutable(output.type):
                changed |= RewriteSite(node, "fold", self.aliases).fold(fact.value)
        return changed

    def _simplify(self, node: Node) -> bool:
        if node.kind in _IDENTITY_TESTS and frozenset(node.inputs) in self.distinct:
            return RewriteSite(node, "simplify", self.aliases).fold(node.kind == "aten::__isnot__")
        changed = False
        for rule in PEEPHOLE_RULES.get(node.kind, ()):
            changed |= rule(RewriteSite(node, "simplify", self.aliases))
        return changed

    def _attribute(self, node: Node) -> bool:
        """Record which module a submodule is. Replace an attribute with a known value by a constant. Return whether
        anything changed."""
        found = self._read_of(node)
        if found is None:
            return False
        read, slot = found
        if is_module(node.output):
            self.modules[node.output] = read.module.submodule(read.name)
            return False
        if not is_immutable(node.output.type) and not isinstance(node.output.type, OptionalType):
            return False
        value = self.callees.value_of(AttributeRead(self._passed(read.module), read.name))
        if isinstance(value, TensorType) or slot.kind != "attribute":
            return False
        if value is UNKNOWN or self.callees.is_written(slot_of(node)) or not may_change("assume the value of", node):
            return False
        constant = node.graph.create_constant(value, range=node.range)
        if not constant.output.type.is_subtype_of(node.output.type):
            return False
        constant.callstack = node.callstack
        self.reads[read] = value
        node.replace_with(constant.insert_before(node).output)
        return True

    def _call(self, call: Node) -> tuple[bool, Node]:
        """Inline a call: a small callee before it is evaluated, so that the caller visits its nodes; a larger one after
        it has been evaluated. Return whether the call was inlined, and the node to visit next."""
        following = call.next
        record = called_function(call)
        if record is None or record.is_recursive or not may_change("inline", call):
            return False, following
        is_small = next(itertools.islice(record.graph.all_nodes(), _SMALL, None), None) is None
        if is_small or self.callees.depth >= _MAX_DEPTH:
            return True, replace_call(call, record, record.graph)
        arguments = call_arguments(call)
        if self.callees.with_types:
            for argument, parameter in zip(arguments, record.graph.inputs, strict=True):
                if any(use.user.kind in TYPE_QUERIES for use in parameter.uses):
                    self._refined_by_attributes(argument)
        local = [self.modules.get(value) for value in arguments]
        passed = [None if path is None else self._passed(path) for path in local]
        identity = self._identity_of(arguments) if self.callees.tests_identity(record) else None
        callee = self.callees.specialized(record, arguments, passed, identity)
        for read, value in callee.reads.items():
            module = local[read.module.input]
            assert module is not None, "a path starts from an input that is a known module"
            self.reads[read.within(module)] = value
        replace_call(call, record, callee.graph)
        return True, following

    def _identity_of(self, arguments: Sequence[Value]) -> _Identity:
        first: dict[Value, int] = {}
        same = []
        for index, value in enumerate(arguments):
            if isinstance(value.type, TensorType) and first.setdefault(value, index) != index:
                same.append((index, first[value]))
        pairs = itertools.combinations(first.items(), 2)
        return _Identity(tuple(same), frozenset((i, j) for (a, i), (b, j) in pairs if self._are_distinct(a, b)))

    def _are_distinct(self, a: Value, b: Value) -> bool:
        """Return whether two tensors are known to be different objects."""
        return frozenset((a, b)) in self.distinct or are_distinct_objects(a, b)

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
        changed = propagate_condition(node)
        for block in node.blocks:
            changed |= self.block(block)
        changed |= merge_outputs(node) | self._simplify(node)
        for output, *results in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
            first, second = (each.type for each in results)
            if isinstance(first, TensorType) and isinstance(second, TensorType):
                type: Type = first.merge(second)
            else:
                type = first if first == second else output.type
            if type != output.type and type.is_subtype_of(output.type) and may_change("refine", output):
                output.set_type(type)
                changed = True
        return changed, node.next

    def _loop(self, node: Node) -> bool:
        if remove_dead_loop(node):
            return True
        changed = remove_invariants(node)
        changed |= self.block(LoopView(node).body)
        return remove_invariants(node) or changed

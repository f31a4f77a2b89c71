"""Argument specs: the properties of arguments that select the version of a graph.

A graph queries properties of its arguments that are the same in nearly every call::

    graph(%x : Tensor, %mask : Tensor?):
      %2 : int = aten::dim(%x)                        asks for the rank of %x
      %4 : bool = aten::__is__(%mask, %3)             and whether %mask is None

Here the :class:`ArgumentSpec` of a call is ``(2, True)`` for a matrix and no mask. :func:`specialize` writes into a
copy of the graph what a spec states, so that passes can fold the queries; the copy is valid for calls of this spec
only.

Only properties that the graph queries are part of a spec. Elements of tuples count as arguments. Items of lists and
attributes of objects do not, since they can change while the graph runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import torch

from rekindle.analysis.constants import constant_int
from rekindle.analysis.effects import CASTS, is_conservative
from rekindle.ir.control_flow import LoopView, loop_of_parameter
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import BoolType, FloatType, IntType, NoneType, OptionalType, TensorType, TupleType
from rekindle.ops.registration.traits import queried_properties, queries_of
from rekindle.passes.simplification.peephole import FOLDED_BY_TYPE
from rekindle.passes.simplification.type_refinement import TYPE_QUERIES

ArgumentSpec = tuple[object, ...]
"""The values of the properties that a graph queries, in the order of :attr:`ArgumentSpecCreator.queried_properties`."""


class ArgumentProperty(Enum):
    """Properties of arguments that a graph may query; the value is the query in Python."""

    IS_NONE = "{0} is None"
    RANK = "{0}.dim()"
    DTYPE = "{0}.dtype"
    DEVICE = "{0}.device"


_BY_TRAIT: Final = {
    Trait.READS_IDENTITY: ArgumentProperty.IS_NONE,
    Trait.READS_RANK: ArgumentProperty.RANK,
    Trait.READS_DTYPE: ArgumentProperty.DTYPE,
    Trait.READS_DEVICE: ArgumentProperty.DEVICE,
}
"""Properties that seldom differ between calls: not sizes, and not whether a gradient is required."""

_QUERIED: Final[dict[str, tuple[ArgumentProperty, ...]]] = {
    **{
        kind: tuple(_BY_TRAIT[each] for each in queried_properties(kind))
        for kind in FOLDED_BY_TYPE & queries_of(*_BY_TRAIT)
    },
    # They return their operand itself where it has the property.
    "aten::to": (ArgumentProperty.DTYPE,),
    "aten::_unwrap_optional": (ArgumentProperty.IS_NONE,),
}
"""Kinds of nodes that go away where these properties of their first input are known."""

_OF_A_TENSOR: Final = (ArgumentProperty.RANK, ArgumentProperty.DTYPE, ArgumentProperty.DEVICE)

_SEES_NONE: Final = queries_of(Trait.READS_IDENTITY) | CASTS
"""Kinds that are simpler where a value is known to be None, or not to be."""


_PLAIN: Final = (TensorType, IntType, FloatType, BoolType, NoneType)
"""Types of arguments of operators that need not be constants for the type of the result to be known."""


@dataclass(frozen=True, slots=True)
class ArgumentPath:
    """The path to an argument: the index of an input, and the indices of elements in nested tuples from there."""

    input: int
    path: tuple[int, ...] = ()

    @property
    def expression(self) -> str:
        """The Python expression that reads it."""
        return f"r{self.input}" + "".join(f"[{index}]" for index in self.path)


@dataclass(frozen=True, slots=True)
class PropertyQuery:
    """A property of an argument that a graph queries. ``may_be_none`` is whether the argument may be None, where the
    property is another one."""

    argument: ArgumentPath
    queried: ArgumentProperty
    may_be_none: bool

    @property
    def expression(self) -> str:
        """The Python expression that evaluates it."""
        value = self.argument.expression
        query = self.queried.value.format(value)
        return f"None if {value} is None else {query}" if self.may_be_none else query


class ArgumentSpecCreator:
    """A generator of the specs of the calls of a graph. ``key``, called with all arguments, returns the spec; it is
    None if the graph queries nothing about its arguments. It is Python code written for the graph, since it runs at
    every call."""

    __slots__ = ("_graph", "input_count", "key", "queries")

    def __init__(self, graph: Callable[[], Graph], queries: Sequence[PropertyQuery], input_count: int) -> None:
        """Prepare for the graph that ``graph`` returns. ``queries`` are those that :meth:`of` finds in that graph."""
        self._graph = graph
        self.queries = queries
        self.input_count = input_count
        self.key = self._key() if queries else None

    @classmethod
    def of(
        cls, graph: Graph, allowed: Collection[tuple[ArgumentPath, ArgumentProperty]] | None = None
    ) -> ArgumentSpecCreator:
        """Return the generator for ``graph``. If ``allowed`` is given, only those queries are part of a spec."""
        types = {place: value.type for value, place in _arguments(graph).items()}
        queries = [
            PropertyQuery(place, fact, fact is not ArgumentProperty.IS_NONE and isinstance(types[place], OptionalType))
            for place, fact in _questions(graph)
            if allowed is None or (place, fact) in allowed
        ]
        return cls(lambda: graph, queries, len(graph.inputs))

    @property
    def graph(self) -> Graph:
        """The graph for whose calls specs are made."""
        return self._graph()

    @property
    def queried_properties(self) -> list[tuple[ArgumentPath, ArgumentProperty]]:
        """The properties of arguments that a spec consists of, in this order."""
        return [(each.argument, each.queried) for each in self.queries]

    def _key(self) -> Callable[..., ArgumentSpec]:
        parameters = ", ".join(f"r{index}" for index in range(self.input_count))
        answers = "".join(f"{each.expression}, " for each in self.queries)
        return eval(f"lambda {parameters}: ({answers})", {})  # type: ignore[no-any-return]  # noqa: S307

    def types_for(self, spec: ArgumentSpec) -> dict[int, TensorType]:
        """Return the types that ``spec`` states for tensors among the inputs, by index."""
        known: dict[int, dict[ArgumentProperty, Any]] = {}
        for (place, fact), answer in zip(self.queried_properties, spec, strict=True):
            if not place.path and answer is not None and fact is not ArgumentProperty.IS_NONE:
                known.setdefault(place.input, {})[fact] = answer
        inputs = self.graph.inputs if known else ()
        return {index: _refined(_tensor_type(inputs[index]), facts) for index, facts in known.items()}

    def describe(self, spec: ArgumentSpec) -> str:
        """Return a spec in words: ``x: rank 2; mask is None``."""
        parts: list[str] = []
        for (place, fact), answer in zip(self.queried_properties, spec, strict=True):
            value = self.graph.inputs[place.input]
            name = value.name + "".join(f"[{index}]" for index in place.path)
            if fact is ArgumentProperty.IS_NONE:
                parts.append(f"{name} is {'' if answer else 'not '}None")
            elif answer is not None:
                parts.append(f"{name}: {fact.name.lower()} {answer}")
        return "; ".join(parts)


def _arguments(graph: Graph) -> dict[Value, ArgumentPath]:
    """Return by value the paths of a graph's inputs, and of the elements that it extracts from tuples among them."""
    found: dict[Value, ArgumentPath] = {}
    for index, value in enumerate(graph.inputs):
        _add(found, value, ArgumentPath(index))
    return found


def _add(found: dict[Value, ArgumentPath], value: Value, place: ArgumentPath) -> None:
    found[value] = place
    if not isinstance(value.type, TupleType):
        return
    for use in value.uses:
        for index, output in _elements(use.user):
            _add(found, output, ArgumentPath(place.input, (*place.path, index)))


def _elements(node: Node) -> Iterator[tuple[int, Value]]:
    """Yield each output of a node that unpacks a tuple, with the index of the element."""
    if node.kind == "prim::TupleUnpack":
        yield from enumerate(node.outputs)
    elif node.kind == "prim::TupleIndex":
        whole, number = node.inputs
        index = constant_int(number)
        if index is not None:
            yield index % len(whole.type.contained), node.output


def _questions(graph: Graph) -> list[tuple[ArgumentPath, ArgumentProperty]]:
    """Return the properties of arguments that ``graph`` queries, each once, in the order of the arguments. A query of a
    tensor whose type follows from arguments counts as a query of these arguments."""
    arguments = _arguments(graph)
    queried: set[tuple[ArgumentPath, ArgumentProperty]] = set()
    derived = _Derived(arguments)
    for node in graph.all_nodes():
        facts = _QUERIED.get(node.kind, ())
        if not facts:
            continue
        subject, *_ = node.inputs
        value = _unwrapped(subject)
        if value in arguments:
            queried.update((arguments[value], fact) for fact in facts if _can_have(fact, value))
        elif node.kind in TYPE_QUERIES:
            queried.update((arguments[root], fact) for root in derived.roots(value) for fact in _OF_A_TENSOR)
    return sorted(queried, key=lambda each: (each[0].input, each[0].path, each[1].name))


def _unwrapped(value: Value) -> Value:
    while value.node.kind in CASTS:
        value = value.node.input
    return value


def _can_have(fact: ArgumentProperty, value: Value) -> bool:
    type = value.type
    if fact is ArgumentProperty.IS_NONE:
        return isinstance(type, OptionalType)
    return _is_tensor_or_none(value)


def _is_tensor_or_none(value: Value) -> bool:
    type = value.type
    return isinstance(type.element if isinstance(type, OptionalType) else type, TensorType)


class _Derived:
    """A search for the arguments that determine the type of a computed tensor."""

    def __init__(self, arguments: dict[Value, ArgumentPath]) -> None:
        self.arguments = arguments
        self.known: dict[Value, frozenset[Value] | None] = {}

    def roots(self, value: Value) -> frozenset[Value]:
        """Return the tensors among the arguments from which dtype, rank and device of ``value`` follow; an empty set if
        they do not follow from arguments alone."""
        value = _unwrapped(value)
        pending = [value]
        begun: set[Value] = set()
        while pending:
            top = pending[-1]
            if top in self.known:
                pending.pop()
                continue
            missing = [each for each in self._sources(top) if each not in self.known and each not in begun]
            begun.add(top)
            if missing:
                pending += missing
                continue
            pending.pop()
            self.known[top] = self._of(top)
        return self.known[value] or frozenset()

    def _sources(self, value: Value) -> list[Value]:
        node = value.node
        if value in self.arguments:
            return []
        merged = _merged_values(value)
        if merged is not None:
            return [_unwrapped(each) for each in merged]
        return [_unwrapped(each) for each in _tensors_taken(node) if each.node.kind != "prim::GetAttr"]

    def _of(self, value: Value) -> frozenset[Value] | None:
        node = value.node
        if value in self.arguments:
            # An argument of a union or of any type is cast to a tensor only after a test: other calls pass other types.
            return frozenset({value}) if _is_tensor_or_none(value) else None
        is_merged = _merged_values(value) is not None
        if not is_merged and not self._is_operator(node):
            return None
        roots = [self.known.get(each) for each in self._sources(value)]
        found = [root for root in roots if root is not None]
        # Of branches it is enough to know one: it may be the one that is taken.
        if not found or (len(found) < len(roots) and not is_merged):
            return None
        return frozenset[Value]().union(*found)

    def _is_operator(self, node: Node) -> bool:
        """Return whether ``node`` computes something of tensors and constants alone."""
        if node.blocks or node.operator is None or is_conservative(node):
            return False
        return all(
            isinstance(each.type, _PLAIN) or each.node.kind in _KNOWN_LISTS or each.node.kind == "prim::Constant"
            for each in node.inputs
        )


def _tensors_taken(node: Node) -> Iterator[Value]:
    """Yield the tensor inputs of ``node``, including the items of lists that are constructed for it."""
    for value in node.inputs:
        if isinstance(value.type, TensorType):
            yield value
        elif value.node.kind in _KNOWN_LISTS:
            yield from (item for item in value.node.inputs if isinstance(item.type, TensorType))


_KNOWN_LISTS: Final = frozenset({"prim::ListConstruct", "aten::unbind", "aten::chunk", "aten::split"})
"""Kinds that make lists whose elements have types that follow from those of their inputs."""


def _merged_values(value: Value) -> list[Value] | None:
    """Return the values that determine the type of ``value``: the results of branches, the initial value of a loop
    variable (iterations seldom change its type), and the possible elements of tuples and lists. Return None if an
    operator computes ``value``."""
    node = value.node
    if node.kind == "prim::If":
        return [block.outputs[value.offset] for block in node.blocks]
    loop = loop_of_parameter(value)
    if loop is not None:
        return [LoopView(loop).initial[value.offset - 1]] if value.offset else None
    if node.kind == "prim::Loop":
        return [LoopView(node).initial[value.offset]]
    if node.kind == "aten::__getitem__" and node.inputs[0].node.kind == "prim::ListConstruct":
        return list(_items_of(node.inputs[0]))
    element = next((index for index, output in _elements(node) if output is value), None)
    return None if element is None else list(_elements_of(node.inputs[0], element))


def _items_of(made: Value) -> Iterator[Value]:
    """Yield the items with which a list is constructed, and those appended to it."""
    yield from made.node.inputs
    for use in made.uses:
        if use.user.kind == "aten::append" and use.offset == 0:
            yield use.user.inputs[1]


def _elements_of(whole: Value, index: int) -> Iterator[Value]:
    """Yield the values that may be the element ``index`` of a tuple."""
    pending, seen = [whole], {whole}
    while pending:
        value = pending.pop()
        if value.node.kind == "prim::TupleConstruct":
            yield value.node.inputs[index]
            continue
        for each in _merged_values(value) or ():
            if each not in seen:
                seen.add(each)
                pending.append(each)


def specialize(graph: Graph, creator: ArgumentSpecCreator, spec: ArgumentSpec) -> bool:
    """Specialize ``graph``, a copy of the creator's graph, to the arguments described by ``spec``: refine types, and
    insert a constant for a value that is known to be None, and a cast for one that is known not to be. Return whether
    ``spec`` states anything."""
    values = {place: value for value, place in _arguments(graph).items()}
    facts: dict[ArgumentPath, dict[ArgumentProperty, Any]] = {}
    for (place, fact), answer in zip(creator.queried_properties, spec, strict=True):
        facts.setdefault(place, {})[fact] = answer
    for place, known in facts.items():
        value = values[place]
        if known.get(ArgumentProperty.IS_NONE):
            _see(value, graph.create_constant(None).insert_before(_first(graph, value)).output)
        elif ArgumentProperty.IS_NONE in known:
            assert isinstance(value.type, OptionalType)
            cast = graph.create("prim::unchecked_unwrap_optional", [value], types=[value.type.element])
            _see(value, cast.insert_before(_first(graph, value)).output)
            _refine(cast.output, known)
        else:
            for each in (value, *_casts_of(value)):
                _refine(each, known)
    return bool(facts)


def _casts_of(value: Value) -> list[Value]:
    """Return the casts of ``value`` to a type without None, and the casts of these."""
    casts = [use.user.output for use in value.uses if use.user.kind in CASTS] if value.type.is_optional else []
    return [found for cast in casts for found in (cast, *_casts_of(cast))]


def _first(graph: Graph, value: Value) -> Node:
    """Return the earliest node before which a use of ``value`` may be inserted."""
    node = value.node
    following = node.next if node.kind != "prim::Param" else None
    return following or next(iter(graph.nodes), None) or graph.return_node


def _see(value: Value, known: Value) -> None:
    """Replace ``value`` by ``known`` at the uses that become simpler by this."""
    for use in list(value.uses):
        if use.user.kind in _SEES_NONE and use.user is not known.node:
            use.user.replace_input(use.offset, known)


def _refine(value: Value, known: dict[ArgumentProperty, Any]) -> None:
    if isinstance(value.type, TensorType):
        value.set_type(_refined(value.type, known))


def _refined(type: TensorType, known: dict[ArgumentProperty, Any]) -> TensorType:
    rank = known.get(ArgumentProperty.RANK)
    dtype: torch.dtype | None = known.get(ArgumentProperty.DTYPE)
    sizes = type.sizes if rank is None else (None,) * rank
    return TensorType(dtype or type.dtype, known.get(ArgumentProperty.DEVICE) or type.device, sizes)


def _tensor_type(value: Value) -> TensorType:
    type = value.type.element if isinstance(value.type, OptionalType) else value.type
    assert isinstance(type, TensorType), "dtype, rank and device are asked of tensors alone"
    return type

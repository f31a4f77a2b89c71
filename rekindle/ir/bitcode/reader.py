"""Decode graphs that :mod:`rekindle.ir.bitcode.writer` encoded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import torch

from rekindle.errors import UNKNOWN_RANGE, Source, SourceRange, shared_source
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.bitcode.references import PLAIN, SIMPLE_TYPES, Encoded, NotEncodable, References
from rekindle.ir.bitcode.writer import BUILT_IN
from rekindle.ir.graph import Block, Graph
from rekindle.ir.node import FIRST_POSITION, POSITION_GAP, Node, Use, Value
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.types import (
    AwaitType,
    DictType,
    FunctionType,
    FutureType,
    IntType,
    ListType,
    OptionalType,
    RRefType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
)
from rekindle.ir.types.tensor import TENSOR


class GraphReader:
    """Decodes the graphs of a bundle. Numbers of external objects are looked up in ``references``."""

    def __init__(self, bundle: Encoded, references: References) -> None:
        """Decode the tables of a bundle: strings, types, source ranges, operators and tensors. Graphs are decoded when
        they are read.

        Raises:
            NotEncodable: the bundle refers to an unknown type, or to an unregistered operator of a namespace other than
                PyTorch's.
        """
        strings, types, sources, ranges, callstacks, operators, tensors, self._encoded = bundle
        self._objects = references.objects
        self._strings: list[str] = [sys.intern(text) for text in strings]
        self._types: list[Type] = []
        for each in types:
            self._types.append(self._type(*each))
        self._sources = [shared_source(*each) for each in sources]
        self._ranges = [UNKNOWN_RANGE, *(self._range(*each) for each in ranges[1:])]
        self._callstacks = [tuple([(name, self._ranges[place]) for name, place in calls]) for calls in callstacks]
        check_operators(operators[1:])
        self._operators = [None, *operators[1:]]
        self._tensors = [decode_tensor(*each) for each in tensors]
        self._graphs: dict[int, Graph] = {}

    def graph(self, number: int) -> Graph:
        """Return the graph with this number; the same one each time."""
        found = self._graphs.get(number)
        if found is None:
            found = self._graphs[number] = Graph()
            block, next_unique, suffixes = self._encoded[number]
            self._read_block(found.block, block, [])
            found._next_unique = next_unique
            found._name_suffixes.update(suffixes)
        return found

    def type(self, number: int) -> Type:
        """Return the type with this number."""
        return self._types[number]

    def range(self, number: int) -> SourceRange:
        """Return the source range with this number."""
        return self._ranges[number]

    # ---------------------------------------------------------------------------------------------------------- graphs

    def _read_block(self, block: Block, encoded: Encoded, values: list[Value]) -> None:
        inputs, nodes, outputs = encoded
        self._define(block.param_node, inputs, values)
        preceding, position = block.return_node, FIRST_POSITION
        for each in nodes:
            node = self._read_node(block.graph, each, values)
            node.owning_block = block
            preceding._next, node._prev = node, preceding
            node._position = position
            position += POSITION_GAP
            preceding = node
        preceding._next, block.return_node._prev = block.return_node, preceding
        _use(block.return_node, outputs, values)

    def _read_node(self, graph: Graph, encoded: Encoded, values: list[Value]) -> Node:
        kind, inputs, outputs, operator, place, calls, scope, attributes, blocks = encoded
        node = Node(graph, self._strings[kind], self._ranges[place])
        node.callstack = self._callstacks[calls]
        node.scope = self._strings[scope]
        _use(node, inputs, values)
        self._define(node, outputs, values)
        for name, value in attributes:
            node.attributes[name] = self.constant(value)
        for each in blocks:
            block = Block(graph, node)
            node._blocks.append(block)
            self._read_block(block, each, values)
        node._operator = self._operators[operator]
        return node

    def _define(self, node: Node, encoded: Sequence[Encoded], values: list[Value]) -> None:
        types, names, outputs = self._types, node.graph._names, node._outputs
        for type, unique, name in encoded:
            value = Value(node, len(outputs), unique, types[type])
            if name:
                value._name = name
                names[name] = value
            outputs.append(value)
            values.append(value)

    # ---------------------------------------------------------------------------------------------------------- tables

    def _type(self, kind: str, *parts: Any) -> Type:
        if kind == "reference":
            found: Type = self._object(parts[0])
            return found
        if kind == "TensorType":
            return _tensor_type(*parts)
        if kind == "FunctionType":
            return FunctionType(self._object(parts[0]))
        if kind in _WITH_PARTS:
            return _WITH_PARTS[kind](*[self._types[each] if isinstance(each, int) else each for each in parts])
        if kind in SIMPLE_TYPES:
            return SIMPLE_TYPES[kind]
        raise NotEncodable(f"the type '{kind}'")

    def _object(self, number: int) -> Any:
        return self._objects[number]

    def _range(self, source: int, start: int, end: int) -> SourceRange:
        found: Source = self._object(source) if source >= 0 else self._sources[~source]
        return SourceRange(found, start, end)

    # ------------------------------------------------------------------------------------------------------- constants

    def constant(self, encoded: Encoded) -> Any:
        """Decode the value of an attribute."""
        if type(encoded) in PLAIN:
            return encoded
        return getattr(self, f"_read_{encoded[0]}")(encoded[1])

    def _read_object(self, value: Encoded) -> ConstantObject:
        return ConstantObject(self.constant(value))

    def _read_reference(self, number: int) -> Any:
        return self._objects[number]

    def _read_tensor(self, number: int) -> torch.Tensor:
        return self._tensors[number]

    def _read_graph(self, number: int) -> Graph:
        return self.graph(number)

    def _read_type(self, number: int) -> Type:
        return self._types[number]

    def _read_list(self, items: Encoded) -> list[Any]:
        return [self.constant(item) for item in items]

    def _read_tuple(self, items: Encoded) -> tuple[Any, ...]:
        return tuple([self.constant(item) for item in items])

    def _read_dict(self, items: Encoded) -> dict[Any, Any]:
        return {self.constant(key): self.constant(item) for key, item in items}

    def _read_torch(self, name: str) -> Any:
        return getattr(torch, name)

    def _read_device(self, text: str) -> torch.device:
        return torch.device(text)


def _use(user: Node, numbers: Sequence[int], values: list[Value]) -> None:
    inputs = user._inputs
    for offset, number in enumerate(numbers):
        value = values[number]
        value._uses[Use(user, offset)] = None
        inputs.append(value)


def check_operators(names: Iterable[str]) -> None:
    """Check that operators exist. Operators of PyTorch are not checked, since many are in branches that never run.

    Raises:
        NotEncodable: one does not exist.
    """
    for name in names:
        if not name.startswith(BUILT_IN) and REGISTRY.find(name) is None:
            raise NotEncodable(f"the operator '{name}'")


def _tensor_type(dtype: str | None, device: str | None, *rest: Any) -> TensorType:
    if dtype is None and device is None and rest == (None, None, None, None):
        return TENSOR
    return TensorType(
        None if dtype is None else getattr(torch, dtype), None if device is None else torch.device(device), *rest
    )


def decode_tensor(dtype: str, shape: tuple[int, ...], content: bytes) -> torch.Tensor:
    """Return a CPU tensor of the dtype with this name; ``content`` holds the bytes of its elements in row-major
    order."""
    made = torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
    if content:
        made.view(-1).view(torch.uint8).copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
    return made


def _of_members(make: Callable[[tuple[Type, ...]], Type]) -> Callable[..., Type]:
    return lambda *members: make(members)


_WITH_PARTS: Final[dict[str, Callable[..., Type]]] = {
    "IntType": IntType,
    "VarType": VarType,
    "ListType": ListType,
    "DictType": DictType,
    "OptionalType": OptionalType,
    "FutureType": FutureType,
    "AwaitType": AwaitType,
    "RRefType": RRefType,
    "TupleType": _of_members(TupleType),
    "UnionType": _of_members(UnionType),
}

"""Encode graphs as plain data.

A :class:`GraphWriter` encodes any number of graphs, which share tables of strings, types, texts, places and operators.
The order of everything follows from the graphs alone, so that equal graphs have equal encodings in every process.

.. code-block:: text

    bundle   = (strings, types, sources, ranges, callstacks, operators, tensors, graphs)
    graph    = (block, number of the next value, ((base name, last suffix), ...))
    block    = ((value, ...), (node, ...), (output, ...))
    node     = (kind, (input, ...), (value, ...), operator, range, callstack, scope, ((name, attribute), ...),
                (block, ...))
    value    = (type, number, name)

Inputs and outputs are positions in the order in which the graph defines its values. Numbers and names of values and
attributes are written as they are, attributes by :meth:`GraphWriter.constant`. The other parts are positions in the
tables.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Iterable
from typing import Final

import torch

from rekindle.errors import UNKNOWN_RANGE, Source, SourceRange
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.bitcode.references import PLAIN, SIMPLE_TYPES, Encoded, NotEncodable, References
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.scalar_types import NUMBERED_CLASSES, Numbered
from rekindle.ir.types import (
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    FutureType,
    InterfaceType,
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

MAX_TENSOR_BYTES: Final = 1 << 20
"""The largest tensor that is written with a graph: passes fold constants, not weights."""

BUILT_IN: Final = ("aten::", "prim::")
"""What the names of PyTorch's operators begin with."""

_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)
_NAMED_OBJECTS: Final = NUMBERED_CLASSES


class GraphWriter:
    """Encodes graphs. Objects to which they refer must be among ``references``; with ``adds_references`` they are
    added."""

    def __init__(self, references: References, *, adds_references: bool = False) -> None:
        self.references = references
        self._adds = adds_references
        self._strings: dict[str, int] = {"": 0}
        self._types: dict[Encoded, int] = {}
        self._type_numbers: dict[int, int] = {}
        self._sources: dict[Encoded, int] = {}
        self._source_numbers: dict[int, int] = {}
        self._ranges: dict[Encoded, int] = {None: 0}
        self._callstacks: dict[tuple[Encoded, ...], int] = {(): 0}
        self._operators: dict[str, int] = {"": 0}
        self._operator_numbers: dict[int, int] = {}
        self._tensors: list[Encoded] = []
        self._tensor_numbers: dict[int, int] = {}
        self._graphs: list[Encoded] = []
        self._graph_numbers: dict[int, int] = {}
        self._kept: list[object] = []
        """Objects known by ``id``, kept alive so that no other object gets their ids."""

    def add(self, graph: Graph) -> int:
        """Encode ``graph`` unless it has been added before. Return its number in the bundle.

        Raises:
            NotEncodable: the graph holds an object that has no encoding and is not among the references.
        """
        number = self._graph_numbers.get(id(graph))
        if number is None:
            self._kept.append(graph)
            values: dict[Value, int] = {}
            suffixes = tuple(sorted(graph._name_suffixes.items()))
            encoded = (self._block(graph.block, values), graph._next_unique, suffixes)
            number = self._graph_numbers[id(graph)] = len(self._graphs)
            self._graphs.append(encoded)
        return number

    def bundle(self) -> Encoded:
        """Return the bundle: the tables, and all graphs that have been added."""
        tables = (self._strings, self._types, self._sources, self._ranges, self._callstacks, self._operators)
        return (*map(tuple, tables), tuple(self._tensors), tuple(self._graphs))

    @property
    def foreign_operators(self) -> tuple[str, ...]:
        """The operators that the graphs call outside of PyTorch's namespaces ``aten`` and ``prim``."""
        return tuple([name for name in self._operators if name and not name.startswith(BUILT_IN)])

    # ---------------------------------------------------------------------------------------------------------- graphs

    def _block(self, block: Block, values: dict[Value, int]) -> Encoded:
        inputs = self._defined(block.inputs, values)
        nodes = tuple([self._node(node, values) for node in block._node_list()])
        return inputs, nodes, tuple([values[output] for output in block.outputs])

    def _node(self, node: Node, values: dict[Value, int]) -> Encoded:
        return (
            self._string(node.kind),
            tuple([values[value] for value in node._inputs]),
            self._defined(node._outputs, values),
            self._operator(node),
            self.range(node.range),
            self._callstack(node.callstack),
            self._string(node.scope),
            tuple([(name, self.constant(value)) for name, value in node.attributes.items()]),
            tuple([self._block(block, values) for block in node._blocks]),
        )

    def _defined(self, defined: Iterable[Value], values: dict[Value, int]) -> Encoded:
        encoded = []
        for value in defined:
            values[value] = len(values)
            encoded.append((self.type(value.type), value.unique, value._name))
        return tuple(encoded)

    # ---------------------------------------------------------------------------------------------------------- tables

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _operator(self, node: Node) -> int:
        if isinstance(node._operator, str):  # as it was read: to look it up takes longer
            return self._operators.setdefault(node._operator, len(self._operators))
        operator = node.operator
        if operator is None:
            return 0
        number = self._operator_numbers.get(id(operator))
        if number is None:
            name = operator.schema.qualified_name
            is_found = REGISTRY.find(name) is operator
            number = self._operators.setdefault(name, len(self._operators)) if is_found else 0
            self._operator_numbers[id(operator)] = number
            self._kept.append(operator)
        return number

    def range(self, place: SourceRange) -> int:
        """Return the number of a source range in the bundle, adding the range if it is new; 0 for an unknown range.

        Raises:
            NotEncodable: the source is a part of another one or was derived from it, and is not among the references.
        """
        if place.source is UNKNOWN_RANGE.source:
            return 0
        source = self._source_numbers.get(id(place.source))
        if source is None:
            source = self._source_numbers[id(place.source)] = self._source(place.source)
            self._kept.append(place.source)
        return self._ranges.setdefault((source, place.start, place.end), len(self._ranges))

    def _source(self, source: Source) -> int:
        """Return the number of a text: that of the reference to it, or the complement of its position in the table.

        Raises:
            NotEncodable: the text is a part of another one, or was derived from it, and is not among the references.
        """
        number = self.references.find(source)
        if number is None and self._adds:
            number = self.references.add(source)
        if number is not None:
            return number
        if source.origin is not None or source.limit is not None:
            raise NotEncodable("a place in a text that was made from others")
        encoded = source.text, source.filename, source.first_line, source.dedent
        return ~self._sources.setdefault(encoded, len(self._sources))

    def _callstack(self, calls: tuple[tuple[str, SourceRange], ...]) -> int:
        if not calls:
            return 0
        encoded = tuple([(name, self.range(place)) for name, place in calls])
        return self._callstacks.setdefault(encoded, len(self._callstacks))

    def _reference(self, item: object, what: str) -> int:
        number = self.references.add(item) if self._adds else self.references.find(item)
        if number is None:
            raise NotEncodable(what)
        return number

    # ----------------------------------------------------------------------------------------------------------- types

    def type(self, type: Type) -> int:
        """Return the number of a type in the bundle, adding the type if it is new.

        Raises:
            NotEncodable: the type, or a part of it, has no encoding and is not among the references.
        """
        number = self._type_numbers.get(id(type))
        if number is None:
            encoded = self._type(type)
            number = self._type_numbers[id(type)] = self._types.setdefault(encoded, len(self._types))
            self._kept.append(type)
        return number

    def _type(self, type: Type) -> Encoded:
        kind = type.kind
        match type:
            case TensorType():
                dtype = None if type.dtype is None else _name_of(type.dtype)
                device = None if type.device is None else str(type.device)
                return kind, dtype, device, type.sizes, type.strides, type.requires_grad, type.undefined
            case IntType():
                return kind, type.python_name
            case VarType():
                return kind, type.name
            case FunctionType():
                return kind, self._reference(type.function, f"the function '{type.function.name}'")
            case ClassType() | InterfaceType() | EnumType():
                return "reference", self._reference(type, f"the type '{type}'")
            case TupleType() if type.fields is not None:
                return "reference", self._reference(type, f"the type '{type}'")
            case ListType() | DictType():
                return kind, *map(self.type, type.contained), type.python
            case TupleType() | OptionalType() | UnionType() | FutureType() | AwaitType() | RRefType():
                return kind, *map(self.type, type.contained)
        if kind not in SIMPLE_TYPES:
            raise NotEncodable(f"the type '{type}'")
        return (kind,)

    # ------------------------------------------------------------------------------------------------------- constants

    def constant(self, value: object) -> Encoded:
        """Encode the value of an attribute. A tuple begins with the kind of the value; other values are encoded
        directly. Types, tensors and subgraphs in the value are added to the bundle.

        Raises:
            NotEncodable: the class of the value has no encoding, or an object is not among the references.
        """
        if type(value) in PLAIN:
            return value
        if isinstance(value, ConstantObject):
            return "object", self.constant(value.value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, Graph):
            return "graph", self.add(value)
        if isinstance(value, Type):
            return "type", self.type(value)
        if type(value) in (list, tuple):
            return type(value).__name__, tuple([self.constant(item) for item in value])  # type: ignore[attr-defined]
        if type(value) is dict:
            return "dict", tuple([(self.constant(key), self.constant(item)) for key, item in value.items()])
        if isinstance(value, enum.Enum):
            return "reference", self._reference(value, f"the enum member {value}")
        if isinstance(value, _NAMED_OBJECTS):
            return "torch", _name_of(value)
        if isinstance(value, torch.device):
            return "device", str(value)
        raise NotEncodable(f"a constant of the class {type(value).__qualname__}")

    def _tensor(self, tensor: torch.Tensor) -> Encoded:
        number = self.references.find(tensor)
        if number is None and self._adds:
            number = self.references.add(tensor)
        if number is not None:
            return "reference", number
        if id(tensor) not in self._tensor_numbers:
            self._kept.append(tensor)
            self._tensor_numbers[id(tensor)] = len(self._tensors)
            self._tensors.append(_encode_tensor(tensor))
        return "tensor", self._tensor_numbers[id(tensor)]


def _encode_tensor(tensor: torch.Tensor) -> Encoded:
    if type(tensor) is not torch.Tensor or tensor.requires_grad or not tensor.is_contiguous():
        raise NotEncodable("a tensor that is more than its elements")
    return _name_of(tensor.dtype), tuple(tensor.shape), content_of(tensor, MAX_TENSOR_BYTES)


def content_of(tensor: torch.Tensor, most_bytes: int) -> bytes:
    """Return the bytes of the elements of a tensor or a parameter, in row-major order.

    Raises:
        NotEncodable: ``tensor`` is not a plain strided CPU tensor, or has more than ``most_bytes`` bytes.
    """
    is_dense = type(tensor) in _TENSORS and tensor.layout is torch.strided and tensor.device.type == "cpu"
    if not is_dense or tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():
        raise NotEncodable("a tensor that is more than its elements")
    size = tensor.numel() * tensor.element_size()
    if size > most_bytes:
        raise NotEncodable("a large tensor")
    dense = tensor.detach().contiguous()
    return ctypes.string_at(dense.data_ptr(), size) if size else b""


def _name_of(item: Numbered) -> str:
    return str(item).removeprefix("torch.")

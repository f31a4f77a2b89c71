"""Describe a function with all that it calls: equal digests mean equal programs.

The description holds whatever passes may read: graphs with their source ranges, the schemas and flags of functions,
the slots of classes, the texts of sources, the elements of tensors.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import Final

import torch

from rekindle.errors import Source
from rekindle.ir.bitcode.references import Encoded, NotEncodable, References, marshalled
from rekindle.ir.bitcode.writer import GraphWriter, content_of
from rekindle.ir.graph import Graph, subgraphs_of
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.mangling import demangled
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.types import ClassType, EnumType, InterfaceType, TupleType

MAX_CONSTANT_BYTES: Final = 16 << 20
"""The largest tensor whose elements are hashed."""


@dataclass(slots=True)
class ProgramDescription:
    """A description of a program. ``digest`` is equal for equal programs; ``references`` are the objects to which its
    graphs may refer, in a reproducible order; ``size`` is the number of nodes."""

    digest: bytes
    references: References
    size: int


def describe(graph: Graph) -> ProgramDescription:
    """Describe a graph, and all functions that it calls.

    Raises:
        NotEncodable: the program depends on an object that has no encoding, such as a Python function, a class written
            in C++, or a tensor of more than ``MAX_CONSTANT_BYTES``.
    """
    description = _Description()
    description.add_callees(graph)
    description.writer.add(graph)
    described = 0
    parts = []
    while described < len(description.references.objects):
        parts.append(description.of(description.references.objects[described]))
        described += 1
    encoded = (description.writer.bundle(), tuple(parts))
    return ProgramDescription(hashlib.sha256(marshalled(encoded)).digest(), description.references, description.size)


class _Description:
    """Encodes the objects to which graphs refer, and the objects to which those refer in turn."""

    def __init__(self) -> None:
        self.references = References()
        self.writer = GraphWriter(self.references, adds_references=True)
        self.size = 0

    def add_callees(self, graph: Graph) -> None:
        """Add the functions and methods that ``graph`` calls to the references, and the number of its nodes to
        ``size``. Subgraphs in attributes are included.

        Raises:
            NotEncodable: the graph calls a Python function, or an operator of a library other than PyTorch.
        """
        for node in graph.all_nodes():
            self.size += 1
            if is_foreign(node.kind) or node.kind.startswith("^"):
                raise NotEncodable(f"a call of {node.kind}")
            callee = called_function(node)
            if callee is not None:
                self.references.add(callee)
            for subgraph in subgraphs_of(node):
                self.add_callees(subgraph)

    def of(self, item: object) -> Encoded:
        """Encode an object to which a graph refers.

        Raises:
            NotEncodable: the object, or something that it refers to, has no encoding.
        """
        match item:
            case GraphFunction():
                return self._function(item)
            case ClassType():
                return self._class(item)
            case InterfaceType():
                methods = tuple([(name, demangled(str(schema))) for name, schema in item.methods.items()])
                return "interface", demangled(item.name), item.is_module, methods
            case EnumType():
                members = tuple([(name, repr(value)) for name, value in item.members.items()])
                return "enum", item.name, self.writer.type(item.value_type), members
            case TupleType():
                elements = tuple(map(self.writer.type, item.elements))
                return "named tuple", item.name, elements, item.fields, repr(item.defaults), _name(item.python_class)
            case Source():
                return "source", item.text, item.filename, item.first_line, item.dedent
            case torch.Tensor():
                return "tensor", *_tensor(item)
            case enum.Enum():
                return "member", _name(type(item)), item.name, repr(item.value)
        raise NotEncodable(f"an object of the class {type(item).__qualname__}")

    def _function(self, function: GraphFunction) -> Encoded:
        if not function.is_defined:
            raise NotEncodable(f"the function '{function.name}', which is not compiled")
        self.add_callees(function.graph)
        number = self.writer.add(function.graph)
        flags = (function.is_from_class, function.is_from_archive, function.is_recursive, function.library_name)
        return "function", demangled(function.name), demangled(str(function._schema)), flags, number

    def _class(self, type: ClassType) -> Encoded:
        if type.is_torchbind_class:
            raise NotEncodable(f"the class '{type.name}', which is written in C++")
        slots = tuple(
            [
                (slot.name, self.writer.type(slot.type), slot.kind, slot.is_dynamic, slot.is_declared)
                for slot in type.attributes.values()
            ]
        )
        flags = (type.is_module, type.is_incomplete, type.is_frozen, type.is_open)
        return "class", demangled(type.name), flags, slots, tuple(type.constants), demangled(_name(type.python_class))


def _tensor(tensor: torch.Tensor) -> Encoded:
    """Encode a constant tensor of a graph.

    Raises:
        NotEncodable: the tensor is not a plain CPU tensor, or is larger than ``MAX_CONSTANT_BYTES``.
    """
    digest = hashlib.sha256(content_of(tensor, MAX_CONSTANT_BYTES)).digest()
    return str(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.requires_grad, _name(type(tensor)), digest


def _name(cls: type | None) -> str:
    return "" if cls is None else f"{cls.__module__}.{cls.__qualname__}"

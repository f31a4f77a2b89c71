"""The outline of a program's texts: its classes with their attributes, the schemas of methods, the operators that are
called. The texts are parsed; nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import torch

from rekindle.archive.code.sources import ArchiveSources
from rekindle.errors import CompileError
from rekindle.frontend.archive_resolver import ArchiveResolver
from rekindle.frontend.python_printer import NamedType
from rekindle.frontend.signatures import declare_schema, literal_value
from rekindle.frontend.type_expressions import dotted_name, parse_type_expression
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import (
    ANY,
    LIBRARY_CLASSES,
    ClassAttribute,
    ClassType,
    EnumType,
    FunctionType,
    InterfaceType,
    TupleType,
)
from rekindle.program.sources.class_definitions import check_tuple, definitions_in, read_class
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Apply, ClassDef, Def, Expr, StringLiteral

_PARTS: Final = LIBRARY_CLASSES.count(".") + 2
"""The number of parts of the qualified name of a class written in C++."""

_NO_OPERATORS: Final = frozenset({"torch.annotate", "torch.jit.annotate"})


class ProgramIndex:
    """The definitions of all texts, by qualified name, with their declared bases."""

    def __init__(self, texts: ArchiveSources, preferred: Callable[[str], Sequence[GraphFunction]]) -> None:
        """Index the definitions in the sources of an archive. ``preferred`` returns the upgraders of an operator by its
        name.

        Raises:
            ArchiveError: a text is broken, or they are longer than the limits allow.
            ParseError: a text is not a program.
        """
        self.names = ArchiveResolver(self._type_called, (), preferred)
        self._definitions: dict[str, ClassDef | Def] = {}
        for qualifier in texts.qualifiers():
            source = texts.read(qualifier)
            if source is not None:
                found = definitions_in(source)
                self._definitions |= {f"{qualifier}.{name}": definition for name, definition in found.items()}
        self._types: dict[str, NamedType | None] = {}

    def is_module(self, name: str) -> bool:
        """Return whether the class with this name is a class of modules, not a script class."""
        found = self._type_called(name)
        return isinstance(found, ClassType) and found.is_module

    def slots(self, name: str) -> list[ClassAttribute]:
        """Return the attributes of the class with this name; empty if the class is not defined.

        Raises:
            CompileError: the class is broken.
        """
        owner, definition = self._type_called(name), self._definitions.get(name)
        if not isinstance(owner, ClassType) or not isinstance(definition, ClassDef):
            return []
        body = read_class(definition)
        found = []
        for slot, annotation in body.slots:
            type = parse_type_expression(annotation, self.names)
            found.append(ClassAttribute(slot, type, body.kind_of(slot, type, owner.is_module)))
        return found

    def schemas(self, name: str) -> Iterator[tuple[str, FunctionSchema]]:
        """Yield the methods of the class of this name and their schemas, without its hooks.

        Raises:
            CompileError: the class is broken.
        """
        owner, definition = self._type_called(name), self._definitions.get(name)
        if not isinstance(owner, ClassType) or not isinstance(definition, ClassDef):
            return
        body = read_class(definition)
        for method in body.methods:
            if method.name.name in (*body.pre_hooks, *body.hooks):
                continue
            itself = {param.name.name: owner for param in method.params[:1]}
            defaults = {
                param.name.name: _default(param.default) for param in method.params if param.default is not None
            }
            yield (
                method.name.name,
                declare_schema(method, self.names, defaults=defaults, parameter_types=itself),
            )

    def operators(self) -> Iterator[str]:
        """Yield the kinds of the operators that are called by name, one for each call."""
        for tree in self._trees():
            if tree.kind == Apply.KIND:
                kind = _operator_called(dotted_name(Apply(tree).callee))
                if kind is not None:
                    yield kind

    def library_classes(self) -> Iterator[str]:
        """Yield the names of the C++ classes that the sources mention, one for each mention."""
        for tree in self._trees():
            name = dotted_name(Expr(tree), _PARTS) if tree.kind == "." else None
            if name is not None and name.startswith(LIBRARY_CLASSES) and name.count(".") == _PARTS - 1:
                yield name

    def _trees(self) -> Iterator[Tree]:
        for definition in self._definitions.values():
            yield from definition.tree.walk()

    # ------------------------------------------------------------------------------------------------------------ types

    def _type_called(self, name: str) -> NamedType | None:
        """Return the type (class, NamedTuple, enum, interface or function) with this name; None if there is none.
        Classes have no attributes or methods."""
        if name not in self._types:
            self._types[name] = None  # a NamedTuple within itself finds none
            self._types[name] = self._new_type(name)
        return self._types[name]

    def _new_type(self, name: str) -> NamedType | None:
        if name.startswith(LIBRARY_CLASSES):
            return ClassType(name) if name.count(".") > LIBRARY_CLASSES.count(".") else None
        definition = self._definitions.get(name)
        if definition is None:
            return None
        if isinstance(definition, Def):
            return FunctionType(GraphFunction(name))
        base = dotted_name(definition.bases[0]) if definition.bases else ""
        if base == "NamedTuple":
            slots = read_class(definition).slots
            types = tuple(parse_type_expression(annotation, self.names) for _, annotation in slots)
            check_tuple(name, slots, types)
            return TupleType(types, name, tuple(field for field, _ in slots))
        if base == "Enum":
            return EnumType(name, ANY)
        if base in ("Interface", "ModuleInterface"):
            return InterfaceType(name, is_module=base == "ModuleInterface")
        return ClassType(name, is_module=base == "Module")


class _Spelled:
    """A default value that is not a literal, as source text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def _default(expr: Expr) -> object:
    try:
        return literal_value(expr)
    except CompileError:
        return _device(expr) or _Spelled(expr.range.text)


def _device(expr: Expr) -> torch.device | None:
    """Return the device of the expression ``torch.device("cpu")``; None for any other expression."""
    if expr.tree.kind != Apply.KIND:
        return None
    call = Apply(expr.tree)
    name = call.only_argument
    if dotted_name(call.callee) != "torch.device" or name is None or name.tree.kind != StringLiteral.KIND:
        return None
    try:
        return torch.device(StringLiteral(name.tree).text)
    except RuntimeError:
        return None


def _operator_called(name: str | None) -> str | None:
    """Return the operator that a call in an archive names: ``aten::add`` for ``torch.add``, ``torchvision::nms`` for
    ``ops.torchvision.nms``; None for other names."""
    if name is None or name in _NO_OPERATORS:
        return None
    first, *rest = name.split(".")
    if first == "torch" and rest:
        return f"aten::{rest[-1]}"
    return f"{rest[0]}::{rest[1]}" if first == "ops" and len(rest) == 2 else None

"""Imports the texts of an archive as types and functions, each on first use."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from typing import Final

from rekindle.analysis.effects import CONSTRUCTS
from rekindle.errors import CompileError, Source, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.archive_resolver import ArchiveResolver, no_functions, no_schemas
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.python_printer import NamedType
from rekindle.frontend.signatures import literal_value
from rekindle.frontend.sugared_values.classes import InitBinding, ObjectBinding
from rekindle.frontend.sugared_values.interfaces import interface_schema
from rekindle.frontend.type_expressions import dotted_name, parse_type_expression
from rekindle.ir.attributes import infer_type
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import (
    ANY,
    LIBRARY_CLASSES,
    TENSOR,
    ClassType,
    EnumType,
    FunctionType,
    InterfaceType,
    TupleType,
    Type,
)
from rekindle.program.context_effects import give_effect
from rekindle.program.sources.class_definitions import ClassText, check_tuple, definitions_in, read_class
from rekindle.program.sources.classes import give_python_class
from rekindle.program.sources.definition import define_function
from rekindle.runtime.executor import execute
from rekindle.syntax.parser import parse_expression
from rekindle.syntax.views import (
    ClassDef,
    Def,
    Expr,
    Ident,
    Param,
    Return,
)

SourceReader = Callable[[str], "Source | None"]
"""The text in which the names below a qualifier are defined: of ``__torch__.a.b``, the member
``code/__torch__/a/b.py``."""


class SourceImporter:
    """Imports types and functions from the texts of an archive.

    Types are created when they are first looked up. Functions are compiled when they are first called, or their graph
    or schema is first read; an ``__init__`` that has to declare the attributes of its class is compiled with the type.

    Args:
        read_source: returns the text of a qualifier such as ``__torch__.a.b``; None if there is none.
        constants: what the texts call ``CONSTANTS.c0``, ``CONSTANTS.c1`` …
        preferred: returns the functions that replace an operator, by its kind, where their signatures fit.
        missing_operator: returns the known schemas of an operator whose library is not installed, by its kind.
        missing_class: returns the type of a class written in C++, by its name; by default the one to which operator
            schemas refer by that name, which has no attributes.
        origin: maps a source location in an archive's text to the one in the author's source.
    """

    def __init__(
        self,
        read_source: SourceReader,
        constants: Sequence[object] = (),
        *,
        preferred: Callable[[str], Sequence[GraphFunction]] = no_functions,
        missing_operator: Callable[[str], Sequence[FunctionSchema]] = no_schemas,
        missing_class: Callable[[str], ClassType] = custom_class,
        origin: Callable[[SourceRange], SourceRange] | None = None,
    ) -> None:
        self.names = ArchiveResolver(self.find_type, constants, preferred, missing_operator)
        self._read_source = read_source
        self._missing_class = missing_class
        self._origin = origin
        self._definitions: dict[str, dict[str, ClassDef | Def]] = {}
        self._types: dict[str, NamedType | None] = {}

    def load_type(self, name: str) -> NamedType:
        """Return the type or function with a qualified name such as ``__torch__.a.b.Net``.

        Raises:
            UndefinedNameError: the archive does not define the name.
            ParseError: the text that defines the name is not a program.
            CompileError: the definition is not one that an archive may hold.
        """
        found = self.find_type(name)
        if found is None:
            raise UndefinedNameError(f"the archive does not define '{name}'")
        return found

    def find_type(self, name: str) -> NamedType | None:
        """Return the type or function with a qualified name, imported on the first call; None if the archive does not
        define it.

        Raises:
            ParseError: the text that defines the name is not a program.
            CompileError: the definition is not one that an archive may hold.
        """
        if name not in self._types:
            self._types[name] = None
            if name.startswith(LIBRARY_CLASSES):
                if name.count(".") > LIBRARY_CLASSES.count("."):
                    self._types[name] = self._missing_class(name)
            else:
                self._import(name)
        return self._types[name]

    def resolve_type(self, text: str) -> Type:
        """Return the type that ``text`` spells: ``Optional[List[__torch__.a.b.Net]]``.

        Raises:
            CompileError: ``text`` does not spell a type.
        """
        return parse_type_expression(parse_expression(Source(text)), self.names)

    def _import(self, name: str) -> None:
        qualifier, _, basename = name.rpartition(".")
        definition = self._definitions_of(qualifier).get(basename) if qualifier else None
        if definition is None:
            return
        try:
            if isinstance(definition, Def):
                self._types[name] = FunctionType(self._function(name, definition))
            else:
                self._import_class(name, definition)
        except BaseException:
            del self._types[name]
            raise

    def _definitions_of(self, qualifier: str) -> dict[str, ClassDef | Def]:
        """Return the definitions in the text of a qualifier, by name; empty if it has no text.

        Raises:
            ParseError: the text is not a program.
        """
        found = self._definitions.get(qualifier)
        if found is None:
            source = self._read_source(qualifier)
            found = self._definitions[qualifier] = {} if source is None else definitions_in(source)
        return found

    # ---------------------------------------------------------------------------------------------------- functions

    def _function(self, name: str, definition: Def, self_binding: SelfBinding | None = None) -> GraphFunction:
        def define(record: GraphFunction) -> None:
            defaults = {
                param.name.name: self._default(param) for param in definition.params if param.default is not None
            }
            define_function(record, definition, self.names, self_binding=self_binding, defaults=defaults)
            if self._origin is not None:
                for node in record.graph.all_nodes():
                    node.range = self._origin(node.range)

        return GraphFunction(name, function_creator=define)

    def _default(self, param: Param) -> object:
        """Return the value of a default argument: a literal, or one of the few other expressions for constants that
        archives hold (``inf``, ``torch.device("cpu")``, ``CONSTANTS.c0``)."""
        assert param.default is not None
        try:
            return literal_value(param.default)
        except CompileError:
            return self._evaluate(param.default)

    def _evaluate(self, expr: Expr) -> object:
        """Return the value of a constant expression. One that would have to run code is rejected.

        Raises:
            UnsupportedError: the expression is not constant.
        """
        body = [Return.create(expr.range, expr)]
        definition = Def.create(expr.range, Ident.create(expr.range, "default"), [], None, body)
        record = GraphFunction("default")
        define_function(record, definition, self.names)
        if any(node.kind not in _CONSTANTS for node in record.graph.all_nodes()):
            raise UnsupportedError(f"'{expr.range.text}' is not a constant, which must be here", expr.range)
        return execute(record, [])

    # ------------------------------------------------------------------------------------------------------ classes

    def _import_class(self, name: str, definition: ClassDef) -> None:
        bases = [dotted_name(base) for base in definition.bases]
        make = _CLASSES.get(bases[0] or "") if len(bases) == 1 else SourceImporter._script_class if not bases else None
        if make is None:
            raise CompileError(
                f"the class '{name}' derives from what no class of an archive derives from", definition.range
            )
        make(self, name, definition)

    def _script_class(self, name: str, definition: ClassDef) -> None:
        type = self._types[name] = ClassType(name)
        self._fill(type, definition)
        if not type.attributes and "__init__" in type.methods:
            type.methods["__init__"].ensure_defined()
        give_python_class(type)
        give_effect(type)

    def _module(self, name: str, definition: ClassDef) -> None:
        type = self._types[name] = ClassType(name, is_module=True)
        self._fill(type, definition)

    def _fill(self, owner: ClassType, definition: ClassDef) -> None:
        """Add the attributes, constants, methods and hooks in the body of ``definition`` to ``owner``.

        Raises:
            CompileError: the body is not that of a class of an archive, or lacks a hook that it names.
        """
        body = read_class(definition)
        for name, annotation in body.slots:
            type = self._slot_type(owner, name, parse_type_expression(annotation, self.names))
            owner.add_attribute(name, type, body.kind_of(name, type, owner.is_module))
        for name, value in body.constants:
            owner.constants[name] = self._constant(value)
        records: dict[str, GraphFunction] = {}
        for method in body.methods:
            name = method.name.name
            records[name] = self._function(f"{owner.name}.{name}", method, self._binding(owner, name, body))
        for names, found in ((body.pre_hooks, owner.pre_hooks), (body.hooks, owner.hooks)):
            for name in names:
                if name not in records:
                    raise CompileError(f"the class '{owner.name}' lacks its hook '{name}'", definition.range)
                found.append(records[name])
        hooks = {*body.pre_hooks, *body.hooks}
        owner.methods.update((name, record) for name, record in records.items() if name not in hooks)

    def _slot_type(self, owner: ClassType, name: str, type: Type) -> Type:
        """Return ``type``, the annotated type of an attribute. For packed weights, which archives up to PyTorch 1.5
        annotate as Tensors, return their class."""
        if name != "_packed_params" or type != TENSOR or not _QUANTIZED.match(owner.name):
            return type
        found = self.find_type(_packed_weights_of(owner.name))
        return found if isinstance(found, ClassType) else type

    @staticmethod
    def _binding(owner: ClassType, method: str, body: ClassText) -> ObjectBinding | InitBinding:
        """Return the binding of ``self`` in a method. Script classes of releases before 1.5 do not list their
        attributes: those that ``__init__`` assigns are declared."""
        if method == "__init__" and not body.slots and not owner.is_module:
            return InitBinding(owner)
        return ObjectBinding(owner)

    def _constant(self, value: Expr) -> object:
        try:
            return literal_value(value)
        except CompileError:
            return self._evaluate(value)

    def _interface(self, name: str, definition: ClassDef) -> None:
        base = dotted_name(definition.bases[0])
        type = self._types[name] = InterfaceType(name, is_module=base == "ModuleInterface")
        for method in read_class(definition).methods:
            type.methods[method.name.name] = interface_schema(type, method, self.names)

    def _named_tuple(self, name: str, definition: ClassDef) -> None:
        slots = read_class(definition).slots
        types = tuple(parse_type_expression(annotation, self.names) for _, annotation in slots)
        check_tuple(name, slots, types)
        self._types[name] = TupleType(types, name, tuple(field for field, _ in slots))

    def _enum(self, name: str, definition: ClassDef) -> None:
        members = {member: self._constant(value) for member, value in read_class(definition).constants}
        basename = name.rpartition(".")[2]
        try:
            python = enum.Enum(basename, members, module=name.rpartition(".")[0])  # type: ignore[misc]
        except (TypeError, ValueError) as error:
            raise CompileError(f"Python cannot have this enum: {error}", definition.name.range) from None
        first = next(iter(members.values()), None)
        self._types[name] = EnumType(name, infer_type(first) or ANY, dict(python.__members__), python)


_CLASSES: Final[dict[str, Callable[[SourceImporter, str, ClassDef], None]]] = {
    "Module": SourceImporter._module,
    "NamedTuple": SourceImporter._named_tuple,
    "Interface": SourceImporter._interface,
    "ModuleInterface": SourceImporter._interface,
    "Enum": SourceImporter._enum,
    "": SourceImporter._script_class,
    "object": SourceImporter._script_class,
}
"""Importers of classes, by their base class."""


_CONSTANTS: Final = CONSTRUCTS | {"prim::Constant"}
"""Kinds of nodes in folded graphs of constants."""

_QUANTIZED: Final = re.compile(r"__torch__\.torch\.nn\.(?:intrinsic\.)?quantized\.")


def _packed_weights_of(module: str) -> str:
    """Return the qualified name of the class of the packed weights of a quantized module, by that of the module's
    class."""
    dimensions = re.search(r"conv.*Conv([123])d", module)
    kind = "Linear" if dimensions is None else f"Conv{max(int(dimensions[1]), 2)}d"
    return f"{LIBRARY_CLASSES}quantized.{kind}PackedParamsBase"

"""Conversion of the records of a pickle to values of the types that the program declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.archive.limits import ArchiveLimits
from rekindle.archive.pickles.records import UNSET, PickledEnum, PickledObject, PickledTyped, SparseRecord, TensorRecord
from rekindle.archive.pickles.tensors import TensorLoader
from rekindle.archive.pickles.torchbind_state import make_object
from rekindle.archive.zip_files.names import printable
from rekindle.errors import ArchiveLimitError, CompileError, CorruptArchiveError
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import (
    ANY,
    LIBRARY_CLASSES,
    QSCHEME,
    STRING,
    TENSOR,
    AnyType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceType,
    DictType,
    EnumType,
    FloatType,
    InterfaceType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionBase,
    union_members,
)
from rekindle.ir.types.named import ClassAttribute
from rekindle.ops.python.values import new_named_tuple, new_object, type_of_value
from rekindle.program.modules.module import ScriptContainer, ScriptModule
from rekindle.program.sources.source_importer import SourceImporter

SetState = Callable[[GraphFunction, object, object], None]
"""Runs ``__setstate__`` of an object with a state."""

_CONTAINERS: Final[dict[str, type]] = {
    f"__torch__.torch.nn.modules.container.{cls.__name__}": cls
    for cls in (
        *(torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict),
        *(torch.nn.ParameterList, torch.nn.ParameterDict),
    )
}
"""PyTorch's container modules by qualified name. Loaded ones can be indexed in Python."""

_SMALL: Final = 1 << 20
"""Size in bytes up to which a tensor may be larger than its storage."""

_MAGIC: Final = ("__len__", "__iter__", "__getitem__", "__contains__")


class _Misfit(Exception):
    """A record is not of the type that the program declares."""

    def __init__(self, record: object, type: Type) -> None:
        self.record = record
        self.type = type


class ValueBuilder:
    """Builds the values that the records of one pickle describe. A record that occurs several times with the same
    declared type becomes one object."""

    def __init__(
        self,
        member: str,
        importer: SourceImporter,
        tensors: TensorLoader,
        limits: ArchiveLimits,
        set_state: SetState,
        *,
        allow_setstate: bool,
    ) -> None:
        self._member = member
        self._importer = importer
        self._tensors = tensors
        self._limits = limits
        self._set_state = set_state
        self._allow_setstate = allow_setstate
        self._made: dict[tuple[int, Type], tuple[object, object]] = {}
        self._open: set[int] = set()
        self._types: dict[str, Type] = {}
        self._steps = 0

    def build(self, record: object, type: Type = ANY) -> Any:
        """Build the value that a record of a pickle describes, which must be of ``type``.

        Raises:
            ArchiveError: the record is not of this type, does not fit what the program declares, or exceeds a limit.
            CompileError: a class that the record needs is not a valid program.
        """
        try:
            return self._build(record, type)
        except _Misfit as misfit:
            raise self._broken(
                f"a value of type {misfit.type.annotation} is needed, and there is {_describe(misfit.record)}"
            ) from None

    # ------------------------------------------------------------------------------------------------------ dispatching

    def _build(self, record: Any, type: Type) -> Any:
        self._steps += 1
        if self._steps > self._limits.pickle_opcodes:
            raise ArchiveLimitError("The pickle has too many values.", member=self._member)
        simple = _SIMPLE.get(type.kind)
        if simple is not None:
            if record.__class__ in simple:
                return record
            raise _Misfit(record, type)
        if isinstance(type, TensorType):
            if isinstance(record, (TensorRecord, SparseRecord)):
                return self._tensors.tensor(record)
            raise _Misfit(record, type)
        if isinstance(type, UnionBase):
            return self._build_union(record, type)
        if isinstance(record, (PickledObject, PickledTyped, list, dict, tuple, PickledEnum)):
            return self._build_shared(record, type)
        return self._build_any(record, type)

    def _build_any(self, record: Any, type: Type) -> Any:
        """Build a value of type ``Any``, whose record determines the type.

        Raises:
            _Misfit: ``type`` is another type, or the record is not a plain value or a tensor.
        """
        if not isinstance(type, AnyType):
            raise _Misfit(record, type)
        if isinstance(record, (TensorRecord, SparseRecord)):
            return self._tensors.tensor(record)
        if record is None or record.__class__ in _PLAIN:
            return record
        raise _Misfit(record, type)

    def _build_union(self, record: Any, type: Type) -> Any:
        members = union_members(type)
        if record is None and any(isinstance(member, NoneType) for member in members):
            return None
        for member in members:
            try:
                return self._build(record, member)
            except _Misfit:
                continue
        raise _Misfit(record, type)

    def _build_shared(self, record: Any, type: Type) -> Any:
        """Build a container or object; return the same one for a record that was built before.

        Raises:
            CorruptArchiveError: the value contains itself.
            ArchiveLimitError: values nest too deeply.
        """
        key = (id(record), ANY if isinstance(record, PickledObject) else type)
        known = self._made.get(key)
        if known is None:
            if id(record) in self._open:
                raise self._broken("a value holds itself")
            if len(self._open) > self._limits.nesting:
                raise ArchiveLimitError(
                    f"The values of the pickle nest deeper than {self._limits.nesting}.",
                    member=self._member,
                    hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(nesting=…).",
                )
            self._open.add(id(record))
            try:
                known = self._made[key] = (self._build_new(record, type), record)
            finally:
                self._open.discard(id(record))
        if isinstance(record, PickledObject):
            self._check_class(record, type)
        return known[0]

    def _build_new(self, record: Any, type: Type) -> Any:
        if isinstance(record, PickledObject):
            return self._object(record)
        if isinstance(record, PickledEnum):
            return self._enum(record, type)
        if isinstance(record, tuple):
            return self._tuple(record, type)
        return self._container(record, type)

    # ------------------------------------------------------------------------------------------------------- containers

    def _container(self, record: Any, type: Type) -> Any:
        value = record
        if isinstance(record, PickledTyped):
            value = record.value
            declared = self._type_called(record.type)
            if isinstance(declared, (ListType, DictType)) and declared.is_subtype_of(type):
                type = declared
        if isinstance(value, list) and isinstance(type, (ListType, AnyType)):
            return self._list(value, type.element if isinstance(type, ListType) else ANY)
        if isinstance(value, dict) and isinstance(type, (DictType, AnyType)):
            key, item = (type.key, type.value) if isinstance(type, DictType) else (ANY, ANY)
            return {self._build(k, key): self._build(v, item) for k, v in value.items()}
        raise _Misfit(record, type)

    def _list(self, items: list[Any], element: Type) -> list[Any]:
        simple = _SIMPLE.get(element.kind)
        if simple is not None and all(item.__class__ in simple for item in items):
            return list(items)
        return [self._build(item, element) for item in items]

    def _tuple(self, record: tuple[Any, ...], type: Type) -> Any:
        if isinstance(type, AnyType):
            return tuple(self._build(item, ANY) for item in record)
        if not isinstance(type, TupleType) or len(type.elements) != len(record):
            raise _Misfit(record, type)
        items = [self._build(item, element) for item, element in zip(record, type.elements, strict=True)]
        return tuple(items) if type.fields is None else new_named_tuple(type)(*items)

    def _enum(self, record: PickledEnum, type: Type) -> Any:
        found = self._class_called(record.name)
        if not isinstance(found, EnumType) or not found.is_subtype_of(type):
            raise _Misfit(record, type)
        for member in found.members.values():
            value = getattr(member, "value", member)
            if value == record.value and value.__class__ is record.value.__class__:
                return member
        raise self._broken(f"the enum '{record.name}' has no member of the value {printable(repr(record.value))}")

    # ---------------------------------------------------------------------------------------------------------- objects

    def _check_class(self, record: PickledObject, type: Type) -> None:
        if isinstance(type, AnyType):
            return
        found = self._class_called(record.name)
        if found is type:
            return
        if not isinstance(found, ClassType) or not found.is_subtype_of(type):
            raise _Misfit(record, type)

    def _object(self, record: PickledObject) -> Any:
        if record.name.startswith(LIBRARY_CLASSES):
            state = self._build(record.state, ANY)
            self._check_content(state)
            return make_object(record.name, state, self._type_of(record.state, state), self._allow_setstate)
        type = self._class_called(record.name)
        if not isinstance(type, ClassType):
            raise self._broken(f"there is an object of '{record.name}', which is not a class")
        made = self._module_of(type) if type.is_module else new_object(type)
        setter = type.methods.get("__setstate__")
        if setter is not None and "__getstate__" in type.methods:
            self._set_state(setter, made, self._state_for(setter, record.state))
            self._adopt(made, type)
        else:
            self._fill(made, type, record.state)
        return made

    def _check_content(self, state: object) -> None:
        """Check that no tensor in the state of a C++ object is larger than its storage; one of up to 2^20 bytes may be.

        Raises:
            CorruptArchiveError: a tensor is larger.
        """
        if isinstance(state, torch.Tensor):
            if state.numel() * state.element_size() > max(_SMALL, state.untyped_storage().nbytes()):
                raise self._broken("a tensor of an object has more elements than its storage")
        elif isinstance(state, (list, tuple, dict)):
            for item in state.values() if isinstance(state, dict) else state:
                self._check_content(item)

    def _state_for(self, setter: GraphFunction, state: object) -> Any:
        arguments = setter.schema.arguments
        if len(arguments) != 2:
            raise self._broken(f"'{setter.name}' takes more than a state")
        return self._build(state, arguments[1].type)

    def _module_of(self, type: ClassType) -> ScriptModule:
        python_class = _CONTAINERS.get(type.name)
        has_items = python_class is not None or any(name in type.methods for name in _MAGIC)
        cls = ScriptContainer if has_items else ScriptModule
        made = cls._of_type(type, python_class=python_class)
        made._register_hooks()
        return made

    def _fill(self, made: Any, type: ClassType, state: object) -> None:
        if state is UNSET or not isinstance(state, dict):
            raise self._broken(f"an object of '{type.name}' has no attributes")
        for name in state:
            if name not in type.attributes:
                raise self._broken(f"an object of '{type.name}' has an attribute {name!r}, which its class lacks")
        for name, slot in type.attributes.items():
            if name not in state:
                raise self._broken(f"an object of '{type.name}' lacks its attribute '{name}'")
            _put(made, type, slot, self._build(state[name], slot.type))

    def _adopt(self, made: Any, type: ClassType) -> None:
        """Check the object that ``__setstate__`` has initialized, and register its parameters, buffers and submodules.
        The class of parameters is changed to ``Parameter`` in place.

        Raises:
            CorruptArchiveError: ``__setstate__`` has not set an attribute.
        """
        for name, slot in type.attributes.items():
            try:
                value = getattr(made, name)
            except AttributeError:
                raise self._broken(f"'__setstate__' of '{type.name}' has not set '{name}'") from None
            _put(made, type, slot, value)

    # ------------------------------------------------------------------------------------------------------------ types

    def _class_called(self, name: str) -> Type:
        found = self._importer.find_type(name)
        if found is None:
            raise self._broken(f"there is an object of '{name}', which the code of the archive does not define")
        return found

    def _type_of(self, record: object, value: Any) -> Type:
        """Return the type of a value. The record may show more than the value: the element type of an empty list."""
        if isinstance(record, PickledTyped):
            return self._type_called(record.type)
        if isinstance(record, tuple):
            return TupleType(tuple(self._type_of(part, item) for part, item in zip(record, value, strict=True)))
        return type_of_value(value)

    def _type_called(self, text: str) -> Type:
        found = self._types.get(text)
        if found is None:
            depth = most = 0
            for character in text:
                depth += (character == "[") - (character == "]")
                most = max(most, depth)
            if most > self._limits.type_nesting:
                raise ArchiveLimitError(
                    f"A type nests deeper than {self._limits.type_nesting}.",
                    member=self._member,
                    hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(type_nesting=…).",
                )
            try:
                found = self._types[text] = self._importer.resolve_type(text)
            except CompileError as error:
                raise self._broken(f"'{printable(text)}' is not a type: {error.message}") from None
        return found

    def _broken(self, problem: str) -> CorruptArchiveError:
        return CorruptArchiveError(f"The pickle does not fit the program: {problem}.", member=self._member)


def _put(made: Any, type: ClassType, slot: ClassAttribute, value: Any) -> None:
    """Set the attribute ``slot`` of a new object or module; in a module as parameter, buffer, submodule or
    attribute."""
    name = slot.name
    if not type.is_module:
        made.__dict__[name] = value
    elif slot.kind == "parameter" and (value is None or isinstance(value, torch.Tensor)):
        made.__dict__.pop(name, None)
        made._parameters[name] = _as_parameter(value)
    elif slot.kind == "buffer" and (value is None or isinstance(value, torch.Tensor)):
        made.__dict__.pop(name, None)
        made._buffers[name] = value
    elif isinstance(slot.type, (ClassType, InterfaceType)) and slot.type.is_module:
        made._modules[name] = value
    else:
        made.__dict__[name] = value


def _as_parameter(value: torch.Tensor | None) -> torch.Tensor | None:
    """Change the class of ``value`` to ``Parameter`` and return ``value`` itself, since other parts of the program may
    refer to the object. Return None for None."""
    if value is not None and not isinstance(value, torch.nn.Parameter):
        value.__class__ = torch.nn.Parameter
    return value


def _describe(record: object) -> str:
    if record is None:
        return "None"
    if isinstance(record, (TensorRecord, SparseRecord)):
        return TENSOR.annotation
    if isinstance(record, PickledTyped):
        return printable(record.type)
    if isinstance(record, (PickledObject, PickledEnum)):
        return f"an object of '{printable(record.name)}'"
    if isinstance(record, str):
        return STRING.annotation
    return type_of_value(record).annotation if record.__class__ in _PLAIN else f"a {record.__class__.__name__}"


_PLAIN: Final = frozenset({int, float, complex, bool, str, torch.device})

_SIMPLE: Final[dict[str, frozenset[type]]] = {
    IntType.kind: frozenset({int}),
    FloatType.kind: frozenset({float}),
    ComplexType.kind: frozenset({complex}),
    BoolType.kind: frozenset({bool}),
    StringType.kind: frozenset({str}),
    DeviceType.kind: frozenset({torch.device}),
    NoneType.kind: frozenset({type(None)}),
    NumberType.kind: frozenset({int, float, complex}),
    QSCHEME.kind: frozenset({int, torch.qscheme}),
}
"""Types whose values need no conversion, and the classes of these values."""

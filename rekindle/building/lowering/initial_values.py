"""Emission of the function that initializes the attributes of a new instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from torch import Tensor

from rekindle.building.lowering.constants import scalar_type
from rekindle.building.lowering.modules import fields_text, word_place
from rekindle.building.lowering.parts import MISSING, LibraryParts
from rekindle.building.lowering.representation import NotBuildable, is_object
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.runtime import dicts, instances, lists
from rekindle.building.runtime.memory import fields_of_record
from rekindle.building.runtime.objects import retain
from rekindle.building.weights import Weights
from rekindle.ir.graph import Node
from rekindle.ir.types import ClassType, DictType, ListType, OptionalType, TensorType, TupleType, Type


def write_initializer(parts: LibraryParts, weights: Weights, name: str) -> None:
    """Add the function ``void @name(ptr %context)``, which initializes the attributes of an instance, to ``parts``. The
    tensors among the attributes are added to ``weights``.

    Raises:
        NotBuildable: a value contains itself, does not have its declared type, or cannot be represented.
    """
    w = ProgramWriter(parts, _no_operators)
    w.start_block("start")
    storage = w.emit(f"getelementptr i64, ptr %context, i64 {field_index(instances.Instance, 'weights')}")
    storage = w.emit(f"load ptr, ptr {storage}")
    shared: dict[tuple[Any, ...], str] = {}
    for index, slot in enumerate(parts.attributes.known):
        if slot.value is MISSING:
            continue
        register = _value(w, weights, storage, shared, slot.value, slot.type, slot.path)
        w.line(f"store i64 {w.word_of(register, slot.type)}, ptr {word_place(w, index)}")
    w.line("ret void")
    body = "\n".join(w.lines)
    parts.definitions.append(f"define internal void @{name}(ptr %context) {{\n{body}\n}}\n")


def _no_operators(node: Node) -> Any:
    raise AssertionError("initial values hold no operators")


def _value(
    w: ProgramWriter,
    weights: Weights,
    storage: str,
    shared: dict[tuple[Any, ...], str],
    value: Any,
    type: Type,
    path: str,
) -> str:
    """Emit the creation of a Python value; return its register, whose reference the caller owns. Objects that occur
    several times are created once, and recorded in ``shared``.

    Raises:
        NotBuildable: the value contains itself.
    """

    def inner(each: Any, part: Type) -> str:
        return w.word_of(_value(w, weights, storage, shared, each, part, path), part)

    if isinstance(type, OptionalType):
        if value is None:
            return "null"
        if is_object(type.element):
            return _value(w, weights, storage, shared, value, type.element, path)
    if isinstance(value, list | dict) or (isinstance(type, ClassType) and not type.is_module):
        known = shared.get((id(value),))
        if known == _UNFINISHED:
            raise NotBuildable(f"the attribute '{path}' holds an object that holds itself")
        if known is not None:
            w.call(retain, known)
            return known
        shared[id(value),] = _UNFINISHED
        made = _new_value(w, weights, storage, shared, value, type, path, inner)
        shared[id(value),] = made
        return made
    return _new_value(w, weights, storage, shared, value, type, path, inner)


_UNFINISHED: Final = "unfinished"
"""The register of an object whose fields are being written."""


def _new_value(
    w: ProgramWriter,
    weights: Weights,
    storage: str,
    shared: dict[tuple[Any, ...], str],
    value: Any,
    type: Type,
    path: str,
    inner: Callable[[Any, Type], str],
) -> str:
    """Emit the creation of a new value. ``inner`` emits an element, and returns its 64-bit word.

    Raises:
        NotBuildable: the value does not have the declared type.
    """
    match type:
        case TensorType():
            return _tensor(w, weights, storage, shared, value, path)
        case ListType():
            made = w.call(lists.list_of, w.parts.constants.descriptor(type.element), str(len(value)))
            for each in value:
                w.call(lists.append, made, inner(each, type.element))
            return made
        case DictType():
            made = w.call(
                dicts.dict_of, w.parts.constants.descriptor(type.key), w.parts.constants.descriptor(type.value)
            )
            for key, each in value.items():
                w.call(dicts.dict_set, made, inner(key, type.key), inner(each, type.value))
            return made
        case TupleType():
            made = w.call(dicts.new_record, w.parts.constants.descriptor(type), str(len(value)))
            fields = w.call(fields_of_record, made)
            for index, (each, part) in enumerate(zip(value, type.contained, strict=True)):
                w.line(f"store i64 {inner(each, part)}, ptr {w.emit(f'getelementptr i64, ptr {fields}, i64 {index}')}")
            return made
        case ClassType() if not type.is_module:
            made = w.call(dicts.new_record, fields_text(w, type), str(len(type.attributes)))
            fields = w.call(fields_of_record, made)
            for index, (name, attribute) in enumerate(type.attributes.items()):
                word = inner(getattr(value, name), attribute.type)
                w.line(f"store i64 {word}, ptr {w.emit(f'getelementptr i64, ptr {fields}, i64 {index}')}")
            return made
        case _:
            if isinstance(value, Tensor):
                raise NotBuildable(f"the attribute '{path}' is a Tensor, and its type {type} is another")
            return w.of_word(w.parts.constants.word(value, type), type)


def _tensor(
    w: ProgramWriter, weights: Weights, storage: str, shared: dict[tuple[Any, ...], str], value: Any, path: str
) -> str:
    if not isinstance(value, Tensor):
        raise NotBuildable(f"the attribute '{path}' is not a Tensor, but a {type(value).__name__}")
    key = (value.data_ptr(), value.dtype, tuple(value.shape), value.stride(), value.is_conj(), value.is_neg())
    if key in shared and value.numel():
        w.call(retain, shared[key])
        return shared[key]
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    start = weights.add(value.detach())
    layout = w.parts.constants.words([*value.shape, *value.stride()])
    shared[key] = w.call(
        instances.weight, "%context", storage, str(start), str(scalar_type(value.dtype)), str(value.dim()), layout
    )
    return shared[key]

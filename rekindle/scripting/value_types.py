"""Types of Python values, inferred from the value: for attributes of modules without a declaration."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from rekindle.errors import CompileError
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    GENERATOR,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    NONE,
    QSCHEME_NUMBER,
    STREAM,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    optional,
    unify_all,
)
from rekindle.ops.tensor.torchbind_objects import class_of_library_object, type_of_python_class
from rekindle.scripting.annotations import enum_type, find_type, is_named_tuple, named_tuple_type

_SIMPLE: tuple[tuple[type, Type], ...] = (
    (bool, BOOL),
    (int, INT),
    (float, FLOAT),
    (complex, COMPLEX),
    (str, STRING),
    (type(None), NONE),
    (torch.Tensor, TENSOR),
    (torch.device, DEVICE),
    (torch.dtype, DTYPE),
    (torch.layout, LAYOUT),
    (torch.memory_format, MEMORY_FORMAT),
    (torch.qscheme, QSCHEME_NUMBER),
    (torch.Generator, GENERATOR),
    (torch.Stream, STREAM),
)


@dataclass(slots=True, frozen=True)
class NotInferable:
    """The reason why a value has no type: a clause for an error message, without capital letter and full stop."""

    reason: str


def infer(value: object) -> Type | NotInferable:
    """Return the type of ``value``, or the reason why it has none. The type of a container is inferred from its
    elements; an empty list or dict has none."""
    if isinstance(value, enum.Enum):
        return _guarded(lambda: enum_type(type(value)))
    library_class = type_of_python_class(type(value))
    if library_class is not None:
        return library_class  # before Stream, from which that of CUDA is derived
    for python, simple in _SIMPLE:
        if isinstance(value, python):
            return simple
    if isinstance(value, tuple) and is_named_tuple(type(value)):
        return _named_tuple(value)
    if isinstance(value, torch.Size):
        return ListType(INT, "Size")
    if isinstance(value, tuple):
        return _tuple(value)
    if isinstance(value, list):
        element = _common("list", "elements", value)
        return element if isinstance(element, NotInferable) else ListType(element)
    if isinstance(value, dict):
        return _dict(value)
    type_of_object = getattr(value, "_rekindle_type", None)
    if isinstance(type_of_object, ClassType) and not type_of_object.is_module:
        return type_of_object
    if isinstance(value, torch.ScriptObject):
        return class_of_library_object(value)
    if isinstance(value, torch.nn.Module):
        return NotInferable(
            f"the module '{type(value).__name__}' is in a plain Python container, so that it is not part of the "
            "module; use nn.ModuleList or nn.ModuleDict"
        )
    return _object(value)


def of_own_class(declared: Type, value: object) -> Type:
    """Return ``declared`` with the declared class replaced by the actual class of the object ``value``, so that the
    methods that Python would call are compiled. So are the classes in an Optional, and those of the items of a list or
    the values of a dict if all have the same."""
    if value is None:
        return declared
    if isinstance(declared, OptionalType):
        return optional(of_own_class(declared.element, value))
    if isinstance(declared, ListType) and isinstance(value, (list, tuple)):
        return declared.with_contained([_of_own_classes(declared.element, value)])
    if isinstance(declared, DictType) and isinstance(value, dict):
        return declared.with_contained([declared.key, _of_own_classes(declared.value, list(value.values()))])
    base = declared.python_class if isinstance(declared, ClassType) else None
    if base is None or type(value) is base or not isinstance(value, base):
        return declared
    found = _object(value)
    return declared if isinstance(found, NotInferable) else found


def _of_own_classes(declared: Type, values: Sequence[object]) -> Type:
    found = {of_own_class(declared, value) for value in values}
    return found.pop() if len(found) == 1 else declared


def _object(value: object) -> Type | NotInferable:
    reason = f"a value of the Python class '{_class_name(value)}' cannot be part of a compiled program"
    if type(value).__module__ == "numpy":
        reason += "; make a tensor of it with torch.as_tensor"
    try:
        found = find_type(type(value))
    except CompileError as error:
        return NotInferable(f"{reason}: {error.message}")
    return found if isinstance(found, ClassType) else NotInferable(reason)


def _guarded(make: Callable[[], Type]) -> Type | NotInferable:
    try:
        return make()
    except CompileError as error:
        return NotInferable(error.message)


def _named_tuple(value: tuple[object, ...]) -> Type | NotInferable:
    """Return the type of a NamedTuple; the reason if it has none, or a field that is declared a Tensor holds another
    object, as a field without an annotation may."""
    declared = _guarded(lambda: named_tuple_type(type(value)))
    if not isinstance(declared, TupleType) or declared.fields is None:
        return declared
    for name, type_of_field, item in zip(declared.fields, declared.elements, tuple.__iter__(value), strict=True):
        if type_of_field == TENSOR and not isinstance(item, torch.Tensor):
            return NotInferable(
                f"the field '{name}' of the named tuple '{type(value).__name__}' is declared a Tensor, as fields "
                f"without an annotation are, and holds an object of class '{type(item).__name__}'"
            )
    return declared


def _tuple(value: tuple[object, ...]) -> Type | NotInferable:
    elements: list[Type] = []
    # A class derived from tuple may refuse to be walked over; what it holds is a tuple all the same.
    for index, item in enumerate(tuple.__iter__(value)):
        found = infer(item)
        if isinstance(found, NotInferable):
            return NotInferable(f"element {index} of the tuple: {found.reason}")
        elements.append(found)
    return TupleType(tuple(elements))


def _dict(value: dict[object, object]) -> Type | NotInferable:
    key = _common("dict", "keys", list(value))
    if isinstance(key, NotInferable):
        return key
    item = _common("dict", "values", list(value.values()))
    return item if isinstance(item, NotInferable) else DictType(key, item)


def _common(what: str, part: str, values: list[object]) -> Type | NotInferable:
    if not values:
        return NotInferable(f"an empty {what} does not determine the type of its {part}")
    types: list[Type] = []
    for value in values:
        found = infer(value)
        if isinstance(found, NotInferable):
            return NotInferable(f"among the {part} of the {what}: {found.reason}")
        types.append(found)
    common = unify_all(types)
    if common is None:
        kinds = ", ".join(dict.fromkeys(type.annotation for type in types))
        return NotInferable(f"the {part} of the {what} are of different types ({kinds})")
    return common


def _class_name(value: object) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"

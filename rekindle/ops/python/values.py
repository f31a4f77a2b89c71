"""Values at run time: what type one has, whether it is of a type, and objects of script classes.

What a value of each type is:

=====================================  ===============================================================================
Tensor, int, float, complex, bool,     Python's (a Scalar is an int, a float or a complex)
str, None, List, Dict, Tuple
Device, Generator, Stream              ``torch``'s
dtypes, layouts, memory formats        ints, by the tables of :mod:`rekindle.ir.scalar_types`
NamedTuple                             an instance of the type's Python class, else of :func:`named_tuple_class`
Enum                                   the Python member
class                                  an instance of the type's Python class, else a :class:`ScriptObject`
module                                 an ``nn.Module``
=====================================  ===============================================================================
"""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.ir.attributes import infer_type
from rekindle.ir.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceType,
    DictType,
    EnumType,
    FloatType,
    FutureType,
    GeneratorType,
    InterfaceType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
    kept_type,
)
from rekindle.ops.tensor.torchbind_objects import class_of_library_object, type_of_python_class

# ------------------------------------------------------------------------------------------------------------- objects


class ScriptObject:
    """An object of a script class without a Python class, such as one from an archive. Its attributes are plain Python
    attributes."""

    def __init__(self, type: ClassType) -> None:
        self.__dict__["script_type"] = type

    def __repr__(self) -> str:
        return f"<object of {self.__dict__['script_type'].name}>"


def script_class(value: object) -> ClassType | None:
    """Return the script class of an object: a :class:`ScriptObject`, a module of a program, an object of a Python class
    that a program has compiled, or of a class that a library defines in C++. Return None for others."""
    if type(value) in _NEVER_OBJECTS:
        return None
    if isinstance(value, torch.ScriptObject):
        return class_of_library_object(value)
    found = getattr(value, "script_type", None) or kept_type(type(value)) or type_of_python_class(type(value))
    return found if isinstance(found, ClassType) else None


_NEVER_OBJECTS: Final = frozenset(
    {torch.Tensor, torch.nn.Parameter, int, float, complex, bool, str, list, tuple, dict, type(None)}
)
"""Classes whose objects have no script class, of which most values are."""


def new_object(type: ClassType) -> object:
    """Return an object of a class whose ``__init__`` has not run."""
    python_class: Any = type.python_class
    if python_class is not None:
        return python_class.__new__(python_class)
    return ScriptObject(type)


_named_tuples: Final[dict[tuple[str, tuple[str, ...]], type]] = {}


def named_tuple_class(type: TupleType) -> Any:
    """Return the Python class of a NamedTuple type: its own, else one that is shared by types with equal names and
    fields."""
    if type.python_class is not None:
        return type.python_class
    assert type.fields is not None
    name = (type.name or "").rpartition(".")[2]
    if not name.isidentifier():
        name = "NamedTuple"
    key = (type.name or "", type.fields)
    found = _named_tuples.get(key)
    if found is None:
        # The names come from outside (archives, results of operators): what Python refuses becomes _0, _1 …
        found = _named_tuples[key] = namedtuple(name, type.fields, rename=True)
    return found


def new_named_tuple(type: TupleType) -> Callable[..., Any]:
    """Return a constructor of a NamedTuple from its fields. The classes in ``torch.return_types`` take them as one
    tuple."""
    cls = named_tuple_class(type)
    return (lambda *items: cls(items)) if hasattr(cls, "n_sequence_fields") else cls


def fields_of(value: tuple[object, ...]) -> tuple[str, ...] | None:
    """Return the names of a NamedTuple's fields, of a class in ``torch.return_types``, too; None for a plain tuple."""
    found = getattr(type(value), "_fields", None) or getattr(type(value), "__match_args__", None)
    return found if isinstance(found, tuple) else None


# ----------------------------------------------------------------------------------------------------- type of a value


def type_of_value(value: object) -> Type:
    """Return the type of a value; ``Any`` for modules and objects of classes that no program has compiled, and where
    elements have different types."""
    found = script_class(value)
    if found is not None:
        return found
    if isinstance(value, tuple) and (fields := fields_of(value)) is not None:
        elements = tuple(type_of_value(item) for item in value)
        return TupleType(elements, type(value).__name__, fields, (), type(value))
    return infer_type(value) or ANY


def describe(value: object) -> str:
    """Return the type of a value in words for an error: ``List[int]``, else the name of its class."""
    if isinstance(value, torch.Tensor):
        return "Tensor"
    found = infer_type(value)
    return type(value).__qualname__ if found is None else found.annotation


# ----------------------------------------------------------------------------------------------------- is it of a type

Test = Callable[[Any, Any], bool]


def value_matches(value: object, type: Type) -> bool:
    """Return whether ``value`` is of ``type`` without conversion: an int is not a float, and a bool not an int. Every
    element of a container is checked. The result is True for type variables, and False for types that have no test,
    such as functions."""
    test = _TESTS.get(type.kind)
    return test is not None and test(value, type)


def _is_class(value: object, type: ClassType) -> bool:
    found = script_class(value)
    if found is not None or type.python_class is None:
        return found is type
    return isinstance(value, type.python_class)


def _is_interface(value: object, type: InterfaceType) -> bool:
    found = script_class(value)
    return found is not None and found.is_subtype_of(type)


def _is_enum(value: object, type: EnumType) -> bool:
    if type.python_class is not None:
        return isinstance(value, type.python_class)
    return isinstance(value, enum.Enum) and value.name in type.members


def _is_tuple(value: object, type: TupleType) -> bool:
    if not isinstance(value, tuple) or len(value) != len(type.elements):
        return False
    if type.python_class is not None and not isinstance(value, type.python_class):
        return False
    if type.python_class is None and type.fields is not None and fields_of(value) != type.fields:
        return False
    return all(value_matches(item, element) for item, element in zip(value, type.elements, strict=True))


def _is_list(value: object, type: ListType) -> bool:
    return isinstance(value, list) and all(value_matches(item, type.element) for item in value)


def _is_dict(value: object, type: DictType) -> bool:
    return isinstance(value, dict) and all(
        value_matches(key, type.key) and value_matches(item, type.value) for key, item in value.items()
    )


def _is_object(value: object, type: Type) -> bool:
    simple = (torch.Tensor, bool, int, float, complex, str, list, dict, tuple, enum.Enum, torch.device)
    return value is not None and not isinstance(value, simple)


LATER: Final[dict[str, list[type]]] = {FutureType.kind: [torch.futures.Future], AwaitType.kind: []}
"""The classes of futures and awaits, by the kinds of their types. The modules that define them add them."""


def _is_later(value: Any, type: FutureType | AwaitType) -> bool:
    """Return whether the value is a future or an await. If it is done, its result must be of the declared type,
    unless the call failed."""
    if not any(isinstance(value, cls) for cls in LATER[type.kind]):
        return False
    if type.element == ANY or not _is_there(value):
        return True
    try:
        result = value.wait()
    except Exception:  # the future of a call that failed has no value, of any type: each wait raises the error
        return True
    return value_matches(result, type.element)


def _is_there(value: Any) -> bool:
    return bool(value.is_nowait() if hasattr(value, "is_nowait") else value.done())


_TESTS: Final[dict[str, Test]] = {
    FutureType.kind: _is_later,
    AwaitType.kind: _is_later,
    ANY.kind: lambda value, type: True,
    VarType.kind: lambda value, type: True,
    NoneType.kind: lambda value, type: value is None,
    TensorType.kind: lambda value, type: isinstance(value, torch.Tensor) and type.matches(value),
    IntType.kind: lambda value, type: isinstance(value, int) and not isinstance(value, bool),
    FloatType.kind: lambda value, type: isinstance(value, float),
    ComplexType.kind: lambda value, type: isinstance(value, complex),
    BoolType.kind: lambda value, type: isinstance(value, bool),
    NumberType.kind: lambda value, type: isinstance(value, (int, float, complex)) and not isinstance(value, bool),
    StringType.kind: lambda value, type: isinstance(value, str),
    DeviceType.kind: lambda value, type: isinstance(value, torch.device),
    GeneratorType.kind: lambda value, type: isinstance(value, torch.Generator),
    ListType.kind: _is_list,
    DictType.kind: _is_dict,
    TupleType.kind: _is_tuple,
    OptionalType.kind: lambda value, type: value is None or value_matches(value, type.element),
    UnionType.kind: lambda value, type: any(value_matches(value, member) for member in type.members),
    ClassType.kind: _is_class,
    InterfaceType.kind: _is_interface,
    EnumType.kind: _is_enum,
    ANY_LIST.kind: lambda value, type: isinstance(value, list),
    ANY_TUPLE.kind: lambda value, type: isinstance(value, tuple),
    ANY_ENUM.kind: lambda value, type: isinstance(value, enum.Enum),
    ANY_CLASS.kind: _is_object,
}


def is_instance(value: object, type: Type) -> bool:
    """Return whether ``value`` is an instance of ``type``, a type of the IR, as Python's ``isinstance``. It differs
    from :func:`value_matches` for True, which is an int too.

    Raises:
        TypeError: ``type`` declares what a future returns, and ``value`` is a future that is not done.
    """
    if isinstance(type, (FutureType, AwaitType)) and type.element != ANY and _is_later(value, type):
        if not _is_there(value):
            raise TypeError(f"whether this is a {type.annotation} shows when it is done; wait for it first")
    return value_matches(value, type) or (isinstance(value, bool) and isinstance(type, IntType))

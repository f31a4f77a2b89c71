"""Conversion of values from Python to the declared types, and of results to Python."""

from __future__ import annotations

import builtins
import enum
import operator
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

import torch

from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir.mangling import demangled
from rekindle.ir.scalar_types import NUMBERED_CLASSES, PYTHON_OBJECTS, number_of
from rekindle.ir.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    GENERATOR,
    NONE,
    NUMBER,
    QSCHEME,
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
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    differs_in_python as differs_in_python,
    is_open_named_tuple,
    kept_type,
    union_members,
)
from rekindle.ops.python.values import ScriptObject, fields_of, named_tuple_class, new_named_tuple, new_object
from rekindle.ops.tensor.torchbind_objects import class_of_library_object, python_class_of, type_of_python_class
from rekindle.runtime.calls.number_conversion import (
    DROP_IN_RULES,
    PYTHON_RULES,
    TORCHSCRIPT_RULES,
    Converter,
    NoMatch as NoMatch,
    NumberRules,
)
from rekindle.runtime.calls.type_checks import TypeCheck, exact_class, is_checkable, type_check


def converter_for(type: Type, numbers: NumberRules = PYTHON_RULES) -> Converter:
    """Return the converter of Python values to ``type``. ``numbers`` are the rules for numbers."""
    make = _MAKERS.get(type.kind)
    if make is None:
        return _pass
    convert = make(type, numbers)
    return _checked_first(type, convert) if type.kind in _CONTAINERS and is_checkable(type) else convert


def _checked_first(type: Type, convert: Converter) -> Converter:
    """Return a converter that only converts values that machine code does not recognize as values of ``type``."""
    check: TypeCheck | None = None

    def checked(value: Any) -> Any:
        nonlocal check
        if check is None:
            check = type_check(type)
        return value if check is not None and check(value) else convert(value)

    return checked


_CONTAINERS: Final = frozenset({DictType.kind, ListType.kind, OptionalType.kind, TupleType.kind})


def takes_conversion(type: Type) -> bool:
    """Return whether there is a converter for values of ``type``; values of other types are passed as they are."""
    return type.kind in _MAKERS


class_of_python_object: Final = LayerHook[Callable[[type], Type | None]]("rekindle.scripting", lambda cls: None)
"""Return the type of the objects of a Python class that no program has used yet; None if it is not a script class."""


def class_of(value: object) -> Type | None:
    """Return the type of a module, of an object of a script class or a TorchBind class, or of a member of an enum or a
    NamedTuple that a program has used; None for other objects."""
    if isinstance(value, ScriptObject):
        found = value.__dict__["script_type"]
    elif isinstance(value, torch.ScriptObject):
        found = class_of_library_object(value)
    else:
        found = getattr(value, "_rekindle_type", None) or kept_type(type(value)) or type_of_python_class(type(value))
    return found if isinstance(found, Type) else None


def is_namesake(cls: type, type: ClassType | EnumType) -> bool:
    """Return whether a Python class has the name of a class of a loaded program, and so represents the same class."""
    made = type.python_class
    if made is None or not made.__module__.startswith("__torch__"):
        return False
    module = "" if cls.__module__ == "__main__" else f"{cls.__module__}."
    return demangled(type.name) == f"__torch__.{module}{cls.__name__}"


# ------------------------------------------------------------------------------------------------------- simple types


def _pass(value: Any) -> Any:
    return value


def _any(type: Type, numbers: NumberRules) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, NUMBERED_CLASSES):
            return number_of(value)
        return value

    return convert if numbers is TORCHSCRIPT_RULES else _pass


def _tensor(type: TensorType, numbers: NumberRules) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and (not type.is_refined or type.matches(value)):
            return value
        raise NoMatch(type, value)

    return convert


def _device(type: Type, numbers: NumberRules) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, torch.device):
            return value
        if isinstance(value, str):
            try:
                return torch.device(value)
            except RuntimeError:
                pass
        raise NoMatch(type, value)

    return convert


def _instance_of(*classes: type) -> Callable[[Type, NumberRules], Converter]:
    def make(type: Type, numbers: NumberRules) -> Converter:
        def convert(value: Any) -> Any:
            if isinstance(value, classes):
                return value
            raise NoMatch(type, value)

        return convert

    return make


def _fits(test: Callable[[Any], bool], type: Type) -> Converter:
    def convert(value: Any) -> Any:
        if test(value):
            return value
        raise NoMatch(type, value)

    return convert


# --------------------------------------------------------------------------------------------------------- containers


def _within(convert: Converter, value: Any, path: str) -> Any:
    try:
        return convert(value)
    except NoMatch as why:
        raise NoMatch(why.type, why.value, path + why.path) from None


def _list(type: ListType, numbers: NumberRules) -> Converter:
    element, exact = converter_for(type.element, numbers), {exact_class(type.element)}
    no_lists = _NO_LISTS if numbers is TORCHSCRIPT_RULES else (*_NO_LISTS, set, frozenset)

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            if exact.issuperset(map(_type, value)):
                return value
            items = [_within(element, item, f"[{index}]") for index, item in enumerate(value)]
            return value if all(map(operator.is_, items, value)) else items
        if not isinstance(value, Iterable) or isinstance(value, no_lists):
            raise NoMatch(type, value)
        if getattr(value, "shape", None) == ():
            raise NoMatch(type, value)  # an array that cannot be walked over
        if isinstance(value, deque) and value.maxlen is not None and type.python != f"deque:{value.maxlen}":
            raise NoMatch(type, value)
        return [_within(element, item, f"[{index}]") for index, item in enumerate(value)]

    return convert


_NO_LISTS: Final = (str, bytes, Mapping, torch.Tensor)
"""Iterables that are not taken for lists."""

_type = type


def _set(type: DictType, numbers: NumberRules) -> Converter:
    """Return the converter of a set to a dict; :class:`Binder` applies the program's changes of the dict to the set."""
    key = converter_for(type.key, numbers)

    def convert(value: Any) -> Any:
        if not isinstance(value, Set):
            raise NoMatch(type, value)
        return {_within(key, item, f" at {item!r}"): True for item in value}

    return convert


def _dict(type: DictType, numbers: NumberRules) -> Converter:
    if type.is_set:
        return _set(type, numbers)
    key, item = converter_for(type.key, numbers), converter_for(type.value, numbers)
    exact_keys, exact_items = {exact_class(type.key)}, {exact_class(type.value)}

    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise NoMatch(type, value)
        is_dict = isinstance(value, dict)
        if is_dict and exact_keys.issuperset(map(_type, value)) and exact_items.issuperset(map(_type, value.values())):
            return value
        keys = [_within(key, name, f".keys()[{index}]") for index, name in enumerate(value)]
        items = [_within(item, found, f"[{name!r}]") for name, found in value.items()]
        if is_dict and all(map(operator.is_, keys, value)) and all(map(operator.is_, items, value.values())):
            return value
        return dict(zip(keys, items, strict=True))

    return convert


def _tuple(type: TupleType, numbers: NumberRules) -> Converter:
    elements = [converter_for(element, numbers) for element in type.elements]
    may_be_namesake = type.python_class is None  # the class of an archive, for which the user has one of his own

    def convert(value: Any) -> Any:
        given = _items_of(value)
        if given is None or len(given) != len(elements):
            raise NoMatch(type, value)
        items = [_within(elements[index], item, f"[{index}]") for index, item in enumerate(given)]
        if type.fields is not None and not isinstance(value, named_tuple_class(type)):
            fields = fields_of(value) if isinstance(value, tuple) else None
            if fields is not None and (fields != type.fields or not may_be_namesake):
                raise NoMatch(type, value)
            return new_named_tuple(type)(*items)
        if isinstance(value, tuple) and all(map(operator.is_, items, given)):
            return value
        return tuple(items) if type.fields is None else new_named_tuple(type)(*items)

    return convert


def _items_of(value: object) -> Sequence[Any] | None:
    """Return the contents of a tuple, ignoring overrides of a derived class, or a list itself; None for other
    values."""
    if type(value) is tuple or isinstance(value, list):
        return value
    return tuple(tuple.__iter__(value)) if isinstance(value, tuple) else None


def _optional(type: OptionalType, numbers: NumberRules) -> Converter:
    element, exact = converter_for(type.element, numbers), exact_class(type.element)

    def convert(value: Any) -> Any:
        if value is None or _type(value) is exact:
            return value
        try:
            return element(value)
        except NoMatch as why:
            raise why if why.path else NoMatch(type, value) from None

    return convert


_CONVERSION_RANKS: Final = {"IntType": 1, "FloatType": 2, "ComplexType": 3, "BoolType": 4}


def _conversion_rank(member: Type) -> int:
    """Return the position of a member of a Union among those that a value may be converted to. Types of numbers are
    last, in the order int, float, complex, bool, so that True becomes 1, not 1.0."""
    return _CONVERSION_RANKS.get(member.kind, 0)


def _union(type: UnionType, numbers: NumberRules) -> Converter:
    members = [converter_for(member, numbers) for member in sorted(type.members, key=_conversion_rank)]
    exact = frozenset(filter(None, map(exact_class, type.members)))

    def convert(value: Any) -> Any:
        if _type(value) in exact:
            return value
        converted: list[Any] = []
        for member in members:
            try:
                found = member(value)
            except NoMatch:
                continue
            if found is value:
                return value
            converted.append(found)
        if not converted:
            raise NoMatch(type, value)
        return converted[0]

    return convert


# ------------------------------------------------------------------------------------------------------------ objects


class _Walk(threading.local):
    """The objects whose attributes are still to be checked, during a conversion on this thread."""

    queue: list[tuple[Any, ClassType, str]] | None = None
    twins: dict[int, Any] | None = None

    def twin_of(self, value: Any, type: ClassType, numbers: NumberRules) -> Any:
        """Return an object of ``type`` with the converted attributes of ``value``. An object that occurs several times,
        even within itself, gets one such twin."""
        if self.twins is not None:
            return self._twin(value, type, numbers, self.twins)
        self.twins = {}
        try:
            return self._twin(value, type, numbers, self.twins)
        finally:
            self.twins = None

    def _twin(self, value: Any, type: ClassType, numbers: NumberRules, twins: dict[int, Any]) -> Any:
        if id(value) in twins:
            return twins[id(value)]
        twin = twins[id(value)] = new_object(type)
        for name, slot in type.attributes.items():
            found = _within(converter_for(slot.type, numbers), getattr(value, name, NOT_ASSIGNED), f".{name}")
            object.__setattr__(twin, name, found)
        return twin


_walk = _Walk()

NOT_ASSIGNED = object()
"""In errors, represents an attribute that an object lacks."""


def _class(type: ClassType, numbers: NumberRules) -> Converter:
    """Return the converter for a class. Modules and objects made by programs already have the declared types. Of an
    object of a Python class, and of all objects reachable from it, the attributes are checked, since Python may have
    assigned any value. An object of a derived class is rejected, since it may behave differently."""
    if numbers is DROP_IN_RULES:
        numbers = PYTHON_RULES  # what is converted there is converted for good: the object stays the user's
    slots: dict[ClassType, list[tuple[str, Any, Converter]]] = {}
    python = python_class_of(type.name)
    adopt = None if python is None else python.adopt

    def convert(value: Any) -> Any:
        if adopt is not None and isinstance(value, torch.ScriptObject) and class_of(value) is type:
            return adopt(value)
        if type.is_module or type.python_class is None or _type(value) is not type.python_class:
            if class_of(value) is type:
                return value
            if is_namesake(_type(value), type):
                return _walk.twin_of(value, type, numbers)
            raise NoMatch(type, value)
        if _walk.queue is not None:
            _walk.queue.append((value, type, ""))
            return value
        _walk.queue = [(value, type, "")]
        try:
            _check_objects(_walk.queue, slots, numbers)
        finally:
            _walk.queue = None
        return value

    return convert


def _check_objects(
    queue: list[tuple[Any, ClassType, str]],
    slots: dict[ClassType, list[tuple[str, Any, Converter]]],
    numbers: NumberRules,
) -> None:
    """Check the attributes of the objects in ``queue``, and of objects found on the way, each once. A value that fits
    only after conversion, such as a tuple for a list, is replaced by the converted one; a dtype, a layout or a memory
    format does not fit.

    Raises:
        NoMatch: an attribute does not fit its type.
    """
    seen: set[int] = set()
    while queue:
        value, type, path = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type not in slots:
            slots[type] = [
                (slot.name, exact_class(slot.type), converter_for(slot.type, numbers))
                for slot in type.attributes.values()
            ]
        # A class of an archive need not have an ``__init__``: then its other methods assign before they read.
        is_made = type.python_class is not None and type.python_class.__module__.startswith("__torch__")
        for name, exact, convert in slots[type]:
            found = getattr(value, name, NOT_ASSIGNED)
            if _type(found) is exact or (found is NOT_ASSIGNED and is_made):
                continue
            before = len(queue)
            fitting = _within(convert, found, f"{path}.{name}")
            if fitting is not found:
                if isinstance(found, NUMBERED_CLASSES):
                    raise NoMatch(type.attributes[name].type, found, f"{path}.{name}")
                object.__setattr__(value, name, fitting)  # as a frozen dataclass does itself
            queue[before:] = [(item, owner, f"{path}.{name}") for item, owner, _ in queue[before:]]


def _interface(type: InterfaceType, numbers: NumberRules) -> Converter:
    """Return the converter for an interface: an object of any class with its methods, checked as an object of that
    class."""

    def convert(value: Any) -> Any:
        found = class_of(value)
        if found is None:
            found = class_of_python_object.get()(_type(value))
        if not isinstance(found, ClassType) or not found.is_subtype_of(type):
            raise NoMatch(type, value)
        return converter_for(found, numbers)(value)

    return convert


def _enum(type: EnumType, numbers: NumberRules) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, enum.Enum) and value.name in type.members:
            if type.python_class is None or isinstance(value, type.python_class):
                return value
            member = type.members[value.name]
            if is_namesake(_type(value), type) and isinstance(member, enum.Enum) and member.value == value.value:
                return member
        raise NoMatch(type, value)

    return convert


def _any_class(type: Type, numbers: NumberRules) -> Converter:
    return _fits(lambda value: class_of(value) is not None, type)


_MAKERS: dict[str, Callable[[Any, NumberRules], Converter]] = {
    ANY.kind: _any,
    ANY_CLASS.kind: _any_class,
    ANY_ENUM.kind: _instance_of(enum.Enum),
    ANY_LIST.kind: _instance_of(list),
    ANY_TUPLE.kind: _instance_of(tuple),
    GENERATOR.kind: _instance_of(torch.Generator),
    NONE.kind: _instance_of(type(None)),
    NUMBER.kind: lambda type, numbers: numbers.to_number(type),
    QSCHEME.kind: _instance_of(torch.qscheme),
    BoolType.kind: lambda type, numbers: numbers.to_bool(type),
    ClassType.kind: _class,
    ComplexType.kind: lambda type, numbers: numbers.to_complex(type),
    DeviceType.kind: _device,
    DictType.kind: _dict,
    EnumType.kind: _enum,
    FloatType.kind: lambda type, numbers: numbers.to_float(type),
    InterfaceType.kind: _interface,
    IntType.kind: lambda type, numbers: numbers.to_int(type),
    ListType.kind: _list,
    OptionalType.kind: _optional,
    StringType.kind: _instance_of(str),
    TensorType.kind: _tensor,
    TupleType.kind: _tuple,
    UnionType.kind: _union,
}
"""Makers of converters, by the kind of the type. Values of other types (futures, streams, functions …) are passed
unchecked."""


# ------------------------------------------------------------------------------------------------------------ results


def to_python(value: Any, type: Type) -> Any:
    """Return a result as a Python value: NamedTuples, sets and the like become instances of their class, at any
    depth. Items of lists and dicts are replaced in place.

    Raises:
        TypeError: a value may belong to several members of a Union that Python distinguishes, or is a ``defaultdict``
            whose factory is compiled.
    """
    return value if not differs_in_python(type) else _named(value, type)


def _named(value: Any, type: Type) -> Any:
    if not differs_in_python(type) or value is None:
        return value
    if isinstance(type, IntType):
        return PYTHON_OBJECTS[type.python_name][value] if isinstance(value, int) else value
    if isinstance(type, TupleType) and isinstance(value, tuple):
        items = [_named(item, element) for item, element in zip(value, type.elements, strict=True)]
        if type.fields is None:
            if all(map(operator.is_, items, value)):
                return value
            return tuple(items) if fields_of(value) is None else tuple.__new__(builtins.type(value), items)
        is_open = is_open_named_tuple(type) and fields_of(value) == type.fields
        if (is_open or isinstance(value, named_tuple_class(type))) and all(map(operator.is_, items, value)):
            return value
        return new_named_tuple(replace(type, python_class=builtins.type(value)) if is_open else type)(*items)
    if isinstance(type, OptionalType):
        return _named(value, type.element)
    if isinstance(type, UnionType):
        return _named(value, _member_of(value, type))
    if isinstance(type, ListType) and isinstance(value, list):
        value[:] = [_named(item, type.element) for item in value]
        return _as_sequence(value, type) if type.python else value
    if isinstance(type, DictType) and isinstance(value, dict):
        if type.is_set:
            return set(value) if type.python == "set" else frozenset(value)
        value.update({key: _named(item, type.value) for key, item in value.items()})
        if type.python and builtins.type(value) is dict:
            return _as_class(value, type)
    return value


def _member_of(value: Any, type: UnionType) -> Type:
    """Return the member of a Union to which a value belongs, by the classes of the value and its contents; NoneType if
    no member fits.

    Raises:
        TypeError: several members fit, for which the value would be converted to different Python classes.
    """
    fitting = [member for member in type.members if _may_be(value, member)]
    if not fitting:
        return NONE
    if not all(_is_shown_alike(value, fitting[0], member) for member in fitting[1:]):
        raise TypeError(
            f"the result is a {' or a '.join(member.annotation for member in fitting)}, which a program does not "
            "distinguish\nHint: return values of one class"
        )
    return fitting[0]


def _may_be(value: Any, type: Type) -> bool:
    """Return whether ``value``, as programs represent it, may have the type, by the classes of the value and its
    contents."""
    if isinstance(type, (OptionalType, UnionType)):
        return any(_may_be(value, member) for member in union_members(type))
    if isinstance(type, TupleType):
        if not isinstance(value, tuple) or len(value) != len(type.elements) or fields_of(value) != type.fields:
            return False
        return all(map(_may_be, value, type.elements))
    if isinstance(type, ListType):
        return isinstance(value, list) and all(_may_be(item, type.element) for item in value)
    if isinstance(type, DictType):
        if not isinstance(value, dict) or not all(_may_be(key, type.key) for key in value):
            return False
        return all(_may_be(item, type.value) for item in value.values())
    exact = exact_class(type)
    if exact is not None:
        return isinstance(value, torch.Tensor) if exact is torch.Tensor else builtins.type(value) is exact
    return value is None if type == NONE else value is not None and not isinstance(value, (tuple, list, dict))


def _is_shown_alike(value: Any, a: Type, b: Type) -> bool:
    """Return whether ``value``, which may have either type, is converted to the same Python classes for both."""
    if a == b or not (differs_in_python(a) or differs_in_python(b)):
        return True
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return a.is_class_of(b) and all(map(_is_shown_alike, value, a.elements, b.elements))
    if isinstance(a, ListType) and isinstance(b, ListType):
        return a.python == b.python and all(_is_shown_alike(item, a.element, b.element) for item in value)
    if isinstance(a, DictType) and isinstance(b, DictType):
        return a.python == b.python and all(_is_shown_alike(item, a.value, b.value) for item in value.values())
    return False


def _as_sequence(value: list[Any], type: ListType) -> Any:
    """Convert a list to its class in Python, such as a deque or a tuple."""
    if type.is_tuple:
        return tuple(value) if type.python == "tuple" else torch.Size(value)
    most = type.python.partition(":")[2]
    return deque(value, int(most)) if most else deque(value)


def _as_class(value: dict[Any, Any], type: DictType) -> Any:
    """Convert a dict to its class in Python: an OrderedDict, a Counter or a defaultdict.

    Raises:
        TypeError: the type is a ``defaultdict`` whose factory is compiled.
    """
    if type.python == "OrderedDict":
        return OrderedDict(value)
    if type.python == "Counter":
        return Counter(value)
    if type.python != "defaultdict":
        raise TypeError(
            "a defaultdict whose factory is compiled cannot be returned to Python, which could not call the factory\n"
            "Hint: return dict(…) of it, or make it with a class as its factory: defaultdict(int)"
        )
    held = type.value.python.partition(":")[0] if isinstance(type.value, (ListType, DictType)) else ""
    return defaultdict(_FACTORIES.get(held or type.value.kind), value)


_FACTORIES: Final[dict[str, builtins.type]] = {
    IntType.kind: int,
    FloatType.kind: float,
    BoolType.kind: bool,
    StringType.kind: str,
    ListType.kind: list,
    DictType.kind: dict,
    "set": set,
}
"""Default factories of a ``defaultdict``, by the kinds of their types, or by Python's class for them."""

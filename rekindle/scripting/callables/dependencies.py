"""Dependencies of a compiled function, described so that another process can check whether they are the same."""

from __future__ import annotations

import enum
import hashlib
import marshal
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch._ops import OpOverload, OpOverloadPacket

from rekindle.ir.bitcode.references import PLAIN, Encoded
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.scalar_types import NUMBERED_CLASSES
from rekindle.scripting.annotations import annotations_of
from rekindle.scripting.callables.overloads import Declaration
from rekindle.scripting.resolver import ABSENT, closure_of

_OURS: Final = "__rekindle_"
"""The prefix of attributes that this process stores on functions."""
OWN_CLASS: Final = "__class__"
"""The closure variable of a method with ``super()``: its class."""
_NAMED: Final = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
_CONSTANTS: Final = (*NUMBERED_CLASSES, torch.device)
_PLAIN_ANNOTATIONS: Final = (str, type, type(torch.Tensor), type(None))
"""Classes of annotations without parts: texts, classes, and None."""
_LIBRARIES: Final = frozenset({"builtins", "torch", "typing", "collections", "numbers"})
"""Packages whose classes are identified by their names."""


class NotKept(Exception):
    """Raised if a function depends on an object that exists only in its process, so that it cannot be stored on disk;
    the message names the object."""


@dataclass(slots=True)
class Dependencies:
    """The names that are looked up while a function is compiled. A key of ``found`` is the number of the object whose
    attribute is looked up (-1 for the function's globals), and the name; the value describes the result. Once there is
    a ``reason``, nothing more is recorded."""

    function: types.FunctionType
    found: dict[tuple[int, str], Encoded] = field(default_factory=dict)
    objects: list[Any] = field(default_factory=list)
    reason: str = ""
    """Why the function is not stored; empty if it can be."""
    _numbers: dict[int, int] = field(default_factory=dict)

    def name_is(self, name: str, value: Any) -> None:
        """Record that the global or closure name ``name`` has the value ``value``."""
        self._add(-1, name, value)

    def attribute_is(self, owner: Any, name: str, value: Any) -> None:
        """Record the value of the attribute ``name`` of ``owner``. The function cannot be stored unless ``owner`` is a
        Python module that was recorded before, and ``value`` can be described."""
        number = self._numbers.get(id(owner))
        if number is None or not isinstance(owner, types.ModuleType):
            self.refuse(f"the attribute '{name}' of {owner!r}")
        else:
            self._add(number, name, value)

    def uses(self, value: Any) -> None:
        """Record that ``value`` is converted to a sugared value. The function cannot be stored unless ``value`` was
        recorded before."""
        if id(value) not in self._numbers:
            self.refuse(f"the object {value!r}")

    def refuse(self, reason: str) -> None:
        """Record that the function cannot be stored, and why. A reason that was recorded earlier stays."""
        self.reason = self.reason or reason

    def _add(self, owner: int, name: str, value: Any) -> None:
        if self.reason or (owner, name) in self.found:
            return
        try:
            self.found[owner, name] = describe(value)
        except NotKept as reason:
            self.refuse(str(reason))
            return
        self._numbers.setdefault(id(value), len(self.objects))
        self.objects.append(value)


def describe(value: Any) -> Encoded:
    """Describe an object. Descriptions are equal for objects that are equivalent in a program.

    Raises:
        NotKept: the object cannot be described completely.
    """
    if value is ABSENT:
        return ("absent",)
    if type(value) in PLAIN or isinstance(value, _CONSTANTS):
        return "constant", type(value).__name__, repr(value)
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if isinstance(value, types.FunctionType):
        return "function", *described_function(value)
    if isinstance(value, _NAMED):
        return "builtin", type(value).__name__, str(value.__module__), value.__qualname__
    if isinstance(value, OpOverloadPacket):
        return "operator", value._qualified_op_name, _schemas(value)
    if isinstance(value, OpOverload):
        return "operator", value.name(), _schemas(value.overloadpacket)
    if isinstance(value, type):
        is_exception = issubclass(value, BaseException)
        if is_exception or value.__module__.partition(".")[0] in _LIBRARIES:
            return "exception" if is_exception else "class", value.__module__, value.__qualname__
    if type(value).__module__ == "typing":
        return "annotation", annotation_text(value), isinstance(value, typing.TypeVar)
    raise NotKept(f"an object of the class {type(value).__qualname__}")


def _schemas(packet: OpOverloadPacket) -> Encoded:
    """Describe the schemas of an operator of a library. The description of an operator of PyTorch is empty, since its
    schemas follow from PyTorch's version."""
    if not is_foreign(packet._qualified_op_name):
        return ()
    return tuple([str(getattr(packet, overload)._schema) for overload in packet.overloads()])


def described_function(function: types.FunctionType) -> Encoded:
    """Describe a function by its code, defaults, closure, attributes and annotations, and by its file's time and size.

    Raises:
        NotKept: the function has no file, its annotations are objects without a stable text, or it holds a value that
            cannot be described.
    """
    code = function.__code__
    try:
        status = os.stat(code.co_filename)
    except OSError:
        raise NotKept(f"the function '{function.__qualname__}', which has no file") from None
    held = {name: value for name, value in vars(function).items() if not name.startswith(_OURS)}
    closure = {name: value for name, value in closure_of(function).items() if name != OWN_CLASS}
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    parts = (tuple(map(_without_class, defaults)), tuple(function.__kwdefaults__ or ()), held, closure)
    annotations = annotations_text(annotations_of(function))
    if " at 0x" in annotations:
        raise NotKept(f"the function '{function.__qualname__}', whose annotations are objects")
    return (
        *(str(function.__module__), function.__name__, function.__qualname__, status.st_mtime_ns, status.st_size),
        _code_digest(function),
        *(tuple(map(described_value, parts)), annotations),
    )


def annotations_text(annotations: Mapping[str, object]) -> str:
    """Return the :func:`annotation_text` of each name."""
    return ", ".join([f"{name}: {annotation_text(each)}" for name, each in annotations.items()])


def annotation_text(annotation: object) -> str:
    """Return a text that differs for different annotations: their ``repr``, and the types of each ``NewType`` in them,
    which ``repr`` omits.

    Raises:
        NotKept: the annotation has a type alias of Python 3.12 or a bounded ``TypeVar``.
    """
    if type(annotation) in _PLAIN_ANNOTATIONS:
        return repr(annotation)
    if hasattr(annotation, "__value__") or getattr(annotation, "__bound__", None) is not None:
        raise NotKept(f"the annotation '{annotation!r}'")
    parts = [annotation.__supertype__] if isinstance(annotation, typing.NewType) else typing.get_args(annotation)
    return " of ".join([repr(annotation), *[annotation_text(each) for each in parts]])


def _code_digest(function: types.FunctionType) -> bytes:
    try:
        content = marshal.dumps(function.__code__, 2)
    except ValueError:
        content = marshal.dumps(_without_slices(function.__code__), 2)
    return hashlib.sha256(content).digest()


def _without_slices(constant: Any) -> Any:
    """Return code, or one of its constants, with tuples in place of slices. Since Python 3.14 code has constant slices,
    which the version of ``marshal``'s format in which equal values have equal bytes does not support."""
    if isinstance(constant, types.CodeType):
        return constant.replace(co_consts=_without_slices(constant.co_consts))
    if isinstance(constant, tuple):
        return tuple(map(_without_slices, constant))
    if isinstance(constant, slice):
        return "<slice>", constant.start, constant.stop, constant.step
    return constant


def described_declaration(declaration: Declaration) -> Encoded:
    """Describe the differences between an overload and the function that implements it; None if there are none.

    Raises:
        NotKept: the overload is a function that cannot be described.
    """
    if declaration is None or isinstance(declaration, types.FunctionType):
        return None if declaration is None else described_function(declaration)
    return tuple([(name, str(type)) for name, type in declaration.items()])


def _without_class(default: Any) -> Any:
    """Return a default as it is described: for a class, a string with its name, since a class is not a value in a
    program."""
    return f"class {default.__module__}.{default.__qualname__}" if isinstance(default, type) else default


def described_value(value: Any) -> Encoded:
    """Describe a value that a function refers to: a constant, an enum member, a function by its name and code, or a
    tuple, list or dict of such values.

    Raises:
        NotKept: it is, or contains, an object of another class.
    """
    if isinstance(value, enum.Enum):
        return "enum", _name_of_class(value), value.name, described_value(value.value)
    if type(value) in PLAIN or isinstance(value, _CONSTANTS):
        return type(value).__qualname__, repr(value)
    if isinstance(value, tuple):
        items = tuple(map(described_value, value))
        return items if type(value) is tuple else (_name_of_class(value), getattr(value, "_fields", ()), items)
    if isinstance(value, list):
        return "list", tuple(map(described_value, value))
    if isinstance(value, dict):
        return tuple([(described_value(name), described_value(each)) for name, each in value.items()])
    if isinstance(value, types.FunctionType):
        return "function", value.__module__, value.__qualname__, _code_digest(value)
    raise NotKept(f"a function with an object of the class {type(value).__qualname__}")


def _name_of_class(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"

"""Interfaces written as Python classes: ``@interface class Scorer: def score(self, x: Tensor) -> Tensor: pass``."""

from __future__ import annotations

import abc
import inspect
import typing
from types import FunctionType
from typing import Any, Final, TypeVar

import torch

from rekindle.errors import UNKNOWN_RANGE, Cause, NotScriptableError, SourceRange, UnsupportedError, compiling
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.interfaces import InterfaceValue, interface_schema
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import InterfaceType, Type, keep_type, kept_type
from rekindle.program.names import qualified_name, unique_name
from rekindle.scripting.annotations import CLASS_HOOKS, annotations_of
from rekindle.scripting.class_values import CLASS_VALUE_HOOKS
from rekindle.scripting.resolver import PythonResolver
from rekindle.scripting.signatures import annotated_types, default_arguments
from rekindle.syntax.python_ast import function_def

T = TypeVar("T", bound=type)

_MARKS: Final = ("__rekindle_interface__", "__torch_script_interface__")
"""Markers in the body of an interface class: of this package's decorator, or of ``torch.jit``'s."""

_NEUTRAL: Final[tuple[Any, ...]] = (object, torch.nn.Module, abc.ABC, typing.Generic, typing.Protocol)
"""Classes that an interface may derive from besides other interfaces."""


def interface(cls: T) -> T:
    """Mark a class as an interface: the type of all objects that have its methods, whatever their class.

    The methods declare what they take and return, and have the body ``pass``. An interface that derives from
    ``torch.nn.Module`` is a type of modules. Classes need not derive from the interfaces that they implement.

    Args:
        cls: the class.

    Raises:
        TypeError: ``cls`` is not a class, or derives from a class that is not an interface.

    Example:
        >>> @rekindle.interface
        ... class Layer(torch.nn.Module):
        ...     def forward(self, input: torch.Tensor) -> torch.Tensor:
        ...         pass
        >>> class Net(torch.nn.Module):
        ...     layer: Layer
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.ReLU()
        ...     def forward(self, x):
        ...         return self.layer.forward(x)
        >>> rekindle.script(Net())(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """
    if not inspect.isclass(cls):
        raise TypeError("interface is a decorator of classes")
    for base in cls.__mro__[1:]:
        if base not in _NEUTRAL and not is_interface(base):
            raise TypeError(f"the interface '{cls.__name__}' derives from '{base.__name__}', which is not an interface")
    setattr(cls, _MARKS[0], True)
    return cls


def is_interface(cls: type) -> bool:
    """Return whether a Python class is marked as an interface."""
    return any(mark in vars(cls) for mark in _MARKS)


def interface_type(cls: type, range: SourceRange) -> InterfaceType:
    """Return the interface type of a class marked as an interface; it is stored with the class.

    Raises:
        NotScriptableError: the class declares an attribute, a property, or a static or class method.
        CompileError: a method has a body other than ``pass``, or its signature is not valid.
    """
    found = kept_type(cls)
    if isinstance(found, InterfaceType):
        return found
    type = InterfaceType(unique_name(qualified_name(cls)), is_module=issubclass(cls, torch.nn.Module))
    keep_type(cls, type)  # its methods may take objects of the interface
    try:
        with compiling(cls.__name__, range):
            for owner in reversed([base for base in cls.__mro__ if is_interface(base)]):
                if annotations_of(owner):
                    raise _no_method(cls, f"the attribute '{next(iter(annotations_of(owner)))}'", range)
                for name, member in vars(owner).items():
                    _add(type, cls, name, member)
    except BaseException:
        keep_type(cls, None)
        raise
    return type


_PYTHONS_OWN: Final = ("__init__", "__subclasshook__", "__class_getitem__")
"""Functions that Python's ``Protocol`` puts into a class."""


def _add(type: InterfaceType, cls: type, name: str, member: object) -> None:
    if isinstance(member, FunctionType) and name not in _PYTHONS_OWN:
        type.methods[name] = _schema(type, cls, member)
    elif isinstance(member, (property, staticmethod, classmethod)) and name not in _PYTHONS_OWN:
        raise _no_method(cls, f"the {member.__class__.__name__} '{name}'", UNKNOWN_RANGE)


def _no_method(cls: type, what: str, range: SourceRange) -> NotScriptableError:
    return NotScriptableError(
        f"the interface '{cls.__name__}' declares {what}; an interface has methods only",
        range,
        hint="declare a method that does the same",
        cause=Cause.INVALID_CLASS,
    )


def _schema(type: InterfaceType, cls: type, function: FunctionType) -> FunctionSchema:
    definition = function_def(function)
    resolver = PythonResolver.of_function(function, names={cls.__name__: cls})
    parameters, result = annotated_types(function, definition, resolver)
    return interface_schema(
        type,
        definition,
        resolver,
        defaults=default_arguments(function),
        parameter_types=parameters,
        return_type=result,
    )


def check_implements(cls: type, found: Type, range: SourceRange) -> None:
    """Check that ``found``, the type of the objects of ``cls``, implements the interfaces from which ``cls`` derives.

    Raises:
        UnsupportedError: the class lacks a method of an interface, or has it with another signature.
    """
    for base in cls.__mro__[1:]:
        if is_interface(base):
            lacking = interface_type(base, range).why_not(found)
            if lacking:
                raise UnsupportedError(lacking, range, cause=Cause.INVALID_CLASS)


def _type_of_class(cls: type, range: SourceRange) -> Type | None:
    return interface_type(cls, range) if is_interface(cls) else None


def _value_of_class(cls: type, range: SourceRange) -> SugaredValue | None:
    return InterfaceValue(interface_type(cls, range)) if is_interface(cls) else None


CLASS_HOOKS.append(_type_of_class)
CLASS_VALUE_HOOKS.append(_value_of_class)

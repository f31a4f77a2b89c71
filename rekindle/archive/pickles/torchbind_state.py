"""Objects of classes that are written in C++ (``torch.classes``): weights that a library packed, for example."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import torch

from rekindle.errors import CorruptArchiveError, UnsafeArchiveError
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import LIBRARY_CLASSES, Type
from rekindle.ops.python.values import type_of_value
from rekindle.ops.registration.libraries import missing_library
from rekindle.ops.tensor.torchbind_objects import class_of_library_object, is_installed

_PYTORCHS_OWN: Final = frozenset({"quantized", "sparse", "rnn", "xnnpack", "mkldnn", "vulkan"})
"""Namespaces of PyTorch's own classes. Their ``__setstate__`` reads numbers and tensors, and checks them."""


class MissingTorchbindObject:
    """Stands for an object of a class whose library is not installed. Reading an attribute raises an error that
    names the package."""

    def __init__(self, name: str, state: object, state_type: Type) -> None:
        self.__dict__["qualified_name"] = name
        self.__dict__["state"] = state
        self.__dict__["state_type"] = state_type
        self.__dict__["script_type"] = custom_class(name)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        namespace, _, basename = self.__dict__["qualified_name"].removeprefix(LIBRARY_CLASSES).partition(".")
        raise missing_library(f"The class 'torch.classes.{namespace}.{basename}'", namespace)

    def __deepcopy__(self, memo: dict[int, object]) -> MissingTorchbindObject:
        return self

    def __repr__(self) -> str:
        return f"<object of {self.__dict__['qualified_name']}, which is not installed>"


def make_object(name: str, state: object, state_type: Type, allow_setstate: bool) -> Any:
    """Return an object of the class ``name`` from its state, the result of ``__getstate__`` of the type ``state_type``;
    a :class:`MissingTorchbindObject` if the class is not installed.

    Raises:
        UnsafeArchiveError: the class is of a library other than PyTorch, and ``allow_setstate`` is False.
        CorruptArchiveError: the class refuses the state.
    """
    if not is_installed(name):
        return MissingTorchbindObject(name, state, state_type)
    if not allow_setstate and name.removeprefix(LIBRARY_CLASSES).partition(".")[0] not in _PYTORCHS_OWN:
        raise UnsafeArchiveError(
            f"The archive holds an object of '{name}', whose library would have to make it.",
            hint="Load with allow_setstate=True if you trust this file.",
        )
    made: Any = torch.ScriptObject.__new__(torch.ScriptObject)
    try:
        made.__setstate__((state, name))
    except (RuntimeError, TypeError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        raise CorruptArchiveError(f"The class '{name}' refuses the state of an object: {problem}") from None
    return made


def state_of(value: Any) -> tuple[object, str] | None:
    """Return the state of an object of a C++ class, and the qualified name of the class; None for other values.

    Raises:
        RuntimeError: the class has no methods that save its objects.
    """
    if isinstance(value, MissingTorchbindObject):
        return value.__dict__["state"], value.__dict__["qualified_name"]
    if isinstance(value, torch.ScriptObject):
        held: Any = value
        state, name = held.__getstate__()
        return state, name
    return None


def type_of_state(value: MissingTorchbindObject | torch.ScriptObject, state: object) -> Type:
    """Return the type of the ``state`` of an object of a C++ class, as :func:`state_of` returns it."""
    if isinstance(value, MissingTorchbindObject):
        found: Type = value.__dict__["state_type"]
        return found
    schema = (class_of_library_object(value).library_methods or {}).get("__getstate__")
    return type_of_value(state) if schema is None else schema.returns[0].type

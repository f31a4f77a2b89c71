"""TorchBind objects: instances of C++ classes (``torch.classes``), such as packed weights, tokenizers and samplers.

The schemas of their methods are read from an object. Those of PyTorch's own classes are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch._classes import _ClassNamespace

from rekindle.errors import RekindleError, UnsupportedError
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import LIBRARY_CLASSES, ClassType

_CONVOLUTION: Final = {
    "weight": "() -> Tensor",
    "bias": "() -> Tensor?",
    "unpack": "() -> ((Tensor, Tensor?))",
    **dict.fromkeys(("stride", "padding", "output_padding", "dilation"), "() -> int[]"),
    "groups": "() -> int",
    "transpose": "() -> bool",
    "__getstate__": "() -> ((str, Tensor[], Tensor?[]))",
}

_KNOWN: Final[dict[str, dict[str, str]]] = {
    "quantized.LinearPackedParamsBase": {
        "bias": "() -> Tensor?",
        "unpack": "() -> ((Tensor, Tensor?))",
        "__getstate__": "() -> ((Tensor, Tensor?))",
    },
    "quantized.Conv2dPackedParamsBase": _CONVOLUTION,
    "quantized.Conv3dPackedParamsBase": _CONVOLUTION,
    "quantized.EmbeddingPackedParamsBase": {
        **dict.fromkeys(("bit_rate", "version"), "() -> int"),
        "unpack": "() -> Tensor",
        "__getstate__": "() -> ((int, Tensor[], float[], int[]))",
    },
}
"""The methods of PyTorch's own classes. The types exclude the receiver, which is the first argument."""


@dataclass(slots=True, frozen=True)
class PythonClass:
    """A C++ class of TorchScript that Python has under another name: ``torch.cuda.Stream`` is ``cuda.Stream``. Programs
    use the Python objects, which eager code shares.

    ``classes`` are the Python classes, ``make`` is the constructor, None if only operators make objects. ``methods``
    has for each method the types of its arguments and results, and the implementation, which takes the object first;
    ``older`` has the types in earlier releases. Archives cannot hold calls of the methods ``only_in_python``.
    ``properties`` are attributes in Python that are methods in TorchScript. ``defaults`` are the only arguments of
    methods that Python may omit: the kind of an operator, or the name of a class. ``adopt`` returns the Python object
    for one of the C++ class.
    """

    classes: tuple[type, ...]
    make: Callable[..., Any] | None
    methods: Mapping[str, tuple[str, Callable[..., Any] | None]]
    properties: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    only_in_python: frozenset[str] = frozenset()
    older: Mapping[str, str] = field(default_factory=dict)
    adopt: Callable[[Any], object] | None = None


_PYTHON_CLASSES: Final[dict[str, PythonClass]] = {}
"""By the qualified name of the C++ class."""

_TYPES_BY_CLASS: Final[dict[type, ClassType]] = {}
"""The classes of TorchScript by those of Python."""


def add_python_class(name: str, python: PythonClass) -> None:
    """Register Python classes whose objects represent objects of the C++ class ``name``."""
    _PYTHON_CLASSES[name] = python
    _TYPES_BY_CLASS.update(dict.fromkeys(python.classes, custom_class(name)))


def python_class_of(name: str) -> PythonClass | None:
    """Return the Python class that programs use for the C++ class ``name``; None for most."""
    return _PYTHON_CLASSES.get(name)


def type_of_python_class(cls: type) -> ClassType | None:
    """Return the C++ class that the Python class ``cls``, or a base of it, represents in programs; None for most
    classes."""
    return next((_TYPES_BY_CLASS[base] for base in cls.__mro__ if base in _TYPES_BY_CLASS), None)


def methods_of(type: ClassType) -> dict[str, FunctionSchema] | None:
    """Return the schemas of the methods of a C++ class, by name. Return None if there has been no object of the class,
    it is not one of PyTorch's own listed here, and no source of :func:`add_torchbind_schemas` has it."""
    python = _PYTHON_CLASSES.get(type.name)
    if type.library_methods is None and python is None and _SOURCES:
        _read_sources()
    known = _KNOWN.get(type.name.removeprefix(LIBRARY_CLASSES))
    if python is not None:
        known = {name: text for name, (text, _) in python.methods.items()}
    if type.library_methods is None and known is not None:
        type.library_methods = {name: _method_schema(type, name, text) for name, text in known.items()}
    return type.library_methods


def schemas_of_method(type: ClassType, name: str) -> list[FunctionSchema]:
    """Return the schemas of a method of a known C++ class: that of this release, then those of earlier ones."""
    python = _PYTHON_CLASSES.get(type.name)
    found = [(methods_of(type) or {})[name]]
    if python is not None and name in python.older:
        found.append(_method_schema(type, name, python.older[name]))
    return found


def _method_schema(type: ClassType, name: str, text: str) -> FunctionSchema:
    """Parse the types of a method, which exclude the receiver."""
    return parse_schema(f"{name}({type.name} self{'' if text[1] == ')' else ', '}{text[1:]}")


_SOURCES: Final[list[Callable[[], Iterable[object]]]] = []
_STATIC: Final[dict[str, dict[str, FunctionSchema]]] = {}
"""The static methods of classes, by the name of the class. Only sources have them."""


def add_torchbind_schemas(source: Callable[[], Iterable[object]]) -> None:
    """Declare the methods of C++ classes (``torch.classes``), before there is an object of these classes.

    A program that takes such an object needs the schemas of its class when it is compiled. An object has them, but a
    library that compiles functions when it is imported has no object yet. PyTorch has no public function that returns
    them. Its private one is not called by this package; pass it as shown.

    Args:
        source: returns schemas of methods, or their texts: ``size(__torch__.torch.classes.space.Stack self) -> int``.
            It is called whenever a class is met of which nothing is known, since libraries may be loaded later.

    Example:
        >>> asked = []
        >>> def schemas():
        ...     asked.append("schemas")
        ...     return torch._C._jit_get_custom_class_schemas()
        >>> rekindle.add_torchbind_schemas(schemas)
        >>> asked  # it is called when a program is met that needs one
        []
    """
    _SOURCES.append(source)


def _read_sources() -> None:
    """Read the schemas of all classes from the sources that users have added."""
    found: dict[str, dict[str, FunctionSchema]] = {}
    for source in _SOURCES:
        owner = ""
        for text in map(str, source()):
            receiver = _SELF.match(text)
            # A static method has no receiver; it is listed among the methods of its class.
            owner = owner if receiver is None else receiver[1]
            try:
                schema = parse_schema(text) if receiver is None else _schema(text)
            except RekindleError:
                continue  # types that programs do not have
            table = _STATIC if receiver is None else found
            table.setdefault(owner, {})[schema.name] = schema
    for name, methods in found.items():
        type = custom_class(name)
        if type.library_methods is None:
            type.library_methods = methods


def static_method_of(type: ClassType, name: str) -> FunctionSchema | None:
    """Return the schema of a static method; None if no source of :func:`add_torchbind_schemas` has it."""
    if name not in _STATIC.get(type.name, {}):
        _read_sources()  # an object has only the other methods
    return _STATIC.get(type.name, {}).get(name)


def class_of_library_object(value: torch.ScriptObject) -> ClassType:
    """Return the C++ class of an object, and record the schemas of its methods."""
    held: Any = value
    type = custom_class(held._type().qualified_name())
    if type.library_methods is None and type.name not in _PYTHON_CLASSES:
        type.library_methods = {}
        for name in held._method_names():
            try:
                type.library_methods[name] = _schema(str(held._get_method(name).schema))
            except RekindleError:
                continue  # types that programs do not have
    return type


def _schema(text: str) -> FunctionSchema:
    """Parse the schema of a method, whose first parameter is renamed to ``self``."""
    schema = parse_schema(text)
    first, *others = schema.arguments
    return replace(schema, arguments=(replace(first, name="self"), *others))


def is_installed(name: str) -> bool:
    """Return whether the class of this qualified name is registered in this process."""
    if name in _PYTHON_CLASSES:
        return True
    namespace, _, basename = name.removeprefix(LIBRARY_CLASSES).partition(".")
    try:
        torch._C._get_custom_class_python_wrapper(namespace, basename)
    except RuntimeError:
        return False
    return True


_NAME: Final = re.compile(r"__torch__\.torch\.classes\.\w+\.\w+")
_SELF: Final = re.compile(rf"\w+\(({_NAME.pattern}) ")


WRAPPER: Final[type] = vars(torch)["ScriptClass"]
"""The Python class of ``torch.classes.space.Name``."""


def class_in_namespace(owner: object, name: str) -> ClassType | None:
    """Return the class ``torch.classes.space.name`` if ``owner`` is ``torch.classes.space``; else None."""
    if not isinstance(owner, _ClassNamespace):
        return None
    return custom_class(f"{LIBRARY_CLASSES}{owner.name}.{name}")


def class_of_wrapper(wrapper: Any) -> ClassType:
    """Return the class that an alias of ``torch.classes.space.Name`` stands for.

    The wrapper that the alias holds has no attribute with its name, and PyTorch makes another one for each access. The
    name is in the message of a call that fits no constructor, which makes nothing.

    Raises:
        UnsupportedError: the message does not hold the name.
    """
    try:
        wrapper(rekindle_asks_for_the_name=None)
    except Exception as error:
        found = _NAME.search(str(error))
        if found is not None:
            return custom_class(found[0])
    raise UnsupportedError(
        "PyTorch does not report which class of torch.classes this is an alias of",
        hint="write torch.classes.space.Name where the alias is used",
    )

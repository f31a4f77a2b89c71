"""Objects of classes that libraries write in C++ (``torch.classes``): packed weights, tokenizers, samplers …

Their methods have schemas, which an object tells. Those of PyTorch's own classes are known before there is one.
"""

from __future__ import annotations

import re
from dataclasses import replace
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
"""What PyTorch's own classes have, without the object itself, which comes first."""


def methods_of(type: ClassType) -> dict[str, FunctionSchema] | None:
    """The schemas of the methods of a class, by name; None for a class of which no object was met."""
    known = _KNOWN.get(type.name.removeprefix(LIBRARY_CLASSES))
    if type.library_methods is None and known is not None:
        type.library_methods = {
            name: parse_schema(f"{name}({type.name} self{text[1:]}") for name, text in known.items()
        }
    return type.library_methods


def class_of_library_object(value: torch.ScriptObject) -> ClassType:
    """The class of an object. Its methods are known from now on."""
    held: Any = value
    type = custom_class(held._type().qualified_name())
    if type.library_methods is None:
        type.library_methods = {}
        for name in held._method_names():
            try:
                type.library_methods[name] = _schema(str(held._get_method(name).schema))
            except RekindleError:
                continue  # of types that programs do not have
    return type


def _schema(text: str) -> FunctionSchema:
    """The schema of a method, whose first parameter has a name that says nothing."""
    schema = parse_schema(text)
    first, *others = schema.arguments
    return replace(schema, arguments=(replace(first, name="self"), *others))


_NAME: Final = re.compile(r"__torch__\.torch\.classes\.\w+\.\w+")


WRAPPER: Final[type] = vars(torch)["ScriptClass"]
"""What ``torch.classes.space.Name`` is an object of."""


def class_in_namespace(owner: object, name: str) -> ClassType | None:
    """Return the class ``torch.classes.space.name`` where ``owner`` is ``torch.classes.space``; else None."""
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

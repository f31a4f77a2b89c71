"""C++ signatures of operators: the rules by which PyTorch's code generation maps the types of a schema to C++.

A schema does not say everything: ``Tensor[]`` is ``at::TensorList`` for most operators and ``at::ITensorListRef`` for
some. Such types have several candidates, and the symbols of the library decide between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from rekindle.ir.operators.schema import Argument, FunctionSchema

_VALUES: Final = {
    "Tensor": "at::Tensor",
    "Scalar": "at::Scalar",
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "c10::string_view",
    "SymInt": "c10::SymInt",
    "SymBool": "c10::SymBool",
    "ScalarType": "at::ScalarType",
    "Layout": "at::Layout",
    "Device": "at::Device",
    "MemoryFormat": "at::MemoryFormat",
    "Generator": "at::Generator",
    "Storage": "at::Storage",
    "Stream": "at::Stream",
    "QScheme": "at::QScheme",
    "Dimname": "at::Dimname",
}
"""The C++ types of values, as returns, elements of lists and optionals have them."""

_PARAMETERS: Final = {
    "Tensor": ("const at::Tensor &",),
    "Tensor!": ("at::Tensor &", "const at::Tensor &"),  # the second where only metadata is written: resize_
    "Tensor?": ("const ::std::optional<at::Tensor> &",),
    "Tensor[]": ("at::TensorList", "const at::ITensorListRef &"),
    "Tensor?[]": ("const c10::List<::std::optional<at::Tensor>> &",),
    "Scalar": ("const at::Scalar &",),
    "Scalar?": ("const ::std::optional<at::Scalar> &",),
    "DeviceIndex": ("at::DeviceIndex", "int64_t"),
    "int[]": ("at::IntArrayRef",),
    "int[]?": ("at::OptionalIntArrayRef",),
    "SymInt[]": ("c10::SymIntArrayRef",),
    "SymInt[]?": ("at::OptionalSymIntArrayRef",),
    "Dimname[]": ("at::DimnameList",),
    "Dimname[]?": ("::std::optional<at::DimnameList>",),
}
"""The candidates for parameters that are not passed as their values. ``!`` marks a Tensor that is written to."""


def candidate_parameters(schema: FunctionSchema) -> Iterator[tuple[str, ...]]:
    """Yield the C++ types that the parameters of ``schema`` may have, the most frequent choice first. All parameters of
    one type make the same choice. Yield nothing if a type is not known."""
    parameters = [_parameter(argument) for argument in schema.arguments]
    if schema.is_vararg or not all(parameters):
        return
    kinds = list(dict.fromkeys(parameters))
    for choice in product(*kinds):
        chosen = dict(zip(kinds, choice, strict=True))
        yield tuple(chosen[candidates] for candidates in parameters)


def return_types(schema: FunctionSchema, parameters: Sequence[str]) -> tuple[str, ...] | None:
    """Return the C++ types of the returns of ``schema``, whose parameters have the types ``parameters``; None if a type
    is not known."""
    types = [_return(result, schema, parameters) for result in schema.returns]
    known = [type for type in types if type is not None]
    return None if schema.is_varret or len(known) < len(types) else tuple(known)


def _parameter(argument: Argument) -> tuple[str, ...]:
    """Return the candidates for a parameter; none if its type is not known."""
    text = _spelling(argument)
    if text == "bool[]" and argument.size is not None:
        return (f"::std::array<bool,{argument.size}>",)
    if text == "Tensor" and _is_written(argument):
        text = "Tensor!"
    if text == "int" and argument.name == "device_index":
        text = "DeviceIndex"  # which PyTorch parses as int
    if text in _PARAMETERS:
        return _PARAMETERS[text]
    type = _value(text)
    return () if type is None else (type,)


def _value(text: str) -> str | None:
    """Return the C++ type of a value, or of an optional or a list of values; None for types that signatures do not
    support."""
    for suffix, template in (("?", "::std::optional<{}>"), ("[]", "at::ArrayRef<{}>")):
        if text.endswith(suffix):
            element = _value(text.removesuffix(suffix))
            return None if element is None else template.format(element)
    return _VALUES.get(text)


def _return(result: Argument, schema: FunctionSchema, parameters: Sequence[str]) -> str | None:
    text = _spelling(result)
    if text == "Tensor" and _is_written(result):
        arguments = zip(schema.arguments, parameters, strict=True)
        return next((type for argument, type in arguments if _is_same_tensor(argument, result)), None)
    return "::std::vector<at::Tensor>" if text == "Tensor[]" else _VALUES.get(text)


def _spelling(argument: Argument) -> str:
    """Return the type as written in the schema, without alias annotations and sizes."""
    return argument.spelling or str(argument.type)


def _is_written(argument: Argument) -> bool:
    return argument.alias is not None and argument.alias.is_write


def _is_same_tensor(argument: Argument, result: Argument) -> bool:
    """Return whether ``result`` is the Tensor that the operator writes to through ``argument``."""
    taken, returned = argument.alias, result.alias
    return taken is not None and returned is not None and taken.before == returned.before

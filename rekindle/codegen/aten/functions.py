"""Addresses of ATen's operators: find ``at::_ops::<op>::call`` of an overload in the libraries of this process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch

from rekindle.codegen.aten.mangling import mangled_name
from rekindle.codegen.aten.signatures import candidate_parameters, return_types
from rekindle.codegen.llvm.symbols import find
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.text.schema_parser import parse_schema


@dataclass(frozen=True, slots=True)
class AtenFunction:
    """``at::_ops::<op>::call`` of an overload.

    ``name`` is the qualified name of the overload, ``aten::add.Tensor``. ``parameters`` are the C++ types in the order
    of the schema, spelled as PyTorch's headers spell them (``const at::Tensor &``, ``c10::SymIntArrayRef``), and
    ``returns`` those of the returns of the schema: ``at::Tensor &`` is the argument that was written to, several types
    are returned as a ``std::tuple`` of them, and none as ``void``.
    """

    name: str
    address: int
    parameters: tuple[str, ...]
    returns: tuple[str, ...]


@cache
def aten_function(qualified_name: str) -> AtenFunction | None:
    """Return the C++ function of the overload ``qualified_name``. Return None if the dispatcher has no such overload
    of ``aten``, if the libraries have no such symbol, if the schema has a type that is not known here, or if another
    overload has the same C++ name.

    The symbol proves the types of the parameters, which its name contains. It does not contain the types of the
    returns: these follow from the schema.
    """
    struct = _struct_name(qualified_name)
    schema = None if struct is None else _schema(qualified_name)
    if struct is None or schema is None:
        return None
    for parameters in candidate_parameters(schema):
        address = find(mangled_name(("at", "_ops", struct, "call"), parameters))
        returns = return_types(schema, parameters)
        if address is not None and returns is not None:
            return AtenFunction(qualified_name, address, parameters, returns)
    return None


def _schema(qualified_name: str) -> FunctionSchema | None:
    """Return the schema of an overload of ``aten``; None if the dispatcher does not have it."""
    if not _is_in_dispatcher(qualified_name):
        return None
    name, _, overload = qualified_name.removeprefix("aten::").partition(".")
    found = getattr(getattr(torch.ops.aten, name, None), overload or "default", None)
    return None if found is None else parse_schema(str(found._schema))


def _struct_name(qualified_name: str) -> str | None:
    """Return the name of an overload's class in ``at::_ops``: ``add_Tensor`` for ``aten::add.Tensor``.

    Return None for operators of other namespaces, and if another overload has the same name: if a library defines
    ``aten::add_Tensor``, the function may be that of ``aten::add.Tensor``.
    """
    namespace, _, name = qualified_name.partition("::")
    struct = name.replace(".", "_")
    separators = [i for i in range(1, len(struct) - 1) if struct[i] == "_"]
    namesakes = {f"aten::{struct}", *(f"aten::{struct[:i]}.{struct[i + 1 :]}" for i in separators)}
    return None if namespace != "aten" or any(map(_is_in_dispatcher, namesakes - {qualified_name})) else struct


def _is_in_dispatcher(qualified_name: str) -> bool:
    try:
        return torch._C._dispatch_has_kernel(qualified_name)
    except RuntimeError:  # not a legal name: the overload begins with a digit, for example
        return False

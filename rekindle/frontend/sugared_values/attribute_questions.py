"""Attributes of values that are not objects of the program's classes.

These decide ``hasattr(x, "item")`` by Python's own classes, and create the error of ``x.item`` if there is no such
attribute.
"""

from __future__ import annotations

from typing import Final

import torch

from rekindle.errors import Cause, SourceRange, UndefinedNameError
from rekindle.ir.graph import AttributeValue, Graph, Value
from rekindle.ir.types import (
    BOOL,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    TupleType,
    Type,
    UnionBase,
    union_members,
)

_CLASSES: Final[dict[str, type]] = {
    "TensorType": torch.Tensor,
    "IntType": int,
    "FloatType": float,
    "BoolType": bool,
    "ComplexType": complex,
    "StringType": str,
    "NoneType": type(None),
    "TupleType": tuple,
    "DeviceObjType": torch.device,
}


def type_has(type: Type, name: str) -> bool:
    """Return whether the Python classes of all values of a type have an attribute. Types whose class is not known do
    not."""
    if isinstance(type, UnionBase):
        return all(type_has(member, name) for member in union_members(type))
    if isinstance(type, TupleType) and type.fields is not None and name in type.fields:
        return True
    found = _class_of(type)
    return found is not None and hasattr(found, name)


def ask_type(value: Value, name: str, range: SourceRange, graph: Graph) -> Value | None:
    """Emit a test at run time whether a value has an attribute, if only some members of its type, a Union, have it;
    else return None."""
    members = union_members(value.type)
    having: list[Type] = [member for member in members if type_has(member, name)]
    if not having or len(having) == len(members):
        return None
    attributes: dict[str, AttributeValue] = {"types": having}
    test = graph.create("prim::isinstance", [value], types=[BOOL], attributes=attributes, range=range)
    return graph.insert_node(test).output


def _class_of(given: Type) -> type | None:
    """Return the Python class of values of a type; None if it is not known, or if there are several."""
    if isinstance(given, ListType):
        kinds = {"": list, "tuple": tuple, "Size": torch.Size}
        return kinds.get(given.python)
    if isinstance(given, DictType):
        return set if given.is_set else None if given.python else dict
    own = given.python_class if isinstance(given, (EnumType, TupleType)) else None
    return own or _CLASSES.get(given.kind)


def missing_attribute(range: SourceRange, type: Type, name: str) -> UndefinedNameError:
    """Return the error for ``x.name``, where the type of ``x`` has no such attribute. ``range`` is the location of
    ``x.name``."""
    if isinstance(type, ClassType) and not type.is_module:
        hint = f"give it a value in __init__: self.{name} = …"
        if name.startswith("__"):
            hint = f"define the method: def {name}(self, …)"
        if type.python_class is not None and isinstance(vars(type.python_class).get(name), classmethod):
            hint = "class methods cannot be compiled; make it a static method or a function"
        return UndefinedNameError(f"'{type.basename}' has no attribute or method '{name}'", range, hint=hint)
    if isinstance(type, InterfaceType):
        return UndefinedNameError(
            f"the interface '{type.name.rpartition('.')[2]}' has no method '{name}'",
            range,
            hint=f"its methods are {', '.join(type.methods)}",
        )
    return UndefinedNameError(
        f"a value of type {type.annotation} has no attribute or method '{name}'",
        range,
        hint=f"the value may be None; check it first, for example: assert {_spell(range)} is not None"
        if type.is_optional
        else None,
        cause=Cause.MISSING_REFINEMENT if type.is_optional else None,
    )


def _spell(range: SourceRange) -> str:
    text = range.text.rpartition(".")[0] if range.is_known else ""
    return text if text.isidentifier() else "x"

"""Objects: classes, modules, enums, optionals, and the tests of types at run time."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from rekindle.errors import GraphError
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ir.types import ClassType, InterfaceType, Type
from rekindle.ops.python.values import is_instance, new_object
from rekindle.ops.registration.declare import declare, implements, implements_for_node

# ---------------------------------------------------------------------------------------------------------- attributes


def module_table(type: Type, name: str) -> str | None:
    """Return the name of the dict of an ``nn.Module`` that holds the slot ``name``; None if the object is not a module
    or holds it as an attribute."""
    if not isinstance(type, ClassType) or not type.is_module:
        return None
    slot = type.attributes.get(name)
    if slot is None:
        return None
    if slot.kind == "parameter":
        return "_parameters"
    if slot.kind == "buffer":
        return "_buffers"
    if isinstance(slot.type, (ClassType, InterfaceType)) and slot.type.is_module:
        return "_modules"
    return None


@implements_for_node("prim::GetAttr(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def get_attribute(node: Node) -> Operation:
    """Return the operation that reads the attribute ``name`` of an object. A module has parameters, buffers and
    submodules in dicts of their own."""
    name = node.get_string("name")
    table = module_table(node.input.type, name)
    if table is None:
        return attrgetter(name)
    get_table: Callable[[Any], dict[str, Any]] = attrgetter(table)

    def get(self: Any) -> Any:
        try:
            return get_table(self)[name]
        except KeyError:
            return getattr(self, name)  # it has been moved since, as parametrizations do

    return get


@implements_for_node("prim::SetAttr(...) -> ...", effects=AliasAnalysisKind.SPECIAL, side_effects=True)
def set_attribute(node: Node) -> Operation:
    """Return the operation that writes the attribute ``name`` of an object."""
    name = node.get_string("name")
    receiver, _ = node.inputs
    owner = receiver.type
    table = module_table(owner, name)
    if table is None and isinstance(owner, ClassType) and owner.is_module and name in owner.attributes:
        # The compiler has checked the type; a module checks every element of what Python assigns.
        def set_own(self: Any, value: Any) -> None:
            self.__dict__[name] = value

        return set_own
    if isinstance(owner, ClassType) and owner.is_frozen:

        def set_frozen(self: Any, value: Any) -> None:
            object.__setattr__(self, name, value)

        return set_frozen
    if table is None:

        def set_plain(self: Any, value: Any) -> None:
            setattr(self, name, value)

        return set_plain
    get_table: Callable[[Any], dict[str, Any]] = attrgetter(table)

    def set_slot(self: Any, value: Any) -> None:
        get_table(self)[name] = value

    return set_slot


@implements_for_node("prim::CreateObject(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def create_object(node: Node) -> Operation:
    """Return the operation that creates an uninitialized object of the class given by the type of the output. Another
    node calls its ``__init__``.

    Raises:
        GraphError: the type is not a class.
    """
    type = node.output.type
    if not isinstance(type, ClassType):
        raise GraphError(f"prim::CreateObject makes objects of classes, not of {type}")

    def create() -> object:
        return new_object(type)

    return create


@implements("prim::id(AnyClassType? x) -> int")
def identity_number(x: object) -> int:
    """Return a number that no other living object has; 0 for None."""
    return 0 if x is None else id(x)


declare(hash, "aten::hash.generic(t value) -> int")

# ----------------------------------------------------------------------------------------------------- with-statements


@implements("prim::Enter(...) -> ...", effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)
def enter(manager: Any) -> Any:
    """Return ``manager.__enter__()``."""
    return manager.__enter__()


@implements("prim::Exit(...) -> ...", effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)
def leave(manager: Any, *error: Any) -> Any:
    """Return ``manager.__exit__(…)``, without an error unless one is given."""
    return manager.__exit__(*(error or (None, None, None)))


# ---------------------------------------------------------------------------------------------------------- submodules


@implements("prim::ModuleContainerIndex.list(Any self, int ind) -> Any", effects=AliasAnalysisKind.CONSERVATIVE)
def module_at(self: Any, ind: int) -> Any:
    """Return the sub-module at index ``ind`` of a ``ModuleList`` or ``Sequential``.

    Raises:
        IndexError: ``ind`` is out of range.
    """
    modules = list(self._modules.values())
    if not -len(modules) <= ind < len(modules):
        raise IndexError(f"index {ind} is out of range")
    return modules[ind]


@implements("prim::ModuleContainerIndex.dict(Any self, str ind) -> Any", effects=AliasAnalysisKind.CONSERVATIVE)
def module_called(self: Any, ind: str) -> Any:
    """Return the submodule ``ind`` of a ``ModuleDict``.

    Raises:
        KeyError: there is no such submodule.
    """
    return self._modules[ind]


# --------------------------------------------------------------------------------------------------------------- enums

declare(attrgetter("name"), "prim::EnumName(AnyEnumType enum) -> str")
declare(
    attrgetter("value"),
    "prim::EnumValue.int(AnyEnumType enum) -> int",
    "prim::EnumValue.float(AnyEnumType enum) -> float",
    "prim::EnumValue.str(AnyEnumType enum) -> str",
)

# -------------------------------------------------------------------------------------------- optionals and type tests


def identity(value: Any) -> Any:
    """Return ``value`` itself."""
    return value


declare(
    identity,
    "prim::unchecked_cast(t x) -> t",
    "prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)",
    effects=AliasAnalysisKind.SPECIAL,
)


@implements("aten::_unwrap_optional(t(a)? optional) -> t(a)")
def unwrap_optional(optional: Any) -> Any:
    """Return ``optional``, which must not be None.

    Raises:
        AssertionError: ``optional`` is None.
    """
    if optional is None:
        raise AssertionError("Unwrapping null optional")
    return optional


@implements_for_node("prim::isinstance(...) -> ...", effects=AliasAnalysisKind.PURE)
def test_type(node: Node) -> Operation:
    """Return the operation that tests whether a value has one of the types in attribute ``types``.

    Raises:
        GraphError: the node has no such attribute.
    """
    types = node["types"]
    if not isinstance(types, list) or not all(isinstance(type, Type) for type in types):
        raise GraphError("prim::isinstance needs a list of types as its attribute 'types'")
    wanted = [type for type in types if isinstance(type, Type)]

    def test(value: object) -> bool:
        return any(is_instance(value, type) for type in wanted)

    return test


def _uninitialized() -> None:
    """Return a value for paths on which it is never read."""


declare(_uninitialized, "prim::Uninitialized() -> Any", effects=AliasAnalysisKind.SPECIAL)


@implements("prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)")
def if_then_else(cond: bool, x: Any, y: Any) -> Any:
    """Return ``x if cond else y``, where both are already computed."""
    return x if cond else y

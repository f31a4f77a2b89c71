"""Types that know functions: classes (modules among them), interfaces and functions. They compare by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Literal
from weakref import WeakSet

from rekindle.errors import GraphError
from rekindle.ir.types.base import Type

if TYPE_CHECKING:
    from rekindle.ir.graph import Value
    from rekindle.ir.graph_function import GraphFunction
    from rekindle.ir.operators.schema import FunctionSchema

LIBRARY_CLASSES: Final = "__torch__.torch.classes."
"""Prefix of the names of C++ classes; no program text defines them."""

AttributeKind = Literal["attribute", "parameter", "buffer"]


@dataclass(slots=True)
class ClassAttribute:
    """An attribute of a class: its type, and whether it is a parameter or a buffer of a module."""

    name: str
    type: Type
    kind: AttributeKind = "attribute"
    note: str | None = field(default=None, compare=False, repr=False)
    """A hint for error messages about an unexpected type."""
    is_dynamic: bool = field(default=False, compare=False, repr=False)
    """Whether a method assigns it first, so that objects do not have it from the start."""
    initial: Callable[[], object] | None = field(default=None, compare=False, repr=False)
    """Initial value of such a slot of objects, if there is one."""
    present: object = field(default=None, compare=False, repr=False)
    """Value of the slot in the module that the class was made from, if that is a string, a number or a bool."""
    is_declared: bool = field(default=False, compare=False, repr=False)
    """Whether the program annotates it: then it keeps its type."""
    is_assumed: bool = field(default=False, compare=False, repr=False)
    """Whether nothing has shown the types of the elements yet: it is a list or a dict that was left empty."""
    users: WeakSet[GraphFunction] = field(default_factory=WeakSet, compare=False, repr=False)
    """The compiled functions that have to be compiled again where the type changes."""


@dataclass(slots=True)
class Property:
    """A property of a class, by its compiled getter and setter."""

    name: str
    getter: GraphFunction
    setter: GraphFunction | None = None


@dataclass(slots=True, eq=False)
class ClassType(Type):
    """A script class, or the class of a module (``is_module``).

    ``name`` is qualified (``__torch__.package.Net``). Attributes are typed slots; constants are known when the program
    is compiled; methods are records of functions whose first parameter is the object.
    """

    kind: ClassVar[str] = "ClassType"
    name: str
    is_module: bool = False
    attributes: dict[str, ClassAttribute] = field(default_factory=dict, repr=False)
    constants: dict[str, object] = field(default_factory=dict, repr=False)
    methods: dict[str, GraphFunction] = field(default_factory=dict, repr=False)
    static_methods: dict[str, GraphFunction] = field(default_factory=dict, repr=False)
    class_methods: dict[str, GraphFunction] = field(default_factory=dict, repr=False)
    """Functions that know the class, compiled where they are called; in archives they are functions like any."""
    properties: dict[str, Property] = field(default_factory=dict, repr=False)
    pre_hooks: list[GraphFunction] = field(default_factory=list, repr=False)
    hooks: list[GraphFunction] = field(default_factory=list, repr=False)
    """Hooks that run before and after ``forward`` when Python calls a module; calls within a program are explicit."""
    python_class: type | None = field(default=None, repr=False)
    is_incomplete: bool = False
    """Whether the definition of its attributes and methods could not be compiled: it may have more than are known."""
    is_frozen: bool = False
    """Whether only ``__init__`` may assign its attributes."""
    is_open: bool = False
    """Whether all its methods are compiled from Python, so that attributes may get wider types."""
    generic_methods: dict[str, Callable[[Value], object]] = field(default_factory=dict, repr=False)
    """Sugared values of methods that do not declare all their parameter types.
    :mod:`rekindle.scripting.classes.script_classes` fills it."""
    library_methods: dict[str, FunctionSchema] | None = field(default=None, repr=False)
    """Schemas of the methods of a C++ class."""
    method_finder: Callable[[str], GraphFunction | None] | None = field(default=None, repr=False)
    """Finds methods that nothing has called yet, of a module whose methods are compiled when they are called."""

    def __str__(self) -> str:
        return self.name

    @property
    def contained(self) -> tuple[Type, ...]:
        return ()

    @property
    def basename(self) -> str:
        """The part of the name after its last dot."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def is_torchbind_class(self) -> bool:
        """Whether the class is written in C++ (TorchBind), so that only its library knows its attributes."""
        return self.name.startswith(LIBRARY_CLASSES)

    def add_attribute(
        self, name: str, type: Type, kind: AttributeKind = "attribute", *, is_declared: bool = False
    ) -> None:
        """Add a slot. ``is_declared``: the program annotates it.

        Raises:
            GraphError: the class has a slot, a constant or a method of that name.
        """
        if name in self.attributes or name in self.constants or name in self.methods:
            raise GraphError(f"class '{self.name}' already has an attribute, constant or method '{name}'")
        self.attributes[name] = ClassAttribute(name, type, kind, is_declared=is_declared)

    def attribute_type(self, name: str) -> Type | None:
        attribute = self.attributes.get(name)
        return None if attribute is None else attribute.type

    def may_widen(self, name: str) -> bool:
        """Return whether an assignment may give the attribute ``name`` a wider type."""
        slot = self.attributes.get(name)
        if slot is None or slot.is_declared or slot.kind != "attribute" or not self.is_open:
            return False
        return not isinstance(slot.type, (ClassType, InterfaceType))

    def find_method(self, name: str) -> GraphFunction | None:
        """Return the method ``name``, compiled or not; None if there is none."""
        found = None if self.method_finder is None else self.method_finder(name)
        return found or self.methods.get(name)


@dataclass(slots=True, eq=False)
class InterfaceType(Type):
    """A set of methods that a class must have; a module interface if ``is_module``."""

    kind: ClassVar[str] = "InterfaceType"
    name: str
    methods: dict[str, FunctionSchema] = field(default_factory=dict, repr=False)
    is_module: bool = False

    def __str__(self) -> str:
        return f"InterfaceType<{self.name.rpartition('.')[2]}>"

    @property
    def annotation(self) -> str:
        return self.name

    def accepts(self, other: Type) -> bool:
        """Return whether ``other`` is a class or an interface, one of modules if this one is, that has every method,
        with parameters at least as wide and a result at least as narrow."""
        if not isinstance(other, (ClassType, InterfaceType)):
            return False
        return not any(True for _ in self._lacks(other))

    def why_not(self, other: Type) -> str:
        """Return the reasons why ``other`` does not implement the interface, as lines without a full stop; empty if it
        does, and for types other than classes and interfaces."""
        if not isinstance(other, (ClassType, InterfaceType)):
            return ""
        return "\n".join(self._lacks(other))

    def _lacks(self, other: ClassType | InterfaceType) -> Iterator[str]:
        name, own = self.name.rpartition(".")[2], other.name.rpartition(".")[2]
        if self.is_module and not other.is_module:
            yield f"'{name}' is an interface of modules, and '{own}' is not a module"
            return
        for method, wanted in self.methods.items():
            if isinstance(other, InterfaceType):
                found = other.methods.get(method)
            else:
                record = other.find_method(method)
                found = None if record is None else record.schema
            if found is None:
                yield f"'{own}' does not have the method '{method}' of the interface '{name}': {wanted.bound}"
            elif not found.can_stand_for(wanted):
                yield (
                    f"the method '{method}' of '{own}' does not fit the interface '{name}'\n"
                    f"  it is    {found.bound}\n  wanted   {wanted.bound}"
                )


_KEPT: Final = "__rekindle_type__"
"""Where a Python class keeps the type that was made of it."""


def kept_type(cls: type) -> Type | None:
    """Return the type that was created for a Python class before; None if there is none."""
    found = vars(cls).get(_KEPT)
    return found if isinstance(found, Type) else None


def keep_type(cls: type, type: Type | None) -> None:
    """Store ``type`` with the Python class; with None remove the stored type."""
    setattr(cls, _KEPT, type)


@dataclass(slots=True, frozen=True)
class FunctionType(Type):
    """The type of one function, which it identifies."""

    kind: ClassVar[str] = "FunctionType"
    function: GraphFunction

    def __str__(self) -> str:
        return "Function"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionType) and other.function is self.function

    def __hash__(self) -> int:
        return id(self.function)

"""Types with names: classes (modules among them), interfaces, enums and functions. They compare by identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from rekindle.errors import GraphError
from rekindle.ir.types.base import Type

if TYPE_CHECKING:
    from rekindle.ir.records import FunctionRecord
    from rekindle.ir.schema import FunctionSchema

AttributeKind = Literal["attribute", "parameter", "buffer"]


@dataclass(slots=True)
class ClassAttribute:
    """A slot of a class: its type, and whether a module keeps it as a parameter or a buffer."""

    name: str
    type: Type
    kind: AttributeKind = "attribute"
    note: str | None = field(default=None, compare=False, repr=False)
    """A hint for whoever is surprised by the type."""


@dataclass(slots=True)
class Property:
    """A property of a class, by its compiled getter and setter."""

    name: str
    getter: FunctionRecord
    setter: FunctionRecord | None = None


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
    methods: dict[str, FunctionRecord] = field(default_factory=dict, repr=False)
    static_methods: dict[str, FunctionRecord] = field(default_factory=dict, repr=False)
    properties: dict[str, Property] = field(default_factory=dict, repr=False)
    python_class: type | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.name

    @property
    def contained(self) -> tuple[Type, ...]:
        return ()

    @property
    def basename(self) -> str:
        """The name without what stands before its last dot."""
        return self.name.rsplit(".", 1)[-1]

    def add_attribute(self, name: str, type: Type, kind: AttributeKind = "attribute") -> None:
        """Add a slot.

        Raises:
            GraphError: the class has a slot, a constant or a method of that name.
        """
        if name in self.attributes or name in self.constants or name in self.methods:
            raise GraphError(f"class '{self.name}' already has an attribute, constant or method '{name}'")
        self.attributes[name] = ClassAttribute(name, type, kind)

    def attribute_type(self, name: str) -> Type | None:
        attribute = self.attributes.get(name)
        return None if attribute is None else attribute.type


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
        """A class that has every method, with parameters at least as wide and a result at least as narrow."""
        if isinstance(other, InterfaceType):
            found = other.methods
        elif isinstance(other, ClassType) and other.is_module == self.is_module:
            found = {name: method.schema for name, method in other.methods.items()}
        else:
            return False
        return all(name in found and found[name].can_stand_for(schema) for name, schema in self.methods.items())


@dataclass(slots=True, eq=False)
class EnumType(Type):
    """An enum: its members by name, all of one type."""

    kind: ClassVar[str] = "EnumType"
    name: str
    value_type: Type
    members: dict[str, object] = field(default_factory=dict, repr=False)
    python_class: type | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"Enum<{self.name}>"

    @property
    def annotation(self) -> str:
        return self.name


@dataclass(slots=True, frozen=True)
class FunctionType(Type):
    """The type that one function alone has: the function is known from the type."""

    kind: ClassVar[str] = "FunctionType"
    function: FunctionRecord

    def __str__(self) -> str:
        return "Function"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionType) and other.function is self.function

    def __hash__(self) -> int:
        return id(self.function)

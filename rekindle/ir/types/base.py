"""Base class of types, and the types without parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final


class Type:
    """The type of a value.

    ``str(type)`` is the IR's spelling (``int[]``, ``Tensor?``), ``type.annotation`` Python's (``List[int]``,
    ``Optional[Tensor]``). Types compare by structure; classes, interfaces and enums, which have names, by identity.
    """

    __slots__ = ()
    kind: ClassVar[str] = "Type"

    @property
    def annotation(self) -> str:
        """The type as it is written in Python source."""
        return str(self)

    @property
    def contained(self) -> tuple[Type, ...]:
        """The types that this one is made of: of elements, keys and values, members."""
        return ()

    def with_contained(self, contained: Sequence[Type]) -> Type:
        """Return a type like this one with other contained types, one for each of :attr:`contained`."""
        assert not contained
        return self

    def is_subtype_of(self, other: Type) -> bool:
        """Return whether a value of this type is accepted wherever one of ``other`` is expected."""
        return self is other or self == other or other.accepts(self)

    def accepts(self, other: Type) -> bool:
        """Return whether ``other``, which differs from this type, is a subtype of it: overridden by the wide types
        (Any, Scalar, Optional …).
        """
        return False

    @property
    def is_optional(self) -> bool:
        """Whether None is one of the values."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class _SimpleType(Type):
    """A type without parts: one object a class, except :class:`IntType`."""

    __slots__ = ()
    text: ClassVar[str]
    python: ClassVar[str | None] = None

    def __str__(self) -> str:
        return self.text

    @property
    def annotation(self) -> str:
        return self.python or self.text

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(self.text)


@final
class IntType(_SimpleType):
    """An int. In the IR, a ``torch.dtype``, a layout and a memory format are ints; ``python_name`` is the name of their
    class in Python, or empty."""

    __slots__ = ("python_name",)
    kind = "IntType"
    text = "int"

    def __init__(self, python_name: str = "") -> None:
        self.python_name = python_name

    @property
    def annotation(self) -> str:
        return self.python_name or "int"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntType) and self.python_name == other.python_name

    def __hash__(self) -> int:
        return hash((self.text, self.python_name))

    def accepts(self, other: Type) -> bool:
        return isinstance(other, IntType)


@final
class FloatType(_SimpleType):
    __slots__ = ()
    kind = "FloatType"
    text = "float"


@final
class ComplexType(_SimpleType):
    __slots__ = ()
    kind = "ComplexType"
    text = "complex"


@final
class BoolType(_SimpleType):
    __slots__ = ()
    kind = "BoolType"
    text = "bool"


@final
class NumberType(_SimpleType):
    """An int, a float or a complex, or a bool that was cast to a number; which one is known only at run time."""

    __slots__ = ()
    kind = "NumberType"
    text = "Scalar"
    python = "number"

    def accepts(self, other: Type) -> bool:
        if isinstance(other, UnionBase):
            return not other.is_optional and all(member.is_subtype_of(self) for member in other.contained)
        return isinstance(other, (IntType, FloatType, ComplexType))


class UnionBase(Type):
    """The base class of Optional and Union, by which other types recognize a union."""

    __slots__ = ()


@final
class StringType(_SimpleType):
    __slots__ = ()
    kind = "StringType"
    text = "str"


@final
class NoneType(_SimpleType):
    __slots__ = ()
    kind = "NoneType"
    text = "NoneType"
    is_optional = True


@final
class DeviceType(_SimpleType):
    __slots__ = ()
    kind = "DeviceObjType"
    text = "Device"


@final
class StreamType(_SimpleType):
    __slots__ = ()
    kind = "StreamObjType"
    text = "Stream"


@final
class GeneratorType(_SimpleType):
    __slots__ = ()
    kind = "GeneratorType"
    text = "Generator"


@final
class StorageType(_SimpleType):
    __slots__ = ()
    kind = "StorageType"
    text = "Storage"


@final
class QSchemeType(_SimpleType):
    __slots__ = ()
    kind = "QSchemeType"
    text = "QScheme"


@final
class CapsuleType(_SimpleType):
    __slots__ = ()
    kind = "CapsuleType"
    text = "Capsule"


@final
class AnyType(_SimpleType):
    """Any value at all."""

    __slots__ = ()
    kind = "AnyType"
    text = "Any"
    is_optional = True

    def accepts(self, other: Type) -> bool:
        return True


@final
class AnyClassType(_SimpleType):
    """An object of any script class."""

    __slots__ = ()
    kind = "AnyClassType"
    text = "AnyClassType"

    def accepts(self, other: Type) -> bool:
        return other.kind == "ClassType"


@final
class AnyEnumType(_SimpleType):
    """A member of any enum."""

    __slots__ = ()
    kind = "AnyEnumType"
    text = "AnyEnumType"

    def accepts(self, other: Type) -> bool:
        return other.kind == "EnumType"


@final
class AnyListType(_SimpleType):
    __slots__ = ()
    kind = "AnyListType"
    text = "list"

    def accepts(self, other: Type) -> bool:
        return other.kind == "ListType"


@final
class AnyTupleType(_SimpleType):
    __slots__ = ()
    kind = "AnyTupleType"
    text = "tuple"

    def accepts(self, other: Type) -> bool:
        return other.kind == "TupleType"


INT = IntType()
DTYPE = IntType("torch.dtype")
LAYOUT = IntType("torch.layout")
MEMORY_FORMAT = IntType("torch.memory_format")
QSCHEME_NUMBER = IntType("torch.qscheme")
"""A quantization scheme that Python holds; what ``aten::qscheme`` returns is a :data:`QSCHEME`."""
FLOAT = FloatType()
COMPLEX = ComplexType()
BOOL = BoolType()
NUMBER = NumberType()
STRING = StringType()
NONE = NoneType()
DEVICE = DeviceType()
STREAM = StreamType()
GENERATOR = GeneratorType()
STORAGE = StorageType()
QSCHEME = QSchemeType()
CAPSULE = CapsuleType()
ANY = AnyType()
ANY_CLASS = AnyClassType()
ANY_ENUM = AnyEnumType()
ANY_LIST = AnyListType()
ANY_TUPLE = AnyTupleType()


@final
class VarType(Type):
    """A type variable of a generic schema: the ``t`` of ``aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)``."""

    __slots__ = ("name",)
    kind = "VarType"

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VarType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("VarType", self.name))


def has_free_variables(type: Type) -> bool:
    """Return whether ``type`` contains a type variable."""
    return isinstance(type, VarType) or any(has_free_variables(part) for part in type.contained)

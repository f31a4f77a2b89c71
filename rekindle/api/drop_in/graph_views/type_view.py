"""Views of types: ``torch.jit``'s names for the types of values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, TypeAlias

import torch

from rekindle.errors import GraphError
from rekindle.ir.text.printer import format_type
from rekindle.ir.text.type_parser import parse_type
from rekindle.ir.types import (
    AwaitType,
    ClassType,
    DictType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rekindle.ir.types.tensor import DTYPE_NAMES

_Text: TypeAlias = str  # `str` is a method of types, as in torch.jit

_WITH_ELEMENT: Final = (ListType, OptionalType, FutureType, AwaitType)


class TypeView:
    """The type of a value. Equal to another view of an equal type, and to PyTorch's object for the same type."""

    __slots__ = ("ir",)

    def __init__(self, type: Type) -> None:
        self.ir = type
        """The type that this is a view of."""

    def kind(self) -> _Text:
        return self.ir.kind

    def str(self) -> _Text:
        return format_type(self.ir)

    @property
    def annotation_str(self) -> _Text:
        return self.ir.annotation

    def containedTypes(self) -> list[TypeView]:
        return [TypeView(part) for part in self.ir.contained]

    def isSubtypeOf(self, other: Any) -> bool:
        return self.ir.is_subtype_of(type_of(other))

    def is_interface_type(self) -> bool:
        return isinstance(self.ir, InterfaceType)

    # ----------------------------------------------------------------------------------------------- types with parts

    def getElementType(self) -> TypeView:
        """Return the type of the elements of a list, or the contained type of an Optional, a Future or an Await.

        Raises:
            GraphError: the type has no element type.
        """
        if not isinstance(self.ir, _WITH_ELEMENT):
            raise GraphError(f"{self.ir.kind} has no element type")
        return TypeView(self.ir.element)

    def elements(self) -> list[TypeView]:
        """Return the types of the elements of a tuple.

        Raises:
            GraphError: the type is not a tuple.
        """
        if not isinstance(self.ir, TupleType):
            raise GraphError(f"{self.ir.kind} is not a TupleType")
        return [TypeView(part) for part in self.ir.elements]

    def getKeyType(self) -> TypeView:
        return TypeView(self._dict().key)

    def getValueType(self) -> TypeView:
        return TypeView(self._dict().value)

    def _dict(self) -> DictType:
        if not isinstance(self.ir, DictType):
            raise GraphError(f"{self.ir.kind} is not a DictType")
        return self.ir

    def name(self) -> _Text:
        """Return the name of a class or interface without its module.

        Raises:
            GraphError: the type is neither a class nor an interface.
        """
        return self.qualified_name().rpartition(".")[2]

    def qualified_name(self) -> _Text:
        if not isinstance(self.ir, (ClassType, InterfaceType)):
            raise GraphError(f"{self.ir.kind} has no name")
        return self.ir.name

    # -------------------------------------------------------------------------------------------------------- tensors

    def sizes(self) -> list[int] | None:
        """Return the sizes of a tensor; None unless all are known.

        Raises:
            GraphError: the type is not a tensor type. So do the other methods on tensors.
        """
        return _known(self._tensor().sizes)

    def varyingSizes(self) -> list[int | None] | None:
        sizes = self._tensor().sizes
        return None if sizes is None else list(sizes)

    symbolic_sizes = varyingSizes

    def strides(self) -> list[int] | None:
        return _known(self._tensor().strides)

    def dim(self) -> int | None:
        return self._tensor().rank

    def scalarType(self) -> _Text | None:
        """Return the dtype in the notation of graphs: ``Float``; None if it is not known."""
        dtype = self._tensor().dtype
        return None if dtype is None else DTYPE_NAMES[dtype]

    def dtype(self) -> torch.dtype | None:
        return self._tensor().dtype

    def device(self) -> torch.device | None:
        return self._tensor().device

    def requires_grad(self) -> bool:
        return bool(self._tensor().requires_grad)

    def undefined(self) -> bool:
        return bool(self._tensor().undefined)

    def contiguous(self) -> TypeView:
        """Return the type with the strides of a contiguous tensor; this type itself if a size is not known."""
        known = self._tensor()
        if known.sizes is None or None in known.sizes:
            return self
        strides: list[int] = []
        step = 1
        for size in reversed(known.sizes):
            strides.insert(0, step)
            step *= max(size or 1, 1)
        return TypeView(replace(known, strides=tuple(strides)))

    def with_dtype(self, dtype: torch.dtype | None) -> TypeView:
        return TypeView(replace(self._tensor(), dtype=dtype))

    def with_device(self, device: torch.device | None) -> TypeView:
        return TypeView(replace(self._tensor(), device=device))

    def with_sizes(self, sizes: list[int | None] | None) -> TypeView:
        return TypeView(replace(self._tensor(), sizes=None if sizes is None else tuple(sizes), strides=None))

    def _tensor(self) -> TensorType:
        if not isinstance(self.ir, TensorType):
            raise GraphError(f"{self.ir.kind} is not a TensorType")
        return self.ir

    # ----------------------------------------------------------------------------------------------------- comparison

    def __repr__(self) -> _Text:
        return self.ir.annotation

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeView):
            return self.ir == other.ir
        annotation = getattr(other, "annotation_str", None)
        return annotation is not None and annotation == self.ir.annotation

    def __hash__(self) -> int:
        return hash(self.ir.annotation)


def type_of(given: Any) -> Type:
    """Return the type that ``given`` refers to: a type, a view of one, or PyTorch's object for a type.

    Raises:
        GraphError: ``given`` is none of these, or is PyTorch's object for a class, an interface, a function or an enum.
    """
    if isinstance(given, Type):
        return given
    if isinstance(given, TypeView):
        return given.ir
    if type(given).__name__ == "InferredType" and given.success():  # of `torch._C._jit_try_infer_type`
        given = given.type()
    if not hasattr(given, "annotation_str"):
        raise GraphError(f"a {type(given).__name__} is not a type of a graph")
    if given.kind() in ("ClassType", "InterfaceType", "FunctionType", "EnumType"):
        raise GraphError(f"{given.kind()} of torch.jit is not a type of a rekindle graph; take it from a value there")
    return parse_type(given.str())


def _known(sizes: tuple[int | None, ...] | None) -> list[int] | None:
    known = [size for size in sizes or () if size is not None]
    return None if sizes is None or len(known) != len(sizes) else known

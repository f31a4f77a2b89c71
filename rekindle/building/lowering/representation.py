"""Representation of values in machine code: the register and the descriptor of each type.

An int, a float and a bool are held in registers; every other value is a pointer to a run-time object
(:mod:`rekindle.building.runtime.objects`), or null for None.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from rekindle.errors import RekindleError, SourceRange
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    NONE,
    NUMBER,
    QSCHEME_NUMBER,
    STRING,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)


class NotBuildable(RekindleError):
    """Error of :func:`rekindle.build`: the program uses something that native libraries do not have.

    Example:
        >>> convolved = rekindle.script(lambda x, w: torch.conv1d(x, w))
        >>> try:
        ...     rekindle.build(convolved, "conv", [(torch.ones(1, 2, 8), torch.ones(3, 2, 3))], freestanding=True)
        ... except rekindle.NotBuildable as error:
        ...     print(error)
        the program needs PyTorch for aten::conv1d
    """

    def __init__(self, reason: str, range: SourceRange | None = None) -> None:
        place = "" if range is None or not range.is_known else f"\n{range.highlight()}"
        super().__init__(f"{reason}{place}")
        self.reason = reason


_PLAIN: Final[dict[Type, str]] = {
    INT: "i",
    BOOL: "b",
    FLOAT: "f",
    DTYPE: "i",
    LAYOUT: "i",
    MEMORY_FORMAT: "i",
    QSCHEME_NUMBER: "i",
    DEVICE: "i",
}
_OTHERS: Final[dict[Type, str]] = {STRING: "s", NONE: "n", NUMBER: "a", ANY: "a", COMPLEX: "c"}


@cache
def descriptor_of(type: Type) -> str:
    """Return the descriptor of a type: a string that encodes how values are stored
    (:mod:`rekindle.building.runtime.descriptors`).

    Raises:
        NotBuildable: native libraries have no values of the type.
    """
    found = _PLAIN.get(type) or _OTHERS.get(type)
    if found is not None:
        return found
    match type:
        case TensorType():
            return "t"
        case ListType():
            return "[" + descriptor_of(type.element)
        case DictType():  # a set is a dict of bools
            return "{" + descriptor_of(type.key) + descriptor_of(type.value)
        case TupleType():
            return f"({''.join(map(descriptor_of, type.contained))})"
        case OptionalType():
            inner = descriptor_of(type.element)
            return inner if inner[0] in "?a" else "?" + inner
        case UnionType():
            return "a"
        case EnumType():  # the number of the member, in the order of their definition
            return "i"
        case FutureType():  # the value of its task
            return descriptor_of(type.element)
        case ClassType() if not type.is_module:
            return "o"
        case _:
            raise NotBuildable(f"native libraries have no values of type {type}")


def fields_of_class(type: ClassType) -> str:
    """Return the descriptor of the instances of a class: the descriptors of the fields, then the name of the class."""
    fields = "".join(descriptor_of(each.type) for each in type.attributes.values())
    return f"({fields})C{type.name};"


def c_descriptor_of(type: Type, within: tuple[Type, ...] = ()) -> str:
    """Return the descriptor by which arguments from C are converted. It also encodes the alternatives of unions, and
    the attributes of classes; ``within`` are the classes that contain this type.

    Raises:
        NotBuildable: the C API cannot represent such values.
    """
    match type:
        case UnionType():
            return f"|{''.join(c_descriptor_of(each, within) for each in type.contained)})"
        case ClassType() if not type.is_module:
            if type.library_methods is not None:
                raise NotBuildable(f"an argument is a {type}, which C has no form of")
            if type in within:  # a tuple cannot hold itself
                return f"@{type.name};"
            inner = (*within, type)
            return f"({''.join(c_descriptor_of(each.type, inner) for each in type.attributes.values())})C{type.name};"
        case ListType():
            return "[" + c_descriptor_of(type.element, within)
        case DictType():
            return "{" + descriptor_of(type.key) + c_descriptor_of(type.value, within)
        case TupleType():
            return f"({''.join(c_descriptor_of(each, within) for each in type.contained)})"
        case OptionalType():
            inner_text = c_descriptor_of(type.element, within)
            return inner_text if inner_text[0] in "?a" else "?" + inner_text
        case _:
            return descriptor_of(type)


def register_of(type: Type) -> str:
    """Return the LLVM type of the register that holds a value of ``type``."""
    return {"i": "i64", "f": "double", "b": "i1"}.get(descriptor_of(type), "ptr")


def is_object(type: Type) -> bool:
    """Return whether values of ``type`` are reference-counted objects, and not numbers in registers."""
    return descriptor_of(type)[0] not in "ifb"


EMPTY: Final = {"i64": "0", "double": "0.0", "i1": "false", "ptr": "null"}
"""Operand for a value that no path defines, by LLVM type."""

"""Name mangling of the Itanium C++ ABI, for the types that signatures of ATen's operators have.

The grammar of what is written::

    name     = "_Z" nested type+                   ("v" for a function without parameters)
    nested   = "N" prefix* identifier args? "E"
    type     = builtin | "R" type | "K" type | class | substitution
    class    = "St" identifier args? | nested      (a name directly in std is not nested)
    args     = "I" (type | "L" type number "E")+ "E"

Every prefix, template name and compound type is a component, and is numbered when it is first complete. A later
occurrence is a substitution: ``S_``, ``S0_``, … in base 36.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class CppType:
    """A C++ type without typedefs. ``name`` is a qualified name, or ``&`` or ``const`` with the type that it applies to
    as the argument. The arguments of a template are types and numbers."""

    name: tuple[str, ...]
    arguments: tuple[CppType | int, ...] = ()


_TYPEDEFS: Final = {
    "at::ArrayRef": "c10::ArrayRef",
    "at::Device": "c10::Device",
    "at::DeviceIndex": "signed char",
    "at::DimnameList": "c10::ArrayRef<at::Dimname>",
    "at::IntArrayRef": "c10::ArrayRef<int64_t>",
    "at::ITensorListRef": "c10::IListRef<at::Tensor>",
    "at::Layout": "c10::Layout",
    "at::MemoryFormat": "c10::MemoryFormat",
    "at::OptionalIntArrayRef": "c10::OptionalArrayRef<int64_t>",
    "at::OptionalSymIntArrayRef": "c10::OptionalArrayRef<c10::SymInt>",
    "at::QScheme": "c10::QScheme",
    "at::Scalar": "c10::Scalar",
    "at::ScalarType": "c10::ScalarType",
    "at::Storage": "c10::Storage",
    "at::Stream": "c10::Stream",
    "at::TensorList": "c10::ArrayRef<at::Tensor>",
    "c10::string_view": "std::basic_string_view<char, std::char_traits<char>>",
    "c10::SymIntArrayRef": "c10::ArrayRef<c10::SymInt>",
}
_BUILTIN: Final = {
    "bool": "b",
    "char": "c",
    "double": "d",
    "int64_t": "x" if sys.platform == "darwin" else "l",  # long long there, long elsewhere
    "signed char": "a",
    "size_t": "m",
}
_STD: Final = ("std", "__1") if sys.platform == "darwin" else ("std",)
"""The namespace of the standard library's classes: libc++ has an inline one within ``std``."""


def mangled_name(function: Sequence[str], parameters: Sequence[str]) -> str:
    """Return the mangled symbol of a C++ function. For ``("at", "_ops", "neg", "call")`` and ``["const at::Tensor &"]``
    it is ``_ZN2at4_ops3neg4callERKNS_6TensorE``.

    Args:
        function: the parts of its qualified name.
        parameters: the C++ types of its parameters; see :func:`read_type`.
    """
    mangler = _Mangler()
    name = f"N{mangler.prefix(tuple(function[:-1]))}{_identifier(function[-1])}E"
    return f"_Z{name}{''.join(mangler.type(read_type(each)) for each in parameters) or 'v'}"


@cache
def read_type(spelling: str) -> CppType:
    """Return the type that ``spelling`` names, with typedefs resolved: ``const ::std::optional<at::Tensor> &``."""
    spelling = spelling.strip().removeprefix("::")
    if spelling.endswith("&"):
        return CppType(("&",), (read_type(spelling[:-1]),))
    if spelling.startswith("const "):
        return CppType(("const",), (read_type(spelling[6:]),))
    name, _, rest = spelling.partition("<")
    arguments = tuple(
        int(part) if part.isdecimal() else read_type(part) for part in _split(rest.rstrip().removesuffix(">"))
    )
    if name in _TYPEDEFS:
        aliased = read_type(_TYPEDEFS[name])
        return CppType(aliased.name, aliased.arguments + arguments)
    parts = tuple(name.split("::"))
    return CppType((*_STD, *parts[1:]) if parts[0] == "std" else parts, arguments)


def _split(arguments: str) -> list[str]:
    """Split the arguments of a template at the commas that are not within those of another."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(arguments):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append(arguments[start:position].strip())
            start = position + 1
    return [*parts, arguments[start:].strip()] if arguments else []


def _identifier(name: str) -> str:
    return f"{len(name)}{name}"


class _Mangler:
    """Encoder of one symbol. ``_numbers`` numbers its components: types, and the names of scopes and templates."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[CppType | tuple[str, ...], int] = {}

    def type(self, type: CppType) -> str:
        if len(type.name) == 1 and type.name[0] in _BUILTIN:
            return _BUILTIN[type.name[0]]
        return self._component(type, lambda: self._compound(type))

    def _compound(self, type: CppType) -> str:
        if type.name in _QUALIFIERS:
            return _QUALIFIERS[type.name] + self._arguments(type)
        if type.arguments:
            text = f"{self.prefix(type.name)}I{self._arguments(type)}E"
        else:
            text = self._unqualified(type.name)
        return text if type.name[:-1] == ("std",) else f"N{text}E"

    def _arguments(self, type: CppType) -> str:
        parts = [f"Lm{each}E" if isinstance(each, int) else self.type(each) for each in type.arguments]
        return "".join(parts)  # the only numbers are sizes of arrays, of type size_t

    def prefix(self, name: tuple[str, ...]) -> str:
        """Encode a namespace, a class as a scope, or the name of a template."""
        return "St" if name == ("std",) else self._component(name, lambda: self._unqualified(name))

    def _unqualified(self, name: tuple[str, ...]) -> str:
        return (self.prefix(name[:-1]) if name[:-1] else "") + _identifier(name[-1])

    def _component(self, key: CppType | tuple[str, ...], encode: Callable[[], str]) -> str:
        number = self._numbers.get(key)
        if number is not None:
            return f"S{_base_36(number - 1) if number else ''}_"
        text = encode()
        self._numbers[key] = len(self._numbers)
        return text


_QUALIFIERS: Final = {("&",): "R", ("const",): "K"}
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _base_36(number: int) -> str:
    rest, digit = divmod(number, 36)
    return (_base_36(rest) if rest else "") + _DIGITS[digit]

"""The order in which overloads are tried, for kinds whose overloads are declared in several places.

TorchScript tries them in this order, and where an argument fits several (a Tensor given for an int, an empty list),
the first wins. Other kinds are tried as they are declared.
"""

from __future__ import annotations

from typing import Final

_COMPARISON: Final = ("int", "float", "int_float", "float_int", "", "str")
_EQUALITY: Final = (
    *("int_list", "device", "bool", "enum", "int", "complex", "float", "int_float", "float_int"),
    *("float_complex", "complex_float", "", "str", "float_list", "Tensor_list", "bool_list", "str_list"),
)
_ARITHMETIC: Final = (
    *("int", "complex", "float", "int_complex", "complex_int", "float_complex", "complex_float"),
    *("int_float", "float_int", ""),
)
_KEYS: Final = ("str", "int", "bool", "float", "complex", "Tensor")
_DICTS: Final = tuple(f"Dict_{key}" for key in _KEYS)

ORDER: Final[dict[str, tuple[str, ...]]] = {
    "aten::Delete": ("t", *_DICTS),
    "aten::__contains__": (
        *("int_list", "str_list", "str", "int", "bool", "float", "complex", "Tensor", "float_list"),
    ),
    "aten::__getitem__": ("t", "str", *_DICTS),
    "aten::_set_item": ("t", *_KEYS),
    "aten::add": ("t", "str", *_ARITHMETIC),
    "aten::mul": ("left_t", "right_", *_ARITHMETIC),
    "aten::clear": ("t", *_KEYS),
    "aten::copy": ("t", *_DICTS),
    "aten::count": ("", "int", "float", "bool", "Tensor", "str"),
    "aten::eq": _EQUALITY,
    "aten::ne": _EQUALITY,
    "aten::lt": _COMPARISON,
    "aten::le": _COMPARISON,
    "aten::gt": _COMPARISON,
    "aten::ge": _COMPARISON,
    "aten::index": ("Tensor_hacked_twin", "str", "list_int", "list_float", "list_bool", "list_Tensor", "list_str"),
    "aten::len": ("t", "Tensor", "str", *_DICTS, "any"),
    "aten::list": ("", "t"),
    "aten::pop": ("t", *(f"Dict_{part}{key}" for key in _KEYS for part in ("", "default_"))),
    "aten::pow": (
        *("int", "complex", "float", "int_float", "float_int", "float_complex", "complex_float"),
        *("Scalar_Scalar", "int_to_int"),
    ),
    "aten::slice": ("t", "str"),
    "aten::split": ("str", ""),
}
"""The overload names of a kind, in order; the empty one is the overload without a name."""

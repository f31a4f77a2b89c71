"""Operators of Python's library, expressed in archives by operators of TorchScript.

Numbers become tensors by ``torch.scalar_tensor``: for ``torch.tensor(x, dtype=7)`` TorchScript first rounds ``x`` to
the default dtype.
"""

from __future__ import annotations

from typing import Final

_ONE: Final = "torch.scalar_tensor("
_DOUBLE: Final = ", dtype=7)"
_MANY: Final = "torch.stack([torch.scalar_tensor(x, dtype=7) for x in torch.add("

LIBRARY_OPERATORS: Final[dict[str, tuple[str, str, str]]] = {
    "python::log2": (f"float(torch.log2({_ONE}", "", f"{_DOUBLE}))"),
    "python::exp2": (f"float(torch.exp2({_ONE}", "", f"{_DOUBLE}))"),
    "python::nextafter": (f"float(torch.nextafter({_ONE}", f"{_DOUBLE}, {_ONE}", f"{_DOUBLE}))"),
    "python::round": (f"float(torch.round({_ONE}", f"{_DOUBLE}, decimals=", "))"),
    "python::fsum": (f"float(torch.sum({_MANY}", "", ", [0.])])))"),
    "python::norm": (f"float(torch.linalg_vector_norm({_MANY}", "", ", [0.])])))"),
    "python::accelerator": ('torch.device("cuda", ', "", ")"),
    "python::casefold": ("torch.lower(", "", ")"),
}
"""The text before the first input, between the inputs, and after the last. Operators that are not listed cannot be
saved."""

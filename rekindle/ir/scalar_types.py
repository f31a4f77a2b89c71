"""Ints that represent dtypes, layouts, memory formats and quantization schemes in the IR: values of PyTorch's enums."""

from __future__ import annotations

from typing import Final, TypeAlias

import torch

_DTYPE_NAMES: Final = (
    *(
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
    ),
    *("bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4"),
    *("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
    *("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64"),
    *("uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7"),
    *("int1", "int2", "int3", "int4", "int5", "int6", "int7", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    "bcomplex32",
)

DTYPES: Final[tuple[torch.dtype | None, ...]] = tuple(getattr(torch, name, None) for name in _DTYPE_NAMES)
"""The dtype of each number; None where the installed torch lacks it."""

DTYPE_NUMBERS: Final[dict[torch.dtype, int]] = {dtype: i for i, dtype in enumerate(DTYPES) if dtype is not None}

LAYOUTS: Final[tuple[torch.layout, ...]] = (
    *(torch.strided, torch.sparse_coo, torch.sparse_csr, torch._mkldnn),  # type: ignore[attr-defined]
    *(torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc, torch.jagged),
)
LAYOUT_NUMBERS: Final[dict[torch.layout, int]] = {layout: i for i, layout in enumerate(LAYOUTS)}

MEMORY_FORMATS: Final[tuple[torch.memory_format, ...]] = (
    torch.contiguous_format,
    torch.preserve_format,
    torch.channels_last,
    torch.channels_last_3d,
)
MEMORY_FORMAT_NUMBERS: Final[dict[torch.memory_format, int]] = {form: i for i, form in enumerate(MEMORY_FORMATS)}

QSCHEMES: Final[tuple[torch.qscheme, ...]] = (
    *(torch.per_tensor_affine, torch.per_channel_affine, torch.per_tensor_symmetric, torch.per_channel_symmetric),
    torch.per_channel_affine_float_qparams,
)
QSCHEME_NUMBERS: Final[dict[torch.qscheme, int]] = {scheme: i for i, scheme in enumerate(QSCHEMES)}

NUMBERED_CLASSES: Final = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)
"""The classes of the Python objects that are ints in the IR."""

Numbered: TypeAlias = torch.dtype | torch.layout | torch.memory_format | torch.qscheme

PYTHON_OBJECTS: Final[dict[str, tuple[object, ...]]] = {
    "torch.dtype": DTYPES,
    "torch.layout": LAYOUTS,
    "torch.memory_format": MEMORY_FORMATS,
    "torch.qscheme": QSCHEMES,
}
"""Python's objects by number, for each :attr:`~rekindle.ir.types.base.IntType.python_name`."""


def number_of(value: Numbered) -> int:
    """Return the int that represents a dtype, layout, memory format or quantization scheme in a graph, the value of
    PyTorch's C++ enum: 6 for ``torch.float32``, 0 for ``torch.strided``."""
    if isinstance(value, torch.dtype):
        return DTYPE_NUMBERS[value]
    if isinstance(value, torch.layout):
        return LAYOUT_NUMBERS[value]
    if isinstance(value, torch.qscheme):
        return QSCHEME_NUMBERS[value]
    return MEMORY_FORMAT_NUMBERS[value]

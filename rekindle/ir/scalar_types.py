"""The numbers by which programs know dtypes, layouts and memory formats. In the IR all three are ints."""

from __future__ import annotations

from typing import Final

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

PYTHON_OBJECTS: Final[dict[str, tuple[object, ...]]] = {
    "torch.dtype": DTYPES,
    "torch.layout": LAYOUTS,
    "torch.memory_format": MEMORY_FORMATS,
}
"""What Python has for each number, by the ``python`` of the type."""


def number_of(value: torch.dtype | torch.layout | torch.memory_format) -> int:
    """Return the number of a dtype, a layout or a memory format."""
    if isinstance(value, torch.dtype):
        return DTYPE_NUMBERS[value]
    if isinstance(value, torch.layout):
        return LAYOUT_NUMBERS[value]
    return MEMORY_FORMAT_NUMBERS[value]

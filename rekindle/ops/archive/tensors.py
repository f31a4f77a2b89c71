"""A tensor as C++ prints it: aligned columns, at most 80 characters per line, followed by the type and shape::

 1.0000
 2.5000
[ CPUFloatType{2} ]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import torch

_LINE: Final = 80
"""Characters per line, after which a matrix continues in another group of columns."""

_NAMES: Final = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}


@dataclass(slots=True, frozen=True)
class _Format:
    """The format of the elements of a vector or matrix: ``scale`` times a number of ``width`` characters."""

    scale: float
    width: int
    write: Callable[[float], str]

    def element(self, value: float) -> str:
        return self.write(value / self.scale).rjust(self.width)


def text_of_tensor(tensor: torch.Tensor) -> str:
    """Format a tensor as ``str`` in the releases that wrote archives did. Of complex numbers it shows the real
    parts. Tensors of other layouts than strided, and of dtypes that those releases lacked, are formatted by ``str``."""
    name = _NAMES.get(tensor.dtype)
    if name is None or tensor.layout is not torch.strided:
        return str(tensor)
    shape = ",".join(map(str, tensor.shape))
    tail = f"[ {tensor.device.type.upper()}{name}Type{{{shape}}} ]"
    if tensor.numel() == 0:
        return tail
    values = tensor.detach()
    values = (values.real if values.is_complex() else values).to("cpu", torch.float64)
    if values.dim() == 0:
        return f"{_scalar(values.item())}\n{tail}"
    if values.dim() == 1:
        form = _format_of(values)
        return "".join(_scale_line(form, "")) + "".join(f"{form.element(v)}\n" for v in values.tolist()) + tail
    if values.dim() == 2:
        return "".join(_matrix(values, 0)) + tail
    return "\n".join(_slices(values)) + tail


def _scalar(value: float) -> str:
    return repr(value).removesuffix(".0")


def _slices(values: torch.Tensor) -> Iterator[str]:
    """Yield the text of each matrix of the last two dimensions, preceded by its index in the other dimensions. The
    first index varies fastest."""
    for reversed_place in itertools.product(*(range(size) for size in reversed(values.shape[:-2]))):
        place = reversed_place[::-1]
        head = ",".join(str(index + 1) for index in place)
        yield f"({head},.,.) = \n" + "".join(_matrix(values[place], 1))


def _scale_line(form: _Format, indent: str) -> Iterator[str]:
    if form.scale != 1:
        yield f"{_scalar(form.scale)} *\n{indent}"


def _matrix(values: torch.Tensor, indent: int) -> Iterator[str]:
    form = _format_of(values)
    margin = " " * indent
    columns = values.shape[1]
    fitting = (_LINE - indent) // (form.width + 1)
    for first in range(0, columns, fitting):
        last = min(first + fitting, columns)
        if fitting < columns:
            yield "\n" if first else ""
            yield f"Columns {first + 1} to {last}"
            yield margin
        yield from _scale_line(form, margin)
        rows = [" ".join(map(form.element, row)) + "\n" for row in values[:, first:last].tolist()]
        yield (margin if form.scale == 1 else margin + " ").join(rows)


def _format_of(values: torch.Tensor) -> _Format:
    """Return the narrowest way to write the elements so that they align."""
    sizes = values[torch.isfinite(values)].abs()
    low, high = (1, 1) if sizes.numel() == 0 else (_exponent(sizes.min().item()), _exponent(sizes.max().item()))
    if bool((sizes == sizes.ceil()).all()):
        return _Format(1, 11, _scientific) if high > 9 else _Format(1, high + 1, lambda value: f"{value:.6g}")
    if high - low > 4:
        return _Format(1, 12 if abs(high) > 99 or abs(low) > 99 else 11, _scientific)
    if high > 5 or high < 0:
        return _Format(math.pow(10, high - 1), 7, _fixed)
    return _Format(1, 7 if high == 0 else high + 6, _fixed)


def _exponent(value: float) -> int:
    return 1 if value == 0 else math.floor(math.log10(value)) + 1


def _scientific(value: float) -> str:
    return f"{value:.4e}"


def _fixed(value: float) -> str:
    return f"{value:.4f}"

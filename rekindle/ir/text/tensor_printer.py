"""How a tensor constant is spelled in a graph.

One element is a number in braces, a few are written out as PyTorch's C++ prints a tensor, with blanks for the line
ends, more are ``<Tensor>``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from rekindle.ir.types import DTYPE_NAMES

MAX_ELEMENTS = 10
"""A tensor with more elements is not written out."""
MANY_ELEMENTS = "<Tensor>"
TENSOR_LIST = "[<Tensors>]"
_WIDTH = 80


def format_tensor(tensor: torch.Tensor) -> str:
    """Return the text of ``tensor``, as printed after ``value=``.

    A tensor of more than ``MAX_ELEMENTS`` elements, one that is not strided, and one on the meta device are
    ``<Tensor>``.
    """
    if tensor.numel() > MAX_ELEMENTS or tensor.layout is not torch.strided or tensor.is_meta:
        return MANY_ELEMENTS
    if tensor.numel() == 1:
        return f"{{{_format_item(tensor.detach())}}}"
    return _format_elements(tensor.detach())


def is_tensor_text(text: str) -> bool:
    """Return whether ``text`` is the text form of a tensor, or of a list of tensors."""
    return text in (MANY_ELEMENTS, TENSOR_LIST) or bool(_ONE.match(text)) or bool(_WRITTEN_OUT.search(text))


_ONE = re.compile(r"\{[^{}:]+\}\Z")
_WRITTEN_OUT = re.compile(r"\[ (?:Quantized)?[A-Z]+[A-Za-z0-9_]+Type\{[\d,]*\}.*\]\Z")


def _format_item(tensor: torch.Tensor) -> str:
    value = (tensor.dequantize() if tensor.is_quantized else tensor).reshape(()).item()
    if isinstance(value, complex):
        return f"({value.real:g},{value.imag:g})"
    return f"{value:g}" if isinstance(value, float) else str(int(value))


def _format_elements(tensor: torch.Tensor) -> str:
    dtype = DTYPE_NAMES[tensor.dtype]
    device = "Quantized" if tensor.is_quantized else ""
    device += tensor.device.type.upper()
    sizes = ",".join(map(str, tensor.shape))
    tail = f"[ {device}{dtype}Type{{{sizes}}}{_format_quantizer(tensor) if tensor.is_quantized else ''} ]"
    if tensor.numel() == 0:
        return tail
    plain = tensor.dequantize() if tensor.is_quantized else tensor
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())[..., 0]
    lines = _lines(plain.to(torch.float64).cpu())
    return " ".join([*lines, tail])


def _format_quantizer(tensor: torch.Tensor) -> str:
    if tensor.qscheme() is torch.per_tensor_affine:
        return f", qscheme: per_tensor_affine, scale: {tensor.q_scale():g}, zero_point: {tensor.q_zero_point()}"
    scheme = str(tensor.qscheme()).rpartition(".")[2]
    scales = _format_elements(tensor.q_per_channel_scales())
    zero_points = _format_elements(tensor.q_per_channel_zero_points())
    axis = tensor.q_per_channel_axis()
    return f", qscheme: {scheme}, scales: {scales}, zero_points: {zero_points}, axis: {axis}"


# -------------------------------------------------------------------------------------------------------------- numbers


@dataclass(slots=True)
class _Format:
    """The common format of the numbers of a tensor, which are divided by ``scale``."""

    width: int
    scale: float = 1.0
    is_whole: bool = False
    scientific: bool = False

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Format:
        finite = [abs(value) for value in tensor.flatten().tolist() if math.isfinite(value)]
        low, high = _exponent(min(finite, default=0.0)), _exponent(max(finite, default=0.0))
        if all(value == math.floor(value) for value in finite):
            return cls(11, scientific=True) if high > 9 else cls(high + 1, is_whole=True)
        if high - low > 4:
            return cls(12 if abs(high) > 99 or abs(low) > 99 else 11, scientific=True)
        if high > 5 or high < 0:
            return cls(7, scale=10.0 ** (high - 1))
        return cls(7 if high == 0 else high + 6)

    def __call__(self, value: float) -> str:
        if self.scientific:
            text = f"{value:.4e}"
        elif self.is_whole:
            text = f"{value:g}"
        else:
            text = f"{value / self.scale:.4f}"
        return text.rjust(self.width)


def _exponent(value: float) -> int:
    """Return the number of digits before the decimal point; negative for zeros after the point."""
    return 1 if value == 0 else math.floor(math.log10(value)) + 1


# ---------------------------------------------------------------------------------------------------------------- lines


def _lines(tensor: torch.Tensor) -> Iterator[str]:
    if tensor.dim() <= 2:
        yield from _matrix(tensor, _Format.of(tensor), 0)
        return
    # Slices of one tensor have a format each.
    batch = tensor.shape[:-2]
    for index in range(math.prod(batch)):
        at = [int(i) for i in torch.unravel_index(torch.tensor(index), batch)]
        if index:
            yield ""
        yield f"({','.join(str(i + 1) for i in at)},.,.) ="
        matrix = tensor[tuple(at)]
        yield from _matrix(matrix, _Format.of(matrix), 1)


def _matrix(tensor: torch.Tensor, form: _Format, indent: int) -> Iterator[str]:
    pad = " " * indent
    scale = "" if form.scale == 1.0 else f"{repr(form.scale).removesuffix('.0')} *"
    if tensor.dim() == 1:
        if scale:
            yield scale
        yield from map(form, tensor.tolist())
        return
    columns = tensor.shape[1]
    chunk = max(1, (_WIDTH - indent) // (form.width + 1))
    for begin in range(0, columns, chunk):
        end = min(begin + chunk, columns)
        head = ""
        if begin:
            yield ""
        if chunk < columns:
            head = f"{'' if begin else pad}Columns {begin + 1} to {end}"
        if scale:
            yield head + pad + scale
            head = ""
        later_pad = pad + " " if scale else pad
        for index, row in enumerate(tensor[:, begin:end].tolist()):
            yield head + (later_pad if index else pad) + " ".join(map(form, row))
            head = ""

"""Copies of images with zeros around them, for kernels that read no position outside an image."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from rekindle.codegen.convolution.launch_ir import Padding
from rekindle.codegen.convolution.padding_ir import define_pad
from rekindle.codegen.convolution.task_ir import finished
from rekindle.codegen.convolution.workspace import WORKSPACE
from rekindle.codegen.emission.ir_builder import ModuleBuilder
from rekindle.codegen.llvm.cpython_wrappers import python_function, with_declarations, wrapper_ir
from rekindle.codegen.llvm.engine import compile_module
from rekindle.codegen.llvm.library import MissingSymbolError
from rekindle.codegen.llvm.target import Target

_LAST: Final = torch.channels_last
_SERIAL: Final = 1 << 17
"""Number of elements above which PyTorch copies the image, if it has several threads."""


@cache
def _function(target: Target) -> Callable[[int, int, int, int, int, int, int, int], None] | None:
    """Return the compiled function ``pad``; None if this platform lacks a function that it calls."""
    module = ModuleBuilder()
    define_pad(module)
    entry = wrapper_ir("pad", ["ptr", "ptr", *["i64"] * 6], None, without_gil=True)
    try:
        return python_function(compile_module(with_declarations(finished(module) + entry), target=target), "pad")
    except MissingSymbolError:
        return None


def padded(image: Tensor, rows: int, columns: int, target: Target, *, planar: bool = False) -> Tensor:
    """Return a tensor whose memory holds images in channels-last order, or contiguous ``planar`` ones, padded with
    ``rows`` and ``columns`` of zeros on each side. Its shape is arbitrary. The next call of this thread may
    overwrite it. Without padding, it is ``image`` itself if that is in this order."""
    if not planar:
        image = image.contiguous(memory_format=_LAST)
    if not rows and not columns:
        return image
    function = _function(target)
    if function is None or (torch.get_num_threads() > 1 and image.numel() > _SERIAL):
        # PyTorch may choose the other order for an image of one element.
        made = functional.pad(image, (columns, columns, rows, rows))
        return made.contiguous() if planar else made.contiguous(memory_format=_LAST)
    sizes = padding_of(image, rows, columns, planar=planar)
    assert sizes is not None
    result = WORKSPACE.of(sizes.size)
    pointers = image.data_ptr(), result.data_ptr()
    function(*pointers, sizes.images, sizes.rows, sizes.row, sizes.before, sizes.between, sizes.after)
    return result


def padding_of(image: Tensor, rows: int, columns: int, *, planar: bool) -> Padding | None:
    """Return the parameters of the padded copy of images; None if there is no padding. ``rows`` and ``columns`` are
    added on each side. A ``planar`` image has its channels one after the other in memory, any other image the channels
    of each pixel."""
    if not rows and not columns:
        return None
    images, channels, height, width = image.shape
    pixel = 4 if planar else channels * 4
    if planar:
        images *= channels
    side = columns * pixel
    border = rows * (width + 2 * columns) * pixel + side
    return Padding(images, height, width * pixel, border, 2 * side, border)

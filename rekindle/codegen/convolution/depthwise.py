"""Depthwise convolutions with constant weights by :mod:`rekindle.codegen.convolution.depthwise_ir`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import torch
from torch import Tensor

from rekindle.codegen.convolution.depthwise_ir import DepthwiseWord, RowShape, module_text
from rekindle.codegen.convolution.direct import GRAIN, Call, DirectConvolution, Geometry, Part
from rekindle.codegen.convolution.task_function import TaskFunction, task_function
from rekindle.codegen.convolution.task_ir import VECTORS, lanes_of
from rekindle.codegen.llvm.target import Target

_MAX_PLACES: Final = 7
"""Maximum width of a kernel: longer rows have more weights than there are registers."""
_MAX_STRIDE: Final = 4


@cache
def _function(shape: RowShape, target: Target) -> TaskFunction | None:
    """Return the compiled function, which takes the image, the residual or 0, and the output; None if this platform
    lacks a function that it calls."""
    return task_function(shape.name(), partial(module_text, target, shape), 3, target, None)


def applies(weight: Tensor, geometry: Geometry) -> bool:
    """Return whether the convolution is depthwise, with a kernel width and a stride for which there are functions."""
    return (
        weight.shape[1] == 1
        and weight.shape[0] == geometry.groups > 1
        and weight.shape[3] <= _MAX_PLACES
        and geometry.stride[1] <= _MAX_STRIDE
    )


@dataclass(slots=True)
class DepthwiseConvolution(DirectConvolution):
    """A depthwise convolution for which :func:`applies` holds. It makes no copy of a channels-last image."""

    @property
    def _zeros(self) -> tuple[int, int]:
        return 0, 0

    def _call_for(self, image: torch.Size, sizes: tuple[int, int, int, int], planar: bool) -> Call | None:
        geometry = self.geometry
        shape = RowShape(self.weight.shape[3], geometry.stride[1], geometry.dilation[1])
        function = _function(shape, self.target)
        if function is None:
            return None
        packed = self._packed_weights()
        lanes = lanes_of(self.target)
        images, channels, height, width = image
        blocks, rest = divmod(channels, VECTORS * lanes)
        words = (ctypes.c_int64 * len(DepthwiseWord))()
        numbers = {
            DepthwiseWord.WEIGHTS: packed[0][0].data_ptr(),
            DepthwiseWord.BIAS: packed[0][1].data_ptr(),
            DepthwiseWord.IMAGES: images,
            DepthwiseWord.HEIGHT: height,
            DepthwiseWord.WIDTH: width,
            DepthwiseWord.OUTPUT_HEIGHT: sizes[2],
            DepthwiseWord.OUTPUT_WIDTH: sizes[3],
            DepthwiseWord.PIXEL: channels * 4,
            DepthwiseWord.KERNEL_ROWS: self.weight.shape[2],
            DepthwiseWord.ROW_STRIDE: geometry.stride[0],
            DepthwiseWord.ROW_DILATION: geometry.dilation[0],
            DepthwiseWord.TOP: geometry.padding[0],
            DepthwiseWord.LEFT: geometry.padding[1],
            DepthwiseWord.CHANNELS: channels,
            DepthwiseWord.BLOCKS: blocks,
            DepthwiseWord.ACTIVATION: self.activation.number,
            DepthwiseWord.TASKS: images * sizes[2] * (blocks + -(-rest // lanes)),
        }
        for word, value in numbers.items():
            words[word] = value
        strides = (sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1])
        work = sizes[0] * sizes[2] * sizes[3] * self.weight.numel()
        part = Part(words, packed[0], ctypes.addressof(words), 0, 0)
        return Call(function, [part], sizes, strides, max(1, min(work // GRAIN, words[DepthwiseWord.TASKS])))

    def _pack(self, planar: bool = False) -> list[tuple[Tensor, Tensor]]:
        """Return the weights and the bias in the order in which a tile reads them: blocks of vectors of channels, then
        single vectors; within these, kernel positions, then channels. Missing channels are zeros."""
        lanes = lanes_of(self.target)
        channels = self.weight.shape[0]
        table = self.weight.detach().reshape(channels, -1).t()
        bias = self.weight.new_zeros(-(-channels // lanes) * lanes)
        if self.bias is not None:
            bias[:channels] = self.bias.detach()
        whole = channels // (VECTORS * lanes) * VECTORS * lanes
        starts = [(first, VECTORS * lanes) for first in range(0, whole, VECTORS * lanes)]
        starts += [(first, lanes) for first in range(whole, channels, lanes)]
        found = []
        for first, width in starts:
            block = table.new_zeros(table.shape[0], width)
            part = table[:, first : first + width]
            block[:, : part.shape[1]] = part
            found.append(block.reshape(-1))
        return [(torch.cat(found), bias)]

"""Convolutions of 3x3 with constant weights by :mod:`rekindle.codegen.convolution.winograd_ir`: packing and calls."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.convolution.activations import NONE, Activation
from rekindle.codegen.convolution.direct import Geometry
from rekindle.codegen.convolution.launch_ir import NULL, SCRATCH, LaunchPart, launch_parameters
from rekindle.codegen.convolution.task_function import TaskFunction, task_function
from rekindle.codegen.convolution.task_ir import VECTORS, lanes_of, rows_of
from rekindle.codegen.convolution.winograd_ir import NAME, POINTS, WEIGHT_TRANSFORM, WinogradWord, module_text
from rekindle.codegen.convolution.workspace import WORKSPACE
from rekindle.codegen.launched_operation import NativeCall
from rekindle.codegen.llvm.caches import second_level_cache
from rekindle.codegen.llvm.target import Target, host_target

LONGEST_SUM: Final = 64
"""Number of products accumulated before the sum is added to memory: errors remain about as small as those of direct
kernels."""
MIN_CHANNELS: Final = 16
"""With fewer channels, the transforms cost more than they save."""
_MAX_WEIGHTS: Final = 1 << 18
"""With more weights, the transformed ones, nearly twice as large, take more than 16 MiB, and longer to read."""
_MIN_TILES: Final = 16
"""Minimum number of tiles in a block, since each block reads all weights."""
_GRAIN: Final = 1 << 19
"""Number of multiplications that justify another thread."""
_MAX_SIZES: Final = 256
"""The maximum number of image sizes whose call data is cached."""
_LAST: Final = torch.channels_last
_LINE: Final = 64
"""Size in bytes of a cache line."""


@cache
def _function(target: Target) -> TaskFunction | None:
    """Return the function, whose arguments are the image, the residual or 0, the output and the workspace, and which
    returns 1 if a result is not finite; None if this platform lacks a function that it calls."""
    return task_function(NAME, partial(module_text, target), 4, target, "i64")


@dataclass(slots=True)
class _Call:
    """Data shared by calls with images of one size."""

    function: TaskFunction
    words: Any
    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]
    workspace: int
    """Bytes for one thread."""
    most_threads: int


def applies(weight: Tensor, geometry: Geometry) -> bool:
    """Return whether Winograd's algorithm supports this convolution, and may be faster."""
    return (
        tuple(weight.shape[2:]) == (3, 3)
        and geometry.stride == geometry.dilation == (1, 1)
        and geometry.groups == 1
        and min(weight.shape[:2]) >= MIN_CHANNELS
        and weight.shape[0] * weight.shape[1] <= _MAX_WEIGHTS
    )


@dataclass(slots=True)
class WinogradConvolution:
    """A convolution of float32 images on the CPU by Winograd's algorithm, with a 3x3 kernel and stride 1, whose
    ``weight`` and ``bias`` do not change. See :class:`~rekindle.codegen.convolution.direct.DirectConvolution` about
    threads."""

    weight: Tensor
    bias: Tensor | None
    geometry: Geometry
    activation: Activation = NONE
    target: Target = field(default_factory=host_target)
    _packed: dict[str, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    """Transformed weights, the bias, and zeros in place of channels outside the image, once they are needed: one item,
    which is never replaced, since words have the addresses."""
    _calls: dict[torch.Size, _Call | None] = field(default_factory=dict)
    """Data of the latest calls, by the size of the image; None for unsupported sizes."""

    def run(self, image: Tensor, residual: Tensor | None) -> Tensor | None:
        """Return the convolution of ``image`` in channels-last order, with ``residual``, of the result's sizes, added
        before the activation; None for unsupported sizes or platforms, and if a number is infinite or NaN before the
        residual is added."""
        known = self._calls
        call = known[image.shape] if image.shape in known else self._prepare(image.shape)
        if call is None:
            return None
        image = image.contiguous(memory_format=_LAST)
        output = torch.empty_strided(call.sizes, call.strides, dtype=torch.float32, device="cpu")
        added = 0
        if residual is not None:
            residual = residual.contiguous(memory_format=_LAST)
            added = residual.data_ptr()
        threads = min(torch.get_num_threads(), call.most_threads) if call.most_threads > 1 else 1
        work = WORKSPACE.of(call.workspace * threads).data_ptr()
        address = ctypes.addressof(call.words)
        if call.function.call(address, image.data_ptr(), added, output.data_ptr(), work, threads):
            return None
        return output

    def native_call(self, image: Tensor, residual: Tensor | None) -> NativeCall | None:
        """Return the call data for native code, for tensors of the same sizes and strides. Return None unless
        :meth:`run` was called with such sizes before, and native code can pass the tensors without copies."""
        call = self._calls.get(image.shape)
        if call is None or call.function.launch is None:
            return None
        if not all(each is None or each.is_contiguous(memory_format=_LAST) for each in (image, residual)):
            return None
        tensors = 1 if residual is None else 2
        beside = (NULL, 0) if residual is None else (1, 0)
        part = LaunchPart(((0, 0), beside, (tensors, 0), (SCRATCH, 0)), tuple(call.words))
        parameters = launch_parameters([part], call.most_threads, call.workspace)
        output = (torch.float32, call.sizes, call.strides)
        return NativeCall(call.function.launch, parameters, output, self)  # code of functions is never freed

    def _prepare(self, image: torch.Size) -> _Call | None:
        sizes = self.geometry.output_sizes(image, self.weight.shape)
        made = self._call_for(image, sizes) if min(sizes) > 0 else None
        latest = list(self._calls.items())[1 - _MAX_SIZES :]
        self._calls = {**dict(latest), image: made}
        return made

    def _call_for(self, image: torch.Size, sizes: tuple[int, int, int, int]) -> _Call | None:
        function = _function(self.target)
        if function is None:
            return None
        packed = self._packed.get("weights") or self._packed.setdefault("weights", self._pack())
        channels, outputs, lanes = image[1], sizes[1], lanes_of(self.target)
        rows, columns = -(-sizes[2] // 2), -(-sizes[3] // 2)
        tiles = sizes[0] * rows * columns
        patch_row = -(-channels // lanes) * lanes * 4
        product_row = -(-outputs // (VECTORS * lanes)) * VECTORS * lanes * 4
        block = self._block(tiles, patch_row + product_row, packed[0].numel() * 4)
        patch_step, product_step = (block * row + _LINE for row in (patch_row, product_row))
        products = POINTS * patch_step
        unread = products + POINTS * product_step
        words = (ctypes.c_int64 * len(WinogradWord))()
        numbers = {
            WinogradWord.WEIGHTS: packed[0].data_ptr(),
            WinogradWord.BIAS: packed[1].data_ptr(),
            WinogradWord.ZEROS: packed[2].data_ptr(),
            WinogradWord.CHANNELS: channels,
            WinogradWord.CHUNK: -(-channels // -(-channels // LONGEST_SUM)),
            WinogradWord.OUTPUTS: outputs,
            WinogradWord.HEIGHT: image[2],
            WinogradWord.WIDTH: image[3],
            WinogradWord.TOP: self.geometry.padding[0],
            WinogradWord.LEFT: self.geometry.padding[1],
            WinogradWord.OUTPUT_HEIGHT: sizes[2],
            WinogradWord.OUTPUT_WIDTH: sizes[3],
            WinogradWord.TILE_ROWS: rows,
            WinogradWord.TILE_COLUMNS: columns,
            WinogradWord.TILES: tiles,
            WinogradWord.BLOCK: block,
            WinogradWord.TASKS: -(-tiles // block),
            WinogradWord.PATCH_ROW: patch_row,
            WinogradWord.PATCH_STEP: patch_step,
            WinogradWord.PRODUCT_ROW: product_row,
            WinogradWord.PRODUCT_STEP: product_step,
            WinogradWord.PRODUCTS: products,
            WinogradWord.UNREAD: unread,
            WinogradWord.WORKSPACE_BYTES: unread + product_row,
            WinogradWord.BLOCKS: product_row // (VECTORS * lanes * 4),
            WinogradWord.ACTIVATION: self.activation.number,
        }
        for word, value in numbers.items():
            words[word] = value
        strides = (sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1])
        work = tiles * POINTS * channels * outputs
        most_threads = max(1, min(work // _GRAIN, words[WinogradWord.TASKS]))
        return _Call(function, words, sizes, strides, words[WinogradWord.WORKSPACE_BYTES], most_threads)

    def _block(self, tiles: int, row: int, weights: int) -> int:
        """Return the number of tiles of a block, with at least one block for each thread. Their patches and products,
        ``row`` bytes for each of the points of a tile, take half of the second-level cache, or half as many bytes as
        the ``weights``: each block reads all weights, from outside of the cache if they are larger."""
        most = max(max(second_level_cache(), weights) // 2 // (POINTS * row), _MIN_TILES)
        share = -(-tiles // torch.get_num_threads())
        step = rows_of(self.target)[0]
        return min(tiles, max(-(-min(most, share) // step) * step, step))

    def _pack(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the transformed weights in the order in which they are read (the 16 points, blocks of output channels,
        input channels, vectors), the padded bias, and zeros for channels outside the image."""
        width = VECTORS * lanes_of(self.target)
        outputs, channels = self.weight.shape[:2]
        blocks = -(-outputs // width)
        transform = torch.tensor(WEIGHT_TRANSFORM, dtype=torch.float64, device="cpu")
        wide = torch.einsum("ai,ocij,bj->abco", transform, self.weight.detach().double(), transform)
        padded = self.weight.new_zeros(POINTS, channels, blocks * width)
        padded[:, :, :outputs] = wide.reshape(POINTS, channels, outputs)
        weights = padded.view(POINTS, channels, blocks, width).transpose(1, 2).contiguous()
        bias = self.weight.new_zeros(blocks * width)
        if self.bias is not None:
            bias[:outputs] = self.bias.detach()
        lanes = lanes_of(self.target)
        return weights, bias, self.weight.new_zeros(-(-channels // lanes) * lanes)

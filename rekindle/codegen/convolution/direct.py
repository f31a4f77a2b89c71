"""Convolutions with constant weights by :mod:`rekindle.codegen.convolution.direct_ir`: packing, sizes and calls."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.convolution.activations import NONE, Activation
from rekindle.codegen.convolution.direct_ir import LINE, WORDS, DirectWord, Form, chains_for, module_text
from rekindle.codegen.convolution.launch_ir import NULL, PADDED, LaunchPart, launch_parameters
from rekindle.codegen.convolution.padding import padded, padding_of
from rekindle.codegen.convolution.storage import FLOAT32, WeightStorage
from rekindle.codegen.convolution.task_function import TaskFunction, task_function
from rekindle.codegen.convolution.task_ir import VECTORS, lanes_of, rows_of
from rekindle.codegen.launched_operation import NativeCall
from rekindle.codegen.llvm.caches import second_level_cache
from rekindle.codegen.llvm.target import Target, host_target

LONGEST_SUM: Final = 256
"""Number of products accumulated in one number before the sum is added to the result."""
_CHUNK: Final = range(32, 193)
"""Number of channels in the chunks of all chains, if there are more."""
GRAIN: Final = 1 << 19
"""Number of multiplications that justify another thread."""
_MAX_SIZES: Final = 256
"""The maximum number of image sizes whose call data is cached."""
_MAX_LAUNCHED_PARTS: Final = 64
"""Maximum number of parts of a native call, whose words are all on the stack."""
_UNROLLS: Final = (4, 7, 3)
"""Numbers of steps in an iteration of the loop over channels. The first that divides a chunk is taken."""
_FETCHED: Final = (1, 2, 4, 8)
"""Numbers of cache lines that an iteration may prefetch. The first that covers its share of the weights is taken."""
_BAND: Final = 4
"""Number of tiles of a band, if an image is computed band by band."""
_FREE_TRAFFIC: Final = 1 / 64
"""Bytes from outside of the second-level cache for each multiplication that take little of its time."""
_TILE_OVERHEAD: Final = 0.5
"""Overhead of a tile besides its products, in positions."""
_MAX_PLANES: Final = 4
"""Maximum number of channels of an image that is read plane by plane, not in channels-last order."""
_LAST: Final = torch.channels_last


@cache
def _function(form: Form, target: Target) -> TaskFunction | None:
    """Return the compiled function of ``form``, whose arguments are the image, the residual or 0, and the output; None
    if this platform lacks a function that it calls."""
    return task_function(form.name, partial(module_text, target, form), 3, target, None)


@dataclass(frozen=True, slots=True)
class Geometry:
    """The options of a 2D convolution: pairs of numbers for rows and columns."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    def output_sizes(self, image: torch.Size, weight: torch.Size) -> tuple[int, int, int, int]:
        """Return the sizes of the result. They are not positive if the kernel does not fit into the image."""
        height, width = (
            (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for size, padding, dilation, kernel, stride in zip(
                image[2:], self.padding, self.dilation, weight[2:], self.stride, strict=True
            )
        )
        return image[0], weight[0], height, width


ONE_BY_ONE: Final = Geometry((1, 1), (0, 0), (1, 1), 1)


@dataclass(slots=True)
class Part:
    """The part of a call that computes one group of channels: its parameters, and the byte offsets of its channels in
    the image and in the output."""

    words: Any
    packed: tuple[Tensor, Tensor]
    """The weights that the words have addresses of, and the bias and scales: two rows."""
    address: int
    image: int
    output: int


@dataclass(slots=True)
class Call:
    """Data shared by calls with images of one size."""

    function: TaskFunction
    parts: list[Part]
    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]
    most_threads: int


@dataclass(slots=True)
class DirectConvolution:
    """A convolution of float32 images on the CPU whose ``weight`` (output channels, input channels of a group, rows,
    columns) and ``bias`` do not change. Weights are packed in ``storage``, which must be able to represent them.

    Several threads may call it. Cached data is replaced as a whole and never modified, so there is no lock: at worst
    two threads prepare the same data. (A process forked by another thread would inherit a lock in its locked state.)
    """

    weight: Tensor
    bias: Tensor | None
    geometry: Geometry = ONE_BY_ONE
    activation: Activation = NONE
    target: Target = field(default_factory=host_target)
    storage: WeightStorage = FLOAT32
    _packed: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)
    """Weights and bias of each part, once they are needed, in the order in which they are read: ``weights``, and
    ``planes`` for images that are read plane by plane. They are never replaced, since calls have the addresses."""
    _calls: dict[tuple[torch.Size, bool], Call | None] = field(default_factory=dict)
    """Data of the latest calls, by the size of the image and whether it is read plane by plane; None for unsupported
    sizes."""

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel is convolved separately."""
        return self.weight.shape[1] == 1 and self.weight.shape[0] == self.geometry.groups > 1

    def run(self, image: Tensor, residual: Tensor | None = None) -> Tensor | None:
        """Return the convolution of ``image`` in channels-last order, with ``residual``, of the result's sizes, added
        before the activation; None for sizes or platforms that are not supported."""
        known, planar = self._calls, self._reads_planes(image)
        key = image.shape, planar
        call = known[key] if key in known else self._prepare(*key)
        if call is None:
            return None
        image = padded(image, *self._zeros, self.target, planar=planar)
        output = torch.empty_strided(call.sizes, call.strides, dtype=torch.float32, device="cpu")
        added = 0
        if residual is not None:
            residual = residual.contiguous(memory_format=_LAST)
            added = residual.data_ptr()
        threads = min(torch.get_num_threads(), call.most_threads) if call.most_threads > 1 else 1
        first, written = image.data_ptr(), output.data_ptr()
        for part in call.parts:
            beside = added + part.output if added else 0
            call.function.call(part.address, first + part.image, beside, written + part.output, threads)
        return output

    def native_call(self, image: Tensor, residual: Tensor | None = None) -> NativeCall | None:
        """Return the call data for native code, for tensors of the same sizes and strides. Return None unless
        :meth:`run` has accepted such arguments before, and native code can pass them without copies."""
        planar = self._reads_planes(image)
        call = self._calls.get((image.shape, planar))
        if call is None or call.function.launch is None or len(call.parts) > _MAX_LAUNCHED_PARTS:
            return None
        copied = [residual] if planar else [image, residual]
        if not all(each is None or each.is_contiguous(memory_format=_LAST) for each in copied):
            return None
        padding = padding_of(image, *self._zeros, planar=planar)
        tensors = 1 if residual is None else 2
        parts = [
            LaunchPart(
                (
                    (0 if padding is None else PADDED, part.image),
                    (NULL, 0) if residual is None else (1, part.output),
                    (tensors, part.output),
                ),
                tuple(part.words),
            )
            for part in call.parts
        ]
        parameters = launch_parameters(parts, call.most_threads, padding=padding)
        output = (torch.float32, call.sizes, call.strides)
        return NativeCall(call.function.launch, parameters, output, self)  # code of functions is never freed

    # --------------------------------------------------------------------------------------------------------- sizes

    @property
    def _zeros(self) -> tuple[int, int]:
        """The number of rows and columns of zeros on each side of an image."""
        return self.geometry.padding

    @property
    def _kind(self) -> str:
        return "depthwise" if self.is_depthwise else "dense"

    def _reads_planes(self, image: Tensor) -> bool:
        """Return whether to read an image plane by plane: one of few channels, such as a photograph, needs no copy in
        channels-last order."""
        return (
            image.shape[1] <= _MAX_PLANES
            and self._kind == "dense"
            and self.geometry.groups == 1
            and image.is_contiguous()
            and not image.is_contiguous(memory_format=_LAST)
        )

    def _output_sizes(self, image: torch.Size) -> tuple[int, int, int, int]:
        return self.geometry.output_sizes(image, self.weight.shape)

    def _tiled_sizes(self, image: torch.Size) -> tuple[int, int, int]:
        """Return the numbers of images, rows and columns of the output that a function computes."""
        images, _, height, width = self._output_sizes(image)
        return images, height, width

    def _channels(self, planar: bool) -> tuple[int, int]:
        """Return the number of kernel columns to iterate over, and of channels that are adjacent at each. In an image
        that is read plane by plane, planes take the place of kernel rows, kernel rows that of columns, and kernel
        columns that of channels."""
        weight, geometry = self.weight, self.geometry
        columns, run = weight.shape[3], weight.shape[1]
        if planar:
            columns, run = weight.shape[2], weight.shape[3]
        elif geometry.dilation[1] == 1 and geometry.groups == 1:  # the columns of a row lie side by side
            columns, run = 1, columns * run
        return columns, run

    def _chunk(self, channels: int, chains: int = 1) -> int:
        """Return the number of channels in a chunk of each of ``chains``, which divide ``channels`` adjacent ones."""
        own = channels // chains
        return _chunk(own, chains) if self.weight[0].numel() > LONGEST_SUM else own

    def _chains(self, planar: bool, rows: int, tiles: int) -> int:
        """Return the number of partial sums of each element of a tile of ``rows`` positions. Conversions of narrow
        weights in several tiles take longer than reading weights, so that prefetching the next block is enough."""
        if self._kind != "dense" or (tiles > 1 and self.storage is not FLOAT32):
            return 1
        run = self._channels(planar)[1]
        chains = chains_for(self.target, rows, run)
        return chains if chains * self._chunk(run, chains) <= max(self._chunk(run), _CHUNK[-1]) else 1

    def _unroll(self, planar: bool) -> int:
        """Return the number of steps in an iteration of the loop over channels: instructions other than multiply-adds
        would take as long as these in a loop of single steps."""
        if self.is_depthwise or (planar and self.geometry.dilation[1] != 1):
            return 1
        chunk = self._chunk(self._channels(planar)[1])
        return next((each for each in _UNROLLS if chunk % each == 0), 1)

    def _prepare(self, image: torch.Size, planar: bool) -> Call | None:
        sizes = self._output_sizes(image)
        made = self._call_for(image, sizes, planar) if min(sizes) > 0 else None
        latest = list(self._calls.items())[1 - _MAX_SIZES :]
        self._calls = {**dict(latest), (image, planar): made}
        return made

    def _call_for(self, image: torch.Size, sizes: tuple[int, int, int, int], planar: bool) -> Call | None:
        positions = math.prod(self._tiled_sizes(image))
        rows = tile_rows(self.target, positions)
        tiles = -(-positions // rows)
        chains = self._chains(planar, rows, tiles)
        unroll = self._unroll(planar) if chains == 1 else 1
        packed = self._packed_weights(planar)
        parts = [self._part(packed, number, image, positions, tiles, planar, chains) for number in range(len(packed))]
        fetched, words = 1, parts[0].words
        if chains == 1 and self._kind != "depthwise" and words[DirectWord.BAND] == tiles:
            fetched = _fetched_lines(words[DirectWord.AHEAD_STEP] * unroll)  # with bands, weights stay in the cache
        function = _function(Form(self._kind, rows, self.storage, chains, unroll, fetched), self.target)
        if function is None:
            return None
        work = positions * self.weight.numel() // len(parts)
        strides = (sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1])
        return Call(function, parts, sizes, strides, max(1, min(work // GRAIN, parts[0].words[DirectWord.TASKS])))

    def _part(
        self,
        packed: list[tuple[Tensor, Tensor]],
        number: int,
        image: torch.Size,
        positions: int,
        tiles: int,
        planar: bool,
        chains: int,
    ) -> Part:
        weight, geometry = self.weight, self.geometry
        _, height, width = self._tiled_sizes(image)
        outputs = weight.shape[0] // len(packed)
        inputs = weight.shape[1]
        pixel = 4 if planar else image[1] * 4
        line = (image[3] + 2 * geometry.padding[1]) * pixel
        plane = (image[2] + 2 * geometry.padding[0]) * line
        block = VECTORS * lanes_of(self.target)
        whole, rest = divmod(outputs, block)
        band = _band(weight, image.numel() // len(packed) * 4, positions, tiles, whole + (rest > 0))
        columns, run = self._channels(planar)
        chunk = self._chunk(run, chains)
        words = (ctypes.c_int64 * WORDS)()
        numbers = {
            DirectWord.WEIGHTS: packed[number][0].data_ptr(),
            DirectWord.BIAS: packed[number][1].data_ptr(),
            DirectWord.POSITIONS: positions,
            DirectWord.WIDTH: width,
            DirectWord.HEIGHT: height,
            DirectWord.IMAGE_STEP: plane * (image[1] if planar else 1),
            DirectWord.ROW_STEP: geometry.stride[0] * line,
            DirectWord.COLUMN_STEP: geometry.stride[1] * pixel,
            DirectWord.KERNEL_ROWS: weight.shape[1 if planar else 2],
            DirectWord.KERNEL_COLUMNS: columns,
            DirectWord.KERNEL_ROW_STEP: plane if planar else geometry.dilation[0] * line,
            DirectWord.KERNEL_COLUMN_STEP: geometry.dilation[0] * line if planar else geometry.dilation[1] * pixel,
            DirectWord.CHUNKS: run // chains // chunk,
            DirectWord.CHANNELS: chunk,
            DirectWord.CHANNEL_STEP: geometry.dilation[1] * 4 if planar else 4,
            DirectWord.AHEAD_TILE: weight[0].numel() * block * self.storage.size // band,
            DirectWord.AHEAD_STEP: block * self.storage.size // band,
            DirectWord.BAND: band,
            DirectWord.SCALES: packed[number][1].stride(0) * 4,
            DirectWord.ADDS_CHUNKS: weight[0].numel() > LONGEST_SUM,
            DirectWord.OUTPUT_STEP: weight.shape[0] * 4,
            DirectWord.BLOCKS: whole,
            DirectWord.REST: rest,
            DirectWord.TILES: tiles,
            DirectWord.BLOCK_BYTES: weight[0].numel() * block * self.storage.size,
            DirectWord.ACTIVATION: self.activation.number,
            DirectWord.TASKS: tiles * (whole + (rest > 0)),
        }
        for word, value in numbers.items():
            words[word] = int(value)
        return Part(words, packed[number], ctypes.addressof(words), number * inputs * 4, number * outputs * 4)

    # ------------------------------------------------------------------------------------------------------- packing

    def _packed_weights(self, planar: bool = False) -> list[tuple[Tensor, Tensor]]:
        name = "planes" if planar else "weights"
        found = self._packed.get(name)
        return self._packed.setdefault(name, self._pack(planar)) if found is None else found

    def _pack(self, planar: bool = False) -> list[tuple[Tensor, Tensor]]:
        """Return, for each group (once if the convolution is depthwise), the weights in the order in which a tile reads
        them (blocks of channels, kernel positions and input channels, vectors), and a matrix of two rows: the bias and
        the scales of its output channels, padded to whole blocks."""
        parts = 1 if self.is_depthwise else self.geometry.groups
        weights = self.weight.detach().chunk(parts)
        bias = self.weight.new_zeros(self.weight.shape[0]) if self.bias is None else self.bias.detach()
        block, lanes = VECTORS * lanes_of(self.target), lanes_of(self.target)
        made = []
        for weight, own_bias in zip(weights, bias.chunk(parts), strict=True):
            outputs = weight.shape[0]
            scales = self.storage.scales(weight)
            order = (1, 2, 3, 0) if planar else (2, 3, 1, 0)
            table = self.storage.pack(weight.permute(order).reshape(-1, outputs), scales)
            found = [table[:, first : first + block].reshape(-1) for first in range(0, outputs - block + 1, block)]
            rest = outputs % block
            if rest:
                width = lanes if rest <= lanes else block
                filled = table.new_zeros(table.shape[0], width)
                filled[:, :rest] = table[:, outputs - rest :]
                found.append(filled.reshape(-1))
            beside = own_bias.new_zeros(2, -(-outputs // block) * block)
            beside[0, :outputs], beside[1, :outputs] = own_bias, scales
            made.append((torch.cat(found), beside))
        return made


def _band(weight: Tensor, image_bytes: int, positions: int, tiles: int, blocks: int) -> int:
    """Return the number of tiles for which all blocks of output channels are computed before the following tiles: all
    tiles, unless the image would have to be read again for each block from outside of the second-level cache, and the
    weights fit into that cache."""
    available = second_level_cache() // 2
    block_bytes = positions * weight.shape[0] // blocks * 4
    reread = (blocks - 1) * image_bytes
    is_kept = image_bytes + 2 * block_bytes <= available
    is_little = reread <= positions * weight.numel() * _FREE_TRAFFIC
    return tiles if is_kept or is_little or weight.numel() * 4 > available else min(_BAND, tiles)


def _fetched_lines(share: int) -> int:
    """Return the number of cache lines that an iteration prefetches, whose share of the next block of weights is so
    many bytes."""
    return next((each for each in _FETCHED if each * LINE >= share), _FETCHED[-1])


def tile_rows(target: Target, positions: int) -> int:
    """Return the number of output positions of a tile: as many as registers hold, or one less, if fewer positions are
    then computed twice; fewer if the output has no more."""
    most = rows_of(target)[0]
    sizes = [each for each in (most, most - 1, *rows_of(target)[1:]) if each <= positions]
    return (
        min(sizes[:2], key=lambda each: -(-positions // each) * (each + _TILE_OVERHEAD)) if most in sizes else sizes[0]
    )


def _chunk(run: int, chains: int) -> int:
    """Return how many channels each of ``chains`` sums before the sums are added to the result: the largest allowed
    divisor of ``run``, else ``run``. Short sums are more accurate."""
    allowed = range(_CHUNK[0] // chains, _CHUNK[-1] // chains + 1)
    return next((each for each in reversed(allowed) if run % each == 0), run)

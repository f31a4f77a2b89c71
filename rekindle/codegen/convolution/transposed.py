"""Transposed convolutions whose stride is the kernel's size, by direct kernels.

Each place of the kernel is a linear map of the channels, whose results are scattered over the output.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rekindle.codegen.convolution.direct import DirectConvolution, Part
from rekindle.codegen.convolution.direct_ir import DirectWord


@dataclass(slots=True)
class TransposedConvolution(DirectConvolution):
    """``conv_transpose2d`` of float32 images on the CPU. ``weight`` has input channels, output channels, rows, columns;
    it and ``bias`` do not change."""

    @property
    def is_depthwise(self) -> bool:
        """False: transposed convolutions with groups are not supported."""
        return False

    @property
    def _kind(self) -> str:
        return "scattered"

    def _output_sizes(self, image: torch.Size) -> tuple[int, int, int, int]:
        _, outputs, rows, columns = self.weight.shape
        return image[0], outputs, image[2] * rows, image[3] * columns

    def _tiled_sizes(self, image: torch.Size) -> tuple[int, int, int]:
        return image[0], image[2], image[3]

    def _channels(self, planar: bool) -> tuple[int, int]:
        return DirectConvolution(self._place(0, 0), None, target=self.target)._channels(planar)

    def _chunk(self, channels: int, chains: int = 1) -> int:
        return DirectConvolution(self._place(0, 0), None, target=self.target)._chunk(channels, chains)

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
        _, outputs, rows, columns = self.weight.shape
        row, column = divmod(number, columns)
        place = DirectConvolution(self._place(row, column), self.bias, activation=self.activation, target=self.target)
        part = place._part([packed[number]], 0, image, positions, tiles, planar, chains)
        pixel = outputs * 4
        line = image[3] * columns * pixel
        part.words[DirectWord.OUTPUT_STEP] = columns * pixel
        part.words[DirectWord.OUTPUT_JUMP] = (rows - 1) * line
        part.output = row * line + column * pixel
        return part

    def _pack(self, planar: bool = False) -> list[tuple[Tensor, Tensor]]:
        _, _, rows, columns = self.weight.shape
        places = [self._place(row, column) for row in range(rows) for column in range(columns)]
        return [DirectConvolution(place, self.bias, target=self.target)._pack()[0] for place in places]

    def _place(self, row: int, column: int) -> Tensor:
        """Return the weights at one position of the kernel, as the weight of a convolution with a 1x1 kernel."""
        return self.weight[:, :, row, column].t()[:, :, None, None]

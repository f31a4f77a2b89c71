"""Kernels that run over a table of tensors, into memory that exists.

.. code-block:: text

    graph(%p : Tensor, %g : Tensor, %m : Tensor, %size : float):
      %m.1 : Tensor = …                                             for p, g, m in rows:
      %p.1 : Tensor = …                              becomes            p[:], m[:] = kernel(p, g, m, size)
      return (%p.1, %m.1)

A kernel is compiled for a dtype, and serves contiguous memory of all sizes that pass its guards. A pointwise kernel is
one loop over elements, in which each element is read before it is written. So its results may overwrite its operands.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from rekindle.codegen.compiled_kernels import (
    GuardedKernel,
    KernelLaunch,
    KernelStatus,
    guarded_kernel,
    is_out_of_range,
)
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.nodes import LoopNest
from rekindle.ir.graph import Graph
from rekindle.ir.profiling import recorded
from rekindle.ir.types import TENSOR


class SizedKernel(NamedTuple):
    """The machine code of a kernel with its parameters for tensors of one size, kept alive by ``launch``."""

    call: Callable[[int, int, int], int]
    parameters: int
    launch: KernelLaunch


@dataclass(slots=True)
class TableKernel:
    """A ``graph`` as kernels on the CPU, for each dtype and size: the tensors of a launch have the same. The other
    inputs are floats. It is pointwise unless ``reduces``: then it has one result of one element."""

    graph: Graph
    name: str
    reduces: bool = False
    _sized: dict[tuple[torch.dtype, int], SizedKernel] = field(default_factory=dict)
    _kernels: dict[torch.dtype, list[GuardedKernel]] = field(default_factory=dict)

    def sized(self, dtype: torch.dtype, size: int) -> SizedKernel:
        """Return the kernel for tensors of ``size`` elements, compiled unless the machine code for another size serves.

        Raises:
            Unsupported: there is no such kernel for ``dtype``.
        """
        made = self._sized.get((dtype, size))
        if made is None:
            launch = self._made(dtype, size)
            made = SizedKernel(launch.kernel.call, launch.parameters.buffer_info()[0], launch)
            self._sized[dtype, size] = made
        return made

    def _made(self, dtype: torch.dtype, size: int) -> KernelLaunch:
        layout = Layout((size,), (1,), dtype)
        inputs = [layout if value.type == TENSOR else float for value in self.graph.inputs]
        kernels = self._kernels.setdefault(dtype, [])
        launch = next(filter(None, (each.launch(inputs) for each in kernels)), None)
        if launch is None:
            made = guarded_kernel(self.graph, inputs)
            launch = made.launch(inputs)
            assert launch is not None, "a recipe has to serve what it was made for"
            kernels.append(made)
        kernel = launch.kernel.kernel
        if not self.reduces:
            is_one_loop = [isinstance(each, LoopNest) and not each.reduction_rank for each in kernel.nests] == [True]
            if not is_one_loop or any(each != layout for each in launch.outputs):
                raise Unsupported(f"{self.name} as one loop over elements of {dtype}")
        return launch


@dataclass(slots=True)
class KernelTable:
    """Launches of one kernel, a row for each: ``kernels`` for the sizes of the rows' tensors, and ``pointers`` to the
    operands and results of each row."""

    kernel: TableKernel
    dtype: torch.dtype
    kernels: list[SizedKernel] = field(default_factory=list)
    pointers: array[int] = field(default_factory=lambda: array("Q"))

    def extend(self, sizes: Iterable[int], addresses: Sequence[Iterable[int]]) -> None:
        """Add rows for tensors with these numbers of elements. ``addresses`` has a column of addresses for each
        operand, then one for each result. Rows without elements are omitted.

        Raises:
            Unsupported: see :meth:`TableKernel.sized`.
        """
        rows = zip(sizes, zip(*addresses, strict=True), strict=True)
        kept = [(size, row) for size, row in rows if size]
        by_size = {size: self.kernel.sized(self.dtype, size) for size in {size for size, _ in kept}}
        self.kernels += [by_size[size] for size, _ in kept]
        self.pointers.extend(chain.from_iterable(row for _, row in kept))

    def accepts(self, numbers: Sequence[float]) -> bool:
        """Return whether all numbers are in the range that every dtype's kernels convert as PyTorch does."""
        return not any(map(is_out_of_range, numbers))

    def run(self, numbers: Sequence[float] = ()) -> None:
        """Run the kernel on each row. ``numbers`` are its float inputs, and must be accepted by :meth:`accepts`."""
        if not self.kernels:
            return
        passed = array("d", numbers)
        row = self.pointers.itemsize * (len(self.pointers) // len(self.kernels))
        address, arguments = self.pointers.buffer_info()[0], passed.buffer_info()[0]
        with recorded(self.kernel.name):
            for call, parameters, _ in self.kernels:
                status = call(address, parameters, arguments)
                assert status == KernelStatus.DONE, "kernels without gathers do not fail"
                address += row


def addresses(tensors: Iterable[Tensor]) -> list[int]:
    """Return the addresses of the data of ``tensors``, a column of a table."""
    return list(map(Tensor.data_ptr, tensors))

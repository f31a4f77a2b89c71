"""Programs as one writes them for ``torch.export`` by hand, which PyTorch takes no further than the probes that are
like them: what `tests.sweeps.exports` lists as PyTorch's own affair, it shows by these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch._higher_order_ops import while_loop
from torch.export import Dim, ExportedProgram, export

X: Final = torch.ones(3, 4)


@dataclass(frozen=True)
class ByHand:
    """A module, the arguments of an example and of the later calls, and what PyTorch does not do with it."""

    make: Callable[[], nn.Module]
    reason: str
    calls: Sequence[Sequence[Any]] = ((X,), (-X,), (X,), (X,))
    dynamic: Any = None

    def exported(self) -> ExportedProgram:
        """The module as PyTorch's own exporter takes it."""
        return export(self.make(), tuple(self.calls[0]), dynamic_shapes=self.dynamic)


class BranchInLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        def body(x: Tensor) -> tuple[Tensor]:
            return (torch.cond(x.sum() > 0, lambda x: x * 2 + 0.5, lambda x: x * 3 - 0.5, (x,)),)

        return while_loop(lambda x: x.abs().sum() < 60, body, (x,))[0]  # type: ignore[no-any-return]


class IntResult(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return x + 1, x.dim()


class NoResult(nn.Module):
    def forward(self, x: Tensor) -> None:
        return None


class IntBuffer(nn.Module):
    """An int that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return torch.cond(self.calls > 2, lambda x: x * 10, lambda x: x.clone(), (x,))


class BufferBefore(nn.Module):
    """What a buffer was before the call changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        before = self.last.clone()
        self.last.copy_(x * 2)
        return before


class IntInLoop(nn.Module):
    """A loop that uses an int that the caller gives."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        return while_loop(lambda x: x.sum() < n * 10, lambda x: (x + n,), (x,))[0]  # type: ignore[no-any-return]


class FloatResult(nn.Module):
    """A float that is computed of one read off a tensor."""

    def forward(self, x: Tensor) -> tuple[Tensor, float]:
        return x + 1, x.sum().item() * 1.1


class SliceAnywhere(nn.Module):
    """A row is written where a buffer says, and nowhere if that is past the end, as Python's slices are."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(8, 4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        count = self.count.item()
        self.rows[count : count + 1] = x[:1]
        self.count.add_(1)
        return self.rows.sum(0)


class ComplexNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.complex(x, x * 2)
        return torch.view_as_real(torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y + 1, (y,)))


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 1.5


EQUIVALENTS: Final[dict[str, ByHand]] = {
    "a branch in a loop": ByHand(BranchInLoop, "torch.onnx.export has no form for a cond within a while_loop"),
    "an int among results": ByHand(IntResult, "torch.onnx.export returns tensors alone, no ints"),
    "no result": ByHand(NoResult, "onnxruntime takes no program without results"),
    "an int that changes": ByHand(IntBuffer, "AOTInductor leaves buffers of ints as they are"),
    "what a buffer was": ByHand(BufferBefore, "AOTInductor returns what the buffer becomes"),
    "an int in a loop": ByHand(
        IntInLoop, "Inductor compiles no while_loop that is given an int", ((X, 5), (X, 2)), (None, Dim.DYNAMIC)
    ),
    "a float among results": ByHand(FloatResult, "Inductor rounds floats to 32 bits", ((X * 0.3,), (X * 0.7,))),
    "a slice anywhere": ByHand(SliceAnywhere, "Inductor has no slice at a number of which no bounds are known"),
    "complex numbers": ByHand(ComplexNumbers, "torch.onnx.export has no form for complex numbers in a cond"),
    "bfloat16": ByHand(Scaled, "onnxruntime has no product of bfloat16 on CPUs", ((X.bfloat16(),), (-X.bfloat16(),))),
}

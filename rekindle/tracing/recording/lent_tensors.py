"""Pass the caller's tensors to a run, and restore them afterwards.

Code may test the identity of an argument (``x is self.cached``, a parameter in a registry), so a run receives the
caller's own tensors. During the run they have another storage, so that writes of the code are discarded afterwards.

Some tensors cannot be restored: results of operators that autograd records, views, subclasses, sparse and quantized
tensors. The run receives copies of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

import torch

_OWN_CLASSES: Final = (torch.Tensor, torch.nn.Parameter)


@dataclass(slots=True)
class _Lent:
    """A tensor that is passed to the traced code, with its state from before the run."""

    tensor: torch.Tensor
    data: torch.Tensor
    """A tensor that shares the original storage of ``tensor``."""
    grad: torch.Tensor | None
    requires_grad: bool
    version: int


@dataclass(slots=True)
class LentTensors:
    """The example tensors of one run. :meth:`lend` returns the tensors that the run receives. The originals are
    restored at the end of the ``with`` block."""

    is_kept: Callable[[torch.Tensor], bool] = lambda tensor: False
    """Whether a tensor is copied instead of lent, because the recording has bound it to another value."""
    _lent: list[_Lent] = field(default_factory=list)
    _given: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    """The tensors by their ids, each with its substitute in the run."""

    def lend(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor to pass in place of ``tensor``: itself, with another storage until the end, or a copy. If
        ``tensor`` was lent before, return another view of it, so that the two arguments are distinct objects."""
        before = self._given.get(id(tensor))
        if before is not None:
            with torch.enable_grad():
                return torch.ops.aten.alias.default(before[1])  # type: ignore[no-any-return]
        given = self._own(tensor) if _can_be_lent(tensor) and not self.is_kept(tensor) else _copy(tensor)
        self._given[id(tensor)] = tensor, given
        return given

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        self._lent.append(_Lent(tensor, tensor.data, tensor.grad, tensor.requires_grad, tensor._version))
        tensor.data = _copy(tensor).detach()
        return tensor

    def __enter__(self) -> LentTensors:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for each in self._lent:
            tensor = each.tensor
            if tensor.grad_fn is not None:
                tensor.detach_()
            tensor.data = each.data
            tensor.requires_grad_(each.requires_grad)
            if tensor.grad is not each.grad:
                tensor.grad = each.grad
            torch._C._autograd._unsafe_set_version_counter((tensor,), (each.version,))


def _can_be_lent(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in _OWN_CLASSES
        and tensor.layout is torch.strided
        and tensor.is_leaf
        and not tensor._is_view()
        and not tensor.is_inference()
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same values in a storage of its own."""
    with torch.no_grad():
        if tensor.layout is torch.strided and not tensor.is_quantized and not (tensor.is_conj() or tensor.is_neg()):
            # As a view of a storage of its own, which may hold more than the tensor shows.
            whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            whole.set_(tensor.untyped_storage().clone())
            made = whole.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        else:
            made = tensor.detach().clone()
    return made.requires_grad_(tensor.requires_grad)

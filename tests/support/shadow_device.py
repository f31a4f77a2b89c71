"""A device in Python: tensors on ``shadow:0`` are plain tensors with autograd, views and version counters, as on a GPU.

Values are in buffers of the host that only this module knows. The addresses of the tensors are those of decoys, whose
bytes are all ones (NaN, -1, True): a kernel for the CPU that reads or writes them is detected. It registers PrivateUse1
for the process, so import it only in a process of its own. PyTorch calls this interface experimental.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch._C._acc
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

NAME = "shadow"
_CPU = torch.device("cpu")
_CPU_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_aten = torch.ops.aten

calls: list[str] = []
"""The operators that the device ran, in order."""

_buffers: dict[int, tuple[Tensor, Tensor]] = {}
"""By the address of a storage: the decoy, and the values as bytes."""

_TAKE_ANY_DEVICE = ("aten::copy_", "aten::_to_copy", "aten::_copy_from", "aten::_copy_from_and_resize")


def _is_here(value: object) -> bool:
    return isinstance(value, Tensor) and value.device.type == NAME


def _values_of(tensor: Tensor) -> Tensor:
    """Return the tensor of the host that has the values of ``tensor``, and shares memory with those of its views."""
    _, values = _buffers[tensor.untyped_storage()._cdata]
    whole = torch.empty(0, dtype=tensor.dtype)
    return whole.set_(values.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def _tensor_of(values: Tensor, inputs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return a tensor of the device with these values: an input, a view of an input, or a new one."""
    where = values.size(), values.stride(), values.storage_offset()
    storage = values.untyped_storage()
    for tensor, its_values in inputs:
        if its_values is values:
            return tensor
        if its_values.untyped_storage()._cdata == storage._cdata and values.dtype == tensor.dtype:
            return _aten.as_strided.default.redispatch(_CPU_KERNELS, tensor.detach(), *where)
    return _place(torch._C._acc.create_empty_tensor((0,), values.dtype), values)


def _place(tensor: Tensor, values: Tensor) -> Tensor:
    """Give ``tensor`` a new storage on the device, with these values."""
    storage = values.untyped_storage()
    decoy = torch.full((max(storage.nbytes(), 1),), 0xFF, dtype=torch.uint8)
    held = torch._C._construct_storage_from_data_pointer(decoy.data_ptr(), torch.device(NAME, 0), storage.nbytes())
    setter = _aten.set_.source_Storage_storage_offset
    setter.redispatch(_CPU_KERNELS, tensor, held, values.storage_offset(), values.size(), values.stride())
    _buffers[tensor.untyped_storage()._cdata] = decoy, torch.empty(0, dtype=torch.uint8).set_(storage)
    return tensor


def _run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator on the values of its arguments."""
    if op._schema.name == "aten::set_":
        return op.redispatch(_CPU_KERNELS, *args, **kwargs)
    calls.append(op.name())
    inputs: list[tuple[Tensor, Tensor]] = []
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    others = [each for each in tensors if not _is_here(each) and each.dim() > 0]
    if others and any(map(_is_here, tensors)) and op._schema.name not in _TAKE_ANY_DEVICE:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but got {NAME}:0 and {others[0].device} in {op.name()}"
        )

    def lower(value: Any) -> Any:
        if _is_here(value):
            inputs.append((value, _values_of(value)))
            return inputs[-1][1]
        return _CPU if isinstance(value, torch.device) and value.type == NAME else value

    lowered = tree_map(lower, (args, kwargs))
    device = kwargs.get("device")
    stays = device is None or device.type == NAME
    if op.name() == "aten::_copy_from":  # what copy_ calls where one of the two is on another device
        source, target, *_ = lowered[0]
        target.copy_(source)
        return args[1]
    result = op(*lowered[0], **lowered[1])
    for tensor, values in inputs:
        if values.size() != tensor.size():  # the operator has resized its out=
            _place(tensor, values)
    return tree_map(lambda value: _tensor_of(value, inputs) if isinstance(value, Tensor) and stays else value, result)


_clone, _to = torch.UntypedStorage.clone, torch.UntypedStorage.to


def _clone_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """Return a copy of a storage. PyTorch's copies with an allocator, which a device in Python cannot register."""
    if storage.device.type != NAME:
        return _clone(storage)
    return _storage_of(_buffers[storage._cdata][1].clone())


def _move_storage(storage: torch.UntypedStorage, *, device: torch.device) -> torch.UntypedStorage:
    if device.type != NAME or storage.device.type == NAME:
        return _to(storage, device=device)
    return _storage_of(torch.empty(0, dtype=torch.uint8).set_(_clone(storage)))


def _storage_of(values: Tensor) -> torch.UntypedStorage:
    return _place(torch._C._acc.create_empty_tensor((0,), torch.uint8), values).untyped_storage()


torch.UntypedStorage.clone = _clone_storage  # type: ignore[method-assign]
torch.UntypedStorage.to = _move_storage  # type: ignore[method-assign, assignment]


class _Module(backend_registration._DummyBackendModule):
    """``torch.shadow``. Random numbers are those of the host."""

    def get_rng_state(self, device: object = NAME) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, new_state: Tensor, device: object = NAME) -> None:
        torch.set_rng_state(new_state)


def touched_decoys() -> int:
    """Return the number of decoys that something has written to."""
    return sum(not bool((decoy == 0xFF).all()) for decoy, _ in _buffers.values())


backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
_library = torch.library.Library("_", "IMPL")
_library.fallback(_run, "PrivateUse1")

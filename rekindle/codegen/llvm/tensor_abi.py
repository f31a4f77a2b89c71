"""Probe the ABI of Tensor objects: the offsets of a few fields, which no header of a C interface declares.

Native code that takes Tensors as Python has them reads these fields. They are searched for in a handful of Tensors made
here, whose class, address and dispatch keys are known; where one is not found in exactly one place, there is no such
code, and kernels are called through Python.

The probe runs once in a process, when the first kernel is called or the first native plan is made, and in a thread of
its own, so that no mode of the caller has a say in what is found. It learns of this build of torch and Python, never of
a program: no operator of a program runs, no argument is looked at, and no fact about types or shapes follows from it.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.llvm.symbols import find

FUNCTIONS: Final = {
    "aoti_torch_get_dtype": "i32 (ptr, ptr)",
    "aoti_torch_get_dim": "i32 (ptr, ptr)",
    "aoti_torch_get_device_index": "i32 (ptr, ptr)",
    "aoti_torch_get_sizes": "i32 (ptr, ptr)",
    "aoti_torch_get_strides": "i32 (ptr, ptr)",
    "aoti_torch_get_data_ptr": "i32 (ptr, ptr)",
    "aoti_torch_empty_strided": "i32 (i64, ptr, ptr, i32, i32, i32, ptr)",
    "aoti_torch_delete_tensor_object": "i32 (ptr)",
    "aoti_torch_device_type_cpu": "i32 ()",
    "aoti_torch_device_type_cuda": "i32 ()",
    "aoti_torch_grad_mode_is_enabled": "i1 ()",
    "_ZNK3c1010TensorImpl13autograd_metaEv": "ptr (ptr)",
    "_ZNK3c1010TensorImpl13requires_gradEv": "i1 (ptr)",
    "_ZN3c104impl31tls_is_dispatch_keyset_includedENS_14DispatchKeySetE": "i1 (i64)",
    "_ZN3c104impl31tls_is_dispatch_keyset_excludedENS_14DispatchKeySetE": "i1 (i64)",
    "_ZN2at4impl27torch_function_mode_enabledEv": "i1 ()",
    "_Z16THPVariable_WrapON2at10TensorBaseE": "ptr (ptr)",
}
"""Functions of torch that native code calls, with their LLVM types."""

_CLASSES: Final = ("THPVariableClass", "ParameterClass")
_MODES: Final = (
    *("Python", "PythonTLSSnapshot", "PreDispatch", "Tracer"),
    *("FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode"),
)
"""Dispatch keys that are active while something intercepts operators."""
_WORD: Final = 8
_SEARCHED: Final = 24
"""Number of words of a tensor that are searched: it has more."""


@dataclass(frozen=True, slots=True)
class TensorObjects:
    """Layout of Tensor objects. Offsets are in bytes: of the class in an object, of the C++ tensor in the object, and
    of the dispatch keys in the C++ tensor. Sets of dispatch keys: those of ordinary CPU tensors and of CPU tensors
    created in inference mode; the same for GPUs; ``mode_keys``, which a thread includes while a mode is active;
    ``autocast_key``, which a thread excludes while it does not autocast."""

    class_offset: int
    tensor_offset: int
    keys_offset: int
    plain_keys: int
    inference_keys: int
    cuda_keys: int
    cuda_inference_keys: int
    mode_keys: tuple[int, ...]
    autocast_key: int


@cache
def tensor_objects() -> TensorObjects | None:
    """Return the memory layout of Tensor objects; None if this build of torch or of Python has an unexpected one."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
        return None
    if ctypes.sizeof(ctypes.c_void_p) != _WORD or any(find(name) is None for name in (*FUNCTIONS, *_CLASSES)):
        return None
    classes = [ctypes.c_void_p.from_address(find(name) or 0).value for name in _CLASSES]
    if classes != [id(Tensor), id(torch.nn.Parameter)]:
        return None
    try:
        # Inference mode, a default device and modes that intercept operators are those of a thread: a new one has none.
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(_look).result()
    except RecursionError:  # that depends on the caller: the next one looks again
        raise
    except (AttributeError, RuntimeError):  # what is asked of torch here is nothing that it promises
        return None


def _look() -> TensorObjects | None:
    with torch.inference_mode():
        of_inference = torch.ones(2)
    ordinary = [torch.ones(3), torch.zeros(2, 3, dtype=torch.int64), torch.nn.Parameter(torch.ones(2))]
    others = [torch.ones(2, dtype=torch.complex64).conj(), torch.empty(2, device="meta"), of_inference]
    samples = ordinary + others
    size = Tensor.__basicsize__ // _WORD
    class_offset = _offset(samples, size, id, lambda sample: id(type(sample)))
    tensor_offset = _offset(samples, size, id, lambda sample: int(sample._cdata))
    keys_offset = _offset(samples, _SEARCHED, lambda sample: int(sample._cdata), _keys)
    plain = {_keys(sample) for sample in ordinary}
    if class_offset is None or tensor_offset is None or keys_offset is None or len(plain) != 1:
        return None
    plain_keys, inference_keys = plain.pop(), _keys(of_inference)
    modes = [_bits(name) for name in _MODES]
    return TensorObjects(
        class_offset,
        tensor_offset,
        keys_offset,
        plain_keys,
        inference_keys,
        _on_cuda(plain_keys),
        _on_cuda(inference_keys),
        tuple(bit for bits in modes for bit in _single_bits(bits)),
        _bits("AutocastCPU") | _bits("AutocastCUDA"),
    )


def _on_cuda(keys: int) -> int:
    """Return the dispatch keys of a GPU tensor that correspond to ``keys`` of a CPU tensor."""
    autocast = _bits("AutocastCPU")
    found = keys & ~(_bits("CPU") | autocast) | _bits("CUDA")
    return found | _bits("AutocastCUDA") if keys & autocast else found


def _keys(sample: Tensor) -> int:
    return int(_c("_dispatch_keys")(sample).raw_repr())


def _bits(name: str) -> int:
    return int(_c("DispatchKeySet")(_c("_parse_dispatch_key")(name)).raw_repr())


def _single_bits(bits: int) -> list[int]:
    return [1 << place for place in range(64) if bits >> place & 1]


def _c(name: str) -> Any:
    return getattr(torch._C, name)


def _offset(
    samples: Sequence[Tensor], words: int, address: Callable[[Tensor], int], word: Callable[[Tensor], int]
) -> int | None:
    """Return the offset at which the memory of each sample holds its ``word``; None unless exactly one of the first
    ``words`` offsets does."""
    found = [
        place
        for place in range(0, words * _WORD, _WORD)
        if all(ctypes.c_uint64.from_address(address(sample) + place).value == word(sample) for sample in samples)
    ]
    return found[0] if len(found) == 1 else None

"""Operators of ``torch.cuda``: devices, streams, events, memory and random numbers of GPUs.

Those of namespace ``cuda`` are TorchScript's, which archives contain. Those of namespace ``python`` are functions of
``torch.cuda`` that TorchScript lacks: programs with them run, but cannot be saved. All of them call PyTorch's functions
in Python, so that a build of PyTorch without CUDA raises what these raise. No result of theirs is stored as a constant:
an archive does not depend on the machine where it was saved.
"""

from __future__ import annotations

import operator
from functools import partial
from operator import attrgetter
from typing import Any, Final

import torch
import torch.cuda.nvtx

from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ir.types import LIBRARY_CLASSES
from rekindle.ops.registration.declare import declare, implements
from rekindle.ops.tensor.torchbind_objects import PythonClass, add_python_class

STREAM_CLASS: Final = f"{LIBRARY_CLASSES}cuda.Stream"
EVENT_CLASS: Final = f"{LIBRARY_CLASSES}cuda.Event"
PROPERTIES_CLASS: Final = f"{LIBRARY_CLASSES}cuda._CudaDeviceProperties"


def _function(name: str) -> Any:
    """Return a function that calls ``torch.cuda.name``, which is looked up when it runs."""

    def run(*arguments: Any) -> Any:
        return attrgetter(name)(torch.cuda)(*arguments)

    return run


_query = partial(declare, nondeterministic=True)
_change = partial(declare, effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)

# ------------------------------------------------------------------------------------------------- streams and devices

for _name in ("current_stream", "default_stream"):
    _query(
        _function(_name),
        f"cuda::{_name}.device(Device? device) -> {STREAM_CLASS}",
        f"cuda::{_name}.int(int? val) -> {STREAM_CLASS}",
    )
_query(_function("current_device"), "cuda::_current_device() -> int")
_query(_function("device_count"), "cuda::device_count() -> int")
_change(_function("set_device"), "cuda::_set_device(int val) -> ()")
_change(_function("_exchange_device"), "cuda::_exchange_device(int index) -> int")
_change(_function("_maybe_exchange_device"), "cuda::_maybe_exchange_device(int index) -> int")
_change(_function("set_stream"), f"cuda::set_stream({STREAM_CLASS} stream) -> ()")
_change(
    _function("synchronize"),
    "cuda::synchronize() -> ()",
    "cuda::synchronize.device(Device? device) -> ()",
    "cuda::synchronize.int(int? val) -> ()",
)


@implements("cuda::device_index(Device device) -> int")
def device_index(device: torch.device) -> int:
    """Return the index of a device; -1 if it has none."""
    index: int | None = device.index
    return -1 if index is None else index


# -------------------------------------------------------------------------------------------- what TorchScript does not

_query(_function("is_initialized"), "python::cuda_is_initialized() -> bool")
_query(_function("is_bf16_supported"), "python::cuda_is_bf16_supported(bool including_emulation=True) -> bool")
_query(_function("is_current_stream_capturing"), "python::cuda_is_current_stream_capturing() -> bool")
_query(_function("get_device_name"), "python::cuda_get_device_name(Device? device=None) -> str")
_query(_function("get_device_capability"), "python::cuda_get_device_capability(Device? device=None) -> (int, int)")
_query(
    _function("get_device_properties"), f"python::cuda_get_device_properties(Device? device=None) -> {PROPERTIES_CLASS}"
)
_query(_function("mem_get_info"), "python::cuda_mem_get_info(Device? device=None) -> (int, int)")
for _name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
    _query(_function(_name), f"python::cuda_{_name}(Device? device=None) -> int")


@implements("python::cuda_get_rng_state(Device? device=None) -> Tensor", nondeterministic=True)
def get_rng_state(device: torch.device | None = None) -> torch.Tensor:
    """Return the state of the random number generator of a device, by default the current one."""
    return torch.cuda.get_rng_state("cuda" if device is None else device)


@implements(
    "python::cuda_set_rng_state(Tensor new_state, Device? device=None) -> ()",
    effects=AliasAnalysisKind.CONSERVATIVE,
    side_effects=True,
)
def set_rng_state(new_state: torch.Tensor, device: torch.device | None = None) -> None:
    """Set the state of the random number generator of a device, by default of the current one."""
    torch.cuda.set_rng_state(new_state, "cuda" if device is None else device)


_change(_function("empty_cache"), "python::cuda_empty_cache() -> ()")
_change(_function("reset_peak_memory_stats"), "python::cuda_reset_peak_memory_stats(Device? device=None) -> ()")
_change(_function("manual_seed"), "python::cuda_manual_seed(int seed) -> ()")
_change(_function("manual_seed_all"), "python::cuda_manual_seed_all(int seed) -> ()")
_change(_function("nvtx.range_push"), "python::cuda_nvtx_range_push(str msg) -> int")
_change(_function("nvtx.range_pop"), "python::cuda_nvtx_range_pop() -> int")
_change(_function("nvtx.mark"), "python::cuda_nvtx_mark(str msg) -> ()")

# ------------------------------------------------------------------------------------------------------------- classes


def _method(name: str) -> Any:
    return lambda target, *arguments: getattr(target, name)(*arguments)


def _as_python_stream(stream: Any) -> torch.cuda.Stream:
    """Return the ``torch.cuda.Stream`` for an object of ``torch.classes.cuda.Stream``."""
    kind = torch._C._autograd.DeviceType.CUDA.value
    return torch.cuda.Stream(stream_id=stream.id(), device_index=stream.device_index(), device_type=kind)


add_python_class(
    STREAM_CLASS,
    PythonClass(
        (torch.cuda.Stream,),
        _function("Stream"),
        {
            "__init__": ("(Device? device=None, int priority=0) -> NoneType", None),
            "query": ("() -> bool", _method("query")),
            "record_event": (f"({EVENT_CLASS} event) -> {EVENT_CLASS}", _method("record_event")),
            "synchronize": ("() -> NoneType", _method("synchronize")),
            "wait_event": (f"({EVENT_CLASS} event) -> NoneType", _method("wait_event")),
            "wait_stream": (f"({STREAM_CLASS} stream) -> NoneType", _method("wait_stream")),
            "device_index": ("() -> int", attrgetter("device_index")),
            "device_getter": ("() -> Device", attrgetter("device")),
            "id": ("() -> int", attrgetter("stream_id")),
            "__eq__": (f"({STREAM_CLASS} other) -> bool", operator.eq),
            "__ne__": (f"({STREAM_CLASS} other) -> bool", operator.ne),
            "cuda_stream_getter": ("() -> int", attrgetter("cuda_stream")),
            "priority_getter": ("() -> int", attrgetter("priority")),
        },
        only_in_python=frozenset({"__eq__", "__ne__", "cuda_stream_getter", "priority_getter"}),
        properties={"device_index": "device_index", "stream_id": "id"},
        defaults={"record_event": EVENT_CLASS},
        older={"__init__": "(int device, int priority) -> NoneType"},  # 1.8
        adopt=_as_python_stream,
    ),
)
add_python_class(
    EVENT_CLASS,
    PythonClass(
        (torch.cuda.Event,),
        _function("Event"),
        {
            "__init__": ("(bool enable_timing=False, bool blocking=False, bool interprocess=False) -> NoneType", None),
            "elapsed_time": (f"({EVENT_CLASS} end_event) -> float", _method("elapsed_time")),
            "query": ("() -> bool", _method("query")),
            "record": (f"({STREAM_CLASS} stream) -> NoneType", _method("record")),
            "synchronize": ("() -> NoneType", _method("synchronize")),
            "wait": (f"({STREAM_CLASS} stream) -> NoneType", _method("wait")),
            "cuda_event_getter": ("() -> int", attrgetter("cuda_event")),
        },
        only_in_python=frozenset({"cuda_event_getter"}),
        defaults={"record": "cuda::current_stream", "wait": "cuda::current_stream"},
    ),
)
_PROPERTIES: Final = {
    **dict.fromkeys(("name", "gcnArchName"), "str"),
    **dict.fromkeys(("major", "minor", "multi_processor_count", "total_memory", "warp_size", "L2_cache_size"), "int"),
    **dict.fromkeys(("max_threads_per_multi_processor", "regs_per_multiprocessor"), "int"),
    **dict.fromkeys(("shared_memory_per_block", "shared_memory_per_block_optin"), "int"),
    **dict.fromkeys(("shared_memory_per_multiprocessor", "is_integrated", "is_multi_gpu_board"), "int"),
}
add_python_class(
    PROPERTIES_CLASS,
    PythonClass(
        (torch.cuda._CudaDeviceProperties,) if torch.backends.cuda.is_built() else (),
        None,
        {f"{name}_getter": (f"() -> {type}", attrgetter(name)) for name, type in _PROPERTIES.items()},
    ),
)

"""Call sites of kernels that take Python Tensors, without Python code in between.

A :class:`TensorCallSite` is one place in a program where a kernel is called. Its ``function`` is a C function that
inspects its arguments natively (class, dispatch keys, gradients, dtype, sizes, strides), finds a :class:`CachedLaunch`
that was prepared for such arguments, allocates the results, and runs the kernel: about a third of a microsecond. If no
launch fits, it calls a Python function, which may add a launch for later calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch.autograd import forward_ad

from rekindle.codegen.llvm.call_site_ir import tensor_call_text
from rekindle.codegen.llvm.cpython_wrappers import capsule_of, function_at
from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.llvm.recording_ir import name_address
from rekindle.codegen.llvm.tensor_abi import tensor_objects
from rekindle.codegen.llvm.tensor_boxing_ir import FIXED, dtype_and_device
from rekindle.codegen.symbolic_sizes import ShapeProgram

MAX_LAUNCHES: Final = 32
"""Maximum number of launches of a call site; the oldest is evicted."""

Layout = tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]
"""A dtype, sizes and strides, in elements."""

SCALAR_CLASSES: Final[dict[type, int]] = {int: 0, float: 1, bool: 2}
"""Codes of the classes of numbers, in place of the dtype in the layout of a Tensor."""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """An input that is always the same object: the launch is valid for this object only."""

    value: object


_SITES: Final[WeakKeyDictionary[Callable[..., Any], int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class CachedLaunch:
    """A kernel for arguments of certain layouts.

    ``kernel`` is the address of ``int64_t kernel(void **pointers, int64_t *parameters, int64_t *scalars)``, which
    returns 0 on success, or another number to call the fallback instead. ``pointers`` are the addresses of the elements
    of the Tensors among the inputs, in order, then of the outputs; ``scalars`` are the numbers among the inputs: ints
    and bools as integers, floats as doubles.

    ``inputs`` has for each input a layout, the class of a number, or None for one that is fixed; ``outputs`` are the
    layouts of the Tensors to allocate. ``keep`` owns ``kernel``, and is kept alive.

    All Tensors are on ``device``. With a ``formula``, the launch also fits other sizes and strides for which the
    formula's guards hold. The formula's inputs are the sizes, then the strides, of each Tensor; its results are the
    parameters, then the sizes and strides of each output.

    A profiler records runs of the kernel by ``name``; without one it records none.
    """

    kernel: int
    inputs: Sequence[Layout | type | None]
    outputs: Sequence[Layout]
    parameters: Sequence[int] = ()
    keep: object = None
    formula: ShapeProgram | None = None
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - immutable
    name: str | None = None


def is_available() -> bool:
    """Return whether the memory layouts of this build of torch and Python are known. If not, each call of a site calls
    its ``fallback``."""
    return tensor_objects() is not None


class TensorCallSite:
    """A call site with an inline cache of launches. ``function`` takes arguments of the given ``kinds`` (``tensor``,
    ``scalar`` or :class:`Fixed`). It returns the result of the first launch that fits, several as a tuple, or else that
    of ``fallback(*arguments)``.

    A launch fits if every Tensor is exactly a Tensor or a Parameter of its dtype, sizes and strides (or those that its
    formula holds for), on its device, neither conjugated nor negated, not to be differentiated, every number is exactly
    of its class and of at most 64 bits, and every fixed input is the object itself; and if nothing intercepts operators
    in this thread (modes, transforms, autocast). The GIL is held while a kernel runs on few elements.
    """

    __slots__ = ("_kept", "_launches", "_site", "function")

    def __init__(self, kinds: Sequence[str | Fixed], fallback: Callable[..., Any]) -> None:
        site = _Site()
        kind_array = (ctypes.c_int64 * max(len(kinds), 1))(*map(_kind, kinds))
        site.inputs = len(kinds)
        site.kinds = ctypes.addressof(kind_array)
        site.fallback = id(fallback)
        site.most_pointers = 1
        site.forward = id(vars(forward_ad))
        self._site = site
        self._kept: list[object] = []
        """Objects that each launch keeps alive."""
        self._launches: list[_Launch] = []
        self.function: Callable[..., Any] = fallback
        if is_available():
            code = _code()
            owner = [code, site, kind_array, list(kinds), fallback, forward_ad, self._kept, self._launches]
            self.function = function_at(code.address("tensor_call"), "kernel", capsule_of(site), owner)
            _SITES[self.function] = ctypes.addressof(site)

    def add(self, launch: CachedLaunch) -> None:
        """Add ``launch`` to the cache of the call site. Beyond :data:`MAX_LAUNCHES`, the oldest launch is removed."""
        filled, kept = _fill(launch)
        self._launches.append(filled)
        self._kept.append((kept, launch.keep))
        site = self._site
        pointers = sum(isinstance(layout, tuple) for layout in launch.inputs) + len(launch.outputs)
        site.most_pointers = max(site.most_pointers, pointers)
        # The new list is in place before what it does not hold any more is freed.
        newest = self._launches[-MAX_LAUNCHES:]
        for index, known in enumerate(reversed(newest)):
            site.launch[index] = ctypes.addressof(known)
        site.launches = len(newest)
        del self._launches[:-MAX_LAUNCHES], self._kept[:-MAX_LAUNCHES]


def _kind(kind: str | Fixed) -> int:
    return id(kind.value) if isinstance(kind, Fixed) else int(kind == "tensor")


def site_of(function: Callable[..., Any]) -> int | None:
    """Return the address of the call site from which ``function`` calls kernels; None if it has none. The site lives
    as long as the function. Native plans launch kernels from a site without calling the function."""
    return _SITES.get(function)


class _Layout(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("inputs", ctypes.c_void_p),
        ("output_count", ctypes.c_int64),
        ("outputs", ctypes.c_void_p),
        ("parameters", ctypes.c_int64),
        ("number_count", ctypes.c_int64),
        ("formula", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
    )


class _Formula(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_int64),
        ("constant_count", ctypes.c_int64),
        ("constants", ctypes.c_void_p),
        ("step_count", ctypes.c_int64),
        ("steps", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
    )


class _Site(ctypes.Structure):
    _fields_ = (
        ("inputs", ctypes.c_int64),
        ("kinds", ctypes.c_void_p),
        ("fallback", ctypes.c_void_p),
        ("most_pointers", ctypes.c_int64),
        ("forward", ctypes.c_void_p),
        ("launches", ctypes.c_int64),
        ("launch", ctypes.c_void_p * MAX_LAUNCHES),
    )


@cache
def _code() -> NativeCode:
    objects = tensor_objects()
    assert objects is not None
    return compile_module(tensor_call_text(objects, MAX_LAUNCHES))


def _fill(launch: CachedLaunch) -> tuple[_Launch, list[object]]:
    """Return the C structure of a launch, and the objects to which it points."""
    numbers = list(launch.parameters)
    for _, sizes, strides in launch.outputs:
        numbers += (*sizes, *strides)
    number_array = _words(numbers)
    inputs = (_Layout * max(len(launch.inputs), 1))()
    outputs = (_Layout * max(len(launch.outputs), 1))()
    kept: list[object] = [number_array, inputs, outputs]
    for index, layout in enumerate(launch.inputs):
        if layout is None or isinstance(layout, type):
            inputs[index].dtype = FIXED if layout is None else SCALAR_CLASSES[layout]
            continue
        dtype, sizes, strides = layout
        size_array, stride_array = _words(sizes), _words(strides)
        kept += [size_array, stride_array]
        inputs[index].dtype, inputs[index].rank = dtype_and_device(dtype, launch.device), len(sizes)
        inputs[index].sizes = ctypes.addressof(size_array)
        inputs[index].strides = ctypes.addressof(stride_array)
    for index, (dtype, sizes, _) in enumerate(launch.outputs):
        outputs[index].dtype, outputs[index].rank = dtype_and_device(dtype, launch.device), len(sizes)
    structure = _Launch(
        launch.kernel,
        ctypes.addressof(number_array),
        ctypes.addressof(inputs),
        len(launch.outputs),
        ctypes.addressof(outputs),
        len(launch.parameters),
        len(numbers),
    )
    if launch.name is not None:
        structure.name = name_address(launch.name)
    if launch.formula is not None:
        formula = _fill_formula(launch.formula, kept)
        kept.append(formula)
        structure.formula = ctypes.addressof(formula)
    return structure, kept


def _fill_formula(formula: ShapeProgram, kept: list[object]) -> _Formula:
    constants = _words(formula.constants)
    steps = _words([word for step in formula.steps for word in step])
    results = _words(formula.results)
    kept += [constants, steps, results]
    return _Formula(
        formula.words,
        len(formula.constants),
        ctypes.addressof(constants),
        len(formula.steps),
        ctypes.addressof(steps),
        ctypes.addressof(results),
    )


def _words(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(len(numbers), 1))(*numbers)

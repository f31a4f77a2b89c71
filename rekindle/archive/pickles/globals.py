"""The names that a pickle of an archive may refer to, and their objects. All others are rejected.

Nothing is looked up in Python: a name is a key of the table below, or a class of the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import torch

from rekindle.archive.pickles.records import (
    ChannelQuantizerRecord,
    ClassName,
    PickledTyped,
    QuantizerRecord,
    SparseRecord,
    StorageClass,
    StorageRecord,
    TensorNumber,
    TensorRecord,
)
from rekindle.archive.zip_files.names import printable
from rekindle.ir.scalar_types import DTYPES, LAYOUTS
from rekindle.ir.types import DTYPE_NAMES

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Builder:
    """A function that creates a record from the arguments in a pickle. A pickle can call these functions only."""

    function: Callable[..., object]


LARGEST: Final = 2**63 - 1


class Malformed(Exception):
    """Something in a pickle is invalid; the reader adds the location."""


def check(condition: bool, problem: str) -> None:
    """Check a condition that every valid archive fulfils. ``problem`` is the message of the error otherwise.

    Raises:
        Malformed: the condition does not hold.
    """
    if not condition:
        raise Malformed(problem)


def expect(value: object, kind: type[T], problem: str) -> T:
    """Return ``value``, which must be exactly of this class: True is not an int.

    Raises:
        Malformed: the class of ``value`` is another one, also a derived one.
    """
    if type(value) is not kind:
        raise Malformed(problem)
    return value


def _numbers(value: object, problem: str) -> tuple[int, ...]:
    """Return ``value``, after a check that it is a tuple of integers from 0 to :data:`LARGEST`.

    Raises:
        Malformed: ``value`` is something else.
    """
    found = expect(value, tuple, problem)
    check(all(type(item) is int and 0 <= item <= LARGEST for item in found), problem)
    return found


# ------------------------------------------------------------------------------------------------------ tensors


def storage_of(reference: object) -> StorageRecord:
    """Return the storage that a persistent id describes: ``("storage", torch.FloatStorage, key, location, count)``.

    Raises:
        Malformed: the persistent id has another form, or the storage would have 2^63 bytes or more.
    """
    facts = expect(reference, tuple, "a persistent id that is not a storage")
    check(len(facts) == 5 or (len(facts) == 6 and facts[5] is None), "a storage that needs five facts")
    check(facts[0] == "storage", "a persistent id that is not a storage")
    dtype = expect(facts[1], StorageClass, "a storage of unknown type").dtype or torch.uint8
    key = expect(facts[2], str, "a storage without name")
    location = expect(facts[3], str, "a storage without place")
    count = expect(facts[4], int, "a storage without size")
    check(count >= 0, "a storage of negative size")
    check(count * dtype.itemsize <= LARGEST, "a storage larger than memory can be")
    return StorageRecord(key, dtype, location, count)


def _tensor(
    storage: object,
    offset: object,
    sizes: object,
    strides: object,
    requires_grad: object = False,
    hooks: object = None,
    bits: object = None,
) -> TensorRecord:
    check(not hooks, "a tensor with hooks")
    found = TensorRecord(
        expect(storage, StorageRecord, "a tensor without a storage"),
        expect(offset, int, "a tensor without an offset"),
        _numbers(sizes, "a tensor whose sizes are negative or none"),
        _numbers(strides, "a tensor whose strides are negative or none"),
        expect(requires_grad, bool, "a tensor that neither takes gradients nor does not"),
        bits=_bits(bits),
    )
    check_view(found)
    return found


def check_view(tensor: TensorRecord) -> None:
    """Check that sizes, strides and offset of a tensor fit together, and that its elements are within its storage.
    Sizes and strides must not be negative, which the callers check.

    Raises:
        Malformed: sizes, strides or offset are invalid, or the tensor has elements outside of its storage.
    """
    storage, sizes = tensor.storage, tensor.sizes
    check(len(sizes) == len(tensor.strides), "a tensor with more sizes than strides, or fewer")
    check(len(sizes) <= 64, "a tensor of more than 64 dimensions")
    check(0 <= tensor.offset <= LARGEST, "a tensor of negative offset")
    numel = 1
    for size in sizes:
        numel *= size or 1
    check(numel * storage.dtype.itemsize <= LARGEST, "a tensor larger than memory can be")
    if 0 in sizes:
        check(tensor.offset <= storage.count, "a tensor that begins beyond its storage")
        return
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(sizes, tensor.strides, strict=True))
    check(last < storage.count, "a tensor that reaches beyond its storage")


_SMALL: Final = 1 << 20


def check_content(tensor: TensorRecord) -> None:
    """Check the number of elements of a tensor that is about to be read whole, so that a small file cannot take much
    time.

    Raises:
        Malformed: the tensor has more than 2^20 elements and more than its storage, as with strides of 0.
    """
    numel = math.prod(tensor.sizes)
    check(numel <= max(tensor.storage.count, _SMALL), "a part of a tensor that has more elements than its storage")


def _bits(bits: object) -> tuple[str, ...]:
    if isinstance(bits, PickledTyped):
        bits = bits.value
    if not bits:
        return ()
    found = expect(bits, dict, "a tensor with unknown properties")
    check(set(found) <= {"conj", "neg"}, "a tensor with unknown properties")
    return tuple(sorted(name for name, value in found.items() if value is True))


def _parameter(data: object, requires_grad: object, hooks: object = None) -> TensorRecord:
    found = expect(data, TensorRecord, "a parameter that is not a tensor")
    check(not hooks, "a tensor with hooks")
    found.is_parameter = True
    found.requires_grad = expect(requires_grad, bool, "a tensor that neither takes gradients nor does not")
    return found


def _quantized(
    storage: object,
    offset: object,
    sizes: object,
    strides: object,
    quantizer: object,
    requires_grad: object = False,
    hooks: object = None,
) -> TensorRecord:
    found = _tensor(storage, offset, sizes, strides, requires_grad, hooks)
    found.quantizer = _quantizer(expect(quantizer, tuple, "a quantised tensor without scale"), found)
    check(found.dtype in _QUANTIZED, "a quantised tensor of plain numbers")
    return found


def _quantizer(facts: tuple[object, ...], tensor: TensorRecord) -> QuantizerRecord | ChannelQuantizerRecord:
    scheme = facts[0] if facts else None
    if scheme == torch.per_tensor_affine and len(facts) == 3:
        scale = expect(facts[1], float, "a quantised tensor without scale")
        zero_point = expect(facts[2], int, "a quantised tensor without zero point")
        check(abs(zero_point) <= LARGEST, "a quantised tensor without zero point")
        return QuantizerRecord(scale, zero_point)
    for known in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
        if scheme == known and len(facts) == 4:
            scales = expect(facts[1], TensorRecord, "a quantised tensor without scales")
            zero_points = expect(facts[2], TensorRecord, "a quantised tensor without zero points")
            check_content(scales)
            check_content(zero_points)
            axis = expect(facts[3], int, "a tensor that is quantised along no axis")
            check(0 <= axis < len(tensor.sizes), "a tensor that is quantised along no axis")
            expected = (tensor.sizes[axis],)
            check(scales.sizes == zero_points.sizes == expected, "a quantised tensor with too many scales, or too few")
            return ChannelQuantizerRecord(scales, zero_points, axis)
    raise Malformed("an unknown quantisation")


_QUANTIZED: Final = frozenset({torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4})


def _sparse(layout: object, *rest: object) -> SparseRecord:
    """Return the record of a sparse tensor, from the arguments of its constructor in the pickle.

    PyTorch's C++ writes ``(layout, sizes, requires_grad, parts…, hooks)``, its Python ``(layout, (parts…, sizes,
    is_coalesced))``. Old releases omit ``is_coalesced``, which is ignored here.

    Raises:
        Malformed: the arguments have neither form, or a part has far more elements than its storage.
    """
    if type(layout) is int:
        check(0 <= layout < len(LAYOUTS), "an unknown layout")
        layout = LAYOUTS[layout]
    kind = expect(layout, torch.layout, "an unknown layout")
    check(kind in _SPARSE, "a sparse tensor that is none")
    count = 2 if kind == torch.sparse_coo else 3
    requires_grad: object = False
    problem = "a sparse tensor without parts"
    if len(rest) == 1:
        facts = expect(rest[0], tuple, problem)
        check(count + 1 <= len(facts) <= count + 2, problem)
        parts, sizes = facts[:count], facts[count]
    else:
        check(count + 2 <= len(rest) <= count + 3, problem)
        sizes, requires_grad, *others = rest
        parts = tuple(others[:count])
    tensors = tuple(expect(part, TensorRecord, problem) for part in parts)
    for tensor in tensors:
        check_content(tensor)
    return SparseRecord(
        kind,
        _numbers(sizes, "a sparse tensor whose sizes are negative or none"),
        tensors,
        expect(requires_grad, bool, "a tensor that neither takes gradients nor does not"),
    )


_SPARSE: Final = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


# ------------------------------------------------------------------------------------------------------- values


def _typed(value: object, type: object) -> object:
    check(isinstance(value, (list, dict)), "a type for a value other than a list or dict")
    return PickledTyped(value, expect(type, str, "a type that is not a string"))


def _list_of(type: str) -> Callable[[object], PickledTyped]:
    def build(value: object) -> PickledTyped:
        return PickledTyped(expect(value, list, "a list that is none"), type)

    return build


def _tensor_number(number: object) -> TensorNumber:
    return TensorNumber(expect(number, int, "a tensor without a number"))


def _complex(real: object, imaginary: object) -> complex:
    problem = "a complex number without its parts"
    return complex(expect(real, float, problem), expect(imaginary, float, problem))


def _device(text: object, index: object = None) -> torch.device:
    name = expect(text, str, "a device without a name")
    if index is not None:
        name = f"{name}:{expect(index, int, 'a device whose number is none')}"
    return device_called(name)


def device_called(name: str) -> torch.device:
    """Return the device with this name, such as ``cuda:0``.

    Raises:
        Malformed: PyTorch does not know the type of the device, or the name is too long.
    """
    check(len(name) <= 100, "a device with a very long name")
    try:
        return torch.device(name)
    except RuntimeError:
        raise Malformed(f"the unknown device '{printable(name)}'") from None


def _ordered_dict(items: object = ()) -> dict[Any, Any]:
    check(items in ((), []), "an ordered dict with items")
    return {}


_BUILDERS: Final[dict[tuple[str, str], Callable[..., object]]] = {
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_qtensor"): _quantized,
    ("torch._utils", "_rebuild_sparse_tensor"): _sparse,
    ("torch._utils", "_rebuild_sparse_csr_tensor"): _sparse,
    ("torch.jit._pickle", "build_intlist"): _list_of("List[int]"),
    ("torch.jit._pickle", "build_doublelist"): _list_of("List[float]"),
    ("torch.jit._pickle", "build_boollist"): _list_of("List[bool]"),
    ("torch.jit._pickle", "build_tensorlist"): _list_of("List[Tensor]"),
    ("torch.jit._pickle", "build_tensor_from_id"): _tensor_number,
    ("torch.jit._pickle", "restore_type_tag"): _typed,
    ("collections", "OrderedDict"): _ordered_dict,
    ("builtins", "complex"): _complex,
    ("__builtin__", "complex"): _complex,
    ("torch", "device"): _device,
}

_VALUES: Final[dict[tuple[str, str], object]] = {
    **{("torch", f"{name}Storage"): StorageClass(dtype) for dtype, name in DTYPE_NAMES.items()},
    ("torch", "UntypedStorage"): StorageClass(None),
    ("torch.storage", "UntypedStorage"): StorageClass(None),
    **{("torch", str(dtype).removeprefix("torch.")): dtype for dtype in DTYPES if dtype is not None},
    **{("torch", str(layout).removeprefix("torch.")): layout for layout in LAYOUTS},
    **{
        ("torch", str(scheme).removeprefix("torch.")): scheme
        for scheme in (
            *(torch.per_tensor_affine, torch.per_channel_affine, torch.per_tensor_symmetric),
            *(torch.per_channel_symmetric, torch.per_channel_affine_float_qparams),
        )
    },
}

ROOT: Final = "__torch__"
"""Prefix of the qualified names of a program's classes."""


def object_named(module: str, name: str) -> object:
    """Return what ``module.name`` in a pickle refers to: a value, a function that makes a record, or a
    :class:`ClassName`; None if the name is not permitted."""
    if module == ROOT or module.startswith(ROOT + "."):
        qualified = f"{module}.{name}"
        return ClassName(qualified) if all(part.isidentifier() for part in qualified.split(".")) else None
    key = (module, name)
    function = _BUILDERS.get(key)
    return _VALUES.get(key) if function is None else Builder(function)

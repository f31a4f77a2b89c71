"""Tensors made of numbers and lists, and functions on tensors that are not operators of the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES, LAYOUT_NUMBERS, MEMORY_FORMATS
from rekindle.ops.python.conversions import number_to_tensor
from rekindle.ops.registration.declare import declare, implements, implements_for_node
from rekindle.ops.releases.v2_15 import check_assigned_number

# -------------------------------------------------------------------------------------------------------------- making


def _dtype(number: int | None) -> torch.dtype | None:
    if number is None:
        return None
    dtype = DTYPES[number] if 0 <= number < len(DTYPES) else None
    if dtype is None:
        raise ValueError(f"there is no dtype with the number {number}")
    return dtype


def tensor(
    data: Any, dtype: int | None = None, device: torch.device | None = None, requires_grad: bool = False
) -> Tensor:
    """Return ``torch.tensor`` of a number, or of nested lists of numbers, with eager's dtype. ``dtype`` is the number
    of a dtype."""
    return torch.tensor(data, dtype=_dtype(dtype), device=device, requires_grad=requires_grad)


def assigned_number(data: complex, dtype: int, device: torch.device, requires_grad: bool = False) -> Tensor:
    """Convert the number of ``x[i] = data`` to a Tensor, which never requires a gradient.

    Raises:
        RuntimeError: ``data`` exceeds the range of ``dtype``; since PyTorch 2.15, also of a half-precision dtype.
        ValueError: ``data`` is an int of more than 64 bits, or no dtype has the number ``dtype``.
    """
    if isinstance(data, int) and not -(2**63) <= data < 2**63:
        raise ValueError("Overflow when unpacking long long")
    wanted = _dtype(dtype)
    if wanted is not None:
        check_assigned_number(data, wanted)
    return torch.full((), data, dtype=wanted, device=device)


@implements_for_node(
    "aten::tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    "aten::tensor.float(float t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    "aten::tensor.int(int t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
    "aten::tensor.complex(complex t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) ->"
    " Tensor",
    "aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
)
def make_tensor(node: Node) -> Operation:
    """Return the operation ``torch.tensor``; if the node has the attribute ``assigned``, the conversion of the value of
    ``x[i] = …``."""
    return assigned_number if node.attributes.get("assigned") else tensor


@implements(
    "aten::as_tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    "aten::as_tensor.float(float t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    "aten::as_tensor.int(int t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    "aten::as_tensor.complex(complex t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    "aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a)",
    "aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
)
def as_tensor(data: Any, dtype: int | None = None, device: torch.device | None = None) -> Tensor:
    """Return ``torch.as_tensor(data)``. A Tensor that needs no conversion is returned itself."""
    return torch.as_tensor(data, dtype=_dtype(dtype), device=device)


@implements("aten::_list_to_tensor(int[] self) -> Tensor")
def list_to_tensor(self: list[int]) -> Tensor:
    """Return a 1-dimensional int32 tensor."""
    return torch.tensor(self, dtype=torch.int32)


@implements("aten::_tensor_to_list(Tensor self) -> int[]")
def tensor_to_list(self: Tensor) -> list[int]:
    """Return all elements of an int32 tensor, in order.

    Raises:
        RuntimeError: the tensor is of another dtype.
    """
    if self.dtype != torch.int32:
        raise RuntimeError(f"expected a tensor of dtype torch.int32, got {self.dtype}")
    return [int(item) for item in self.flatten().tolist()]


_TOLIST_DTYPES: tuple[tuple[str, Callable[[torch.dtype], bool]], ...] = (
    ("int", lambda dtype: not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool),
    ("float", lambda dtype: dtype.is_floating_point),
    ("bool", lambda dtype: dtype == torch.bool),
    ("complex", lambda dtype: dtype.is_complex),
)


@implements("prim::tolist(...) -> ...")
def to_list(self: Tensor, dimensions: int, element: int) -> Any:
    """Return ``self.tolist()`` for an annotation of ``dimensions`` nested lists of ``element`` (0 int, 1 float, 2 bool,
    3 complex).

    Raises:
        RuntimeError: the tensor has another number of dimensions, or elements of another type. The dtype of a tensor
            without elements does not matter.
    """
    name, fits = _TOLIST_DTYPES[element]
    if self.dim() != dimensions:
        raise RuntimeError(
            f"tolist() is annotated to give {dimensions} nested lists, but the tensor has {self.dim()} dimensions"
        )
    if self.numel() and not fits(self.dtype):
        raise RuntimeError(f"tolist() is annotated to give elements of type {name}, but the tensor is of {self.dtype}")
    return self.tolist()


# ---------------------------------------------------------------------------------------------------------- properties

for _name in (
    *("is_cpu", "is_cuda", "is_ipu", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia", "is_nested"),
    *("is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu", "requires_grad"),
):
    declare(attrgetter(_name), f"prim::{_name}(Tensor a) -> bool")

declare(attrgetter("device"), "prim::device(Tensor a) -> Device")
declare(attrgetter("name"), "prim::name(Tensor a) -> str?")
declare(attrgetter("itemsize"), "prim::itemsize(Tensor a) -> int")
declare(attrgetter("nbytes"), "prim::nbytes(Tensor a) -> int")
declare(attrgetter("data"), "prim::data(Tensor(a) a) -> Tensor(a)")
declare(attrgetter("grad"), "prim::grad(Tensor a) -> Tensor(*)")
declare(attrgetter("mH"), "aten::mH.a(Tensor(a) self) -> Tensor(a)")
declare(attrgetter("mT"), "aten::mT.a(Tensor(a) self) -> Tensor(a)")
declare(attrgetter("H"), "aten::matrix_H.a(Tensor(a) self) -> Tensor(a)")
declare(attrgetter("T"), "aten::numpy_T.a(Tensor(a) self) -> Tensor(a)")
declare(Tensor.element_size, "aten::element_size(Tensor self) -> int")
declare(len, "aten::len.Tensor(Tensor t) -> int")


@implements("prim::dtype(Tensor a) -> int")
def dtype_number(a: Tensor) -> int:
    """Return the int that represents the dtype: 6 for ``torch.float32``."""
    return DTYPE_NUMBERS[a.dtype]


@implements("prim::layout(Tensor a) -> Layout")
def layout_number(a: Tensor) -> int:
    """Return the int that represents the layout: 0 for ``torch.strided``."""
    return LAYOUT_NUMBERS[a.layout]


@implements("aten::size(Tensor self) -> int[]", "aten::sym_size(Tensor self) -> SymInt[]")
def size(self: Tensor) -> list[int]:
    """Return the sizes of all dimensions as a new list."""
    return list(self.shape)


@implements("aten::stride(Tensor self) -> int[]", "aten::sym_stride(Tensor self) -> SymInt[]")
def stride(self: Tensor) -> list[int]:
    """Return the strides of all dimensions, in elements."""
    return list(self.stride())


@implements("aten::Size(int[] sizes) -> int[]", may_alias_inputs=True)
def make_size(sizes: list[int]) -> list[int]:
    """Return ``sizes`` itself: a ``torch.Size`` is a list in programs."""
    return sizes


@implements("aten::is_non_overlapping_and_dense(Tensor self) -> bool")
def is_non_overlapping_and_dense(self: Tensor) -> bool:
    """Return whether the elements of the tensor fill memory without gaps and overlaps."""
    dimensions = [pair for pair in zip(self.stride(), self.shape, strict=True) if pair[1] > 1]
    expected = 1
    for step, length in sorted(dimensions):
        if step != expected:
            return False
        expected *= length
    return True


@implements("aten::is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool")
def is_strides_like_format(self: Tensor, memory_format: int) -> bool:
    """Return whether the strides are in the order of a memory format, channels last in two or three dimensions; False
    for other formats."""
    form = MEMORY_FORMATS[memory_format]
    rank = {torch.channels_last: 4, torch.channels_last_3d: 5}.get(form)
    if rank is None or self.dim() != rank:
        return False
    strides = self.stride()
    if strides[1] == 0:
        return False
    smallest = 0
    for dim in (1, *range(rank - 1, 1, -1), 0):
        length, step = self.shape[dim], strides[dim]
        if length == 0 or step < smallest or (dim == 0 and smallest == strides[1]):
            return False
        smallest = step * max(length, 1)
    return True


# -------------------------------------------------------------------------------------------------------------- moving


@implements(
    "aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool"
    " copy=False) -> Tensor(b|a)"
)
def to_device(
    self: Tensor,
    device: torch.device | None,
    dtype: int | None = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """Return ``self.to(device, dtype)``; a property that is None is unchanged."""
    return self.to(
        device=self.device if device is None else device,
        dtype=self.dtype if dtype is None else _dtype(dtype),
        non_blocking=non_blocking,
        copy=copy,
    )


@implements(
    "aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)"
)
def to_dtype(self: Tensor, dtype: int | None = None, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """Return ``self.to(dtype)``. ``dtype`` is the int that represents a dtype."""
    return self.to(dtype=self.dtype if dtype is None else _dtype(dtype), non_blocking=non_blocking, copy=copy)


@implements("aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)")
def to_same(self: Tensor, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """Return ``self``, or a copy if ``copy``."""
    return self.to(dtype=self.dtype, non_blocking=non_blocking, copy=copy)


@implements("aten::cpu(Tensor(a) self) -> Tensor(b|a)")
def to_cpu(self: Tensor) -> Tensor:
    """Return the tensor in the memory of the CPU."""
    return self.cpu()


@implements("aten::cuda(Tensor(a) self) -> Tensor(b|a)")
def to_cuda(self: Tensor) -> Tensor:
    """Return the tensor in the memory of the current CUDA device."""
    return self.cuda()


@implements("aten::dequantize.tensor(Tensor qtensor) -> Tensor", may_alias_inputs=True)
def dequantize(qtensor: Tensor) -> Tensor:
    """Return the tensor in floating point."""
    return qtensor.dequantize()


@implements("aten::dequantize.list(Tensor[] qtensors) -> Tensor[]", may_alias_inputs=True)
def dequantize_list(qtensors: list[Tensor]) -> list[Tensor]:
    """Return the tensors in floating point."""
    return [tensor.dequantize() for tensor in qtensors]


@implements("aten::dequantize.any(Any tensors) -> Any", may_alias_inputs=True)
def dequantize_any(tensors: Any) -> Any:
    """Return a tensor, or lists and tuples of them, in floating point.

    Raises:
        RuntimeError: it is, or holds, something other than a tensor.
    """
    if isinstance(tensors, Tensor):
        return tensors.dequantize()
    if isinstance(tensors, list):
        return [dequantize_any(item) for item in tensors]
    if isinstance(tensors, tuple):
        return tuple(dequantize_any(item) for item in tensors)
    raise RuntimeError(f"dequantize() takes a Tensor or a list or tuple of them, not a {type(tensors).__name__}")


# ------------------------------------------------------------------------------------------------------------- writing


@implements(
    "aten::copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)",
    "aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)",
)
def copy_(self: Tensor, other: Tensor | float) -> Tensor:
    """Write ``other``, broadcast to the shape of ``self``, into its elements; return ``self``."""
    return self.copy_(other if isinstance(other, Tensor) else number_to_tensor(other))


@implements(
    "aten::_index_put_impl_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool accumulate=False,"
    " bool unsafe=False) -> Tensor(a!)"
)
def index_put_impl_(
    self: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """Run :func:`index_put_`; ``unsafe`` omits the checks of the indices."""
    return torch.ops.aten._index_put_impl_.default(self, indices, values, accumulate, unsafe)  # type: ignore[no-any-return]


@implements(
    "aten::index_put_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool accumulate=False) ->"
    " Tensor(a!)"
)
def index_put_(self: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Run ``self[indices] = values``, or add the values if ``accumulate``; return ``self``."""
    return self.index_put_(tuple(indices), values, accumulate)


# ------------------------------------------------------------------------------------------------------------ indexing


@implements(
    "aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor"
)
def index_put(self: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of ``self`` with ``values`` at ``indices``; they are added if ``accumulate``."""
    return self.index_put(tuple(indices), values, accumulate)


@implements(
    "aten::_unsafe_index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor"
)
def unsafe_index_put(self: Tensor, indices: list[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Return :func:`index_put` without checks of the indices."""
    return torch.ops.aten._unsafe_index_put.default(self, indices, values, accumulate)  # type: ignore[no-any-return]


@implements("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor")
def index(self: Tensor, indices: list[Tensor]) -> Tensor:
    """Return ``self[indices]``, with one index tensor for each of the first dimensions."""
    return torch.ops.aten.index.Tensor(self, indices)  # type: ignore[no-any-return]


@implements("aten::_unsafe_index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor")
def unsafe_index(self: Tensor, indices: list[Tensor]) -> Tensor:
    """Return :func:`index` without checks of the indices."""
    return torch.ops.aten._unsafe_index.Tensor(self, indices)  # type: ignore[no-any-return]


@implements("aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]")
def split(self: Tensor, split_sizes: list[int], dim: int = 0) -> list[Tensor]:
    """Return views of ``self`` of the given lengths along ``dim``."""
    return list(torch.split(self, split_sizes, dim))


@implements("aten::einsum.sublist(Tensor a, ...) -> Tensor", may_alias_inputs=True)
def einsum_of_sublists(a: Tensor, *operands: Tensor | list[int]) -> Tensor:
    """Return ``torch.einsum(a, [0, 1], b, [1, 2], [0, 2])``, whose subscripts are lists."""
    return torch.einsum(a, *operands)


# -------------------------------------------------------------------------------------------------------------- shapes


@implements("aten::_infer_size(int[] a, int[] b) -> int[]", "aten::broadcast_shapes(int[] a, int[] b) -> int[]")
def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the shape to which both shapes broadcast.

    Raises:
        RuntimeError: the shapes do not broadcast.
    """
    return list(torch.broadcast_shapes(a, b))


@implements("aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?", may_alias_inputs=True)
def size_if_not_equal(self_size: list[int], other_size: list[int]) -> list[int] | None:
    """Return the size to which a gradient must be summed; None if it has that size."""
    return None if self_size == other_size else self_size


@implements("aten::_grad_sum_to_size(Tensor(a) self, int[]? size) -> Tensor(a)")
def grad_sum_to_size(self: Tensor | None, size: list[int] | None) -> Tensor | None:
    """Return a gradient summed to ``size``, or unchanged if ``size`` is None."""
    return self if size is None or self is None else self.sum_to_size(size)


@implements("aten::_ncf_unsqueeze(Tensor(a) self, int ndim) -> Tensor(a)")
def ncf_unsqueeze(self: Tensor, ndim: int) -> Tensor:
    """Return a vector of channels reshaped to ``ndim`` dimensions, with the channels in the second one."""
    return self.reshape([1, self.size(0)] + [1] * (ndim - 2))


@implements("aten::_ncf_view(Tensor(a) self, int[] input_shape, int normalized_ndim) -> Tensor(a)")
def ncf_view(self: Tensor, input_shape: list[int], normalized_ndim: int) -> Tensor:
    """Return statistics of a normalization, reshaped to broadcast against its input, which is normalized over its last
    dimensions."""
    kept = len(input_shape) - normalized_ndim
    return self.reshape(input_shape[:kept] + [1] * normalized_ndim)


@implements("prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]")
def reduction_sizes(size: list[int], red_axes: list[int], keepdim: bool = False) -> list[int]:
    """Return the shape after a reduction over ``red_axes``."""
    reduced = {axis % len(size) for axis in red_axes}
    if keepdim:
        return [1 if axis in reduced else length for axis, length in enumerate(size)]
    return [length for axis, length in enumerate(size) if axis not in reduced]

"""Run attention by the fastest implementation on this machine: a kernel of this package, or PyTorch's operators.

:class:`rekindle.passes.frozen_modules.select_attention.SelectAttention` inserts these operators for PyTorch's. The
first call with arguments of a kind measures both. PyTorch's operator runs where the kernel does not apply: gradients,
dropout, other devices and dtypes, tensors of other ranks than 4.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rekindle.codegen.attention.attention import Attention
from rekindle.codegen.kernel_eligibility import is_plain
from rekindle.codegen.launched_operation import LaunchedOperation, NativeCall
from rekindle.codegen.selection import NativeCandidate, Selection
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ops.registration.declare import int_attribute


def attention(_: Node) -> Operation:
    """Return the operation of ``scaled_dot_product_attention``, which times the kernel and PyTorch's operator."""
    kernel = Attention()

    def by_own_kernel(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        dropout: float,
        is_causal: bool,
        scale: float | None,
        enable_gqa: bool,
    ) -> Tensor | None:
        return kernel.run(query, key, value, mask, is_causal, scale)

    def own_native_call(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        dropout: float,
        is_causal: bool,
        scale: float | None,
        enable_gqa: bool,
    ) -> NativeCall | None:
        return kernel.native_call(query, key, value, mask, is_causal, scale)

    own = NativeCandidate(by_own_kernel, own_native_call)
    selection = Selection({"own": own, "PyTorch": _by_pytorch}, "attention")

    def run(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        dropout: float,
        is_causal: bool,
        scale: float | None,
        enable_gqa: bool,
    ) -> Tensor:
        arguments = (query, key, value, mask, dropout, is_causal, scale, enable_gqa)
        if not _is_usual(*arguments):
            return _by_pytorch(*arguments)
        return selection.run((*_kind(query, key, value), mask is None, is_causal), *arguments)

    def native_call(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        dropout: float,
        is_causal: bool,
        scale: float | None,
        enable_gqa: bool,
    ) -> NativeCall | None:
        arguments = (query, key, value, mask, dropout, is_causal, scale, enable_gqa)
        if not _is_usual(*arguments):
            return None
        return selection.native_call((*_kind(query, key, value), mask is None, is_causal), *arguments)

    return LaunchedOperation("attention", run, native_call, [0, 1, 2, 3])


def _kind(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """Return the bit lengths of the sizes: calls with equal ones share the choice of an implementation."""
    sizes = (query.shape[0] * query.shape[1], query.shape[2], key.shape[2], query.shape[3], value.shape[3])
    return tuple(size.bit_length() for size in sizes)


def _by_pytorch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, dropout, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _is_usual(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> bool:
    """Return whether the kernel supports the arguments and options, apart from its limits on sizes."""
    has_known_options = not dropout and (scale is None or scale > 0)
    return has_known_options and _applies(query, key, value, mask, is_causal, enable_gqa)


def _applies(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, enable_gqa: bool) -> bool:
    """Return whether the kernel supports the tensors, apart from its limits on sizes."""
    if not (is_plain(query) and is_plain(key) and is_plain(value)):
        return False
    if not query.dim() == key.dim() == value.dim() == 4 or not (enable_gqa or query.shape[1] == key.shape[1]):
        return False
    if mask is None:
        return True
    if is_causal or mask.requires_grad or not 2 <= mask.dim() <= 4:
        return False
    scores = (*query.shape[:-1], key.shape[-2])
    pairs = zip(reversed(mask.shape), reversed(scores), strict=False)
    if any(size not in (1, wanted) for size, wanted in pairs):
        return False
    return is_plain(mask) if mask.dtype is not torch.bool else type(mask) is Tensor and mask.is_cpu


def written_attention(node: Node) -> Operation:
    """Return the operation for attention that a program writes out: ``softmax(query @ key.transpose(-2, -1) / scale,
    -1) @ value``. If the attribute ``divides`` is 0, scores are multiplied by ``scale``. If ``counts_from_start`` is 1,
    the key is transposed by ``key.transpose(2, 3)``: another result, or an error, where it has not four dimensions."""
    kernel, divides = Attention(), bool(int_attribute(node, "divides"))
    first, second = (2, 3) if int_attribute(node, "counts_from_start", 0) else (-2, -1)

    def by_own_kernel(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor | None:
        return kernel.run(query, key, value, scale=1.0 / scale if divides else scale)

    def by_pytorch(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        scores = torch.matmul(query, key.transpose(first, second))
        scores = scores / scale if divides else scores * scale
        return torch.matmul(torch.softmax(scores, -1), value)

    def own_native_call(query: Tensor, key: Tensor, value: Tensor, scale: float) -> NativeCall | None:
        return kernel.native_call(query, key, value, scale=1.0 / scale if divides else scale)

    own = NativeCandidate(by_own_kernel, own_native_call)
    selection = Selection({"own": own, "PyTorch": by_pytorch}, f"written attention {divides}")

    def applies(query: Tensor, key: Tensor, value: Tensor, scale: float) -> bool:
        return scale > 0 and _applies(query, key, value, None, False, False) and query.shape[0] == key.shape[0]

    def run(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        if not applies(query, key, value, scale):
            return by_pytorch(query, key, value, scale)
        return selection.run(_kind(query, key, value), query, key, value, scale)

    def native_call(query: Tensor, key: Tensor, value: Tensor, scale: float) -> NativeCall | None:
        if not applies(query, key, value, scale):
            return None
        return selection.native_call(_kind(query, key, value), query, key, value, scale)

    return LaunchedOperation("written_attention", run, native_call, [0, 1, 2])

"""Attention by :mod:`rekindle.codegen.attention.attention_ir`: sizes, strides and calls."""

from __future__ import annotations

import ctypes
import math
import struct
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.attention.attention_ir import NAME, AttentionWord, module_text
from rekindle.codegen.convolution.launch_ir import NULL, SCRATCH, LaunchPart, launch_parameters
from rekindle.codegen.convolution.task_function import TaskFunction, task_function
from rekindle.codegen.convolution.task_ir import VECTORS, lanes_of
from rekindle.codegen.convolution.workspace import WORKSPACE
from rekindle.codegen.launched_operation import NativeCall
from rekindle.codegen.llvm.target import Target, host_target

MAX_KEYS: Final = 1 << 14
"""Maximum number of keys: the scores of a block of queries with more would not fit in a cache."""
_BLOCK: Final = 32
"""Number of queries of a task, which share packed keys and values."""
_FEW_QUERIES: Final = 4
"""Number of queries up to which packing keys and values takes longer than it saves."""
_LINE: Final = 64
"""Bytes of a line of the cache."""
_GRAIN: Final = 1 << 18
"""Number of multiplications that justify another thread."""
_MAX_SIZES: Final = 256
"""Maximum number of combinations of sizes, strides and options whose call data is cached."""


@cache
def _function(target: Target) -> TaskFunction | None:
    """Return the compiled function, which takes query, key, value, mask or 0, output and workspace; None if this
    platform lacks a function that it calls."""
    return task_function(NAME, partial(module_text, target), 6, target, None)


@dataclass(slots=True)
class _Call:
    """Data shared by calls with tensors of the same sizes and strides."""

    function: TaskFunction
    words: Any
    sizes: tuple[int, ...]
    workspace: int
    """Bytes for one thread."""
    most_threads: int


@dataclass(slots=True)
class Attention:
    """Attention of float32 tensors on the CPU. Several threads may call it."""

    target: Target = field(default_factory=host_target)
    _calls: dict[tuple[object, ...], _Call | None] = field(default_factory=dict)
    """Data of the latest calls by sizes, strides and options; None for unsupported sizes."""

    def run(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Tensor | None:
        """Return ``softmax(query key' scale + mask) value`` of batches of heads; None if there is no kernel for the
        sizes or the platform.

        Tensors have shape ``(batch, heads, queries or keys, width)``. The number of heads of ``key`` and ``value`` is
        that of ``query``, or a divisor of it. ``mask`` is added, or, if it is boolean, selects keys. By default
        ``scale`` is one over the root of the queries' width. The result is transposed from memory of shape ``(batch,
        queries, heads, width)``, as that of PyTorch's operator.
        """
        query, key, value = (each if each.stride(-1) == 1 else each.contiguous() for each in (query, key, value))
        if mask is not None:
            mask = _prepared(mask, (*query.shape[:-1], key.shape[-2]))
        identity = _identity(query, key, value, mask, is_causal, scale)
        known = self._calls
        if identity not in known:
            made = _call_for(query, key, value, mask, is_causal, scale, self.target)
            known = self._calls = {**dict(list(known.items())[1 - _MAX_SIZES :]), identity: made}
        call = known[identity]
        if call is None:
            return None
        batch, heads, queries, width = call.sizes
        output = torch.empty((batch, queries, heads, width), dtype=torch.float32, device="cpu").transpose(1, 2)
        threads = min(torch.get_num_threads(), call.most_threads) if call.most_threads > 1 else 1
        call.function.call(
            ctypes.addressof(call.words),
            query.data_ptr(),
            key.data_ptr(),
            value.data_ptr(),
            0 if mask is None else mask.data_ptr(),
            output.data_ptr(),
            WORKSPACE.of(call.workspace * threads).data_ptr(),
            threads,
        )
        return output

    def native_call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> NativeCall | None:
        """Return the call data for native code, for tensors of the same sizes and strides. Return None unless
        :meth:`run` has accepted such arguments before, and native code can pass them without copies."""
        sources = [0, 1, 2, NULL, 3, SCRATCH]
        if any(each.stride(-1) != 1 for each in (query, key, value)):
            return None
        if mask is not None:
            if mask.dtype is torch.bool or mask.expand(*query.shape[:-1], key.shape[-2]).stride(-1) != 1:
                return None
            mask = _prepared(mask, (*query.shape[:-1], key.shape[-2]))
            sources[3:5] = 3, 4
        call = self._calls.get(_identity(query, key, value, mask, is_causal, scale))
        if call is None or call.function.launch is None:
            return None
        part = LaunchPart([(source, 0) for source in sources], tuple(call.words))
        parameters = launch_parameters([part], call.most_threads, call.workspace)
        _, heads, queries, width = call.sizes
        strides = (queries * heads * width, width, heads * width, 1)
        return NativeCall(call.function.launch, parameters, (torch.float32, call.sizes, strides), call.function)


def _identity(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> tuple[object, ...]:
    """Return the key of calls that share their parameters: sizes, strides and options."""
    found = (query.shape, query.stride(), key.shape, key.stride(), value.shape, value.stride())
    return *found, None if mask is None else mask.stride(), is_causal, scale


def _prepared(mask: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return a mask as floats, expanded to the sizes of the scores, with adjacent elements in each row."""
    if mask.dtype is torch.bool:
        mask = torch.zeros(mask.shape, dtype=torch.float32, device="cpu").masked_fill_(mask.logical_not(), -math.inf)
    mask = mask.expand(sizes)
    return mask if mask.stride(-1) == 1 else mask.contiguous()


def _call_for(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    target: Target,
) -> _Call | None:
    function = _function(target)
    batch, heads, queries, dimensions = query.shape
    groups, keys, width = key.shape[1], key.shape[2], value.shape[3]
    is_known = (
        key.shape == (batch, groups, keys, dimensions)
        and value.shape == (batch, groups, keys, width)
        and min(batch, heads, groups, queries, keys, dimensions, width) > 0
        and heads % groups == 0
        and keys <= MAX_KEYS
    )
    if function is None or not is_known:
        return None
    columns = VECTORS * lanes_of(target)
    key_blocks, value_blocks = -(-keys // columns), -(-width // columns)
    block = min(_BLOCK, queries)
    scores_row = key_blocks * columns * 4 + _LINE
    results_row = value_blocks * columns * 4
    is_packed = queries > _FEW_QUERIES
    values = key_blocks * dimensions * columns * 4 if is_packed else 0
    scores = values + value_blocks * keys * columns * 4 if is_packed else 0
    results = scores + block * scores_row
    factors = results + block * results_row
    blocks = -(-queries // block)
    scale = 1.0 / math.sqrt(dimensions) if scale is None else scale
    words = (ctypes.c_int64 * len(AttentionWord))()
    numbers = {
        AttentionWord.HEADS: heads,
        AttentionWord.GROUP: heads // groups,
        AttentionWord.QUERIES: queries,
        AttentionWord.KEYS: keys,
        AttentionWord.DIMENSIONS: dimensions,
        AttentionWord.VALUE_DIMENSIONS: width,
        AttentionWord.SCALE: struct.unpack("<I", struct.pack("<f", scale))[0],
        AttentionWord.IS_CAUSAL: is_causal,
        AttentionWord.OUTPUT_BATCH: queries * heads * width * 4,
        AttentionWord.OUTPUT_HEAD: width * 4,
        AttentionWord.OUTPUT_ROW: heads * width * 4,
        AttentionWord.BLOCK: block,
        AttentionWord.BLOCKS: blocks,
        AttentionWord.TASKS: batch * heads * blocks,
        AttentionWord.VALUES: values,
        AttentionWord.SCORES: scores,
        AttentionWord.SCORES_ROW: scores_row,
        AttentionWord.RESULTS: results,
        AttentionWord.RESULTS_ROW: results_row,
        AttentionWord.FACTORS: factors,
        AttentionWord.WORKSPACE_BYTES: factors + -(-block * 4 // _LINE) * _LINE,
        AttentionWord.IS_PACKED: is_packed,
    }
    steps = (
        (query, (AttentionWord.QUERY_BATCH, AttentionWord.QUERY_HEAD, AttentionWord.QUERY_ROW)),
        (key, (AttentionWord.KEY_BATCH, AttentionWord.KEY_HEAD, AttentionWord.KEY_ROW)),
        (value, (AttentionWord.VALUE_BATCH, AttentionWord.VALUE_HEAD, AttentionWord.VALUE_ROW)),
        (mask, (AttentionWord.MASK_BATCH, AttentionWord.MASK_HEAD, AttentionWord.MASK_ROW)),
    )
    for tensor, names in steps:
        if tensor is not None:
            numbers.update(zip(names, (4 * each for each in tensor.stride()[:3]), strict=True))
    for word, number in numbers.items():
        words[word] = int(number)
    work = batch * heads * queries * keys * (dimensions + width)
    most_threads = max(1, min(work // _GRAIN, words[AttentionWord.TASKS]))
    sizes = (batch, heads, queries, width)
    return _Call(function, words, sizes, words[AttentionWord.WORKSPACE_BYTES], most_threads)

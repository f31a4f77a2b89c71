"""Lowering of operators that add slices of a tensor at the indices in another one."""

from __future__ import annotations

from typing import Final

import torch

from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.torch_calls import call_torch
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import indexed
from rekindle.ir.graph import Node
from rekindle.ir.types import FLOAT, INT, TensorType

_DTYPES: Final = (None, torch.float32, torch.float64, torch.int64, torch.int32)


@emits("aten::index_add", "aten::index_add_")
def index_add(w: ProgramWriter, node: Node) -> None:
    tensor, dim, index, source, factor = node.inputs
    if factor.type not in (INT, FLOAT) or not isinstance(tensor.type, TensorType) or tensor.type.dtype not in _DTYPES:
        call_torch(w, node)
        return
    word = w.word_of(w.name(factor), factor.type)
    is_float = "true" if factor.type == FLOAT else "false"
    arguments = ("%context", *(w.name(each) for each in (tensor, dim, index, source)), is_float, word)
    if node.kind == "aten::index_add":
        w.define(node.output, w.call_or_fail(indexed.index_add, *arguments))
        return
    w.call_or_fail(indexed.index_add_into, *arguments)
    w.define_borrowed(node.output, w.name(tensor))

"""What passes put in place of several nodes: joined concatenations, constant chunks, trees of matrix products, shape
arithmetic."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rekindle.ir.graph import Node
from rekindle.ir.registry import Effects, Operation
from rekindle.ops.declare import implements, implements_for_node, int_attribute

# --------------------------------------------------------------------------------------------------- pieces of tensors


@implements_for_node("prim::ConstantChunk(...) -> ...", effects=Effects.SPECIAL)
def constant_chunk(node: Node) -> Operation:
    """``torch.chunk`` with ``chunks`` and ``dim`` as attributes; the node has one output for each chunk.

    Raises:
        ValueError: the tensor is too short for so many chunks; the text is Python's.
    """
    chunks, dim = int_attribute(node, "chunks"), int_attribute(node, "dim")

    def chunk(self: Tensor) -> Any:
        pieces = torch.chunk(self, chunks, dim)
        if len(pieces) != chunks:
            raise ValueError(f"not enough values to unpack (expected {chunks}, got {len(pieces)})")
        return pieces[0] if chunks == 1 else pieces

    return chunk


@implements_for_node("prim::ChunkSizes(...) -> ...")
def chunk_sizes(node: Node) -> Operation:
    """From the shape of a tensor: the shape of its chunks, and that of the last one, which may be shorter."""
    chunks, dim = int_attribute(node, "chunks"), int_attribute(node, "dim")

    def sizes(shape: list[int]) -> tuple[list[int], list[int]]:
        length = -(-shape[dim] // chunks)
        pieces = max(-(-shape[dim] // length), 1) if length else 1
        regular, last = list(shape), list(shape)
        regular[dim] = length
        last[dim] = shape[dim] - length * (pieces - 1)
        return regular, last

    return sizes


@implements_for_node("prim::FusedConcat(...) -> ...")
def fused_concat(node: Node) -> Operation:
    """``torch.cat`` of all inputs along attribute ``dim``."""
    dim = int_attribute(node, "dim")

    def concat(*tensors: Tensor) -> Tensor:
        return torch.cat(tensors, dim)

    return concat


@implements("prim::VarConcat(...) -> Tensor")
def var_concat(*inputs: Any) -> Tensor:
    """``torch.cat`` of all inputs but the last, which is the dimension."""
    *tensors, dim = inputs
    return torch.cat(tensors, dim)


@implements("prim::VarStack(...) -> Tensor")
def var_stack(*inputs: Any) -> Tensor:
    """``torch.stack`` of all inputs but the last, which is the dimension."""
    *tensors, dim = inputs
    return torch.stack(tensors, dim)


# -------------------------------------------------------------------------------------------------------------- shapes


@implements("prim::BroadcastSizes(...) -> int[]")
def broadcast_sizes(*sizes: list[int]) -> list[int]:
    """The shape that all broadcast to."""
    return list(torch.broadcast_shapes(*sizes))


# ----------------------------------------------------------------------------------------------------- matrix products


@implements("prim::MMTreeReduce(...) -> Tensor")
def mm_tree_reduce(*factors: Tensor) -> Tensor:
    """The sum of the products of each matrix of the first half with the one in its place in the second half."""
    half = len(factors) // 2
    return torch.cat(factors[:half], 1).mm(torch.cat(factors[half:], 0))


@implements_for_node("prim::MMBatchSide(...) -> ...")
def mm_batch_side(node: Node) -> Operation:
    """Products that share a factor, which is the first input; it stands left where attribute ``side`` is 0, else
    right."""
    side = int_attribute(node, "side")

    def multiply(shared: Tensor, *others: Tensor) -> Any:
        products = tuple(shared.mm(other) if side == 0 else other.mm(shared) for other in others)
        return products[0] if len(products) == 1 else products

    return multiply

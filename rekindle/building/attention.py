"""Decompose the fast path of :class:`torch.nn.MultiheadAttention`, ``aten::_native_multi_head_attention``.

.. code-block:: text

    %out, %weights = aten::_native_multi_head_attention(%x, %x, %x, …, %mask, %need_weights, …)

becomes products and ``aten::scaled_dot_product_attention``, or a softmax if the weights of the attention are needed.
Kernels compute these. A call with a mask, or whose query, key and value are not one tensor, is left to PyTorch.

Without ``need_weights`` the second result is an undefined tensor, which is None in Python and a null pointer in a
library. It may only become the value of an Optional.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from rekindle.analysis.constants import constant_bool, is_constant
from rekindle.building.internal_operators import UNDEFINED
from rekindle.building.lowering.representation import NotBuildable
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TENSOR, OptionalType, TupleType, Type
from rekindle.scripting.script import script

_FAST_PATH: Final = "aten::_native_multi_head_attention"
_QUERY, _KEY, _VALUE, _HEADS, _MASK, _NEED_WEIGHTS, _AVERAGE = 0, 1, 2, 4, 9, 10, 11
_PARAMETERS: Final = slice(5, 9)


def _heads(x: Tensor, heads: int, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the projections of the query, the key and the value: [3, batch, heads, length, width of a head]."""
    projected = F.linear(x, weight, bias)
    split = projected.view(x.size(0), x.size(1), 3, heads, projected.size(2) // 3 // heads)
    return split.permute(2, 0, 3, 1, 4)


def _merged(mixed: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(mixed.transpose(1, 2).flatten(2), weight, bias)


def _attention(x: Tensor, heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor) -> Tensor:
    parts = _heads(x, heads, weight, bias)
    return _merged(F.scaled_dot_product_attention(parts[0], parts[1], parts[2]), out_weight, out_bias)


def _attention_with_weights(
    x: Tensor, heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> tuple[Tensor, Tensor]:
    parts = _heads(x, heads, weight, bias)
    scores = torch.matmul(parts[0] / float(parts.size(4)) ** 0.5, parts[1].transpose(-2, -1))
    weights = torch.softmax(scores, -1)
    return _merged(torch.matmul(weights, parts[2]), out_weight, out_bias), weights


def _attention_with_mean(
    x: Tensor, heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor, out_bias: Tensor
) -> tuple[Tensor, Tensor]:
    mixed, weights = _attention_with_weights(x, heads, weight, bias, out_weight, out_bias)
    return mixed, weights.mean(1)


@cache
def _formula(need_weights: bool, average: bool) -> Graph:
    chosen = _attention if not need_weights else _attention_with_mean if average else _attention_with_weights
    found: Graph = script(chosen).inlined_graph
    return found


def decompose_attention(graph: Graph) -> None:
    """Decompose the calls of the fast path in ``graph`` that are self-attention without a mask, those in nested blocks
    included.

    Raises:
        NotBuildable: weights that a call does not compute are used as a tensor, or whether it computes them is known
            only at run time.
    """
    for node in [each for each in graph.all_nodes() if each.kind == _FAST_PATH]:
        need_weights, average = (constant_bool(node.inputs[index]) for index in (_NEED_WEIGHTS, _AVERAGE))
        if need_weights is None or average is None:
            raise NotBuildable(f"'{_FAST_PATH}', where 'need_weights' is known only at run time", node.range)
        weights = node.outputs[1]
        if not need_weights:
            _check_is_optional(weights, node)
            with graph.inserting_before(node):
                undefined = graph.insert_node(graph.create(UNDEFINED, [], types=[TENSOR], range=node.range))
            weights.replace_all_uses_with(undefined.output)
        if not _is_decomposable(node):
            continue
        with graph.inserting_before(node):
            given = [node.inputs[_QUERY], node.inputs[_HEADS], *node.inputs[_PARAMETERS]]
            (result,) = graph.insert_graph(_formula(need_weights, average), given)
        if need_weights:
            node.replace_with(*result.node.inputs)
        else:
            node.outputs[0].replace_all_uses_with(result)
            node.destroy()


def _is_decomposable(node: Node) -> bool:
    mask = node.inputs[_MASK]
    is_self_attention = node.inputs[_QUERY] is node.inputs[_KEY] is node.inputs[_VALUE]
    return is_self_attention and is_constant(mask) and mask.to_python() is None


def _check_is_optional(value: Value, call: Node, path: tuple[int, ...] = ()) -> None:
    """Check that the undefined tensor at ``path`` in the tuple ``value`` only becomes the value of an Optional.

    Raises:
        NotBuildable: it has another use.
    """
    for user, offset in value.uses:
        block = user.owning_block
        owner = None if block is None else block.owning_node
        if user.kind == "prim::TupleConstruct":
            reached, rest = user.output, (offset, *path)
        elif user.kind == "prim::TupleUnpack" and path:
            reached, rest = user.outputs[path[0]], path[1:]
        elif user.kind == "prim::Return" and owner is not None and owner.kind == "prim::If":
            reached, rest = owner.outputs[offset], path
        else:
            raise NotBuildable("the program uses weights of an attention that are not computed", call.range)
        if not isinstance(_type_at(reached.type, rest), OptionalType):
            _check_is_optional(reached, call, rest)


def _type_at(type: Type, path: tuple[int, ...]) -> Type:
    for index in path:
        assert isinstance(type, TupleType)
        type = type.contained[index]
    return type

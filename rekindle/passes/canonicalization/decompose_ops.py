"""Operators that do several things at once give way to several that do one, of which some may be fused with others.

.. code-block:: text

    %y : Float(*, *) = aten::addmm(%b, %x, %w, %one, %one)          %p : Float(*, *) = aten::mm(%x, %w)
                                                         becomes    %c : Tensor = aten::expand_as(%b, %p)
                                                                    %y : Float(*, *) = aten::add(%p, %c, %one)

    %y : Float(*, 4) = aten::layer_norm(%x, %n, %w, %b, …)          %p : Float(*, 4) = aten::layer_norm(%x, %n, …)
                                                         becomes    %q : Float(*, 4) = aten::mul(%p, %w)
                                                                    %y : Float(*, 4) = aten::add(%q, %b, %one)

``aten::batch_norm`` is taken apart as ``aten::layer_norm`` is, with the weight and the bias as columns. It is done
where the types of all operands say that they are of one dtype, since otherwise the sum might be of another, and that
weights have as many numbers as they need, since otherwise it is an error; and nowhere in a graph that changes modes,
since under autocast the dtype would be another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch

from rekindle.analysis.effects import writes_modes
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import INT, NONE, TENSOR, ListType, TensorType
from rekindle.passes.changes import may_change
from rekindle.passes.constants import constant_int, is_constant, value_of


@dataclass(slots=True)
class DecomposeOps:
    """See the module. The fields say which operators are taken apart."""

    name: ClassVar[str] = "decompose_ops"
    addmm: bool = True
    norms: bool = True

    def run(self, graph: Graph) -> bool:
        nodes = list(graph.all_nodes())
        if not any(node.kind in _TAKEN_APART for node in nodes) or any(map(writes_modes, nodes)):
            return False
        changed = False
        for node in nodes:
            if self.addmm and node.kind == "aten::addmm":
                changed |= _take_sum_off(node)
            elif self.norms and node.kind in _AFFINE:
                changed |= _take_affine_part_off(node)
        return changed


_AFFINE: Final = {"aten::layer_norm": (2, 3), "aten::batch_norm": (1, 2)}
"""Where normalisations take their weight and their bias."""
_TAKEN_APART: Final = frozenset({"aten::addmm", *_AFFINE})
_FLOATS: Final = frozenset({torch.float32, torch.float64})


def _take_sum_off(node: Node) -> bool:
    if len(node.inputs) != 5 or any(constant_int(factor) != 1 for factor in node.inputs[3:]):
        return False
    bias, left, right = node.inputs[:3]
    if not _are_of_one_dtype(bias, left, right) or not may_change("take the sum off", node):
        return False
    with node.graph.inserting_before(node):
        product = _insert(node, "aten::mm", left, right)
        # A bias with more dimensions, or with more rows, is an error, which this raises too.
        fitted = _insert(node, "aten::expand_as", bias, product)
        _replace(node, _insert(node, "aten::add", product, fitted, _one(node)))
    return True


def _take_affine_part_off(node: Node) -> bool:
    weight, bias = (node.inputs[place] for place in _AFFINE[node.kind])
    parts = [part for part in (weight, bias) if part.type != NONE]
    if not parts or not _are_of_one_dtype(node.inputs[0], *parts) or not all(_fits(node, part) for part in parts):
        return False
    if not may_change("take the affine part off", node):
        return False
    rank = len(_sizes(node.inputs[0]))
    with node.graph.inserting_before(node):
        none = node.graph.insert_constant(None, NONE, range=node.range)
        inputs = [none if index in _AFFINE[node.kind] else value for index, value in enumerate(node.inputs)]
        result = _insert(node, node.kind, *inputs)
        if weight.type != NONE:
            result = _insert(node, "aten::mul", result, _as_column(node, weight, rank))
        if bias.type != NONE:
            result = _insert(node, "aten::add", result, _as_column(node, bias, rank), _one(node))
        _replace(node, result)
    return True


def _are_of_one_dtype(*values: Value) -> bool:
    types = [value.type for value in values]
    first = types[0]
    return (
        isinstance(first, TensorType)
        and first.dtype in _FLOATS
        and first.sizes is not None
        and all(isinstance(type, TensorType) and type.dtype == first.dtype for type in types)
    )


def _sizes(value: Value) -> tuple[int | None, ...]:
    return (isinstance(value.type, TensorType) and value.type.sizes) or ()


def _fits(node: Node, part: Value) -> bool:
    """Whether a weight or a bias is known to have the sizes that ``node`` wants."""
    sizes = _sizes(part)
    if node.kind == "aten::batch_norm":
        return len(sizes) == 1 and sizes[0] is not None and sizes == _sizes(node.inputs[0])[1:2]
    return bool(sizes) and list(sizes) == _constant_ints(node.inputs[1])


def _constant_ints(value: Value) -> list[int | None] | None:
    if value.node.kind == "prim::ListConstruct":
        return [constant_int(item) for item in value.node.inputs]
    found = value_of(value.node) if is_constant(value) else None
    return found if isinstance(found, list) else None


def _as_column(node: Node, value: Value, rank: int) -> Value:
    """Batch normalisation has a number for each channel, which is the second dimension."""
    if node.kind == "aten::layer_norm" or rank <= 2:
        return value
    graph = node.graph
    minus_one, one = graph.insert_constant(-1, range=node.range), _one(node)
    sizes = graph.create("prim::ListConstruct", [minus_one, *[one] * (rank - 2)], types=[ListType(INT)])
    return _insert(node, "aten::reshape", value, graph.insert_node(sizes).output)


def _one(node: Node) -> Value:
    return node.graph.insert_constant(1, range=node.range)


def _insert(node: Node, kind: str, *inputs: Value) -> Value:
    """Insert a call that stands where ``node`` does."""
    new = node.graph.create(kind, inputs, types=[TENSOR], range=node.range)
    new.callstack, new.scope = node.callstack, node.scope
    return node.graph.insert_node(new).output


def _replace(node: Node, result: Value) -> None:
    node.output.replace_all_uses_with(result.copy_metadata(node.output))
    node.destroy()

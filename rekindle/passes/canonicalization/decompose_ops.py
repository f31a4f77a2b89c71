"""Decompose composite operators into several, some of which can be fused.

.. code-block:: text

    %y : Float(*, *) = aten::addmm(%b, %x, %w, %one, %one)          %p : Float(*, *) = aten::mm(%x, %w)
                                                         becomes    %c : Tensor = aten::expand_as(%b, %p)
                                                                    %y : Float(*, *) = aten::add(%p, %c, %one)

    %y : Float(*, 4) = aten::layer_norm(%x, %n, %w, %b, …)          %p : Float(*, 4) = aten::layer_norm(%x, %n, …)
                                                         becomes    %q : Float(*, 4) = aten::mul(%p, %w)
                                                                    %y : Float(*, 4) = aten::add(%q, %b, %one)

``aten::batch_norm`` is decomposed as ``aten::layer_norm`` is, with the weight and the bias as columns. The types must
prove that all operands have one dtype, float32 or float64, since otherwise the sum might have another. The weights of a
normalization must have the required number of elements, since otherwise the operator raises. A graph that changes modes
is not rewritten, since autocast would change the dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch

from rekindle.analysis.constants import constant_int, is_constant, value_of
from rekindle.analysis.effects import writes_modes
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import INT, NONE, ListType, TensorType
from rekindle.rewriting.node_rules import NodeRules, RewriteSite, apply_node_rules

_FLOATS: Final = frozenset({torch.float32, torch.float64})


def _take_sum_off(at: RewriteSite) -> bool:
    if len(at.node.inputs) != 5:
        return False
    bias, left, right, *factors = at.node.inputs
    if any(constant_int(factor) != 1 for factor in factors) or not _are_of_one_dtype(bias, left, right):
        return False
    if not at.begin():
        return False
    product = at.insert_tensor("aten::mm", left, right)
    # A bias with more dimensions, or with more rows, is an error, which this raises too.
    fitted = at.insert_tensor("aten::expand_as", bias, product)
    return at.finish(at.insert_tensor("aten::add", product, fitted, at.constant(1)))


def _take_affine_part_off(at: RewriteSite) -> bool:
    """Replace a normalization with a weight, a bias or both by one without, followed by a multiplication, an addition
    or both. Return whether that was done."""
    node, schema = at.node, at.node.schema
    if schema is None:
        return False
    x, weight, bias = (node.named_input(name) for name in ("input", "weight", "bias"))
    parts = [part for part in (weight, bias) if part.type != NONE]
    if not parts or not _are_of_one_dtype(x, *parts) or not all(_fits(node, part) for part in parts) or not at.begin():
        return False
    none = at.constant(None, NONE)
    names = [argument.name for argument in schema.arguments]
    inputs = [none if name in ("weight", "bias") else value for name, value in zip(names, node.inputs, strict=True)]
    result = at.insert_tensor(node.kind, *inputs)
    rank = 0 if node.kind == "aten::layer_norm" else len(_sizes(x))
    if weight.type != NONE:
        result = at.insert_tensor("aten::mul", result, _as_column(at, weight, rank))
    if bias.type != NONE:
        result = at.insert_tensor("aten::add", result, _as_column(at, bias, rank), at.constant(1))
    return at.finish(result)


def _as_column(at: RewriteSite, value: Value, rank: int) -> Value:
    """Insert nodes that reshape ``value``, per-channel numbers, to broadcast along dimension 1 of ``rank`` dimensions;
    return the result. With a rank of at most 2, return ``value`` itself."""
    if rank <= 2:
        return value
    sizes = [at.constant(-1), *[at.constant(1)] * (rank - 2)]
    return at.insert_tensor("aten::reshape", value, *at.insert("prim::ListConstruct", sizes, types=[ListType(INT)]))


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
    """Return whether a weight or a bias is known to have the sizes that ``node`` requires."""
    sizes = _sizes(part)
    if node.kind == "aten::batch_norm":
        return len(sizes) == 1 and sizes[0] is not None and sizes == _sizes(node.named_input("input"))[1:2]
    return bool(sizes) and list(sizes) == _constant_ints(node.named_input("normalized_shape"))


def _constant_ints(value: Value) -> list[int | None] | None:
    if value.node.kind == "prim::ListConstruct":
        return [constant_int(item) for item in value.node.inputs]
    found = value_of(value.node) if is_constant(value) else None
    return found if isinstance(found, list) else None


_SUMS: Final[NodeRules] = {"aten::addmm": (_take_sum_off,)}
_NORMS: Final[NodeRules] = dict.fromkeys(("aten::layer_norm", "aten::batch_norm"), (_take_affine_part_off,))


@dataclass(slots=True)
class DecomposeOps:
    '''Decompose composite operators into several, some of which can be fused. The docstring of the module shows the IR
    before and after.

    The fields select the operators.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import DecomposeOps, run_passes
        >>> graph = parse_graph("""
        ... graph(%b : Float(4, device=cpu), %x : Float(2, 3, device=cpu), %w : Float(3, 4, device=cpu)):
        ...   %1 : int = prim::Constant[value=1]()
        ...   %2 : Float(2, 4, device=cpu) = aten::addmm(%b, %x, %w, %1, %1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [DecomposeOps()])
        True
        >>> print(graph)
        graph(%b : Float(4, device=cpu),
              %x : Float(2, 3, device=cpu),
              %w : Float(3, 4, device=cpu)):
          %1 : int = prim::Constant[value=1]()
          %6 : Tensor = aten::mm(%x, %w)
          %7 : Tensor = aten::expand_as(%b, %6)
          %8 : int = prim::Constant[value=1]()
          %9 : Float(2, 4, device=cpu) = aten::add(%6, %7, %8)
          return (%9)
    '''

    name: ClassVar[str] = "decompose_ops"
    addmm: bool = True
    norms: bool = True

    def run(self, graph: Graph) -> bool:
        rules = {**(_SUMS if self.addmm else {}), **(_NORMS if self.norms else {})}
        nodes = list(graph.all_nodes())
        if not any(node.kind in rules for node in nodes) or any(map(writes_modes, nodes)):
            return False
        return apply_node_rules(graph, rules, "decompose")

"""One spelling for each operator: aliases give way to the name that they stand for.

.. code-block:: text

    %1 : Tensor = aten::multiply(%x, %y)                   %1 : Tensor = aten::mul(%x, %y)
    %2 : Tensor = aten::rsub(%x, %y, %alpha)    becomes    %2 : Tensor = aten::sub(%y, %x, %alpha)
    %3 : bool = aten::__is__(%p, %q)                       %3 : bool = aten::eq(%p, %q)

The last holds for two bools, which are the same exactly if they are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import BOOL, TensorType
from rekindle.passes.changes import may_change

_WITH_IN_PLACE = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
}

_OTHERS = {
    "adjoint": "mH",
    "concat": "cat",
    "concatenate": "cat",
    "det": "linalg_det",
    "ger": "outer",
    "inverse": "linalg_inv",
    "linalg_matmul": "matmul",
    "matrix_exp": "linalg_matrix_exp",
    "matrix_power": "linalg_matrix_power",
    "moveaxis": "movedim",
    "orgqr": "linalg_householder_product",
    "row_stack": "vstack",
    "special_digamma": "digamma",
    "special_expit": "sigmoid",
    "special_gammainc": "igamma",
    "special_gammaincc": "igammac",
    "special_gammaln": "lgamma",
    "special_multigammaln": "mvlgamma",
    "special_psi": "digamma",
    **{
        f"special_{name}": name
        for name in (
            *("erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit", "logsumexp"),
            *("polygamma", "round", "sinc", "softmax", "xlogy"),
        )
    },
}

ALIASES: dict[str, str] = {
    **{f"aten::{alias}": f"aten::{name}" for alias, name in (_WITH_IN_PLACE | _OTHERS).items()},
    **{f"aten::{alias}_": f"aten::{name}_" for alias, name in _WITH_IN_PLACE.items()},
}
"""Kinds, and those that they are other names of."""

_IDENTITY_OF_BOOLS = {"aten::__is__": "aten::eq", "aten::__isnot__": "aten::ne"}


@dataclass(slots=True)
class NormalizeOps:
    """See the module."""

    name: ClassVar[str] = "normalize_ops"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.all_nodes()):
            changed |= _normalize(node)
        return changed


def _normalize(node: Node) -> bool:
    kind = ALIASES.get(node.kind)
    if kind is not None and may_change("rename", node):
        _replace(node, kind)
        return True
    is_reversed = node.kind == "aten::rsub" and len(node.inputs) == 3 and isinstance(node.inputs[1].type, TensorType)
    if is_reversed and may_change("turn round", node):
        _replace(node, "aten::sub", (1, 0, 2))
        return True
    is_identity = node.kind in _IDENTITY_OF_BOOLS and all(value.type == BOOL for value in node.inputs)
    if is_identity and may_change("rename", node):
        _replace(node, _IDENTITY_OF_BOOLS[node.kind])
        return True
    return False


def _replace(node: Node, kind: str, order: tuple[int, ...] | None = None) -> None:
    """Put a node of another kind in place of ``node``; ``order`` tells which input comes where."""
    graph = node.graph
    inputs = list(node.inputs) if order is None else [node.inputs[index] for index in order]
    new = graph.create(kind, inputs, types=[output.type for output in node.outputs], range=node.range)
    new.callstack = node.callstack
    new.attributes.update(node.attributes)
    new.insert_before(node)
    for old, output in zip(node.outputs, new.outputs, strict=True):
        old.replace_all_uses_with(output)
        output.copy_metadata(old)
    node.destroy()

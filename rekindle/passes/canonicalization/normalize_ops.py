"""Replace aliases of operators with their canonical names.

.. code-block:: text

    %1 : Tensor = aten::multiply(%x, %y)                   %1 : Tensor = aten::mul(%x, %y)
    %2 : Tensor = aten::rsub(%x, %y, %alpha)    becomes    %2 : Tensor = aten::sub(%y, %x, %alpha)
    %3 : bool = aten::__is__(%p, %q)                       %3 : bool = aten::eq(%p, %q)

The last holds for two bools, which are the same exactly if they are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.ir.graph import Graph
from rekindle.ir.types import BOOL, TensorType
from rekindle.rewriting.node_rules import NodeRule, NodeRules, RewriteSite, apply_node_rules

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
"""Kinds that are aliases, each with the canonical kind."""


def _rename(at: RewriteSite) -> bool:
    return at.replace_node(ALIASES[at.node.kind], at.node.inputs, attributes=at.node.attributes)


def _swap_operands(at: RewriteSite) -> bool:
    """Replace ``rsub`` of two tensors by ``sub`` with the operands exchanged. Return whether that was done."""
    if len(at.node.inputs) != 3:
        return False
    right, left, alpha = at.node.inputs
    return isinstance(left.type, TensorType) and at.replace_node("aten::sub", [left, right, alpha])


def _compare(kind: str) -> NodeRule:
    def rule(at: RewriteSite) -> bool:
        """Replace ``is`` or ``is not`` between two bools by ``kind``, ``==`` or ``!=``, which is equivalent. Return
        whether that was done."""
        return all(value.type == BOOL for value in at.node.inputs) and at.replace_node(kind, at.node.inputs)

    return rule


_RULES: Final[NodeRules] = {
    **dict.fromkeys(ALIASES, (_rename,)),
    "aten::rsub": (_swap_operands,),
    "aten::__is__": (_compare("aten::eq"),),
    "aten::__isnot__": (_compare("aten::ne"),),
}


@dataclass(slots=True)
class NormalizeOps:
    '''Replace aliases of operators with their canonical names. The docstring of the module shows the IR before and
    after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import NormalizeOps, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %y : Tensor):
        ...   %1 : Tensor = aten::multiply(%x, %y)
        ...   return (%1)
        ... """)
        >>> run_passes(graph, [NormalizeOps()])
        True
        >>> print(graph)
        graph(%x : Tensor,
              %y : Tensor):
          %4 : Tensor = aten::mul(%x, %y)
          return (%4)
    '''

    name: ClassVar[str] = "normalize_ops"

    def run(self, graph: Graph) -> bool:
        return apply_node_rules(graph, _RULES, "rename")

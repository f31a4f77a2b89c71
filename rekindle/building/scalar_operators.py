"""Operators that take a Scalar: replace them with equivalent ones without, where no kernel computes them.

The stable ABI of PyTorch cannot pass Scalars.
"""

from __future__ import annotations

from typing import Final

from rekindle.analysis.constants import is_constant
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import FLOAT, INT, TENSOR, ListType, TensorType

_NORMS: Final = {
    "aten::linalg_vector_norm": (0, 2, 3, 4),
    "aten::norm.Scalar": (0, None, None, None),
    "aten::norm.ScalarOpt_dim": (0, 2, 3, None),
}
"""Vector norms whose second argument is the order, with the indices of the arguments that ``linalg_norm`` takes: the
tensor, the dimensions, whether to keep them, and the dtype. None if the norm has no such argument."""

_MISSING: Final = (None, None, False, None)
"""The default values of these four arguments."""


_SCATTERS: Final = ("aten::scatter", "aten::scatter_")
"""Operators whose fourth argument may be a number, which is written for each element of the index."""


_LINES: Final = ("aten::linspace", "aten::logspace")
"""Operators whose first two arguments are numbers, and may be tensors of one element."""


def replace_scalar_operators(graph: Graph) -> None:
    """Replace Scalar arguments in ``graph``: norms of order 2 with ``linalg_norm`` without an order, which computes
    the same; the number that ``scatter`` writes with a tensor of the size of the index; and the limits of
    ``linspace`` and ``logspace`` with tensors."""
    for node in list(graph.all_nodes()):
        name = node.schema.qualified_name if node.schema is not None else ""
        if name in _NORMS and is_constant(node.inputs[1]) and node.inputs[1].to_python() in (None, 2):
            _replace_norm(graph, node, _NORMS[name])
        elif node.kind in _SCATTERS and not isinstance(node.inputs[3].type, TensorType):
            _replace_number(graph, node)
        elif node.kind in _LINES:
            _replace_limits(graph, node)


def _replace_limits(graph: Graph, node: Node) -> None:
    with graph.inserting_before(node):
        for index, limit in enumerate(node.inputs[:2]):
            if limit.type in (INT, FLOAT):
                made = graph.create("prim::NumToTensor", [limit], types=[TENSOR], range=node.range)
                node.replace_input(index, graph.insert_node(made).output)


def _replace_number(graph: Graph, node: Node) -> None:
    tensor, _, index, number, *_ = node.inputs
    with graph.inserting_before(node):
        sizes = graph.insert_node(graph.create("aten::size", [index], types=[ListType(INT)], range=node.range)).output
        nothing = graph.insert_constant(None, range=node.range)
        given = [tensor, sizes, number, *[nothing] * 4]
        made = graph.insert_node(graph.create("aten::new_full", given, types=[TENSOR], range=node.range))
    node.replace_input(3, made.output)


def _replace_norm(graph: Graph, node: Node, indices: tuple[int | None, ...]) -> None:
    with graph.inserting_before(node):
        tensor, dims, keeps, dtype = (
            graph.insert_constant(missing, range=node.range) if index is None else node.inputs[index]
            for index, missing in zip(indices, _MISSING, strict=True)
        )
        order = graph.insert_constant(None, range=node.range)
        given: list[Value] = [tensor, order, dims, keeps, dtype]
        types = [node.output.type]
        made = graph.insert_node(graph.create("aten::linalg_norm", given, types=types, range=node.range))
    node.replace_with(made.output)

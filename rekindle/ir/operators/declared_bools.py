"""Values for which a bool is declared.

``found or x > 0`` is a bool or a Tensor, whichever decides. Where a variable, an attribute or a result is declared to
be a bool, it is the truth of that, as in TorchScript, where ``and`` and ``or`` give bools alone.
"""

from __future__ import annotations

from rekindle.errors import SourceRange
from rekindle.ir.graph import AttributeValue, Graph, Value
from rekindle.ir.types import BOOL, TENSOR, Type, UnionType


def as_declared_bool(graph: Graph, value: Value, declared: Type, range: SourceRange) -> Value:
    """Insert the conversion of a ``Union[bool, Tensor]`` to a bool, if ``declared`` is bool, and return the result.
    Return other values unchanged."""
    if declared != BOOL or not isinstance(value.type, UnionType) or set(value.type.members) != {BOOL, TENSOR}:
        return value

    def cast(type: Type) -> Value:
        return graph.insert_node(graph.create("prim::unchecked_cast", [value], types=[type], range=range)).output

    tested: list[Type] = [TENSOR]
    attributes: dict[str, AttributeValue] = {"types": tested}
    test = graph.create("prim::isinstance", [value], types=[BOOL], attributes=attributes, range=range)
    node = graph.create("prim::If", [graph.insert_node(test).output], outputs=0, range=range)
    graph.insert_node(node)
    block = node.add_block()
    with graph.inserting_at_end(block):
        block.add_output(graph.insert("aten::Bool", [cast(TENSOR)], range=range))
    block = node.add_block()
    with graph.inserting_at_end(block):
        block.add_output(cast(BOOL))
    return node.add_output(BOOL)

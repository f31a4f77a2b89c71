"""Arguments of ``int[2]``: one int stands for a list of two.

A value that may be an int or a tuple of ints, as PyTorch's ``_size_2_t``, becomes a list by what it is at run time::

    %is_int : bool = prim::isinstance[types=[int]](%size)
    %list : int[] = prim::If(%is_int)
      block0():
        %n : int = prim::unchecked_cast(%size)
        %a : int[] = prim::ListConstruct(%n, %n)
        -> (%a)
      block1():
        %pair : (int, int) = prim::unchecked_cast(%size)
        %h : int, %w : int = prim::TupleUnpack(%pair)
        %b : int[] = prim::ListConstruct(%h, %w)
        -> (%b)
"""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import SourceRange
from rekindle.ir.graph import AttributeValue, Graph, Value
from rekindle.ir.operators.named_value import InputBuilder, NamedValue
from rekindle.ir.operators.schema import Argument
from rekindle.ir.types import BOOL, ListType, TupleType, Type, UnionType, union, without_none


def repeat(formal: Argument, actual: NamedValue) -> InputBuilder | None:
    """Return the builder of ``[x, x]`` for a parameter ``int[2]`` that gets, or may get, one int; None for other
    arguments."""
    wanted = without_none(formal.type)
    size = formal.size
    assert size is not None
    if not isinstance(wanted, ListType):
        return None
    given = actual.type
    if given == wanted.element:
        return lambda graph, range: _list(graph, [actual.materialize(graph)] * size, wanted, range)
    if isinstance(given, UnionType) and wanted.element in given.members and _all_are_sizes(given.members, wanted):
        return lambda graph, range: _from_either(graph, actual.materialize(graph), size, wanted, range)
    return None


def _all_are_sizes(members: Sequence[Type], wanted: ListType) -> bool:
    def is_size(member: Type) -> bool:
        if isinstance(member, TupleType):
            return all(element == wanted.element for element in member.elements)
        return member in (wanted.element, wanted)

    return all(map(is_size, members))


def _list(graph: Graph, items: Sequence[Value], type: ListType, range: SourceRange) -> Value:
    return graph.insert_node(graph.create("prim::ListConstruct", items, types=[type], range=range)).output


def _from_either(graph: Graph, value: Value, size: int, wanted: ListType, range: SourceRange) -> Value:
    """Emit the list for a value that is a number, a tuple, a list or a Union of these: for a Union, test one member of
    its type, and the others in the other branch."""
    if value.type == wanted.element:
        return _list(graph, [value] * size, wanted, range)
    if isinstance(value.type, TupleType):
        unpacked = graph.create("prim::TupleUnpack", [value], types=value.type.elements, range=range)
        return _list(graph, graph.insert_node(unpacked).outputs, wanted, range)
    if not isinstance(value.type, UnionType):
        return value
    first = wanted.element if wanted.element in value.type.members else value.type.members[0]
    others = union(member for member in value.type.members if member != first)
    attributes: dict[str, AttributeValue] = {"types": [first]}
    test = graph.create("prim::isinstance", [value], types=[BOOL], attributes=attributes, range=range)
    node = graph.create("prim::If", [graph.insert_node(test).output], outputs=0, range=range)
    graph.insert_node(node)
    for member in (first, others):
        block = node.add_block()
        with graph.inserting_at_end(block):
            cast = graph.create("prim::unchecked_cast", [value], types=[member], range=range)
            block.add_output(_from_either(graph, graph.insert_node(cast).output, size, wanted, range))
    return node.add_output(wanted)

"""Reduce the loop-carried values: carry the elements of tuples, and do not carry lists that are appended to.

.. code-block:: text

    %l, %s = prim::Loop(%n, %true, %l.1, %s.1)            %h, %c = prim::Loop(%n, %true, %h.1, %c.1)
      block0(%i : int, %l.2 : Tensor[],                     block0(%i : int, %h.2 : Tensor, %c.2 : Tensor):
             %s.2 : (Tensor, Tensor)):                        %s.2 = prim::TupleConstruct(%h.2, %c.2)
        …                                       becomes       …
        %s.3 = prim::TupleConstruct(%h.3, %c.3)               %1 : Tensor[] = aten::append(%l.1, %h.3)
        %1 : Tensor[] = prim::ListConstruct(%h.3)             -> (%true, %h.3, %c.3)
        %l.3 : Tensor[] = aten::add_(%l.2, %1)            %s = prim::TupleConstruct(%h, %c)
        -> (%true, %l.3, %s.3)

Operators that write to a list return that list, so that their result is replaced by the list. A loop over the parts
``x.unbind()`` selects from ``x`` instead, and its trip count becomes a size of ``x``. ``x[:]`` is replaced by ``x``.
Such loops can be differentiated as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_int
from rekindle.analysis.uninitialized import may_be_uninitialized
from rekindle.ir.control_flow import MAX_TRIP_COUNT, Carried, LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import INT, NONE, TENSOR, ListType, TensorType, TupleType, Type
from rekindle.rewriting.changes import may_change

_READ_LISTS: Final = frozenset({"aten::len", "aten::__getitem__"})
_KEEP: Final = frozenset({"prim::Return", "prim::ListConstruct", "prim::TupleConstruct", "aten::append", "prim::If"})
"""Kinds of nodes that store or forward a tensor without reading its elements."""
_RETURN_THEIR_LIST: Final = frozenset({"aten::append", "aten::add_", "aten::_set_item"})


@dataclass(slots=True)
class SimplifyCarriedValues:
    '''Reduce the loop-carried values: carry the elements of tuples, and do not carry lists that are appended to. See
    the module.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import SimplifyCarriedValues, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %n : int):
        ...   %1 : bool = prim::Constant[value=1]()
        ...   %2 : (Tensor, Tensor) = prim::TupleConstruct(%x, %x)
        ...   %3 : (Tensor, Tensor) = prim::Loop(%n, %1, %2)
        ...     block0(%i : int, %4 : (Tensor, Tensor)):
        ...       %5 : Tensor, %6 : Tensor = prim::TupleUnpack(%4)
        ...       %7 : Tensor = aten::neg(%5)
        ...       %8 : (Tensor, Tensor) = prim::TupleConstruct(%6, %7)
        ...       -> (%1, %8)
        ...   return (%3)
        ... """)
        >>> run_passes(graph, [SimplifyCarriedValues()])
        True
        >>> print(graph)
        graph(%x : Tensor,
              %n : int):
          %1 : bool = prim::Constant[value=1]()
          %2 : (Tensor, Tensor) = prim::TupleConstruct(%x, %x)
          %12 : Tensor, %13 : Tensor = prim::TupleUnpack(%2)
          %17 : Tensor, %18 : Tensor = prim::Loop(%n, %1, %12, %13)
            block0(%i : int, %14 : Tensor, %15 : Tensor):
              %16 : (Tensor, Tensor) = prim::TupleConstruct(%14, %15)
              %5 : Tensor, %6 : Tensor = prim::TupleUnpack(%16)
              %7 : Tensor = aten::neg(%5)
              %8 : (Tensor, Tensor) = prim::TupleConstruct(%6, %7)
              -> (%1, %6, %7)
          %19 : (Tensor, Tensor) = prim::TupleConstruct(%17, %18)
          return (%19)
    '''

    name: ClassVar[str] = "simplify_carried_values"

    def run(self, graph: Graph) -> bool:
        loops = [loop for loop in graph.find_nodes("prim::Loop") if may_change("simplify what is carried by", loop)]
        changed = False
        for loop in loops:
            while _carry_elements(loop):
                changed = True
            changed |= _carry_no_lists(loop)
        changed |= bool(loops) and _drop_whole_slices(graph, loops)
        elements = [node for loop in loops for node in _elements_of_iterations(loop)]
        if elements:
            aliases = AliasDb(graph)
            # PyTorch refuses writes to parts of unbind where gradients are recorded, and not to what select returns.
            unwritten = [node for node in elements if not aliases.has_writers(node.output)]
            for parts in dict.fromkeys(node.inputs[0] for node in unwritten):
                _measure_tensor(parts)
            for node in unwritten:
                _select_element(node)
            changed |= bool(unwritten)
        return changed


# -------------------------------------------------------------------------------------------------------------- tuples


def _carry_elements(loop: Node) -> bool:
    """Carry the elements of the first loop-carried tuple that each iteration constructs, if it has a value before the
    loop. Return whether there was one."""
    for index, each in enumerate(LoopView(loop).carried):
        if isinstance(each.parameter.type, TupleType) and each.following.node.kind == "prim::TupleConstruct":
            if each.following.node.inputs and each.initial not in may_be_uninitialized(loop.graph):
                _replace_by_elements(loop, index, each, each.parameter.type)
                return True
    return False


def _replace_by_elements(loop: Node, index: int, carried: Carried, type: TupleType) -> None:
    graph, body = loop.graph, loop.blocks[0]
    with graph.inserting_before(loop):
        unpack = graph.create("prim::TupleUnpack", [carried.initial], types=list(type.elements), range=loop.range)
        initial = list(graph.insert_node(unpack).outputs)
    elements = list(carried.following.node.inputs)
    parameters = [body.add_input(type=element) for element in type.elements]
    made = graph.create("prim::TupleConstruct", parameters, types=[type], range=loop.range)
    made.insert_after(body.param_node)
    carried.parameter.replace_all_uses_with(made.output)
    for value in initial:
        loop.add_input(value)
    for value in elements:
        body.add_output(value)
    results = [loop.add_output(element) for element in type.elements]
    whole = graph.create("prim::TupleConstruct", results, types=[type], range=loop.range).insert_after(loop)
    carried.result.replace_all_uses_with(whole.output)
    _drop(loop, index)


def _drop(loop: Node, index: int) -> None:
    """Remove the loop-carried variable ``index``."""
    loop.remove_input(2 + index)
    loop.blocks[0].erase_output(1 + index)
    loop.blocks[0].erase_input(1 + index)
    loop.erase_output(index)


# --------------------------------------------------------------------------------------------------------------- lists


def _carry_no_lists(loop: Node) -> bool:
    changed = False
    for index, each in reversed(list(enumerate(LoopView(loop).carried))):
        if isinstance(each.parameter.type, ListType) and _written_list(each.following) is each.parameter:
            value = each.following
            while value is not each.parameter:
                node = value.node
                value.replace_all_uses_with(node.inputs[0])
                value = node.inputs[0]
            each.result.replace_all_uses_with(each.initial)
            each.parameter.replace_all_uses_with(each.initial)
            _drop(loop, index)
            changed = True
    for node in list(loop.blocks[0].nodes):
        changed |= _append_one(node)
    return changed


def _written_list(value: Value) -> Value:
    """Return the list that ``value`` is: operators that write to a list and return it are skipped."""
    while value.node.kind in _RETURN_THEIR_LIST and isinstance(value.type, ListType):
        value = value.node.inputs[0]
    return value


def _append_one(node: Node) -> bool:
    """Replace the extension of a list by a list of one element by ``append``. Return whether it was replaced."""
    if node.kind != "aten::add_" or not isinstance(node.output.type, ListType):
        return False
    added = node.inputs[1]
    if added.node.kind != "prim::ListConstruct" or len(added.node.inputs) != 1 or len(added.uses) != 1:
        return False
    graph = node.graph
    inputs = [node.inputs[0], added.node.input]
    append = graph.create("aten::append", inputs, types=[node.output.type], range=node.range).insert_before(node)
    append.callstack, append.scope = node.callstack, node.scope
    node.output.replace_all_uses_with(append.output)
    node.destroy()
    added.node.destroy()
    return True


# -------------------------------------------------------------------------------------------------------------- slices


def _drop_whole_slices(graph: Graph, loops: Sequence[Node]) -> bool:
    """Replace ``x[:]`` of a tensor in loops by ``x``, if the slice is only read. Return whether anything was
    replaced."""
    found = [node for loop in loops for node in loop.blocks[0].nodes if _is_whole_slice(node)]
    if not found:
        return False
    aliases = AliasDb(graph)
    changed = False
    for node in found:
        users = [use.user for use in node.output.uses]
        is_computed_with = all(user.operator is not None and user.kind not in _KEEP for user in users)
        if is_computed_with and not aliases.has_writers(node.output):
            node.replace_with(node.inputs[0])
            changed = True
    return changed


def _is_whole_slice(node: Node) -> bool:
    if node.kind != "aten::slice" or not isinstance(node.output.type, TensorType) or len(node.inputs) != 5:
        return False
    tensor, dim, start, end, step = node.inputs
    index, rank = constant_int(dim), tensor.type.rank if isinstance(tensor.type, TensorType) else None
    if index is None or rank is None or not -rank <= index < rank or constant_int(step) != 1:
        return False
    from_start = start.type == NONE or constant_int(start) == 0
    return from_start and (end.type == NONE or constant_int(end) == MAX_TRIP_COUNT)


# ------------------------------------------------------------------------------------------------------------- elements


def _elements_of_iterations(loop: Node) -> list[Node]:
    """Return the nodes that select the part of the current iteration from a list of a tensor's parts, which has one
    part for each iteration."""
    view = LoopView(loop)
    length = view.trip_count.node
    if length.kind != "aten::len":
        return []
    parts = length.inputs[0]
    if parts.node.kind != "aten::unbind" or not all(use.user.kind in _READ_LISTS for use in parts.uses):
        return []
    return [
        use.user
        for use in view.iteration.uses
        if use.user.kind == "aten::__getitem__" and use.user.inputs[0] is parts and use.offset == 1
    ]


def _measure_tensor(parts: Value) -> None:
    """Replace the length of the list ``parts`` by the size of the tensor."""
    for length in [use.user for use in parts.uses if use.user.kind == "aten::len"]:
        _replace(length, "aten::size", parts.node.inputs, INT)


def _select_element(node: Node) -> None:
    parts, index = node.inputs
    _replace(node, "aten::select", [*parts.node.inputs, index], TENSOR)
    if not parts.has_uses:
        parts.node.destroy()


def _replace(node: Node, kind: str, inputs: Sequence[Value], type: Type) -> None:
    made = node.graph.create(kind, inputs, types=[type], range=node.range).insert_before(node)
    made.callstack, made.scope = node.callstack, node.scope
    node.replace_with(made.output)

"""Scalar replacement: carry the elements of a list through a loop instead of writing them to the list.

.. code-block:: text

    %l : Tensor[] = prim::ListConstruct(%a, %b)           %c, %d = prim::Loop(%n, %true, %a, %b)
     = prim::Loop(%n, %true)                                block0(%i : int, %a.1 : Tensor, %b.1 : Tensor):
      block0(%i : int):                                       %y : Tensor = aten::tanh(%a.1)
        %x : Tensor = aten::__getitem__(%l, %0)     becomes   -> (%true, %y, %b.1)
        %y : Tensor = aten::tanh(%x)                        %m : Tensor[] = prim::ListConstruct(%c, %d)
        %1 : Tensor[] = aten::_set_item(%l, %0, %y)         %s : Tensor = aten::stack(%m, %0)
        -> (%true)
    %s : Tensor = aten::stack(%l, %0)

The states of the layers of a recurrent network are mostly in such a list. Before the loop the list is only read,
and in its body only read and written, at constant indices; after the loop it may be used in any way, for then it is a
new list that nothing else has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import ListType
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class ScalarReplacement:
    """Carry the elements of a list through a loop instead of writing them to the list. The docstring of the module
    shows the IR before and after.

    Example:
        >>> from rekindle.passes import ScalarReplacement
        >>> text = '''
        ... def f(x, n: int):
        ...     states = [x, x]
        ...     for i in range(n):
        ...         states[0] = states[0].tanh()
        ...     return torch.stack(states)
        ... '''
        >>> graph = rekindle.CompilationUnit(text).f.graph
        >>> ScalarReplacement().run(graph)
        True
        >>> graph.find_node("aten::_set_item") is None
        True
    """

    name: ClassVar[str] = "scalar_replacement"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in graph.find_nodes("prim::ListConstruct"):
            found = _replaceable(node) if node.inputs else None
            if found is not None and may_change("carry the elements of", node):
                _replace(node, *found)
                changed = True
        return changed


def _replaceable(made: Node) -> tuple[Node, list[Node], list[Node]] | None:
    """Return the loop that writes to a list, the nodes that read elements before it, and those that use the list after
    it; None if the loop cannot carry the elements."""
    block = made.owning_block
    loop: Node | None = None
    outside: list[tuple[Node, Node]] = []
    for user in dict.fromkeys(use.user for use in made.output.uses):
        if user.owning_block is block:
            outside.append((user, user))
            continue
        place = next((each for each in user.ancestors() if each.owning_block is block), None)
        if place is None:
            return None
        if user.owning_block is not None and user.owning_block.owning_node is place and place.kind == "prim::Loop":
            is_element = _index_of(user, made) is not None
            if is_element and loop in (None, place):
                loop = place
                continue
        outside.append((user, place))
    if loop is None or not any(_is_write(use.user) for use in made.output.uses if loop.contains(use.user)):
        return None
    before, after = [], []
    for user, place in outside:
        if place is not loop and (place.kind == "prim::Return" or loop.is_before(place)):
            after.append(user)
        elif user is place and user.kind == "aten::__getitem__" and _index_of(user, made) is not None:
            before.append(user)
        else:
            return None
    return loop, before, after


def _is_write(node: Node) -> bool:
    return node.kind == "aten::_set_item"


def _index_of(node: Node, made: Node) -> int | None:
    """Return the index of the list element that ``node`` reads or writes; None if it does something else, or the index
    is not a constant within the list."""
    if node.kind not in ("aten::__getitem__", "aten::_set_item") or node.inputs[0] is not made.output:
        return None
    if any(value is made.output for value in node.inputs[1:]) or (_is_write(node) and node.output.has_uses):
        return None
    index, length = constant_int(node.inputs[1]), len(made.inputs)
    return index % length if index is not None and -length <= index < length else None


def _replace(made: Node, loop: Node, before: Sequence[Node], after: Sequence[Node]) -> None:
    graph, body = made.graph, loop.blocks[0]
    type = made.output.type
    assert isinstance(type, ListType)
    for node in before:
        _use_element(node, made, list(made.inputs))
    for value in made.inputs:
        loop.add_input(value)
    elements = [body.add_input(type=type.element) for _ in made.inputs]
    for node in [node for node in body.nodes if made.output in node.inputs]:
        if _is_write(node):
            index = _index_of(node, made)
            assert index is not None
            elements[index] = node.inputs[2]
            node.destroy()
        else:
            _use_element(node, made, elements)
    for value in elements:
        body.add_output(value)
    results = [loop.add_output(type.element) for _ in elements]
    if after:
        whole = graph.create("prim::ListConstruct", results, types=[type], range=made.range).insert_after(loop)
        whole.callstack, whole.scope = made.callstack, made.scope
        made.output.replace_all_uses_with(whole.output)
    made.destroy()


def _use_element(node: Node, made: Node, elements: Sequence[Value]) -> None:
    index = _index_of(node, made)
    assert index is not None
    node.replace_with(elements[index])

"""Regions of graphs: move, extract, outline and replace them, and split a graph in two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.errors import GraphError
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.text.printer import print_head
from rekindle.program.function import Function
from rekindle.transforms.editing.from_graph import create_function


class Region:
    """Nodes of one block, and the values that enter and leave. ``inputs`` are the outside values that the nodes use, in
    the order of first use, without constants, which are copied with the nodes. ``outputs`` are their results that other
    nodes use.

    Raises:
        GraphError: there are no nodes, or they are not in one block.

    Example:
        >>> from rekindle.transforms.editing import Region
        >>> @rekindle.script
        ... def steps(x, y):
        ...     return x.exp() * y + y.sin()
        >>> nodes = [steps.graph.find_node("aten::exp"), steps.graph.find_node("aten::mul")]
        >>> region = Region(nodes)
        >>> len(region.inputs), len(region.outputs)
        (2, 1)
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        if not nodes:
            raise GraphError("there are no nodes")
        for node in nodes:
            if not node.in_block or node.kind == "prim::Return":
                raise GraphError(f"this {node.kind} is in no block")
            if node.owning_block is not nodes[0].owning_block:
                raise GraphError(f"{nodes[0].kind} and {node.kind} are in different blocks")
        self.nodes: Final = sorted(set(nodes), key=lambda node: node._position)
        self.graph: Final[Graph] = nodes[0].graph
        own = set(self.nodes)
        used = dict.fromkeys(
            value for node in self.nodes for value in node.used_values() if own.isdisjoint(value.node.ancestors())
        )
        self.constants: Final = [value.node for value in used if value.node.kind == "prim::Constant"]
        self.inputs: Final = [value for value in used if value.node.kind != "prim::Constant"]
        self.outputs: Final = [
            output
            for node in self.nodes
            for output in node.outputs
            if any(own.isdisjoint(use.user.ancestors()) for use in output.uses)
        ]

    def as_graph(self) -> Graph:
        """Return a graph of copies of the nodes, from the inputs to the outputs."""
        new = Graph()
        values = {value: new.add_input(value.base_name, value.type) for value in self.inputs}
        for node in (*self.constants, *self.nodes):
            new.insert_clone(node, values)
        for value in self.outputs:
            new.add_output(values[value])
        return new


# --------------------------------------------------------------------------------------------------------------- moving


def move(nodes: Sequence[Node], *, before: Node) -> None:
    """Move ``nodes`` of one block, in their order, to the position before another node of it.

    Raises:
        GraphError: the nodes and ``before`` are not in one block, or a node between them depends on the order. The
            graph is not modified.

    Example:
        >>> from rekindle.transforms.editing import move
        >>> f = rekindle.script(lambda x: x.exp() * x.sin())
        >>> sin, exp = f.graph.find_node("aten::sin"), f.graph.find_node("aten::exp")
        >>> move([sin], before=exp)
        >>> [node.kind for node in f.graph.nodes]
        ['aten::sin', 'aten::exp', 'aten::mul']
    """
    region = Region(nodes)
    if before in region.nodes:
        raise GraphError(f"{before.kind} is one of the nodes that are to be moved before it")
    if before.owning_block is not region.nodes[0].owning_block:
        raise GraphError(f"{region.nodes[0].kind} and {before.kind} are in different blocks")
    _check_order(region, before)
    for node in region.nodes:
        node.move_before(before)


def _check_order(region: Region, place: Node) -> None:
    """Check that the nodes may be moved together directly before ``place``.

    Raises:
        GraphError: a node in between depends on the order.
    """
    own = set(region.nodes)
    effects_of = AliasDb(region.graph).effects_of
    position = float("inf") if place.kind == "prim::Return" else place._position
    for node in region.nodes:
        for other in _between(node, place):
            if other in own:
                continue
            first, second = (node, other) if node._position < position else (other, node)
            why = _order_of(first, second, effects_of)
            if why is not None:
                raise GraphError(
                    f"{node.kind} cannot be moved across {other.kind}, which {why}:\n  {print_head(other)}"
                )


def _between(node: Node, place: Node) -> Iterator[Node]:
    block = node.owning_block
    assert block is not None
    ahead = place.kind == "prim::Return" or node._position < place._position
    start, end = (node.next, place) if ahead else (place, node)
    while start is not end:
        yield start
        start = start.next


def _order_of(first: Node, second: Node, effects_of: Any) -> str | None:
    """Return the reason why ``first`` must run before ``second``; None if their order does not matter."""
    if set(first.outputs) & set(second.used_values()):
        return "uses what it gives, or gives what it uses"
    if effects_of(first).conflicts_with(effects_of(second)):
        return "would see other memory, modes or random numbers then"
    return None


# ------------------------------------------------------------------------------------------------------------ functions


def extract(nodes: Sequence[Node], name: str = "extracted") -> Function:
    """Return a function that computes what ``nodes`` compute. The graph is not modified.

    The function takes the inputs of the :class:`Region`, and returns its outputs, a tuple if there are several.

    Raises:
        GraphError: the nodes are not in one block.

    Example:
        >>> from rekindle.transforms.editing import extract
        >>> @rekindle.script
        ... def steps(x, y):
        ...     return x.exp() * y + y.sin()
        >>> nodes = [steps.graph.find_node("aten::exp"), steps.graph.find_node("aten::mul")]
        >>> extract(nodes)(torch.zeros(1), torch.ones(1))
        tensor([1.])
    """
    return create_function(Region(nodes).as_graph(), name)


def outline(nodes: Sequence[Node], name: str = "outlined") -> Function:
    """Replace ``nodes`` with a call of a function that computes what they compute. Return the function: see
    :func:`extract`.

    Raises:
        GraphError: the nodes are not in one block, or a node between them depends on the order. The graph is not
            modified.

    Example:
        >>> from rekindle.transforms.editing import outline
        >>> @rekindle.script
        ... def steps(x, y):
        ...     return x.exp() * y + y.sin()
        >>> nodes = [steps.graph.find_node("aten::exp"), steps.graph.find_node("aten::mul")]
        >>> outline(nodes, "scaled")
        <compiled function scaled>
        >>> steps.graph.find_node("prim::CallFunction") is not None
        True
    """
    function = extract(nodes, name)
    replace(nodes, function, inline=False)
    return function


def replace(nodes: Sequence[Node], function: Any, *, inline: bool = True) -> list[Value]:
    """Replace ``nodes`` with the code of ``function``, or with a call of it. Return the new values. ``inline`` selects
    the former.

    ``function`` takes the inputs of the :class:`Region`, in this order, and returns its outputs.

    Raises:
        GraphError: the nodes are not in one block, a node between them depends on the order, or the function returns
            other types. The graph is not modified.
        CompileError: the function cannot be compiled, or takes other types.

    Example:
        >>> from rekindle.transforms.editing import replace
        >>> @rekindle.script
        ... def steps(x, y):
        ...     return x.exp() * y + y.sin()
        >>> nodes = [steps.graph.find_node("aten::exp"), steps.graph.find_node("aten::mul")]
        >>> _ = replace(nodes, lambda x, y: x + y)
        >>> steps(torch.ones(1), torch.zeros(1))
        tensor([1.])
    """
    region = Region(nodes)
    place = _place(region)
    graph = region.graph
    with graph.transaction():
        with graph.inserting_before(place, like=region.nodes[-1]) as build:
            put = build.inline if inline else build.call
            found = put(function, *region.inputs)
            new = [result.value for result in _parts(found, len(region.outputs))]
        wanted = ", ".join(value.type.annotation for value in region.outputs)
        given = ", ".join(value.type.annotation for value in new)
        if len(new) != len(region.outputs) or any(
            not value.type.is_subtype_of(old.type) and value.type.kind != old.type.kind
            for value, old in zip(new, region.outputs, strict=False)
        ):
            raise GraphError(f"what replaces the nodes gives ({given}), but ({wanted}) is used")
        for old, value in zip(region.outputs, new, strict=True):
            name = old.base_name
            old.replace_all_uses_with(value)
            if name and not value.has_name and value.node.kind != "prim::Param":
                value.set_name(name)
        for node in reversed(region.nodes):
            node.destroy()
    return new


def _parts(found: Any, count: int) -> tuple[Any, ...]:
    """Return the results of a function as ``count`` proxies, if there are that many."""
    if count == 0:
        return ()
    if isinstance(found, tuple):
        return found
    return tuple(found) if count > 1 else (found,)


def _place(region: Region) -> Node:
    """Return a node before which all nodes of the region may be moved: the one after the last of them, or else the
    first.

    Raises:
        GraphError: a node between them depends on the order.
    """
    try:
        _check_order(region, region.nodes[-1].next)
    except GraphError as error:
        try:
            _check_order(region, region.nodes[0])
        except GraphError:
            raise error from None
        return region.nodes[0]
    return region.nodes[-1].next


# -------------------------------------------------------------------------------------------------------------- cutting


def split(graph: Graph, at: Node, names: tuple[str, str] = ("first", "second")) -> tuple[Function, Function]:
    """Cut ``graph`` in two before the node ``at`` of its outermost block. The graph is not modified.

    Returns:
        Two functions. The second takes what the first returns, so that ``second(*first(*arguments))`` is the result of
        the graph; ``second(first(*arguments))`` if one value crosses the cut.

    Raises:
        GraphError: ``at`` is not in the outermost block.

    Example:
        >>> from rekindle.transforms.editing import split
        >>> f = rekindle.script(lambda x: x.exp().sin())
        >>> first, second = split(f.graph, at=f.graph.find_node("aten::sin"))
        >>> torch.equal(second(first(torch.ones(1))), f(torch.ones(1)))
        True
    """
    if at.owning_block is not graph.block or at.kind == "prim::Param":
        raise GraphError(f"{at.kind} is not in the outermost block of the graph")
    nodes = list(graph.nodes)
    place = len(nodes) if at.kind == "prim::Return" else nodes.index(at)
    head, tail = nodes[:place], nodes[place:]
    early = {value for node in head for value in node.outputs} | set(graph.inputs)
    needed = [*(value for node in tail for value in node.used_values()), *graph.outputs]
    crossing = [value for value in dict.fromkeys(needed) if value in early and value.node.kind != "prim::Constant"]
    constants = [
        value.node for value in dict.fromkeys(needed) if value in early and value.node.kind == "prim::Constant"
    ]
    return (
        create_function(_part(graph.inputs, head, crossing), names[0]),
        create_function(_part(crossing, [*constants, *tail], graph.outputs), names[1]),
    )


def _part(inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value]) -> Graph:
    new = Graph()
    values = {value: new.add_input(value.base_name, value.type) for value in inputs}
    for node in nodes:
        new.insert_clone(node, values)
    for value in outputs:
        new.add_output(values[value])
    return new

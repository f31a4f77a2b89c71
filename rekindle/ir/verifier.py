"""Verifier: check the invariants of a graph, which every pass may rely on and has to preserve.

* Structure: blocks own their nodes, nodes their outputs and blocks, one graph all of them; positions rise; the nodes
  ``prim::Param`` and ``prim::Return`` are where they belong; the insertion point is in the graph.
* Values: each is defined once, before its uses and in a block around them; uses and inputs are consistent; names and
  numbers are unique.
* Semantics: ``prim::If``, ``prim::Loop`` and the nodes that make constants and containers follow
  :mod:`rekindle.ir.verifier_rules`; the call of an operator fits one of its overloads.

Time and memory are linear in the size of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from rekindle.errors import VerificationError
from rekindle.ir.graph import Block, Graph, Node, Use, Value
from rekindle.ir.text.printer import print_head
from rekindle.ir.verifier_rules import RULES, RuleBroken, block_name, check_call

_CONTEXT = 3
"""Number of nodes shown on either side of a faulty one."""


def verify(graph: Graph) -> None:
    """Check that ``graph``, and every graph in an attribute of its nodes, is valid.

    Raises:
        VerificationError: it is not; the message names the node and the violated invariant, and shows the IR around it.

    Example:
        >>> from rekindle.ir.verifier import verify
        >>> graph = rekindle.script(lambda x: x.neg().exp()).graph
        >>> verify(graph)
        >>> neg, exp = graph.nodes
        >>> _ = neg.replace_input(0, exp.output)
        >>> try:
        ...     verify(graph)
        ... except rekindle.errors.VerificationError as error:
        ...     print(str(error).splitlines()[0])
        aten::neg: %3 is used before it is defined
    """
    pending = [graph]
    seen: set[Graph] = set()
    while pending:
        graph = pending.pop()
        if graph not in seen:
            seen.add(graph)
            pending.extend(_Verifier(graph).run())


class _Verifier:
    __slots__ = ("_graph", "_inner", "_nodes", "_numbers", "_scopes", "_values", "_visible")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._inner: list[Graph] = []
        self._nodes: set[Node] = set()
        """All nodes met, those of parameters and results too."""
        self._values: dict[Value, None] = {}
        self._numbers: dict[int, Value] = {}
        self._visible: set[Value] = set()
        self._scopes: list[list[Value]] = []
        """The values that each open block defines."""

    def run(self) -> list[Graph]:
        """Check the graph, without those in attributes of its nodes, which are returned.

        Raises:
            VerificationError: the graph is not valid.
        """
        if self._graph.block.owning_node is not None:
            self._fail("the outermost block belongs to a node", None)
        # A work list instead of recursion: blocks may nest deeply.
        work: list[tuple[str, Block | Node]] = [("leave", self._graph.block), ("enter", self._graph.block)]
        while work:
            what, item = work.pop()
            if isinstance(item, Block):
                if what == "leave":
                    self._leave(item)
                    continue
                self._enter(item)
                nodes = self._nodes_of(item)
                work.extend(("begin", node) for node in reversed(nodes))
            elif what == "begin":
                self._begin(item)
                work.append(("end", item))
                for block in reversed(item.blocks):
                    work += [("leave", block), ("enter", block)]
            else:
                self._end(item)
        self._check_uses()
        self._check_names()
        point = self._graph.insert_point
        if point not in self._nodes or point.kind == "prim::Param":
            self._fail(f"the insertion point, a {point.kind}, is not in the graph", None)
        return self._inner

    # ----------------------------------------------------------------------------------------------------------- blocks

    def _enter(self, block: Block) -> None:
        param, end = block.param_node, block.return_node
        for node, kind in ((param, "prim::Param"), (end, "prim::Return")):
            if node.kind != kind or node.owning_block is not block or node.graph is not self._graph:
                self._fail(f"the {kind} of {block_name(block)} is not its own", block.owning_node)
            if node.blocks:
                self._fail(f"the {kind} of {block_name(block)} has a block", block.owning_node)
            self._nodes.add(node)
        if block.graph is not self._graph:
            self._fail(f"{block_name(block)} belongs to another graph", block.owning_node)
        if param.inputs or param.in_block:
            self._fail(f"the prim::Param of {block_name(block)} has inputs, or is among the nodes", block.owning_node)
        if end.outputs:
            self._fail(f"the prim::Return of {block_name(block)} has outputs", block.owning_node)
        self._scopes.append([])
        self._define_outputs(param)

    def _nodes_of(self, block: Block) -> list[Node]:
        """Return the nodes of ``block``.

        Raises:
            VerificationError: their links, owners or positions are inconsistent.
        """
        end = block.return_node
        nodes: list[Node] = []
        before = end
        position = float("-inf")
        while True:
            node = before._next
            if node is None or node._prev is not before:
                self._fail(f"the nodes after this one in {block_name(block)} are not linked", before)
            if node is end:
                return nodes
            if node in self._nodes:
                self._fail("it is in two places", node)
            self._nodes.add(node)
            if node.owning_block is not block:
                self._fail(f"it is in {block_name(block)}, but belongs to another block", node)
            if node._position <= position:
                self._fail("its position is not after that of the node before it", node)
            position = node._position
            nodes.append(node)
            before = node

    def _leave(self, block: Block) -> None:
        self._check_inputs(block.return_node)
        self._visible.difference_update(self._scopes.pop())

    # ------------------------------------------------------------------------------------------------------------ nodes

    def _begin(self, node: Node) -> None:
        """Verify ``node`` itself, without its blocks."""
        if node.graph is not self._graph:
            self._fail("it belongs to another graph", node)
        self._check_inputs(node)
        for block in node.blocks:
            if block.owning_node is not node:
                self._fail("one of its blocks belongs to another node", node)

    def _end(self, node: Node) -> None:
        """Bring the outputs of ``node`` into scope after its blocks, check the rules of its kind and its operator, and
        collect the graphs in its attributes."""
        self._define_outputs(node)
        problem = None
        try:
            rule = RULES.get(node.kind)
            if rule is not None:
                rule(node)
            check_call(node)
        except RuleBroken as broken:
            problem = str(broken)
        if problem is not None:  # outside of the handler, so that the error has no second traceback
            self._fail(problem, node)
        for attribute in node.attributes.values():
            items = attribute if isinstance(attribute, list) else (attribute,)
            self._inner.extend(item for item in items if isinstance(item, Graph))

    def _check_inputs(self, node: Node) -> None:
        for offset, value in enumerate(node.inputs):
            if value not in self._visible:
                self._fail(self._why_invisible(value), node)
            if Use(node, offset) not in value._uses:
                self._fail(f"%{value.name} does not know that it is input {offset} of it", node)

    def _why_invisible(self, value: Value) -> str:
        if value.node.graph is not self._graph:
            return f"%{value.name} belongs to another graph"
        if value in self._values:
            return f"%{value.name} is used outside of the block that defines it"
        if value.node.owning_block is None:
            return f"%{value.name} is defined by a {value.node.kind} that is in no block"
        if value not in value.node._outputs:
            return f"%{value.name} is no longer an output of its node"
        return f"%{value.name} is used before it is defined"

    def _define_outputs(self, node: Node) -> None:
        for offset, value in enumerate(node._outputs):
            if value.node is not node or value.offset != offset:
                self._fail(f"its output {offset}, %{value.name}, belongs elsewhere", node)
            other = self._numbers.setdefault(value.unique, value)
            if other is not value or value in self._values:
                self._fail(f"two values have the number {value.unique}", node)
            if value.unique >= self._graph._next_unique:
                self._fail(f"the number {value.unique} of %{value.name} was not given by the graph", node)
            if value.has_name and self._graph._names.get(value._name) is not value:
                self._fail(f"the name %{value.name} belongs to another value", node)
            self._values[value] = None
            self._visible.add(value)
            self._scopes[-1].append(value)

    # ------------------------------------------------------------------------------------------------------- at the end

    def _check_uses(self) -> None:
        for value in self._values:
            for user, offset in value._uses:
                if user not in self._nodes:
                    self._fail(f"%{value.name} is used by a {user.kind} that is not in the graph", value.node)
                if offset >= len(user._inputs) or user._inputs[offset] is not value:
                    self._fail(f"%{value.name} counts as input {offset} of this node, but is not", user)

    def _check_names(self) -> None:
        for name, value in self._graph._names.items():
            if value not in self._values:
                self._fail(f"the name %{name} belongs to a value that is not in the graph", None)

    # ---------------------------------------------------------------------------------------------------------- telling

    def _fail(self, message: str, node: Node | None) -> NoReturn:
        if node is None:
            raise VerificationError(message)
        raise VerificationError("\n".join([f"{node.kind}: {message}", *_context(node)]))


def _context(node: Node) -> Iterator[str]:
    """Yield ``node`` between its neighbors, with the node whose block contains them."""
    block = node.owning_block
    if block is not None and block.owning_node is not None:
        yield f"  in {block_name(block)} of  {print_head(block.owning_node)}"
    following = [] if node.kind == "prim::Return" else _neighbors(node, "_next")
    for neighbor in (*_neighbors(node, "_prev"), node, *following):
        yield f"{'  > ' if neighbor is node else '    '}{print_head(neighbor)}"


def _neighbors(node: Node, link: str) -> list[Node]:
    """Return up to three nodes before or after ``node`` in its block."""
    found: list[Node] = []
    at: Node | None = node
    while len(found) < _CONTEXT:
        at = getattr(at, link)
        if at is None or at is node or at.kind == "prim::Return":
            break
        found.append(at)
    return found[::-1] if link == "_prev" else found

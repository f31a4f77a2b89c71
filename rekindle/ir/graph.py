"""The IR: a graph of blocks of nodes that define and use values, in static single assignment form.

A graph owns everything in it. Nodes are made by :meth:`Graph.create`, and are part of a block, in order, once they are
inserted; values and sub-blocks are made by their node. A misuse raises :class:`~rekindle.errors.GraphError`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakMethod

from rekindle.errors import UNKNOWN_RANGE, GraphError, SourceRange
from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir import node as _node
from rekindle.ir.attributes import constant_attribute
from rekindle.ir.building import Builder
from rekindle.ir.node import (
    FIRST_POSITION,
    POSITION_GAP,
    AnyValue as AnyValue,
    AttributeValue as AttributeValue,
    Node as Node,
    Use as Use,
    Value as Value,
    checked_type,
)
from rekindle.ir.types.base import NONE, Type
from rekindle.ir.types.tensor import TENSOR

if TYPE_CHECKING:
    from rekindle.ir.none_checks import NoneChecks

draw: Final = LayerHook[Callable[["Graph"], "str | None"]]("rekindle.viz", lambda graph: None)
"""Draws a graph for a notebook, as SVG."""


class Block:
    """A list of nodes that run in order, with inputs and outputs. The list is circular: ``return_node`` is before the
    first node and after the last. ``param_node`` holds the inputs and is not in the list."""

    __slots__ = ("graph", "owning_node", "param_node", "return_node")

    def __init__(self, graph: Graph, owning_node: Node | None) -> None:
        self.graph = graph
        self.owning_node = owning_node
        self.param_node = Node(graph, "prim::Param")
        self.return_node = Node(graph, "prim::Return")
        self.param_node.owning_block = self.return_node.owning_block = self
        self.return_node._next = self.return_node._prev = self.return_node

    @property
    def parent(self) -> Block | None:
        """The block around this one; None for the outermost block."""
        return None if self.owning_node is None else self.owning_node.owning_block

    @property
    def inputs(self) -> Sequence[Value]:
        return self.param_node._outputs

    @property
    def outputs(self) -> Sequence[Value]:
        return self.return_node._inputs

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes in order. Nodes may be moved, destroyed and inserted while walking: the walk continues after its
        previous position.

        Raises:
            GraphError: the position is lost, because the current node and its neighbors have been removed.
        """
        # Links are read as slots: compiling walks blocks some hundred thousand times.
        end = self.return_node
        node = end._next
        while node is not None and node is not end:
            preceding, following, position = node._prev, node._next, node._position
            assert preceding is not None
            assert following is not None
            yield node
            # Some of them may have been removed: continue from one that is still here.
            if node.owning_block is self and (node._position == position or following.owning_block is not self):
                node = node._next
            elif following.owning_block is self:
                node = following
            elif preceding.owning_block is self:
                node = preceding._next
            else:
                raise GraphError(
                    f"the walk has lost its place: the {node.kind} at hand and both its neighbors are gone; "
                    "walk over a list of the nodes"
                )

    @property
    def nodes_reversed(self) -> Iterator[Node]:
        """The nodes from last to first; the current node may be moved or destroyed."""
        end = self.return_node
        node = end._prev
        while node is not None and node is not end:
            preceding = node._prev
            yield node
            node = node._prev if node._next is not None and node.owning_block is self else preceding

    def _node_list(self) -> list[Node]:
        """Return the nodes in order, which may change in any way while the list is walked."""
        found = []
        end = self.return_node
        node = end._next
        while node is not None and node is not end:
            found.append(node)
            node = node._next
        return found

    def _collect(self, kind: str, found: list[Node]) -> None:
        """Append every node of a kind to ``found``, in the order of :meth:`all_nodes`."""
        end = self.return_node
        node = end._next
        while node is not None and node is not end:
            if node.kind == kind:
                found.append(node)
            for block in node._blocks:
                block._collect(kind, found)
            node = node._next

    def _first(self, kind: str) -> Node | None:
        """Return the first node of a kind, in the order of :meth:`all_nodes`; None if there is none."""
        end = self.return_node
        node = end._next
        while node is not None and node is not end:
            if node.kind == kind:
                return node
            for block in node._blocks:
                found = block._first(kind)
                if found is not None:
                    return found
            node = node._next
        return None

    def all_nodes(self) -> Iterator[Node]:
        """Yield every node in this block and in those within, a node before those in its blocks. Nodes may be inserted,
        moved or destroyed while walking: destroyed ones are left out, and inserted ones may be left out."""
        stack = [iter(self._node_list())]
        while stack:
            for node in stack[-1]:
                if node._next is None:
                    continue
                yield node
                if node._blocks:
                    stack.append(iter([inner for block in node._blocks for inner in block._node_list()]))
                    break
            else:
                stack.pop()

    def all_values(self) -> Iterator[Value]:
        """Yield the values that are defined in this block and in those within."""
        yield from self.inputs
        for node in self.all_nodes():
            yield from node.outputs
            for block in node.blocks:
                yield from block.inputs

    @property
    def is_empty(self) -> bool:
        return self.return_node.next is self.return_node

    def ancestor_of(self, node: Node) -> Node | None:
        """Return the node of this block that is ``node`` or contains it; None if ``node`` is not in this block."""
        current: Node | None = node
        while current is not None and current.owning_block is not self:
            block = current.owning_block
            current = None if block is None else block.owning_node
        return current

    def contains(self, node: Node) -> bool:
        """Return whether ``node`` is in this block, or in a block within it."""
        return self.ancestor_of(node) is not None

    def add_input(self, name: str = "", type: Type = TENSOR) -> Value:
        value = self.param_node.add_output(type)
        if name:
            value.set_name(name)
        return value

    def insert_input(self, index: int, name: str = "", type: Type = TENSOR) -> Value:
        value = self.param_node.insert_output(index, type)
        if name:
            value.set_name(name)
        return value

    def erase_input(self, index: int) -> None:
        self.param_node.erase_output(index)

    def add_output(self, value: AnyValue) -> int:
        """Append ``value`` to the outputs of the block; return its index."""
        self.return_node.add_input(value)
        return len(self.outputs) - 1

    def insert_output(self, index: int, value: AnyValue) -> None:
        self.return_node.insert_input(index, value)

    def replace_output(self, index: int, value: AnyValue) -> None:
        self.return_node.replace_input(index, value)

    def erase_output(self, index: int) -> None:
        self.return_node.remove_input(index)

    def append(self, node: Node) -> Node:
        """Insert ``node`` at the end."""
        return node.insert_before(self.return_node)

    def prepend(self, node: Node) -> Node:
        """Insert ``node`` at the start."""
        return node.insert_after(self.return_node)

    def clone_from(self, source: Block, value_map: Callable[[Value], Value]) -> dict[Value, Value]:
        """Append copies of the contents of ``source``: inputs, nodes, outputs.

        ``value_map`` returns the value that replaces a value from outside ``source``. Return a dict from each input of
        ``source``, and each output of its own nodes (not of nested ones), to its copy.
        """
        local: dict[Value, Value] = {}

        def mapped(value: Value) -> Value:
            found = local.get(value)
            return value_map(value) if found is None else found

        for old in source.inputs:
            local[old] = self.add_input().copy_metadata(old)
        for node in source.nodes:
            copy = self.append(self.graph.create_clone(node, mapped))
            local.update(zip(node._outputs, copy._outputs, strict=True))
        for old in source.outputs:
            self.add_output(mapped(old))
        return local

    def _make_room(self, node: Node) -> None:
        """Renumber the nodes around ``node``: as few as leave gaps between the numbers, so that inserting many nodes at
        one position takes linear time."""
        end = self.return_node
        first = last = node
        count = 1
        while True:
            for _ in range(count):
                first, count = (first, count) if first.prev is end else (first.prev, count + 1)
                last, count = (last, count) if last.next is end else (last.next, count + 1)
            high = None if last.next is end else last.next._position
            if first.prev is not end:
                low = first.prev._position
            else:
                low = FIRST_POSITION if high is None else high - (count + 1) * POSITION_GAP
            gap = POSITION_GAP if high is None else (high - low) // (count + 1)
            if gap >= _ROOM:
                break
        stop = last.next
        while first is not stop:
            low += gap
            first._position = low
            first = first.next

    def _destroy_contents(self) -> None:
        self.return_node.remove_all_inputs()
        for node in self.nodes_reversed:
            node.destroy()
        while self.param_node._outputs:
            self.param_node.erase_output(len(self.param_node._outputs) - 1)


_ROOM: Final = 1 << 20
"""Distance between the positions of renumbered neighbors: room for at least twenty nodes."""

_MANY: Final = 16
"""Number of watchers of a graph at which dead ones are first removed; then whenever the number is a power of two."""


class Graph:
    """A program in SSA form: a top-level block of nodes, and the owner of all nodes, blocks and values in it.

    ``str()`` of a graph is its text form, and notebooks display it as a picture. Edits of a function's graph apply from
    the next call on.

    Example:
        >>> graph = rekindle.script(lambda x: torch.relu(x) + 1).graph
        >>> isinstance(graph, rekindle.Graph)
        True
        >>> [node.kind for node in graph.nodes if node.kind.startswith("aten")]
        ['aten::relu', 'aten::add']
    """

    __slots__ = (
        "__weakref__",
        "_name_suffixes",
        "_names",
        "_next_unique",
        "_settled",
        "_watchers",
        "block",
        "insert_point",
        "none_checks",
        "tensors_as_numbers",
    )

    def __init__(self) -> None:
        self._watchers: list[Callable[[], None] | WeakMethod[Callable[[], None]]] = []
        self._settled: set[Hashable] = set()
        self._next_unique = 0
        self._names: dict[str, Value] = {}
        self._name_suffixes: dict[str, int] = {}
        self.block = Block(self, None)
        self.insert_point: Node = self.block.return_node
        """New nodes go before this node."""
        self.none_checks: NoneChecks | None = None
        """Unwrapping of Optionals, while a program from Python is emitted; None for other programs."""
        self.tensors_as_numbers = False
        """Whether calls of functions may pass a Tensor for a declared number, while a program is emitted."""

    # ----------------------------------------------------------------------------------------- reading

    @property
    def follows_python(self) -> bool:
        """Whether the program that is being emitted has Python's semantics; one from an archive has TorchScript's."""
        return self.none_checks is not None

    @property
    def inputs(self) -> Sequence[Value]:
        return self.block.inputs

    @property
    def self_value(self) -> Value:
        """The object that a method is called on: the first input of its graph."""
        return self.inputs[0]

    @property
    def outputs(self) -> Sequence[Value]:
        return self.block.outputs

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes of the top-level block."""
        return self.block.nodes

    @property
    def param_node(self) -> Node:
        return self.block.param_node

    @property
    def return_node(self) -> Node:
        return self.block.return_node

    def all_nodes(self) -> Iterator[Node]:
        """Return the nodes of all blocks, nested ones included."""
        return self.block.all_nodes()

    def all_nodes_with_subgraphs(self) -> Iterator[Node]:
        """Yield the nodes of all blocks, and after each node those of the graphs in its attributes."""
        for node in self.all_nodes():
            yield node
            for subgraph in subgraphs_of(node):
                yield from subgraph.all_nodes_with_subgraphs()

    def find_nodes(self, kind: str) -> list[Node]:
        """Return every node of a kind, in every block."""
        found: list[Node] = []
        self.block._collect(kind, found)
        return found

    def find_node(self, kind: str) -> Node | None:
        """Return the first node of a kind, in whichever block; None where there is none."""
        return self.block._first(kind)

    def find_value(self, name: str) -> Value | None:
        """Return the value of that name, without ``%``. Numbers of values without a name are not found here. None if
        there is no such value."""
        return self._names.get(name)

    # ---------------------------------------------------------------------------------------- changing

    def add_input(self, name: str = "", type: Type = TENSOR) -> Value:
        return self.block.add_input(name, type)

    def erase_input(self, index: int) -> None:
        """Remove an input.

        Raises:
            GraphError: there is no such input, or it is still used.
        """
        self.block.erase_input(index)

    def permute_inputs(self, order: Sequence[int]) -> None:
        """Permute the inputs: input ``order[0]`` becomes the first.

        Raises:
            GraphError: ``order`` does not name each input once.
        """
        if sorted(order) != list(range(len(self.inputs))):
            raise GraphError(f"{list(order)} is not an order of {len(self.inputs)} inputs")
        outputs = self.param_node._outputs
        outputs[:] = [outputs[index] for index in order]
        for offset, value in enumerate(outputs):
            value.offset = offset
        self.note_change()

    def add_output(self, value: AnyValue) -> int:
        return self.block.add_output(value)

    def create(
        self,
        kind: str,
        inputs: Iterable[AnyValue] = (),
        *,
        outputs: int = 1,
        types: Sequence[Type] | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
        range: SourceRange = UNKNOWN_RANGE,
    ) -> Node:
        """Create a node without inserting it. It has ``outputs`` Tensors as outputs, or one output for each of
        ``types``."""
        node = Node(self, kind, range)
        for value in inputs:
            node.add_input(value)
        for type in [TENSOR] * outputs if types is None else types:
            node.add_output(type)
        if attributes:
            node.attributes.update(attributes)
        return node

    def insert_node(self, node: Node) -> Node:
        """Insert ``node`` at the insertion point."""
        return node.insert_before(self.insert_point)

    def append_node(self, node: Node) -> Node:
        return self.block.append(node)

    def insert(
        self,
        kind: str,
        arguments: Sequence[object] = (),
        keywords: Mapping[str, object] | None = None,
        range: SourceRange = UNKNOWN_RANGE,
    ) -> Value:
        """Insert a call of a registered operator: the overload is chosen by the types of the arguments.

        Arguments are values or Python constants. Return the result; several results as a tuple.

        Raises:
            SchemaError: there is no such operator, or no overload fits; the message explains why each does not.
        """
        assert _insert_call is not None, "rekindle.ir.operators.operator_nodes was not imported"
        return _insert_call(self, kind, arguments, keywords or {}, range)

    def insert_constant(self, value: object, type: Type | None = None, range: SourceRange = UNKNOWN_RANGE) -> Value:
        """Insert ``prim::Constant``. ``type`` is inferred from ``value`` unless given.

        Raises:
            GraphError: ``value`` cannot be a constant.
        """
        return self.insert_node(self.create_constant(value, type, range)).output

    def create_constant(self, value: object, type: Type | None = None, range: SourceRange = UNKNOWN_RANGE) -> Node:
        node = self.create("prim::Constant", types=[NONE], range=range)
        attribute, inferred = constant_attribute(value)
        if attribute is not None:
            node.attributes["value"] = attribute
        node.output.type = inferred if type is None else checked_type(type)
        return node

    def create_clone(self, node: Node, value_map: Callable[[Value], Value] | None = None) -> Node:
        """Return a copy of ``node``, which may be from another graph. The copy takes the names of the outputs: values
        of this graph with these names get numeric suffixes.

        ``value_map`` returns the value here for each value that ``node`` uses. Without it, ``node`` must use none.

        Raises:
            GraphError: ``node`` uses a value, and there is no ``value_map``.
        """
        value_map = value_map or _outside
        copy = Node(self, node.kind, node.range)
        copy.callstack = node.callstack
        copy.scope = node.scope
        for value in node._inputs:
            copy.add_input(value_map(value))
        for output in node._outputs:
            made = copy.add_output(output.type)
            made.recorded_type = output.recorded_type
            if output._name:
                self._give_name(made, output._name)
        if node.attributes:
            copy.attributes = {name: _copy_attribute(attribute) for name, attribute in node.attributes.items()}
        for block in node._blocks:
            copy.add_block().clone_from(block, value_map)
        copy._operator = node._operator
        return copy

    def insert_clone(
        self, node: Node, values: dict[Value, Value], value_map: Callable[[Value], Value] | None = None
    ) -> Node:
        """Insert a copy of ``node`` at the insertion point and return it. ``values`` gets the outputs of the copy, with
        those of ``node`` as keys. ``value_map`` maps each value that ``node`` uses to the one that the copy uses; by
        default it is looked up in ``values``."""
        copy = self.insert_node(self.create_clone(node, value_map or values.__getitem__))
        values.update(zip(node._outputs, copy._outputs, strict=True))
        return copy

    def copy(self) -> Graph:
        """Return a copy that shares nothing but constants and types."""
        new = Graph()
        new.block.clone_from(self.block, _outside)
        for rewrite in self._settled:
            new.settle(rewrite)
        return new

    def insert_graph(self, callee: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Insert a copy of all nodes of ``callee`` at the insertion point, with ``inputs`` for its inputs; returns
        its outputs here.

        Raises:
            GraphError: the number of ``inputs`` is not that of ``callee``.
        """
        if len(inputs) != len(callee.inputs):
            raise GraphError(f"the graph takes {len(callee.inputs)} inputs, got {len(inputs)}")
        local: dict[Value, Value] = dict(zip(callee.inputs, inputs, strict=True))
        for node in callee.nodes:
            self.insert_clone(node, local)
        return [local[output] for output in callee.outputs]

    @contextmanager
    def inserting_before(self, node: Node, like: Node | None = None) -> Iterator[Builder]:
        """Set the insertion point before ``node`` within the ``with`` block. Yield a builder, whose nodes get the
        source location, call stack and scope of ``like``, by default ``node``. If the block raises, the unused nodes
        that it has just built are removed.

        Raises:
            GraphError: ``node`` is in no block of this graph.
        """
        if node.graph is not self or node.owning_block is None or node.kind == "prim::Param":
            raise GraphError(f"{node.kind} is in no block of this graph")
        builder = Builder(self, node if like is None else like)
        saved, self.insert_point = self.insert_point, node
        try:
            yield builder
        except BaseException:
            builder.take_out()
            raise
        finally:
            # If the saved node was destroyed, the insertion point is the end.
            self.insert_point = saved if saved.owning_block is not None else self.block.return_node

    def inserting_after(self, node: Node, like: Node | None = None) -> AbstractContextManager[Builder]:
        """Set the insertion point after ``node`` within the ``with`` block; new nodes are in the order in which they
        are made: see :meth:`inserting_before`."""
        if node.kind == "prim::Param" and node.owning_block is not None:
            return self.inserting_before(node.owning_block.return_node.next, like or node)
        return self.inserting_before(node.next, like or node)

    def inserting_at_end(self, block: Block, like: Node | None = None) -> AbstractContextManager[Builder]:
        """Set the insertion point at the end of ``block`` within the ``with`` block: see :meth:`inserting_before`."""
        return self.inserting_before(block.return_node, like)

    # --------------------------------------------------------------------------------- all or nothing

    def transaction(self) -> AbstractContextManager[None]:
        """Make edits within the ``with`` block atomic. They may pass through invalid states; at the end the graph is
        verified. If it is invalid then, or the block raises, the graph is restored: the same nodes in the same places.
        So are the graphs in attributes of its nodes.

        Raises:
            VerificationError: the edits result in an invalid graph; the message explains why.
        """
        assert _transaction is not None, "rekindle.ir.transaction was not imported"
        return _transaction(self)

    def watch(self, callback: Callable[[], None] | WeakMethod[Callable[[], None]]) -> None:
        """Register a callback, which the next change calls, once. A weak callback is skipped if its object is gone. A
        direct assignment to an attribute or a type, without ``set_attribute`` or ``set_type``, counts as a change when
        :meth:`note_change` is called."""
        watchers = self._watchers
        if len(watchers) >= _MANY and len(watchers) & (len(watchers) - 1) == 0:
            watchers[:] = [each for each in watchers if not isinstance(each, WeakMethod) or each() is not None]
        watchers.append(callback)

    def note_change(self) -> None:
        """Call the callbacks that :meth:`watch` registered, and unregister them. The methods that change inputs,
        outputs, attributes, types or the order of nodes call it, except ``Value.copy_metadata``."""
        watchers = self._watchers[:]
        self._watchers.clear()
        for each in watchers:
            callback = each() if isinstance(each, WeakMethod) else each
            if callback is not None:
                callback()

    def settle(self, rewrite: Hashable) -> None:
        """Record that ``rewrite``, such as the elimination of dead code, has nothing left to do until the graph
        changes."""
        if not self._settled:
            self.watch(self._settled.clear)
        self._settled.add(rewrite)

    def is_settled(self, rewrite: Hashable) -> bool:
        """Return whether ``rewrite`` has nothing to do, as far as that was recorded with :meth:`settle`."""
        return rewrite in self._settled

    # ------------------------------------------------------------------------------------------ inside

    def _new_block(self, node: Node) -> Block:
        return Block(self, node)

    def _forget(self, value: Value) -> None:
        if value._name:
            del self._names[value._name]

    def _give_name(self, value: Value, name: str) -> None:
        if value._name:
            del self._names[value._name]
            value._name = ""
        if not name:
            return
        owner = self._names.get(name)
        if owner is not None:
            self._rename(owner, name)
        self._names[name] = value
        value._name = name

    def _rename(self, owner: Value, name: str) -> None:
        """Rename ``owner`` to the next free name of the form ``base.N``, so that its name is free."""
        base, dot, digits = name.rpartition(".")
        if dot and digits.isdigit():
            suffix = int(digits)
        else:
            base, suffix = name, 1
        if base in self._name_suffixes:
            suffix = max(suffix, self._name_suffixes[base] + 1)
        while f"{base}.{suffix}" in self._names:
            suffix += 1
        self._name_suffixes[base] = suffix + 1
        del self._names[name]
        owner._name = f"{base}.{suffix}"
        self._names[owner._name] = owner

    def __str__(self) -> str:
        assert _node.print_text is not None, "rekindle.ir.text.printer was not imported"
        return _node.print_text(self)

    def _repr_svg_(self) -> str | None:
        """Return the graph as a picture, which notebooks show; None for a large one, which they show as text."""
        return draw.get()(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the object in IPython on a terminal."""
        printer.text(str(self))


def subgraphs_of(node: Node) -> list[Graph]:
    """Return the graphs in the attributes of ``node``."""
    return [attribute for attribute in node.attributes.values() if isinstance(attribute, Graph)]


def _outside(value: Value) -> Value:
    raise GraphError(f"%{value.name} is used outside of its scope")


def _copy_attribute(attribute: AttributeValue) -> AttributeValue:
    if isinstance(attribute, Graph):
        return attribute.copy()
    if isinstance(attribute, list):
        return [_copy_attribute(item) for item in attribute]  # type: ignore[return-value]
    return attribute


# Slots that other modules of this folder fill on import, for methods of graphs: schema matching inserts nodes, and a
# transaction verifies the graph.
_insert_call: Callable[[Graph, str, Sequence[object], Mapping[str, object], SourceRange], Value] | None = None
_transaction: Callable[[Graph], AbstractContextManager[None]] | None = None

"""Nodes, the values that they make, and the uses of these.

Nodes are elements of the blocks of a graph (:mod:`rekindle.ir.graph`), which owns them and numbers the values.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import torch

from rekindle.errors import UNKNOWN_RANGE, GraphError, SourceRange
from rekindle.ir.attributes import ConstantAttribute, constant_value, type_name
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.types.base import Type
from rekindle.ir.types.tensor import TENSOR

if TYPE_CHECKING:
    from rekindle.ir.graph import Block, Graph
    from rekindle.ir.operators.registry import Operator
    from rekindle.ir.operators.schema import FunctionSchema
    from rekindle.ir.operators.traits import Trait


AttributeValue: TypeAlias = (
    "ConstantAttribute | Graph | Type | list[int] | list[float] | list[complex] | list[str] | list[torch.Tensor]"
    " | list[Graph] | list[Type]"
)
"""int, float, complex, string, Tensor, an object, Graph, Type, and lists of all but an object."""


_VALUE_NAME: Final = re.compile(r"[^\s,:()\[\]{}#=]+(?: [^\s,:()\[\]{}#=]+)*")
"""The names that the text of a graph can contain: ``%x.1``, ``%my-key``, ``%a/b``, ``%two words``."""


def as_value_name(text: str) -> str:
    """Return ``text``, the name of an attribute, as a name of a value: with ``_`` for what that cannot contain."""
    if not _VALUE_NAME.fullmatch(text):
        text = re.sub(r"[\s,:()\[\]{}#=]", "_", text)
    return f"_{text}" if text.replace(" ", "").isdigit() else text


def checked_type(type: Type) -> Type:
    """Return ``type``.

    Raises:
        GraphError: it is not a :class:`Type`, but a string, for example.
    """
    if not isinstance(type, Type):
        raise GraphError(f"a {type_name(type)} is not a type; rekindle.ir.text.type_parser.parse_type parses a string")
    return type


class HasValue(Protocol):
    """An object that represents a value of a graph, such as a builder's proxy (:mod:`rekindle.ir.building`)."""

    @property
    def value(self) -> Value: ...


class Use(NamedTuple):
    """A place where a value is used: input ``offset`` of node ``user``."""

    user: Node
    offset: int


_use: Final[Callable[[tuple[Node, int]], Use]] = partial(tuple.__new__, Use)
"""Makes a use of a pair without a Python frame: compilation makes thousands."""


class Value:
    """Data that flows through the program; defined once, by ``node``, as its output ``offset``."""

    __slots__ = ("_name", "_uses", "node", "offset", "recorded_type", "type", "unique")

    def __init__(self, node: Node, offset: int, unique: int, type: Type = TENSOR) -> None:
        self.node = node
        self.offset = offset
        self.unique = unique
        self.type = type
        self.recorded_type: Type | None = None
        """The type of the tensor in the run that a trace recorded, with its sizes. It is shown to people and tools, and
        holds for that run alone: passes do not read it."""
        self._name = ""
        self._uses: dict[Use, None] = {}

    @property
    def graph(self) -> Graph:
        return self.node.graph

    @property
    def uses(self) -> list[Use]:
        """All uses, in the order in which they were made. A copy: it may be walked while uses change."""
        return list(self._uses)

    @property
    def has_uses(self) -> bool:
        return bool(self._uses)

    @property
    def has_name(self) -> bool:
        return bool(self._name)

    @property
    def name(self) -> str:
        """The name that the text form prints after ``%``: the one given, else the unique number."""
        return self._name or str(self.unique)

    @property
    def base_name(self) -> str:
        """The name without the number that makes it unique: ``x`` for ``x.1``; empty without a name."""
        base, dot, suffix = self._name.rpartition(".")
        return base if dot and suffix.isdigit() else self._name

    def to_python(self, default: object = None) -> object:
        """Return the Python value of a constant; ``default`` if the value is not a constant, or is a function.

        Raises:
            GraphError: the graph was parsed from a text that omits the constant's value.
        """
        if self.node.kind != "prim::Constant" or self.type.kind == "FunctionType":
            return default
        return constant_value(self.node.attributes.get("value"), self.type)

    def set_name(self, name: str) -> Value:
        """Name the value, and return it. The previous owner of the name gets a numeric suffix; the empty string removes
        the name.

        Raises:
            GraphError: ``name`` consists of digits, which are the names of values without one, or contains characters
                that names in the text of a graph cannot have.
        """
        if name.replace(" ", "").isdigit():
            raise GraphError(f"'{name}' cannot name a value: digits are the names of values without one")
        if name and not _VALUE_NAME.fullmatch(name):
            raise GraphError(f"{name!r} cannot name a value: the text of a graph cannot contain such a name")
        self.graph._give_name(self, name)
        return self

    def set_type(self, type: Type) -> Value:
        """Set the type, and return this value.

        Raises:
            GraphError: ``type`` is not a :class:`Type`, but a string, for example.
        """
        self.type = checked_type(type)
        self.node._note_change()
        return self

    def copy_metadata(self, other: Value) -> Value:
        """Copy type, recorded type and name, if there is one, of ``other``, and return this value. In the same graph,
        ``other`` then gets another name with a numeric suffix."""
        self.type = other.type
        self.recorded_type = other.recorded_type
        if other.has_name:
            self.set_name(other._name)
        return self

    def replace_all_uses_with(self, new: AnyValue) -> None:
        """Replace all uses of this value by ``new``.

        Raises:
            GraphError: ``new`` is not a value, belongs to another graph, or was destroyed.
        """
        new = value_of(new)
        self._check_same_graph(new)
        if new is self or not self._uses:
            return
        self.node._note_change()
        for use in self._uses:
            user, offset = use
            user._operator = None
            user._inputs[offset] = new
            new._uses[use] = None
        self._uses.clear()

    def replace_all_uses_after_node_with(self, node: Node, new: AnyValue) -> None:
        """Replace all uses after ``node`` (in its blocks too) with ``new``.

        Raises:
            GraphError: ``new`` is not a value of this graph, or a use is in another branch than ``node``.
        """
        new = value_of(new)
        self._check_same_graph(new)
        for use in [use for use in self._uses if use.user.is_after(node)]:
            use.user.replace_input(use.offset, new)

    def _check_same_graph(self, other: Value) -> None:
        if other.graph is not self.graph:
            raise GraphError(f"%{other.name} belongs to another graph than %{self.name}")
        other._check_alive()

    def _check_alive(self) -> None:
        outputs = self.node._outputs
        if self.offset >= len(outputs) or outputs[self.offset] is not self:
            raise GraphError(f"%{self.name} is gone: its {self.node.kind} was destroyed, or makes it no more")

    def __repr__(self) -> str:
        return f"%{self.name} : {self.type}"


AnyValue: TypeAlias = Value | HasValue
"""A value, or an object that represents one, such as a proxy."""


def value_of(item: object) -> Value:
    """Return ``item``, a value, or the value that it represents.

    Raises:
        GraphError: ``item`` neither is a value nor represents one.
    """
    if isinstance(item, Value):
        return item
    # A class of something else may answer any name, as the proxies of torch.fx do: ask the class.
    if isinstance(getattr(type(item), "value", None), property):
        found = item.value  # type: ignore[attr-defined]
        if isinstance(found, Value):
            return found
    raise GraphError(f"a {type(item).__qualname__} is not a value of a graph; make a constant of it first")


class Node:
    """One operation: a ``kind`` (``aten::mm``), inputs, outputs, attributes and sub-blocks."""

    __slots__ = (
        *("_blocks", "_inputs", "_next", "_operator", "_outputs", "_position", "_prev"),
        *("attributes", "graph", "kind", "owning_block", "range", "callstack", "scope"),
    )

    def __init__(self, graph: Graph, kind: str, range: SourceRange = UNKNOWN_RANGE) -> None:
        self.graph = graph
        self.kind = sys.intern(kind)
        self.range = range
        self.attributes: dict[str, AttributeValue] = {}
        self.owning_block: Block | None = None
        self.callstack: tuple[tuple[str, SourceRange], ...] = ()
        self.scope = ""
        """The module that a traced node belongs to: ``__module.encoder``."""
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []
        self._blocks: list[Block] = []
        self._next: Node | None = None
        self._prev: Node | None = None
        self._position = 0
        self._operator: Operator | str | None = None
        """The operator, once it has been looked up; before that its name, if it is known from a file."""

    # ----------------------------------------------------------------------------------------- reading

    @property
    def inputs(self) -> Sequence[Value]:
        return self._inputs

    @property
    def outputs(self) -> Sequence[Value]:
        return self._outputs

    @property
    def blocks(self) -> Sequence[Block]:
        return self._blocks

    @property
    def input(self) -> Value:
        """The only input.

        Raises:
            GraphError: the node has no input, or several.
        """
        if len(self._inputs) != 1:
            raise GraphError(f"{self.kind} has {len(self._inputs)} inputs, not one")
        return self._inputs[0]

    @property
    def output(self) -> Value:
        """The only output.

        Raises:
            GraphError: the node has no output, or several.
        """
        if len(self._outputs) != 1:
            raise GraphError(f"{self.kind} has {len(self._outputs)} outputs, not one")
        return self._outputs[0]

    @property
    def next(self) -> Node:
        """The next node; after the last, the block's return node.

        Raises:
            GraphError: the node is in no block.
        """
        if self._next is None:
            raise GraphError(f"{self.kind} is in no block")
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; the block's return node before the first.

        Raises:
            GraphError: the node is in no block.
        """
        if self._prev is None:
            raise GraphError(f"{self.kind} is in no block")
        return self._prev

    def named_input(self, name: str) -> Value:
        """Return the input that the operator's schema calls ``name``.

        Raises:
            GraphError: there is no operator known, or it has no such argument.
        """
        index = None if self.schema is None else self.schema.argument_index(name)
        if index is None or index >= len(self._inputs):
            raise GraphError(f"{self.kind} has no input '{name}'")
        return self._inputs[index]

    @property
    def in_block(self) -> bool:
        """Whether the node has been inserted."""
        return self._next is not None

    @property
    def is_destroyed(self) -> bool:
        return self._prev is self and self._next is None

    @property
    def has_uses(self) -> bool:
        return any(output._uses for output in self._outputs)

    def __getitem__(self, name: str) -> AttributeValue:
        """Return the attribute ``name``.

        Raises:
            GraphError: the node has no such attribute.
        """
        try:
            return self.attributes[name]
        except KeyError:
            raise GraphError(f"{self.kind} has no attribute '{name}'") from None

    def get_string(self, name: str) -> str:
        """Return the attribute ``name``, a string.

        Raises:
            GraphError: the node has no such attribute, or it is not a string.
        """
        value = self[name]
        if not isinstance(value, str):
            raise GraphError(f"attribute '{name}' of {self.kind} is not a string")
        return value

    def get_graph(self, name: str) -> Graph:
        """Return the attribute ``name``, a graph.

        Raises:
            GraphError: the node has no such attribute, or it is not a graph.
        """
        value = self[name]
        if not isinstance(value, type(self.graph)):
            raise GraphError(f"attribute '{name}' of {self.kind} is not a graph")
        return value

    @property
    def operator(self) -> Operator | None:
        """The registered operator that this node calls, by its kind and the types of its inputs; None if there is
        none."""
        found = self._operator
        if found is None or isinstance(found, str):
            found = self._operator = REGISTRY.find(found) if found else REGISTRY.resolve(self)
        return found

    @property
    def schema(self) -> FunctionSchema | None:
        operator = self.operator
        return None if operator is None else operator.schema

    def has_trait(self, trait: Trait) -> bool:
        """Return whether the operator that this node calls is known, and has ``trait``."""
        operator = self.operator
        return operator is not None and trait in operator.traits

    # ---------------------------------------------------------------------------------------- changing

    def set_attribute(self, name: str, value: AttributeValue) -> Node:
        self.attributes[name] = value
        self._note_change()
        return self

    def remove_attribute(self, name: str) -> None:
        """Remove the attribute ``name``.

        Raises:
            GraphError: there is none.
        """
        if name not in self.attributes:
            raise GraphError(f"{self.kind} has no attribute '{name}'")
        del self.attributes[name]
        self._note_change()

    def set_range(self, range: SourceRange) -> Node:
        self.range = range
        return self

    def set_operator(self, operator: Operator | None) -> Node:
        """Set the overload that this node calls, without checking it. With None, and after a change of inputs, it is
        resolved from the types of the inputs. Return this node."""
        self._operator = operator
        return self

    def add_input(self, value: AnyValue) -> Value:
        value = self._checked(value)
        self._operator = None
        inputs = self._inputs
        value._uses[_use((self, len(inputs)))] = None
        inputs.append(value)
        return value

    def insert_input(self, index: int, value: AnyValue) -> Value:
        value = self._checked(value)
        self._check_index(index, len(self._inputs) + 1, "input")
        self._operator = None
        for offset in reversed(range(index, len(self._inputs))):
            moved = self._inputs[offset]
            del moved._uses[_use((self, offset))]
            moved._uses[_use((self, offset + 1))] = None
        self._inputs.insert(index, value)
        value._uses[_use((self, index))] = None
        return value

    def replace_input(self, index: int, value: AnyValue) -> Value:
        """Use ``value`` as input ``index``. Return the previous input.

        Raises:
            GraphError: there is no such input, or ``value`` is not a value of this graph.
        """
        value = self._checked(value)
        self._check_index(index, len(self._inputs), "input")
        old = self._inputs[index]
        if old is not value:
            self._operator = None
            use = _use((self, index))
            del old._uses[use]
            self._inputs[index] = value
            value._uses[use] = None
        return old

    def replace_input_with(self, old: Value, new: AnyValue) -> None:
        """Use ``new`` wherever ``old`` is an input."""
        for index, value in enumerate(self._inputs):
            if value is old:
                self.replace_input(index, new)

    def remove_input(self, index: int) -> None:
        self._check_index(index, len(self._inputs), "input")
        self._note_change()
        self._operator = None
        removed = self._inputs.pop(index)
        del removed._uses[_use((self, index))]
        for offset in range(index, len(self._inputs)):
            moved = self._inputs[offset]
            del moved._uses[_use((self, offset + 1))]
            moved._uses[_use((self, offset))] = None

    def remove_all_inputs(self) -> None:
        if self.graph._watchers:
            self.graph.note_change()
        self._operator = None
        for offset, value in enumerate(self._inputs):
            del value._uses[_use((self, offset))]
        self._inputs.clear()

    def add_output(self, type: Type = TENSOR) -> Value:
        if self.graph._watchers:
            self.graph.note_change()
        graph, outputs = self.graph, self._outputs
        value = Value(self, len(outputs), graph._next_unique, type)
        graph._next_unique += 1
        outputs.append(value)
        return value

    def insert_output(self, index: int, type: Type = TENSOR) -> Value:
        self._check_index(index, len(self._outputs) + 1, "output")
        self._note_change()
        value = Value(self, index, self.graph._next_unique, type)
        self.graph._next_unique += 1
        self._outputs.insert(index, value)
        for offset in range(index + 1, len(self._outputs)):
            self._outputs[offset].offset = offset
        return value

    def erase_output(self, index: int) -> None:
        """Remove an output.

        Raises:
            GraphError: there is no such output, or it is still used.
        """
        self._check_index(index, len(self._outputs), "output")
        value = self._outputs[index]
        if value._uses:
            raise GraphError(f"output %{value.name} of {self.kind} is still used")
        self._note_change()
        del self._outputs[index]
        self.graph._forget(value)
        for offset in range(index, len(self._outputs)):
            self._outputs[offset].offset = offset

    def add_block(self) -> Block:
        self._note_change()
        block = self.graph._new_block(self)
        self._blocks.append(block)
        return block

    def erase_block(self, index: int) -> None:
        """Remove a block and all nodes in it. An insertion point in the block moves to after this node.

        Raises:
            GraphError: there is no such block, or a value in it is used outside.
        """
        self._check_index(index, len(self._blocks), "block")
        block = self._blocks[index]
        if block.contains(self.graph.insert_point):
            self.graph.insert_point = self.next if self.in_block else self.graph.block.return_node
        block._destroy_contents()
        del self._blocks[index]

    def replace_all_uses_with(self, other: Node) -> None:
        """Replace all uses of each output by the output of ``other`` at the same index.

        Raises:
            GraphError: ``other`` has another number of outputs.
        """
        if len(self._outputs) != len(other._outputs):
            raise GraphError(f"{other.kind} has {len(other._outputs)} outputs, {self.kind} {len(self._outputs)}")
        for old, new in zip(self._outputs, other._outputs, strict=True):
            old.replace_all_uses_with(new)

    def _check_index(self, index: int, end: int, what: str) -> None:
        if not 0 <= index < end:
            raise GraphError(f"{self.kind} has no {what} {index}")

    def _checked(self, item: AnyValue) -> Value:
        """Return the value that ``item`` represents, which is about to become an input. Notify the graph's watchers.

        Raises:
            GraphError: the value belongs to another graph, or was destroyed.
        """
        value = item if isinstance(item, Value) else value_of(item)
        node, graph = value.node, self.graph
        if node.graph is not graph:
            raise GraphError(f"%{value.name} belongs to another graph than {self.kind}")
        if not node._outputs or node._outputs[0] is not value:  # or it is not the only one
            value._check_alive()
        if graph._watchers:
            graph.note_change()
        return value

    def _note_change(self) -> None:
        if self.graph._watchers:
            self.graph.note_change()

    # ------------------------------------------------------------------------------------------ moving

    def insert_before(self, other: Node) -> Node:
        """Insert this new node before ``other``.

        Raises:
            GraphError: ``other`` is in no block or in another graph, or this node is in a block already or was
                destroyed.
        """
        if other.owning_block is None:
            raise GraphError(f"cannot insert {self.kind} before {other.kind}, which is in no block")
        if other.graph is not self.graph:
            raise GraphError(f"{self.kind} and {other.kind} belong to different graphs")
        return self._link(other.prev, other)

    def insert_after(self, other: Node) -> Node:
        """Insert this new node after ``other``; after a block's return node means at its start.

        Raises:
            GraphError: ``other`` is in no block or in another graph, or this node is in a block already or was
                destroyed.
        """
        if other.owning_block is None:
            raise GraphError(f"cannot insert {self.kind} after {other.kind}, which is in no block")
        if other.kind == "prim::Param":
            other = other.owning_block.return_node
        if other.graph is not self.graph:
            raise GraphError(f"{self.kind} and {other.kind} belong to different graphs")
        return self._link(other, other.next)

    def _link(self, preceding: Node, following: Node) -> Node:
        """Insert this new node between two neighbors. Its position is a number between theirs; they are renumbered if
        there is no room.

        Raises:
            GraphError: the node is in a block already, or was destroyed.
        """
        if self._next is not None:
            raise GraphError(f"{self.kind} is in a block already; move it instead")
        if self._prev is self:
            raise GraphError(f"this {self.kind} was destroyed; make another: graph.create_clone")
        if self.graph._watchers:
            self.graph.note_change()
        self.owning_block = block = following.owning_block
        assert block is not None
        preceding._next = following._prev = self
        self._prev, self._next = preceding, following
        end = block.return_node
        if following is end:
            self._position = (FIRST_POSITION if preceding is end else preceding._position) + POSITION_GAP
        elif preceding is end:
            self._position = following._position - POSITION_GAP
        else:
            self._position = (preceding._position + following._position) // 2
            if self._position == preceding._position:
                block._make_room(self)
        return self

    def move_before(self, other: Node) -> None:
        if other is not self:
            self._check_move(other)
            self._unlink()
            self.insert_before(other)

    def move_after(self, other: Node) -> None:
        if other is not self:
            self._check_move(other)
            self._unlink()
            self.insert_after(other)

    def _check_move(self, other: Node) -> None:
        if not self.in_block or self.kind == "prim::Return":
            where = "belongs to its block" if self.owning_block is not None else "is in no block; insert it instead"
            raise GraphError(f"cannot move {self.kind}: it {where}")
        if other.owning_block is None:
            raise GraphError(f"cannot move {self.kind} to {other.kind}, which is in no block")
        if other.graph is not self.graph:
            raise GraphError(f"{self.kind} and {other.kind} belong to different graphs")
        block: Block | None = other.owning_block
        while block is not None:
            if block.owning_node is self:
                raise GraphError(f"cannot move {self.kind} into a block of its own")
            block = block.parent

    def _unlink(self) -> None:
        if self.graph._watchers:
            self.graph.note_change()
        before, after = self._prev, self._next
        assert before is not None
        assert after is not None
        before._next, after._prev = after, before
        self._next = self._prev = None
        self.owning_block = None

    def replace_with(self, *values: AnyValue) -> None:
        """Replace all uses of the outputs by ``values``, and destroy the node.

        Raises:
            GraphError: the number of ``values`` is not that of the outputs.
        """
        if len(self._outputs) != len(values):
            raise GraphError(f"{self.kind} has {len(self._outputs)} outputs, got {len(values)} values")
        for output, value in zip(self._outputs, values, strict=True):
            output.replace_all_uses_with(value)
        self.destroy()

    def destroy(self) -> None:
        """Remove the node and all nodes in its blocks. An insertion point at the node moves to the next one.

        Raises:
            GraphError: an output is still used, or the node is the parameter or return node of a block. If an output of
                a node in one of its blocks is still used elsewhere, later nodes of that block have been destroyed.
        """
        if self.kind in ("prim::Param", "prim::Return") and self.owning_block is not None:
            raise GraphError(f"cannot destroy {self.kind}: it belongs to its block")
        for output in self._outputs:
            if output._uses:
                raise GraphError(
                    f"cannot destroy {self.kind}: %{output.name} is still used by {output.uses[0].user.kind}"
                )
        while self._blocks:
            self.erase_block(len(self._blocks) - 1)
        self.remove_all_inputs()
        for output in self._outputs:
            if output._name:
                self.graph._forget(output)
        self._outputs.clear()
        if self._next is not None:
            if self.graph.insert_point is self:
                self.graph.insert_point = self.next
            self._unlink()
        self._prev = self  # what marks it as gone

    # ------------------------------------------------------------------------------------------- order

    def is_before(self, other: Node) -> bool:
        """Return whether this node runs before ``other``; a node counts as before those in its own blocks.

        Raises:
            GraphError: the two are in different branches, or in different graphs.
        """
        if self is other:
            return False
        mine, theirs = self.ancestors(), other.ancestors()
        for a, b in zip(reversed(mine), reversed(theirs), strict=False):
            if a.owning_block is not b.owning_block:
                raise GraphError(f"{self.kind} and {other.kind} are in different branches")
            if a is not b:
                return _position(a) < _position(b)
        return len(mine) < len(theirs)

    def is_after(self, other: Node) -> bool:
        return self is not other and not self.is_before(other)

    def ancestors(self) -> list[Node]:
        """Return the node and the nodes around it, the innermost first."""
        found = [self]
        block = self.owning_block
        while block is not None and block.owning_node is not None:
            found.append(block.owning_node)
            block = block.owning_node.owning_block
        return found

    def contains(self, other: Node) -> bool:
        """Return whether ``other`` is in a block of this node, at any depth."""
        return any(block.contains(other) for block in self._blocks)

    def inner_nodes(self) -> Iterator[Node]:
        """Yield every node in the blocks of this one."""
        for block in self._blocks:
            yield from block.all_nodes()

    def used_values(self) -> Iterator[Value]:
        """Yield the values that this node and those in its blocks use, in textual order, including values that the
        blocks define."""
        yield from self._inputs
        for block in self._blocks:
            for node in block.nodes:
                yield from node.used_values()
            yield from block.outputs

    def __str__(self) -> str:
        """Return the node and its blocks in the text form, line ends included."""
        assert print_text is not None, "rekindle.ir.text.printer was not imported"
        return print_text(self)

    def __repr__(self) -> str:
        outputs = ", ".join(f"%{output.name} : {output.type}" for output in self._outputs)
        inputs = ", ".join(f"%{value.name}" for value in self._inputs)
        return f"<{outputs} = {self.kind}({inputs})>"


FIRST_POSITION = 0
POSITION_GAP = 1 << 40
"""Between the positions of two neighbors that are appended one after the other: room for forty nodes in one place."""


def _position(node: Node) -> float:
    if node.kind == "prim::Param":
        return float("-inf")
    if node.kind == "prim::Return":
        return float("inf")
    return node._position


print_text: Callable[[Node | Graph], str] | None = None
"""A slot: the text form of a node or a graph, for ``__str__``. The printer, which reads nodes, fills it on import."""

"""Functionalization: replace writes to tensors and lists with operators that return new ones, so that the program is
differentiable.

.. code-block:: text

    %y : Tensor = aten::clone(%x, %none)              %y : Tensor = aten::clone(%x, %none)
    %1 : Tensor = aten::select(%y, %0, %i)            %1 : Tensor = aten::select(%y, %0, %i)
    %2 : Tensor = aten::mul_(%1, %w)         becomes  %2 : Tensor = aten::mul(%1, %w)
    return (%y)                                       %3 : Tensor = aten::select_scatter(%y, %2, %0, %i)
                                                      return (%3)

Every alias of a written tensor (itself, the result of the write, views) is recomputed from its value after the write,
within branches and loop iterations too. If another value may share the memory, and is used after the write, its
contents are unknown. Such programs are rejected, and so are those that write to their arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import may_write
from rekindle.autodiff.functionalization.operators import (
    apply_view_inverse,
    functional_variant,
    view_base,
    written_operand,
)
from rekindle.errors import DifferentiationError, GraphError
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ir.types import TENSOR, ListType, TensorType, Type


def functionalize(graph: Graph) -> None:
    """Rewrite ``graph``, in which calls are inlined, so that it writes to nothing.

    Raises:
        DifferentiationError: the graph writes to an argument or an attribute, to memory that other values may share, or
            by an operator without a functional variant.
    """
    if any(may_write(node) for node in graph.all_nodes()):
        memory = _Memory(graph)
        _Functional(graph, memory, _ViewBases(graph, memory)).run()


@dataclass(slots=True)
class _CurrentValues:
    """The current versions of values that were written to, at one point of the program."""

    now: dict[Value, Value] = field(default_factory=dict)
    """Current versions of written values."""
    stale: dict[Value, Node] = field(default_factory=dict)
    """Values whose contents are unknown, with the node that wrote to memory that they may share."""

    def copy(self) -> _CurrentValues:
        return _CurrentValues(dict(self.now), dict(self.stale))


class _Memory:
    """The alias database, without the memory of uninitialized values, which hold nothing."""

    def __init__(self, graph: Graph) -> None:
        self.aliases = AliasDb(graph)
        nothing = 0
        for node in graph.find_nodes("prim::Uninitialized"):
            nothing |= self.aliases.reachable(node.output)
        self._known = ~nothing
        self.written = self.aliases.written & self._known
        self.outside = self.aliases.wildcard_memory & self._known

    def of(self, value: Value) -> int:
        """Return the memory locations that ``value`` may be, as a bit set."""
        return self.aliases.memory(value) & self._known

    def reachable(self, value: Value) -> int:
        """Return the memory locations that ``value`` may be, or hold, as a bit set."""
        return self.aliases.reachable(value) & self._known


class _ViewBases:
    """The base of each value in the original program: itself, or the value that it is a view of."""

    def __init__(self, graph: Graph, memory: _Memory) -> None:
        self.memory = memory
        self.before: dict[Value, Value] = {}
        """The predecessor of each alias: for a view its base, for the result of a write the written value."""
        self.escapes: dict[Value, list[Node]] = {}
        """By view base, the nodes through which another value may alias the base: they put it into a container, return
        it from a block, or forward it."""
        for node in graph.all_nodes():
            base = view_base(node) or (written_operand(node) if _returns_written(node) else None)
            if base is not None:
                self.before[node.output] = base
        for block in _blocks(graph.block):
            for node in (*block.nodes, block.return_node):
                for index, value in enumerate(node.inputs):
                    if self._escapes_by(value, node, index):
                        self.escapes.setdefault(self.of(value), []).append(node)

    def of(self, value: Value) -> Value:
        while value in self.before:
            value = self.before[value]
        return value

    def _escapes_by(self, value: Value, node: Node, index: int) -> bool:
        memory = self.memory.of(value)
        if not memory & self.memory.written:
            return False
        if node.kind in ("prim::Return", "prim::Loop"):
            return True
        written = written_operand(node)
        if view_base(node) is not None or (written is not None and index == 0):
            return False
        return written is not None or any(self.memory.reachable(output) & memory for output in node.outputs)

    def is_unaliased(self, whole: Value, node: Node) -> bool:
        """Return whether ``whole`` is a new value that no other value aliases when ``node`` runs."""
        return _is_new(whole) and not any(_comes_before(other, node, whole) for other in self.escapes.get(whole, ()))


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for node in block.nodes:
        for inner in node.blocks:
            yield from _blocks(inner)


def _is_new(whole: Value) -> bool:
    node = whole.node
    if node.kind in ("prim::ListConstruct", "prim::DictConstruct"):
        return True
    operator = node.operator
    if (
        operator is None
        or node.blocks
        or operator.may_alias_inputs
        or operator.effects is not AliasAnalysisKind.FROM_SCHEMA
    ):
        return False
    returns = operator.schema.returns
    return len(returns) == len(node.outputs) and returns[whole.offset].alias is None


def _runs_before(first: Node, second: Node) -> bool:
    try:
        return first.is_before(second)
    except GraphError:
        return False  # they are in different branches


def _comes_before(other: Node, node: Node, whole: Value) -> bool:
    """Return whether ``other`` may run after the creation of ``whole`` and before ``node``."""
    if other.kind == "prim::Return":
        ends = other.owning_block
        assert ends is not None
        if not ends.contains(node) and ends.owning_node is not None and _runs_before(ends.owning_node, node):
            return True
    elif other is node or _runs_before(other, node):
        return True
    block = node.owning_block
    while block is not None and block.owning_node is not None and not block.contains(whole.node):
        if block.owning_node.kind == "prim::Loop" and block.contains(other):
            return True
        block = block.parent
    return False


def _returns_written(node: Node) -> bool:
    if node.kind == "aten::add_" and isinstance(node.output.type, ListType):
        return True  # whose schema does not say so
    schema = node.schema
    if schema is None or len(schema.returns) != 1:
        return False
    alias = schema.returns[0].alias
    return alias is not None and alias.is_write


@dataclass(slots=True, eq=False)
class _Functional:
    graph: Graph
    memory: _Memory
    made: _ViewBases
    state: _CurrentValues = field(default_factory=_CurrentValues)
    wholes: list[Value] = field(default_factory=list)
    """The values visited so far whose memory is written to somewhere in the program."""
    made_of: dict[Value, Value] = field(default_factory=dict)
    """For each view, the version of its base when the view was created."""
    replaced: dict[Value, Value] = field(default_factory=dict)
    gone: list[Node] = field(default_factory=list)
    used: list[tuple[Value, Node]] = field(default_factory=list)

    def run(self) -> None:
        self._see(self.graph.inputs)
        self._block(self.graph.block)
        for node in reversed(self.gone):
            node.destroy()

    # ----------------------------------------------------------------------------------------------------------- values

    def _see(self, values: Sequence[Value]) -> None:
        for value in values:
            if self.memory.reachable(value) & self.memory.written:
                self.wholes.append(value)

    def _now(self, value: Value, user: Node) -> Value:
        """Return the current version of ``value`` at its use by ``user``."""
        found = self.replaced.get(value)
        if found is not None:
            return found
        if value.node.kind == "prim::Uninitialized":
            return value  # which nothing reads
        if value not in self.made.before and not self.memory.reachable(value) & self.memory.written:
            return value
        whole = self.made.of(value)
        self.used.append((whole, user))
        writer = self.state.stale.get(whole)
        if writer is not None:
            raise _ambiguous(writer, user)
        current = self.state.now.get(whole, whole)
        if value is whole:
            return current
        node = value.node
        if value not in self.made_of:  # what a write returns
            return self._now(self.made.before[value], user)
        if self.made_of[value] is current:
            return value
        base, now = view_base(node), self._now(self.made.before[value], user)
        clone = self.graph.create_clone(node, lambda each: now if each is base else each)
        return clone.insert_before(user).output

    # ------------------------------------------------------------------------------------------------------------ nodes

    def _block(self, block: Block) -> None:
        for node in list(block.nodes):
            if node.kind == "prim::If":
                self._inputs(node)
                self._branches(node)
            elif node.kind == "prim::Loop":
                self._inputs(node)
                self._loop(node)
            elif (written := written_operand(node)) is not None:
                self._write(node, written)
            elif may_write(node) and self.memory.aliases.writes_to(node):
                raise _refusal(node, _WRITES.get(node.kind, f"{node.kind} may write to what it is given"))
            else:
                self._inputs(node)
                if view_base(node) is not None:
                    whole = self.made.of(node.output)
                    self.made_of[node.output] = self.state.now.get(whole, whole)
            self._see(node.outputs)
        self._inputs(block.return_node)

    def _inputs(self, node: Node) -> None:
        for index, value in enumerate(list(node.inputs)):
            now = self._now(value, node)
            if now is not value:
                node.replace_input(index, now)

    def _write(self, node: Node, written: Value) -> None:
        whole = self.made.of(written)
        memory = self.memory.of(written)
        if memory & self.memory.outside:
            if whole.node is self.graph.param_node:
                raise _refusal(node, "the program writes to an argument", hint="write to a clone of it")
            raise _refusal(
                node,
                "the program writes to something that others may read",
                hint="write to a clone of it; modules in eval mode leave their buffers as they are",
            )
        arguments = [self._now(value, node) for value in node.inputs]
        with self.graph.inserting_before(node):
            form = functional_variant(self.graph, node, arguments)
            if form is None:
                raise _refusal(node, f"there is no form of {node.kind} that writes to nothing")
            new, results = form
            value = written
            while value is not whole:
                before = self.made.before[value]
                if value in self.made_of:
                    base = self._now(before, node)
                    put = apply_view_inverse(self.graph, value.node, base, new)
                    if put is None:
                        raise _refusal(node, f"what is written to is a view made by {value.node.kind}")
                    new = put
                value = before
        self.state.now[whole] = new
        self.replaced.update(results)
        self._make_stale(whole, memory, node)
        self.gone.append(node)

    def _make_stale(self, whole: Value, memory: int, writer: Node) -> None:
        if self.made.is_unaliased(whole, writer):
            return
        for other in self.wholes:
            if self.made.of(other) is not whole and self.memory.reachable(other) & memory:
                self.state.stale.setdefault(other, writer)

    # ---------------------------------------------------------------------------------------------------- control flow

    def _branches(self, node: Node) -> None:
        before = self.state
        after: list[_CurrentValues] = []
        for block in node.blocks:
            self.state = before.copy()
            self._block(block)
            after.append(self.state)
        self.state = before
        for state in after:
            before.stale.update(state.stale)
        for whole in self._written_in(node):
            output = node.add_output(_plain(whole))
            for block, state in zip(node.blocks, after, strict=True):
                block.add_output(state.now.get(whole, whole))
            before.now[whole] = output

    def _loop(self, node: Node) -> None:
        (block,) = node.blocks
        self._see(block.inputs)
        carried = list(self._written_in(node))
        for whole in carried:
            node.add_input(self._now(whole, node))
            self.state.now[whole] = block.add_input(type=_plain(whole))
        before = self.state.copy()
        first = len(self.used)
        self._block(block)
        for whole, user in self.used[first:]:
            writer = self.state.stale.get(whole)
            is_outside = whole.node is not block.param_node and not block.contains(whole.node)
            if writer is not None and is_outside and whole not in before.stale:
                raise _ambiguous(writer, user)  # in the next iteration
        for whole in carried:
            block.add_output(self.state.now[whole])
            self.state.now[whole] = node.add_output(_plain(whole))
        known = {whole: self.state.now[whole] for whole in carried}
        self.state.now = {**before.now, **known}

    def _written_in(self, node: Node) -> dict[Value, None]:
        """Return the view bases that are created outside of ``node`` and written to in its blocks, in order."""
        found: dict[Value, None] = {}
        pending = list(node.blocks)
        while pending:
            for inner in pending.pop().nodes:
                pending += inner.blocks
                if (written := written_operand(inner)) is not None:
                    whole = self.made.of(written)
                    if not any(block.contains(whole.node) or whole.node is block.param_node for block in node.blocks):
                        found[whole] = None
        return found


def _plain(whole: Value) -> Type:
    """Return the type of ``whole`` without dtypes and sizes."""
    return TENSOR if isinstance(whole.type, TensorType) else whole.type


_WRITES: Final[dict[str, str]] = {
    "prim::SetAttr": "it writes to an attribute of an object",
    "prim::CallMethod": "it is not known which method is called here, and it may write to its arguments",
    "prim::PythonOp": "Python code may write to what it is given",
}


def _refusal(node: Node, message: str, hint: str | None = None) -> DifferentiationError:
    return DifferentiationError(
        f"gradients cannot go back through this write: {message}",
        node.range,
        hint=hint or "compute a new value instead of writing to one",
    )


def _ambiguous(writer: Node, user: Node) -> DifferentiationError:
    where = f"in line {user.range.original.line}" if user.range.is_known else "later"
    return _refusal(
        writer,
        f"the value used {where} may or may not alias the tensor that is written to",
        hint="write to a clone without other references",
    )

"""Replace in-place operators on non-escaping tensors and lists with functional operators.

.. code-block:: text

    %y : Float(*) = aten::mul(%x, %two)                  %y : Float(*) = aten::mul(%x, %two)
    %z : Float(*) = aten::sigmoid_(%y)                   %z : Float(*) = aten::sigmoid(%y)
    %l : Tensor[] = prim::ListConstruct(%x)   becomes
    %m : Tensor[] = aten::append(%l, %z)                 %l : Tensor[] = prim::ListConstruct(%x, %z)
    return (%y, %l)                                      return (%z, %l)

    %l : Tensor[] = prim::ListConstruct(%x)              %k : Tensor[] = prim::ListConstruct(%x)
    %y : Tensor = aten::cat(%l, %zero)        becomes    %y : Tensor = aten::cat(%k, %zero)
    %m : Tensor[] = aten::append(%l, %y)                 %l : Tensor[] = prim::ListConstruct(%x, %y)
    return (%l)                                          return (%l)

A write to a tensor is replaced if the tensor was created in the same block, and no view, list, attribute or caller
refers to it. The write must keep its dtype and sizes (:mod:`rekindle.passes.simplification.functional_variants`). A
write to a list is replaced if the list was created in the same block, and only concatenations read it in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_int
from rekindle.analysis.effects import (
    CONTROL_FLOW,
    DEFERRED_SUBGRAPH_KINDS,
    FORWARDING_KINDS,
    FRESH_VALUE_KINDS,
    writes_modes,
)
from rekindle.analysis.type_propagation import may_reshape
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.passes.simplification.functional_variants import functional_kind
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class RemoveMutation:
    '''Replace in-place operators on non-escaping values with functional ones. The docstring of the module shows the IR
    before and after.

    ``remove_tensor_mutation`` and ``remove_list_mutation`` select whether writes to tensors and to lists are replaced.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import RemoveMutation, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = aten::neg(%x)
        ...   %2 : Tensor = aten::relu_(%1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [RemoveMutation()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %1 : Tensor = aten::neg(%x)
          %4 : Tensor = aten::relu(%1)
          return (%4)
    '''

    name: ClassVar[str] = "remove_mutation"
    remove_tensor_mutation: bool = True
    remove_list_mutation: bool = True

    def run(self, graph: Graph) -> bool:
        changed = self.remove_list_mutation and _fold_into_lists(graph.block)
        if self.remove_tensor_mutation:
            changed |= _TensorMutation(graph).run()
        return changed


# ---------------------------------------------------------------------------------------------------------------- lists


def _fold_into_lists(block: Block) -> bool:
    changed = False
    unseen: set[Value] = set()
    """Lists made in this block that nothing has read so far."""
    for node in block.nodes:
        for inner in node.blocks:
            changed |= _fold_into_lists(inner)
        if node.kind == "prim::ListConstruct":
            unseen.difference_update(node.inputs)
            unseen.add(node.output)
        elif unseen and (_fold(node, unseen) or _read_contents(node, unseen)):
            changed = True
        elif unseen:
            unseen.difference_update(node.used_values())
    return changed


_READS: Final = frozenset({"aten::cat", "aten::stack"})
"""Operators that read the items of a list of tensors, and do not keep it."""


def _read_contents(node: Node, unseen: set[Value]) -> bool:
    """Replace a list that is mutated later, as operand of a node that reads it, by a list of its current elements.
    Return whether it was replaced."""
    if node.kind not in _READS:
        return False
    read = node.inputs[0]
    if read not in unseen or not any(_writes_later(use.user, node) for use in read.uses):
        return False
    if not may_change("read the contents of a list in", node):
        return False
    contents = node.graph.create("prim::ListConstruct", list(read.node.inputs), types=[read.type], range=node.range)
    node.replace_input(0, contents.insert_before(node).output)
    return True


def _writes_later(user: Node, node: Node) -> bool:
    return user.kind in _WRITES and user.owning_block is node.owning_block and node.is_before(user)


@dataclass(slots=True)
class _Contents:
    """The contents of a list, and the item that was removed last."""

    items: list[Value]
    popped: Value | None = None


def _fold(node: Node, unseen: set[Value]) -> bool:
    """Fold the write of ``node`` to a list into the node that makes the list. Return whether that was done."""
    write = _WRITES.get(node.kind)
    if write is None:
        return False
    written, *others = node.inputs
    made = written.node
    contents = _Contents(list(made.inputs))
    if written not in unseen or not write(node, contents, unseen):
        return False
    result = made.output if contents.popped is None else contents.popped
    is_used = bool(node.outputs) and node.output.has_uses
    if (is_used and node.output.type != result.type) or not may_change("fold into its list", node):
        return False
    unseen.difference_update(others)
    made.move_before(node)
    made.remove_all_inputs()
    for item in contents.items:
        made.add_input(item)
    if is_used:
        node.output.replace_all_uses_with(result)
    node.destroy()
    return True


_Write = Callable[[Node, _Contents, set[Value]], bool]
"""Changes the contents as the node changes the list, if that is known before it runs."""


def _append(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    _, item = node.inputs
    contents.items.append(item)
    return True


def _extend(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    _, other = node.inputs
    is_as_made = other.node.kind == "prim::ListConstruct" and len(other.uses) == 1
    if other not in unseen and not is_as_made:
        return False
    contents.items.extend(other.node.inputs)
    return True


def _set_item(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    _, at, item = node.inputs
    index = _index_in(at, contents)
    if index is None:
        return False
    contents.items[index] = item
    return True


def _index_in(at: Value, contents: _Contents) -> int | None:
    index, length = constant_int(at), len(contents.items)
    return index if index is not None and -length <= index < length else None


def _insert(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    _, at, item = node.inputs
    index = constant_int(at)
    if index is None:
        return False
    contents.items.insert(index, item)
    return True


def _pop(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    index = _index_in(node.named_input("idx"), contents)
    if index is None:
        return False
    contents.popped = contents.items.pop(index)
    return True


def _clear(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    contents.items.clear()
    return True


def _reverse(node: Node, contents: _Contents, unseen: set[Value]) -> bool:
    contents.items.reverse()
    return True


_WRITES: Final[dict[str, _Write]] = {
    "aten::append": _append,
    "aten::extend": _extend,
    "aten::add_": _extend,
    "aten::_set_item": _set_item,
    "aten::insert": _insert,
    "aten::pop": _pop,
    "aten::clear": _clear,
    "aten::reverse": _reverse,
}


# -------------------------------------------------------------------------------------------------------------- tensors


class _TensorMutation:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._aliases: AliasDb | None = None

    @property
    def aliases(self) -> AliasDb:
        if self._aliases is None:
            self._aliases = AliasDb(self.graph)
        return self._aliases

    def run(self) -> bool:
        changed = False
        nodes = list(self.graph.all_nodes())
        sizes_stay = not any(node.operator is None or may_reshape(node) for node in nodes if not _is_plain(node))
        for node in nodes:
            kind = functional_kind(node, sizes_stay=sizes_stay) if node.inputs else None
            if kind is not None:
                changed |= self._replace(node, kind)
        return changed

    def _replace(self, node: Node, kind: str) -> bool:
        written, *_ = node.inputs
        if not _is_made_here(written, node) or not self._is_unknown(written, node):
            return False
        if not _keeps_modes(written.node, node):
            return False  # a write under no_grad leaves the gradient of the tensor as it is
        new = self.graph.create(kind, node.inputs, types=[node.output.type], range=node.range)
        operator = new.operator
        is_functional = operator is not None and not any(each.alias for each in operator.schema.arguments)
        if not is_functional or not may_change("make a new tensor in", node):
            new.destroy()
            return False
        new.callstack, new.scope = node.callstack, node.scope
        new.insert_before(node)
        self.aliases.copy_value(written, new.output)
        self.aliases.remove_node(node)
        node.output.replace_all_uses_with(new.output.copy_metadata(node.output))
        written.replace_all_uses_after_node_with(node, new.output)
        node.destroy()
        return True

    def _is_unknown(self, written: Value, node: Node) -> bool:
        """Return whether no other value aliases ``written`` when ``node`` writes to it, and no caller knows it."""
        aliases = self.aliases
        memory = aliases.reachable(written)
        if aliases.outlives_call(written) or aliases.escapes(written) or memory & aliases.wildcard_memory:
            return False
        return all(
            use.user is node or use.user.is_after(node) or self._only_looks(use.user, written) for use in written.uses
        )

    def _only_looks(self, user: Node, written: Value) -> bool:
        """Return whether ``user`` only reads ``written``, and keeps no alias of it."""
        if user.operator is None or user.blocks or user.kind in DEFERRED_SUBGRAPH_KINDS or user.kind == "prim::Return":
            return False
        memory = self.aliases.reachable(written)
        others = (value for value in (*user.inputs, *user.outputs) if value is not written)
        return not any(self.aliases.reachable(value) & memory for value in others)


def _is_plain(node: Node) -> bool:
    """Return whether ``node`` has no effects of its own."""
    return node.kind in FORWARDING_KINDS or node.kind in FRESH_VALUE_KINDS or node.kind in CONTROL_FLOW


def _keeps_modes(first: Node, last: Node) -> bool:
    """Return whether no node between two nodes of a block may change a global mode."""
    node = first.next
    while node is not last:
        if any(map(writes_modes, (node, *node.inner_nodes()))):
            return False
        node = node.next
    return True


def _is_made_here(written: Value, node: Node) -> bool:
    """Return whether ``written`` is a new tensor, created in the block of ``node``."""
    maker = written.node
    operator = maker.operator
    if operator is None or maker.owning_block is not node.owning_block or maker.kind in FORWARDING_KINDS:
        return False
    if operator.may_alias_inputs or operator.effects not in (AliasAnalysisKind.FROM_SCHEMA, AliasAnalysisKind.PURE):
        return False
    returns = operator.schema.returns
    return len(returns) == len(maker.outputs) and returns[written.offset].alias is None

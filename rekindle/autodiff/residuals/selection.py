"""What the way back needs of the way there: few values, and small ones.

Four rules make them so:

* What can be told without the numbers in a tensor (its size, its dtype) is found out on the way there, so that the
  tensor itself need not be kept.
* A view is made again from what it is a view of, and a list from its elements.
* What is an input or an output is not kept twice.
* What operators on elements make is made again, in the kernels that use it, where less is kept then: of an LSTM cell
  the gates before they are taken apart, and no part of what follows (:mod:`rekindle.autodiff.residuals.min_cut`).

What is made in a block of the forward graph is handed out of it: :mod:`rekindle.autodiff.residuals.stashing`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final

from rekindle.analysis.constants import attribute_key, is_constant
from rekindle.analysis.effects import CASTS, CONSTRUCTS, UNPACKS, has_side_effects, may_write
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.analysis.uninitialized import may_be_uninitialized
from rekindle.autodiff.residuals.min_cut import min_cut_saved_values
from rekindle.autodiff.reverse_mode.reverse import BlockBackward, LinkedBackward
from rekindle.autodiff.reverse_mode.tape import is_recomputable
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TensorType
from rekindle.passes import (
    CommonSubexpressionElimination,
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    LowerSimpleTuples,
    Pass,
    Peephole,
    run_passes,
)

CLEANUP: Final[tuple[Pass, ...]] = (
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    ConstantPooling(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(keep_raising=False),
)
"""Passes over backward graphs."""

_RESTRUCTURING: Final = CONSTRUCTS | UNPACKS | CASTS | {"prim::ConstantChunk", "aten::__getitem__"}
"""Kinds that only take lists and tuples apart and put them together, which costs next to nothing, as views do."""


SavePolicy = Callable[[Collection[Value]], Collection[Value]]
"""Which tensors are kept, so that those which the way back reads can be made again."""


class ForwardHoister:
    """What is found out in ``forward`` for the way back, beside what it computes."""

    def __init__(self, forward: Graph) -> None:
        self.forward = forward
        self._found: dict[Hashable, list[Value]] = {}
        self._doubtful = may_be_uninitialized(forward)

    def hoist(self, node: Node, inputs: list[Value], block: Block) -> list[Value]:
        """The results that ``node``, of a backward graph, has in the forward graph for ``inputs`` there: a copy of it
        is inserted as soon as all of them are known, unless there is one; not before ``block``, which ``node`` goes
        back through, where one of them may not have a value."""
        attributes = tuple((name, attribute_key(value)) for name, value in sorted(node.attributes.items()))
        within = block if any(value in self._doubtful for value in inputs) else self.forward.block
        key = (node.kind, attributes, tuple(inputs), within)
        found = self._found.get(key)
        if found is None:
            local = dict(zip(node.inputs, inputs, strict=True))
            copy = self.forward.create_clone(node, local.__getitem__)
            _insert_after(copy, within, inputs)
            found = self._found[key] = list(copy.outputs)
        return found

    def constant(self, node: Node) -> Value:
        """A copy of a constant."""
        key = (node.output.type, *((name, attribute_key(value)) for name, value in sorted(node.attributes.items())))
        found = self._found.get(key)
        if found is None:
            copy = self.forward.create_clone(node, lambda value: value)
            copy.insert_after(self.forward.param_node)
            found = self._found[key] = list(copy.outputs)
        return found[0]


def _insert_after(node: Node, within: Block, values: list[Value]) -> None:
    """Insert ``node`` as soon as all of ``values`` are known: in the innermost of their blocks and of ``within``."""
    block = max((within, *(block_of(value) for value in values)), key=depth_of)
    makers = [value.node for value in values if block_of(value) is block and value.node is not block.param_node]
    if not makers:
        block.prepend(node)
        return
    latest = makers[0]
    for maker in makers:
        if maker.is_after(latest):
            latest = maker
    node.insert_after(latest)


def block_of(value: Value) -> Block:
    """The block that ``value`` is made in, or is an input of."""
    block = value.node.owning_block
    assert block is not None
    return block


def depth_of(block: Block) -> int:
    """How many blocks there are around ``block``."""
    depth = 0
    while block.parent is not None:
        block = block.parent
        depth += 1
    return depth


def minimize_residuals(backward: LinkedBackward, ledger: ForwardHoister, choice: SavePolicy | None = None) -> None:
    """Have ``backward`` read few values of the forward graph, and small ones; with a ``choice`` operators on elements
    run again where what they make is not kept."""
    graph = backward.graph
    run_passes(graph, CLEANUP)
    first = len(backward.roots)
    mirrored = dict(zip(graph.inputs[first:], backward.read, strict=True))
    _find_out_before(graph, ledger, mirrored, backward.scopes)
    runs_again = _is_made_again
    if choice is not None:
        saved = choice([mirrored[value] for value in graph.inputs[first:] if value.has_uses])
        runs_again = lambda value: _is_made_again(value) or (_is_cheap(value.node) and value not in saved)  # noqa: E731
    _rematerialize(graph, mirrored, backward.scopes, runs_again)
    _undo_transposes(graph)
    run_passes(graph, (CommonSubexpressionElimination(), ConstantPooling(), DeadCodeElimination(keep_raising=False)))
    backward.read = [mirrored[value] for value in graph.inputs[first:]]
    drop_unread(backward)


def drop_unread(backward: LinkedBackward) -> None:
    """Remove the inputs of ``backward`` for values of the forward graph that nothing in it reads."""
    first = len(backward.roots)
    for index in reversed(range(len(backward.read))):
        if not backward.graph.inputs[first + index].has_uses:
            backward.graph.block.erase_input(first + index)
            del backward.read[index]


def _find_out_before(
    graph: Graph, ledger: ForwardHoister, mirrored: dict[Value, Value], scopes: Mapping[Block, BlockBackward]
) -> None:
    """Move what needs no gradient and gives no tensor to the forward graph."""
    forward = {scope.block: block for block, scope in scopes.items()}
    for node in graph.all_nodes():
        if not _belongs_before(node, mirrored):
            continue
        inputs = [ledger.constant(value.node) if is_constant(value) else mirrored[value] for value in node.inputs]
        for output, found in zip(node.outputs, ledger.hoist(node, inputs, _block_after(node, forward)), strict=True):
            known = next((here for here, there in mirrored.items() if there is found), None)
            if known is None:
                known = graph.add_input(type=output.type)
                mirrored[known] = found
            output.replace_all_uses_with(known)
        node.destroy()


def _block_after(node: Node, forward: Mapping[Block, Block]) -> Block:
    """The block of the forward graph that ``node`` goes back through."""
    block = node.owning_block
    while block is not None and block not in forward:
        block = block.parent
    assert block is not None
    return forward[block]


def _belongs_before(node: Node, mirrored: dict[Value, Value]) -> bool:
    if node.kind == "prim::Constant" or node.blocks or not node.inputs:
        return False
    if not all(value in mirrored or is_constant(value) for value in node.inputs):
        return False
    if any(may_contain_tensor(output.type) for output in node.outputs):
        return False
    return is_recomputable(node) and not has_side_effects(node)


def _rematerialize(
    graph: Graph,
    mirrored: dict[Value, Value],
    scopes: Mapping[Block, BlockBackward],
    runs_again: Callable[[Value], bool],
) -> None:
    """Read what that was made from for which ``runs_again`` holds, such as views and lists, rather than it."""
    made_again = {value: there for value, there in mirrored.items() if runs_again(there)}
    here = {there: value for value, there in mirrored.items() if value not in made_again}
    first: dict[Block, Node] = {}
    """What stands first in the blocks where something is made again."""

    def local(there: Value) -> Value:
        found = here.get(there)
        if found is not None:
            return found
        node = there.node
        if runs_again(there) or node.kind == "prim::Constant":
            block = scopes[block_of(there)].block
            place = first.setdefault(block, block.return_node.next)
            clone = graph.create_clone(node, local).insert_before(place)
            here.update(zip(node.outputs, clone.outputs, strict=True))
            return here[there]
        found = here[there] = graph.add_input(type=there.type)
        mirrored[found] = there
        return found

    for value, there in made_again.items():
        if value.has_uses:
            value.replace_all_uses_with(local(there))


def _is_made_again(value: Value) -> bool:
    """Whether ``value`` is a view or a list that may be made again for the way back; not where somebody writes to the
    list."""
    node = value.node
    is_free = node.kind in _RESTRUCTURING or node.has_trait(Trait.VIEW)
    return is_free and not any(may_write(use.user) for output in node.outputs for use in output.uses)


def _is_cheap(node: Node) -> bool:
    """Whether ``node`` may run again for little."""
    if node.has_trait(Trait.RECOMPUTABLE):
        return isinstance(node.output.type, TensorType) and is_recomputable(node)
    return bool(node.outputs) and _is_made_again(node.outputs[0])


def min_cut_policy(read: Collection[Value]) -> Collection[Value]:
    """The choice that costs least."""
    return min_cut_saved_values(read, _is_cheap, lambda value: _save_cost(value, value in read))


def _save_cost(value: Value, is_read: bool) -> int | None:
    """What it costs to keep ``value``: little for what is there in any case, more for what a kernel writes for that
    alone, and most for what is made turn by turn of a loop. Views and lists are made again.

    What others know is kept only where it is read: they may write to it, as eager lets them.
    """
    node = value.node
    if _is_made_again(value):
        return None
    is_known = node.kind == "prim::Param" or any(use.user.kind == "prim::Return" for use in value.uses)
    if is_known and not is_read:
        return None
    depth = depth_of(block_of(value))
    price = 4 if is_known or not _is_cheap(node) else 10
    return int(price * 20 ** min(depth, 3))


def fixed_policy(values: Collection[Value]) -> SavePolicy:
    """The choice of these."""
    return lambda read: values


def _undo_transposes(graph: Graph) -> None:
    """``a.mm(b).t()`` is ``b.t().mm(a.t())``, laid out as the weight is that it is the gradient of, and ``x.t().t()``
    is ``x``."""
    for node in graph.find_nodes("aten::t"):
        product = node.input.node
        if product.kind == "aten::mm" and len(product.output.uses) == 1:
            with graph.inserting_before(node):
                turned = [graph.insert("aten::t", [value]) for value in reversed(product.inputs)]
                node.output.replace_all_uses_with(graph.insert("aten::mm", turned))
    for node in graph.find_nodes("aten::t"):
        before = node.input.node
        if before.kind == "aten::t":
            node.output.replace_all_uses_with(before.input)

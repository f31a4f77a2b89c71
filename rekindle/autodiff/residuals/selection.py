"""Select residuals: the forward values that the backward graph reads, as few and as small as possible.

Four rules reduce them:

* What does not depend on the elements of a tensor (its sizes, its dtype) is hoisted into the forward graph, so that the
  tensor is not saved for it.
* A view is recomputed from its base, and a list from its elements.
* An input or an output of the forward graph is not saved a second time.
* Pointwise operators are recomputed in the kernels of the backward graph where that saves fewer values: of an LSTM cell
  the gates are saved, before they are split, and nothing that follows from them
  (:mod:`rekindle.autodiff.residuals.min_cut`).

Residuals that are defined in a block of the forward graph are stashed: :mod:`rekindle.autodiff.residuals.stashing`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.constants import attribute_key, is_constant
from rekindle.analysis.effects import CASTS, CONSTRUCTS, UNPACKS, has_side_effects, may_write
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.analysis.raising import may_raise
from rekindle.analysis.uninitialized import may_be_uninitialized
from rekindle.autodiff.residuals.min_cut import min_cut_saved_values
from rekindle.autodiff.reverse_mode.reverse import BlockBackward, LinkedBackward
from rekindle.autodiff.reverse_mode.tape import is_recomputable
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TENSOR, TensorType
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
from rekindle.rewriting.node_rules import RewriteSite, apply_node_rules


def _sum_with_what_exists(at: RewriteSite) -> bool:
    """Replace the sum of two optional gradients by ``autodiff::plus``, whose result is a tensor, if one of them always
    exists."""
    node = at.node
    for value, other in (node.inputs, reversed(node.inputs)):
        if isinstance(value.type, TensorType) and at.begin():
            (total,) = at.insert("autodiff::plus", [value, other], types=[TENSOR])
            node.output.replace_all_uses_with(total)  # not by finish(), which keeps the type of the node
            node.destroy()
            return True
    return False


@dataclass(slots=True)
class NarrowSums:
    """Narrow the type of sums of gradients that always exist to Tensor, so that later passes fold the tests for
    None."""

    name: ClassVar[str] = "narrow_sums"

    def run(self, graph: Graph) -> bool:
        return apply_node_rules(graph, {"autodiff::sum_of": (_sum_with_what_exists,)}, "narrow")


CLEANUP: Final[tuple[Pass, ...]] = (
    NarrowSums(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    ConstantPooling(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(keep_raising=False),
)
"""Passes over backward graphs."""

_RESTRUCTURING: Final = CONSTRUCTS | UNPACKS | CASTS | {"prim::ConstantChunk", "aten::__getitem__"}
"""Kinds that only pack and unpack lists and tuples, which costs next to nothing, as views do."""


SavePolicy = Callable[[Collection[Value]], Collection[Value]]
"""Takes the tensors that the backward graph reads, and returns the tensors to save, from which all of these can be
recomputed."""


class ForwardHoister:
    """Inserts computations into ``forward`` for values that the backward graph needs and the forward graph does not
    compute."""

    def __init__(self, forward: Graph) -> None:
        self.forward = forward
        self._found: dict[Hashable, list[Value]] = {}
        self._doubtful = may_be_uninitialized(forward)

    def hoist(self, node: Node, inputs: list[Value], block: Block) -> list[Value]:
        """Compute ``node`` of a backward graph in the forward graph instead, from the forward values ``inputs``; return
        its results there.

        A copy of ``node`` is inserted after the last of the inputs, unless there is one already. If one of the inputs
        may be uninitialized, or ``node`` may raise, the copy is inserted within ``block``, the block of the forward
        graph that ``node`` differentiates.
        """
        attributes = tuple((name, attribute_key(value)) for name, value in sorted(node.attributes.items()))
        is_conditional = may_raise(node) or any(value in self._doubtful for value in inputs)
        within = block if is_conditional else self.forward.block
        key = (node.kind, attributes, tuple(inputs), within)
        found = self._found.get(key)
        if found is None:
            local = dict(zip(node.inputs, inputs, strict=True))
            copy = self.forward.create_clone(node, local.__getitem__)
            _insert_after(copy, within, inputs)
            found = self._found[key] = list(copy.outputs)
        return found

    def constant(self, node: Node) -> Value:
        """Return a copy of a constant in the forward graph: an existing one if possible, else a new one."""
        key = (node.output.type, *((name, attribute_key(value)) for name, value in sorted(node.attributes.items())))
        found = self._found.get(key)
        if found is None:
            copy = self.forward.create_clone(node, lambda value: value)
            copy.insert_after(self.forward.param_node)
            found = self._found[key] = list(copy.outputs)
        return found[0]


def _insert_after(node: Node, within: Block, values: list[Value]) -> None:
    """Insert ``node`` after the last of ``values``, in the innermost block among ``within`` and the blocks of the
    values."""
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
    """Return the block that defines ``value``."""
    block = value.node.owning_block
    assert block is not None
    return block


def depth_of(block: Block) -> int:
    """Return the number of blocks that enclose ``block``."""
    depth = 0
    while block.parent is not None:
        block = block.parent
        depth += 1
    return depth


def minimize_residuals(backward: LinkedBackward, hoister: ForwardHoister, policy: SavePolicy | None = None) -> None:
    """Reduce the forward values that ``backward`` reads: rewrite its graph and ``backward.read``, and insert hoisted
    operators into the forward graph of ``hoister``. With a ``policy``, pointwise operators whose results the policy
    does not save are recomputed."""
    graph = backward.graph
    run_passes(graph, CLEANUP)
    first = len(backward.roots)
    mirrored = dict(zip(graph.inputs[first:], backward.read, strict=True))
    _hoist_to_forward(graph, hoister, mirrored, backward.scopes)
    is_recomputed = _is_free
    if policy is not None:
        read = [mirrored[value] for value in graph.inputs[first:] if value.has_uses]
        saved = {*policy(read), *_compared(mirrored)}
        is_recomputed = lambda value: _is_free(value) or (_is_cheap(value.node) and value not in saved)  # noqa: E731
    _rematerialize(graph, mirrored, backward.scopes, is_recomputed)
    _undo_transposes(graph)
    run_passes(graph, (CommonSubexpressionElimination(), ConstantPooling(), DeadCodeElimination(keep_raising=False)))
    backward.read = [mirrored[value] for value in graph.inputs[first:]]
    drop_unread(backward)


_COMPARING: Final = frozenset({"aten::eq", "autodiff::first_equal", "autodiff::norm_back", "autodiff::extremes_back"})
"""Kinds that test which elements are equal to others, such as to their maximum."""


def _compared(mirrored: Mapping[Value, Value]) -> set[Value]:
    """Return the forward values that the backward graph tests for equality, and the bases of those that are views. They
    are not recomputed: another kernel may round them differently, so that no element equals the maximum."""
    pending = [there for value, there in mirrored.items() if any(use.user.kind in _COMPARING for use in value.uses)]
    found: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in found and may_contain_tensor(value.type):
            found.add(value)
            pending += value.node.inputs if _is_free(value) else ()
    return found


def drop_unread(backward: LinkedBackward) -> None:
    """Remove the inputs of ``backward`` for values of the forward graph that nothing in it reads."""
    first = len(backward.roots)
    for index in reversed(range(len(backward.read))):
        if not backward.graph.inputs[first + index].has_uses:
            backward.graph.block.erase_input(first + index)
            del backward.read[index]


def _hoist_to_forward(
    graph: Graph, hoister: ForwardHoister, mirrored: dict[Value, Value], scopes: Mapping[Block, BlockBackward]
) -> None:
    """Move operators of the backward graph that depend on no gradient, and do not return tensors, to the forward
    graph."""
    forward = {scope.block: block for block, scope in scopes.items()}
    for node in graph.all_nodes():
        if not _can_be_hoisted(node, graph, mirrored) or (may_raise(node) and node.owning_block not in forward):
            continue  # an operator in a branch may raise where the branch is not taken
        inputs = [hoister.constant(value.node) if is_constant(value) else mirrored[value] for value in node.inputs]
        for output, found in zip(node.outputs, hoister.hoist(node, inputs, _forward_block(node, forward)), strict=True):
            known = next((here for here, there in mirrored.items() if there is found), None)
            if known is None:
                known = graph.add_input(type=output.type)
                mirrored[known] = found
            output.replace_all_uses_with(known)
        node.destroy()


def _forward_block(node: Node, forward: Mapping[Block, Block]) -> Block:
    """Return the block of the forward graph that the block of ``node`` differentiates."""
    block = node.owning_block
    while block is not None and block not in forward:
        block = block.parent
    assert block is not None
    return forward[block]


def _can_be_hoisted(node: Node, graph: Graph, mirrored: dict[Value, Value]) -> bool:
    if node.kind == "prim::Constant" or node.blocks or not node.inputs:
        return False
    if node.kind in CASTS and node.owning_block is not graph.block:
        return False  # its operand has the type that it is cast to only in this branch: it may be None elsewhere
    if not all(value in mirrored or is_constant(value) for value in node.inputs):
        return False
    if any(may_contain_tensor(output.type) for output in node.outputs):
        return False
    return is_recomputable(node) and not has_side_effects(node)


def _rematerialize(
    graph: Graph,
    mirrored: dict[Value, Value],
    scopes: Mapping[Block, BlockBackward],
    is_recomputed: Callable[[Value], bool],
) -> None:
    """Recompute the values for which ``is_recomputed`` holds, such as views and lists, from their operands."""
    recomputed = {value: there for value, there in mirrored.items() if is_recomputed(there)}
    here = {there: value for value, there in mirrored.items() if value not in recomputed}
    first: dict[Block, Node] = {}
    """The first node of each block in which values are recomputed."""

    def local(there: Value) -> Value:
        pending = [there]  # a chain of operators may be longer than Python's stack
        while pending:
            wanted = pending[-1]
            node = wanted.node
            if wanted in here:
                pending.pop()
            elif not is_recomputed(wanted) and node.kind != "prim::Constant":
                found = here[wanted] = graph.add_input(type=wanted.type)
                mirrored[found] = wanted
            elif missing := [value for value in node.inputs if value not in here]:
                pending.extend(reversed(missing))
            else:
                block = scopes[block_of(wanted)].block
                place = first.setdefault(block, block.return_node.next)
                clone = graph.create_clone(node, here.__getitem__).insert_before(place)
                here.update(zip(node.outputs, clone.outputs, strict=True))
        return here[there]

    for value, there in recomputed.items():
        if value.has_uses:
            value.replace_all_uses_with(local(there))


def _is_free(value: Value) -> bool:
    """Return whether ``value`` is a view or a list that can be recomputed at no cost: nothing writes to it."""
    node = value.node
    is_free = node.kind in _RESTRUCTURING or node.has_trait(Trait.VIEW)
    return is_free and not any(may_write(use.user) for output in node.outputs for use in output.uses)


def _is_cheap(node: Node) -> bool:
    """Return whether ``node`` can be recomputed at little cost."""
    if node.has_trait(Trait.RECOMPUTABLE):
        return isinstance(node.output.type, TensorType) and is_recomputable(node)
    return bool(node.outputs) and _is_free(node.outputs[0])


def min_cut_policy(read: Collection[Value]) -> Collection[Value]:
    """Return the values to save: those of a minimum cut between the inputs and the values ``read`` by the backward
    graph."""
    return min_cut_saved_values(read, _is_cheap, lambda value: _save_cost(value, value in read))


_NORMALIZATIONS: Final = frozenset({"aten::native_layer_norm", "aten::native_group_norm"})
"""Kinds that read their operand from memory; of batch norm, kernels may compute it beside others."""


def _save_cost(value: Value, is_read: bool) -> int | None:
    """Return the cost of saving ``value``, relative to that of other values; None if it is never saved.

    A value that exists in any case costs 4, an operand of a matrix product or a normalization 5, other results of
    operators that are not pointwise 6, and one that a kernel writes only for the backward graph 10; each loop around it
    multiplies the cost by 20, up to three loops. Views and lists are recomputed. Inputs and outputs of the forward
    graph are saved only if they are read: the caller may write to them, as in eager PyTorch.
    """
    node = value.node
    if _is_free(value):
        return None
    is_known = node.kind == "prim::Param" or any(use.user.kind == "prim::Return" for use in value.uses)
    if is_known and not is_read:
        return None
    depth = depth_of(block_of(value))
    price = 4 if is_known else 5 if _is_materialized(value) else 6 if not _is_cheap(node) else 10
    return int(price * 20 ** min(depth, 3))


def _is_materialized(value: Value) -> bool:
    """Return whether the forward writes ``value`` to memory for an operator that reads it from there."""
    for use in value.uses:
        node = use.user
        if node.has_trait(Trait.LIBRARY) or node.kind in _NORMALIZATIONS:
            return True
        if node.has_trait(Trait.VIEW) and any(_is_materialized(output) for output in node.outputs):
            return True
    return False


def fixed_policy(values: Collection[Value]) -> SavePolicy:
    """Return the policy that saves ``values``, whatever the backward graph reads."""
    return lambda read: values


def _undo_transposes(graph: Graph) -> None:
    """Replace ``a.mm(b).t()`` by ``b.t().mm(a.t())``, whose layout is that of the weight that it is the gradient of,
    and ``x.t().t()`` by ``x``."""
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

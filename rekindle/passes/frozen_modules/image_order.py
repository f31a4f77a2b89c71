"""Keep images in channels-last order between packed convolutions, and restore PyTorch's order where it is observable.

.. code-block:: text

    %c : Tensor = prim::packed_convolution[…](%x, %w, %b)
    %p : Tensor = aten::slice(%c, %one, %zero, %four, %one)
    %r : Tensor = aten::relu(%p)
    %v : Tensor = aten::view(%r, %sizes)

becomes

.. code-block:: text

    %o : int = prim::image_order(%x)
    %c : Tensor = prim::packed_convolution[…](%x, %w, %b)
    %p : Tensor = aten::slice(%c, %one, %zero, %four, %one)
    %r : Tensor = aten::relu(%p)
    %e : Tensor = aten::contiguous(%r, %o)
    %v : Tensor = aten::view(%e, %sizes)

A copy between the two orders takes longer than a small convolution. So the order is not restored for operators whose
values are independent of it: pointwise ones, pooling, concatenation, reductions that remove the channels or all rows
and columns, and slices whose users are such operators.
"""

from __future__ import annotations

from typing import Final

import torch
from torch._prims_common import suggest_memory_format

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_bool, constant_int, constant_ints, value_of
from rekindle.analysis.effects import may_write
from rekindle.ir.graph import Graph, Node, Use, Value
from rekindle.ir.operators.traits import PROPERTY_QUERIES, Trait
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import INT

CONVOLUTION: Final = "prim::packed_convolution"
ADDING: Final = "prim::packed_convolution_add"
TRANSPOSED: Final = "prim::packed_transposed_convolution"
LINEAR: Final = "prim::packed_linear"
IMAGE_ORDER: Final = "prim::image_order"

_PACKED: Final = frozenset({CONVOLUTION, ADDING, TRANSPOSED})
"""These take images in any order in memory, and their results may be in channels-last order."""
_FRESH_ORDER: Final = frozenset({"aten::contiguous", "aten::layer_norm", "aten::linear", LINEAR})
"""Kinds with results in the usual memory order, whatever the order of the first operand."""
_REORDERING: Final = frozenset({"aten::permute", "aten::transpose", "aten::flatten"})
"""Views of images, or copies, with dimensions that are in another order or fewer."""
_SLICING: Final = frozenset({"aten::slice", "aten::narrow"})
_SPLITTING: Final = frozenset({"aten::split", "aten::split_with_sizes", "aten::chunk"})
_REDUCTIONS: Final = frozenset(
    {
        *("aten::mean", "aten::sum", "aten::prod", "aten::amax", "aten::amin", "aten::var", "aten::std"),
        *("aten::logsumexp", "aten::linalg_vector_norm"),
    }
)
"""Reductions along ``dim``. The order of a result in memory is that of the dimensions which remain."""
_ORDER_QUERIES: Final = frozenset({Trait.READS_STRIDES, Trait.READS_IDENTITY})


class ImageOrder:
    """Determines which values may be in channels-last order, and converts them to PyTorch's order for users whose
    result depends on the order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.aliases = AliasDb(graph, is_frozen=True)
        self.written = 0
        """Memory that nodes write to, except for the results that an operator overwrites in place."""
        for node in graph.all_nodes():
            if not node.blocks and may_write(node) and not _overwrites_own_result(node):
                self.written |= self.aliases.writes_to(node)
        self.other_order: set[Value] = set()
        self.orders: dict[Value, Value] = {}
        """The memory order that PyTorch's operators would produce for a value, as a value of type int computed when the
        program runs."""

    def keep(self) -> None:
        """Mark the values that may be in another order than PyTorch's, and insert the conversions."""
        for node in list(self.graph.all_nodes()):
            parts = _parts(node)
            if parts:
                if self._has_other_order(node):
                    self.other_order.update(parts)
            elif self._changes_order(node):
                self._decide(node.output)

    def _changes_order(self, node: Node) -> bool:
        if node.kind in _PACKED:
            return not _has_channels_last_weights(node) or self._has_other_order(node)
        if len(node.outputs) != 1:
            return False
        if _is_in_place(node):
            return node.inputs[0] in self.other_order
        return (node.has_trait(Trait.ANY_LAYOUT) or _reduces_to_images(node)) and self._has_other_order(node)

    def _has_other_order(self, node: Node) -> bool:
        return any(value in self.other_order for value in _operands(node))

    def _decide(self, value: Value) -> None:
        uses = list(value.uses)
        is_overwritten = any(_overwrites(use) for use in uses)
        if self.aliases.reachable(value) & self.written or (is_overwritten and len(uses) > 1):
            self._reorder(value, uses)
            return
        minding = [use for use in uses if not _ignores_order(use)]
        self._reorder(value, minding)
        if len(minding) < len(uses):
            self.other_order.add(value)

    def _reorder(self, value: Value, uses: list[Use]) -> None:
        if not uses:
            return
        graph, node = self.graph, value.node
        order = self._order_of(value)
        with graph.inserting_after(node):
            copy = graph.insert_node(graph.create("aten::contiguous", [value, order], range=node.range))
        for use in uses:
            use.user.replace_input(use.offset, copy.output)

    def _order_of(self, value: Value) -> Value:
        """Return a value for the memory order that PyTorch would choose: channels-last after a convolution with such
        weights, else that of the image that the first convolution reads."""
        known = self.orders.get(value)
        if known is None:
            node = value.node
            if node.kind in _PACKED and _has_channels_last_weights(node):
                with self.graph.inserting_before(node):
                    known = self.orders[value] = self.graph.insert_constant(number_of(torch.channels_last))
                return known
            before = next((operand for operand in _operands(node) if operand in self.other_order), None)
            if before is not None:
                known = self._order_of(before)
            else:
                made = self.graph.create(IMAGE_ORDER, [node.inputs[0]], types=[INT], range=node.range)
                known = made.insert_before(node).output
            self.orders[value] = known
        return known


def is_metadata_query(node: Node) -> bool:
    """Return whether a node queries sizes, the dtype or the like of a tensor, and not its strides or identity."""
    queried = frozenset() if node.operator is None else node.operator.traits & PROPERTY_QUERIES
    return bool(queried) and not queried & _ORDER_QUERIES


def _operands(node: Node) -> list[Value]:
    """Return the inputs of ``node``. If the first one is a list, return those of the node that made it instead: the
    items, or the image that was split."""
    maker = node.inputs[0].node if node.inputs else None
    if maker is not None and (maker.kind == "prim::ListConstruct" or maker.kind in _SPLITTING):
        return list(maker.inputs)
    return list(node.inputs)


# --------------------------------------------------------------------------------------------------- in-place operators


def _is_in_place(node: Node) -> bool:
    """Return whether ``node`` writes to its first operand, with values that do not depend on the order in memory."""
    schema = node.schema
    first = schema.arguments[0].alias if schema is not None and schema.arguments else None
    return node.has_trait(Trait.ANY_LAYOUT) and first is not None and first.is_write


def _overwrites(use: Use) -> bool:
    return use.offset == 0 and _is_in_place(use.user)


def _overwrites_own_result(node: Node) -> bool:
    """Return whether ``node`` overwrites in place the result of an operator of the same block that accepts any layout,
    as packed operators do. Views do not count as such results."""
    if not _is_in_place(node):
        return False
    maker = node.inputs[0].node
    return maker.has_trait(Trait.ANY_LAYOUT) and maker.owning_block is node.owning_block


def _has_channels_last_weights(node: Node) -> bool:
    """Return whether the weight of a convolution is in channels-last order: PyTorch then returns the result in that
    order for every image."""
    weight = value_of(node.inputs[1].node)
    return isinstance(weight, torch.Tensor) and suggest_memory_format(weight) is torch.channels_last


# ---------------------------------------------------------------------------------- operators for which no order counts


def _ignores_order(use: Use) -> bool:
    """Return whether the memory order of a tensor affects nothing that its user computes, and no observable memory
    order."""
    user = use.user
    if user.kind in _PACKED:
        return use.offset in (0, 3)
    if _forgets_order(use) or _removes_order(user):
        return True
    parts = _parts(user)
    if parts:
        return all(_ignores_order(each) for part in parts for each in part.uses)
    if user.kind == "prim::ListConstruct":
        return len(user.output.uses) == 1 and user.output.uses[0].user.kind == "aten::cat"
    return user.has_trait(Trait.ANY_LAYOUT)


def _forgets_order(use: Use) -> bool:
    """Return whether the memory order of all results of a tensor's user is independent of the tensor's.

    Operators that keep the order (``relu``) do not qualify after a permutation: a copy of their result in the usual
    order would not restore it.
    """
    user = use.user
    if user.kind in _REORDERING:
        return all(map(_forgets_order, user.output.uses))
    return is_metadata_query(user) or (user.kind in _FRESH_ORDER and use.offset == 0)


def _parts(node: Node) -> list[Value]:
    """Return the tensors that a slice or split of an image results in, which share its memory and its order; none for
    another node, and for a list of parts with users other than unpacking and indexing."""
    if node.kind in _SLICING:
        return list(node.outputs)
    if node.kind not in _SPLITTING:
        return []
    users = [use.user for use in node.output.uses]
    if not all(user.kind in ("prim::ListUnpack", "aten::__getitem__") for user in users):
        return []
    return [part for user in users for part in user.outputs]


def _removes_order(node: Node) -> bool:
    """Return whether a reduction of images has a result whose order in memory does not depend on the image's.

    Without the channels, or without rows and columns, the other dimensions are in the same order in both formats. But
    an image of one channel has ambiguous strides, from which PyTorch's operators derive the order of their results.
    So it must only be combined with images of more channels, which determine the order.
    """
    dims, keeps_dims = _reduced_dims(node), _keeps_dims(node)
    if keeps_dims is None:
        return False
    if dims >= {2, 3} or (1 in dims and not keeps_dims):
        return True
    return 1 in dims and _meets_images_only(node.output)


def _reduces_to_images(node: Node) -> bool:
    return _keeps_dims(node) is True and _reduced_dims(node) >= {2, 3}


def _meets_images_only(value: Value) -> bool:
    """Return whether an image of one channel is an operand of pointwise operators alone, until their other operand is
    an image of several channels."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            user = use.user
            if is_metadata_query(user):
                continue
            if not _is_functional_pointwise(user):
                return False
            others = [each for each in user.inputs if each not in seen]
            if not any(map(_has_channels, others)) and user.output not in seen:
                seen.add(user.output)
                pending.append(user.output)
    return True


def _is_functional_pointwise(node: Node) -> bool:
    is_pointwise = node.has_trait(Trait.POINTWISE) and node.has_trait(Trait.ANY_LAYOUT)
    return is_pointwise and len(node.outputs) == 1 and not may_write(node)


def _has_channels(value: Value) -> bool:
    """Return whether ``value`` is the result of a packed convolution with several channels, or of pointwise operators
    on such a result."""
    pending, seen = [value], {value}
    while pending:
        node = pending.pop().node
        if node.kind in (CONVOLUTION, ADDING):
            weight = value_of(node.inputs[1].node)
            if isinstance(weight, torch.Tensor) and weight.shape[0] > 1:
                return True
        elif _is_functional_pointwise(node):
            pending += [each for each in node.inputs if each not in seen]
            seen.update(node.inputs)
    return False


def _reduced_dims(node: Node) -> set[int]:
    """Return the dimensions of an image along which ``node`` reduces it; none if they are not constant, or it is
    another operator."""
    dim = _argument(node, "dim") if node.kind in _REDUCTIONS else None
    if dim is None:
        return set()
    one = constant_int(dim)
    return {each % 4 for each in (constant_ints(dim) or [] if one is None else [one])}


def _keeps_dims(node: Node) -> bool | None:
    keepdim = _argument(node, "keepdim")
    return None if keepdim is None else constant_bool(keepdim)


def _argument(node: Node, name: str) -> Value | None:
    index = None if node.schema is None else node.schema.argument_index(name)
    return None if index is None or index >= len(node.inputs) else node.inputs[index]

"""Replace convolutions and linear maps of constant weights by operators that choose the fastest kernel.

.. code-block:: text

    %c : Tensor = aten::conv2d(%x, %w, %b, …)
    %r : Tensor = aten::relu_(%c)
    %d : Tensor = aten::conv2d(%r, %w2, %b2, …)
    %v : Tensor = aten::view(%d, %sizes)

becomes

.. code-block:: text

    %o : int = prim::image_order(%x)
    %r : Tensor = prim::packed_convolution[…, activation="relu"](%x, %w, %b)
    %d : Tensor = prim::packed_convolution[…, activation="none"](%r, %w2, %b2)
    %e : Tensor = aten::contiguous(%d, %o)
    %v : Tensor = aten::view(%e, %sizes)

An addition to the result of a convolution that has no other use (``x + conv(y)``, a residual connection) is fused with
it into ``prim::packed_convolution_add``.

Images stay in channels-last order between convolutions, through operators whose values do not depend on memory order.
Other users of a result get it in the memory order that PyTorch's operators would choose.

What runs these kinds, and how it is chosen: :mod:`rekindle.codegen.convolution.packed_operators`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch._prims_common import suggest_memory_format

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_int, is_constant, value_of
from rekindle.analysis.effects import may_write
from rekindle.ir.graph import AttributeValue, Graph, Node, Use, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import INT, NoneType
from rekindle.passes.frozen_modules.foldable import fixed_tensor
from rekindle.rewriting.changes import may_change

CONVOLUTION: Final = "prim::packed_convolution"
ADDING: Final = "prim::packed_convolution_add"
TRANSPOSED: Final = "prim::packed_transposed_convolution"
LINEAR: Final = "prim::packed_linear"
IMAGE_ORDER: Final = "prim::image_order"
SMALLEST_LINEAR: Final = 1 << 16
"""Number of weights from which a linear map is packed: for fewer, PyTorch's operator takes less than the selection of
a kernel."""


@dataclass(slots=True)
class PackWeights:
    """Replace operators with constant weights by packed ones. The docstring of the module shows the IR before and
    after.

    Example:
        >>> from rekindle.passes import PackWeights, run_passes
        >>> net = rekindle.script(torch.nn.Linear(256, 256).eval())
        >>> graph = rekindle.freeze(net).graph
        >>> run_passes(graph, [PackWeights()]), graph.find_node("aten::linear")
        (True, None)
    """

    name: ClassVar[str] = "pack_weights"
    smallest_linear: int = SMALLEST_LINEAR
    """Linear maps of fewer weights are not replaced."""

    def run(self, graph: Graph) -> bool:
        aliases = AliasDb(graph, is_frozen=True)
        changed = False
        for node in list(graph.all_nodes()):
            if node.kind == "aten::conv2d":
                changed |= _pack_convolution(node, aliases)
            elif node.kind == "aten::conv_transpose2d":
                changed |= _pack_transposed(node, aliases)
            elif node.kind == "aten::linear":
                changed |= _pack_linear(node, aliases, self.smallest_linear)
        if changed:
            for node in list(graph.find_nodes(CONVOLUTION)):
                _take_addition(node, graph)
            _Order(graph).keep()
        return changed


def _pack_convolution(node: Node, aliases: AliasDb) -> bool:
    _, _, _, stride_input, padding_input, dilation_input, group_count = node.inputs
    groups = constant_int(group_count)
    if groups is None or not has_fixed_weights(node, aliases, 4):
        return False
    stride, dilation = _ints(stride_input), _ints(dilation_input)
    padding = _padding(node, padding_input, stride, dilation)
    if stride is None or padding is None or dilation is None or not may_change("pack the weights of", node):
        return False
    attributes: dict[str, AttributeValue] = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    _replace(node, CONVOLUTION, attributes)
    return True


def _padding(node: Node, padding: Value, stride: list[int] | None, dilation: list[int] | None) -> list[int] | None:
    """Return how many rows and columns of zeros ``node`` adds on each side of an image.

    ``padding`` is a pair of ints, ``"valid"`` or ``"same"``. Return None if it is not constant, if it adds more on one
    side than on the other (``"same"`` with a kernel of even size), or if PyTorch refuses it (``"same"`` with strides).
    """
    mode = value_of(padding.node) if is_constant(padding) else None
    if mode == "valid":
        return [0, 0]
    if mode != "same":
        return _ints(padding)
    weight = value_of(node.inputs[1].node)
    assert isinstance(weight, torch.Tensor)
    if stride != [1, 1] or dilation is None:
        return None
    added = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:], strict=True)]
    return [count // 2 for count in added] if all(count % 2 == 0 for count in added) else None


def _pack_transposed(node: Node, aliases: AliasDb) -> bool:
    """Replace a transposed convolution whose stride is the kernel's size, so that each position of the kernel is a
    linear map, by the packed operator. Return whether it was replaced; padding, dilation and groups are not
    supported."""
    *_, group_count, dilation = node.inputs
    if constant_int(group_count) != 1 or not has_fixed_weights(node, aliases, 4):
        return False
    weight = value_of(node.inputs[1].node)
    assert isinstance(weight, torch.Tensor)
    stride, padding, output_padding = map(_ints, node.inputs[3:6])
    is_known = stride == list(weight.shape[2:]) and padding == output_padding == [0, 0] and _ints(dilation) == [1, 1]
    if not is_known or not may_change("pack the weights of", node):
        return False
    _replace(node, TRANSPOSED, {})
    return True


def _pack_linear(node: Node, aliases: AliasDb, smallest: int) -> bool:
    if not has_fixed_weights(node, aliases, 2):
        return False
    weight = value_of(node.named_input("weight").node)
    assert isinstance(weight, torch.Tensor)
    if weight.numel() < smallest or not may_change("pack the weights of", node):
        return False
    _replace(node, LINEAR, {})
    return True


def has_fixed_weights(node: Node, aliases: AliasDb, rank: int) -> bool:
    """Return whether the weight of ``node`` and its bias, if it has one, are constants of 32-bit floats on the CPU, and
    the weight has ``rank`` dimensions."""
    _, weight_input, bias_input, *_ = node.inputs
    weight, bias = fixed_tensor(weight_input, aliases), fixed_tensor(bias_input, aliases)
    if weight is None or not (bias is not None or isinstance(bias_input.type, NoneType)):
        return False
    given = [weight] if bias is None else [weight, bias]
    return weight.dim() == rank and all(t.dtype is torch.float32 and t.device.type == "cpu" for t in given)


def _ints(value: Value) -> list[int] | None:
    """Return the items of a list of two constant ints, of a list of one that int twice; None for another value."""
    if value.node.kind == "prim::ListConstruct":
        found = [constant_int(item) for item in value.node.inputs]
    else:
        held = value_of(value.node) if is_constant(value) else None
        found = [item if isinstance(item, int) else None for item in held] if isinstance(held, list) else []
    known = [item for item in found if item is not None]
    return known * 2 if len(found) == len(known) == 1 else known if len(found) == len(known) == 2 else None


def _replace(node: Node, kind: str, attributes: dict[str, AttributeValue]) -> None:
    """Replace ``node`` by the packed operator. If :func:`_with_activation` finds an activation, it becomes part of the
    operator."""
    last, activation = _with_activation(node)
    made = node.graph.create(kind, node.inputs[:3], attributes={**attributes, "activation": activation})
    made.set_range(node.range)
    made.callstack = node.callstack
    made.insert_before(node)
    made.output.copy_metadata(last.output)
    made.output.type = node.output.type
    last.output.replace_all_uses_with(made.output)
    if last is not node:
        last.destroy()
    node.destroy()


_ACTIVATIONS: Final = frozenset(
    {"relu", "relu6", "hardsigmoid", "hardswish", "sigmoid", "silu", "tanh", "hardtanh", "gelu"}
)
"""Operators that packed ones apply to their results, in place or not."""


def _with_activation(node: Node) -> tuple[Node, str]:
    """Return the activation that is the only user of the result of ``node``, and its name in kernels. Return ``node``
    and ``none`` if there is no such activation, or kernels do not support it."""
    user = _only_user(node)
    if user is None or user.inputs[0] is not node.output:
        return node, "none"
    name = user.kind.removeprefix("aten::").removesuffix("_")
    if name not in _ACTIVATIONS:
        return node, "none"
    options = [value_of(each.node) if is_constant(each) else None for each in user.inputs[1:]]
    if name == "hardtanh":
        return (user, "relu6") if options == [0, 6] else (node, "none")
    if name == "gelu":
        known = {"none": "gelu", "tanh": "gelu_tanh"}.get(str(options[0]))
        return (user, known) if known is not None else (node, "none")
    return user, name


def _only_user(node: Node) -> Node | None:
    """Return the node of the same block that alone uses the result of ``node``, once; None if there is no such node."""
    uses = node.output.uses
    return uses[0].user if len(uses) == 1 and uses[0].user.owning_block is node.owning_block else None


def _take_addition(node: Node, graph: Graph) -> None:
    """Replace a packed convolution without activation, the addition that is its only user, and the activation after
    that by one ``prim::packed_convolution_add``, where that is safe."""
    add = _only_user(node)
    if add is None or node.get_string("activation") != "none" or add.kind not in ("aten::add", "aten::add_"):
        return
    schema = add.schema
    if schema is None or schema.overload != "Tensor":
        return
    left, right, alpha = add.inputs
    other = right if left is node.output else left
    is_in_place = add.kind == "aten::add_"
    if constant_int(alpha) != 1 or other is node.output or (is_in_place and left is not node.output):
        return
    aliases = AliasDb(graph, is_frozen=True)
    if aliases.nodes_to_move_before(node, add) not in ([node], []) or not may_change("put an addition into", node):
        return  # what it reads may be written to in between
    last, activation = _with_activation(add)
    attributes: dict[str, AttributeValue] = {name: node[name] for name in ("stride", "padding", "dilation", "groups")}
    attributes |= {
        "activation": activation,
        "is_in_place": int(is_in_place),
        "may_overwrite": int(_is_read_last_by(other, add, node)),
    }
    made = graph.create(ADDING, [*node.inputs, other], attributes=attributes)
    made.set_range(node.range)
    made.callstack = node.callstack
    made.insert_before(add)
    made.output.copy_metadata(last.output)
    made.output.type = last.output.type
    last.output.replace_all_uses_with(made.output)
    for gone in (last, add, node) if last is not add else (add, node):
        gone.destroy()


def _is_read_last_by(value: Value, add: Node, convolution: Node) -> bool:
    """Return whether ``value`` is the result of a packed convolution, and ``add`` reads it last, after other packed
    convolutions and queries of sizes alone, so that its memory may be overwritten."""
    if value.node.kind not in (CONVOLUTION, ADDING) or value.node.owning_block is not add.owning_block:
        return False
    others = [use.user for use in value.uses if use.user is not add]
    return convolution not in others and all(
        each.kind in (CONVOLUTION, ADDING, *_ASKING) and each.owning_block is add.owning_block and each.is_before(add)
        for each in others
    )


# ------------------------------------------------------------------------------------------------- the order in memory

_LAST_ORDER: Final = frozenset({CONVOLUTION, ADDING, TRANSPOSED})
"""These take images in any order in memory, and their results may be in channels-last order."""
_IN_PLACE: Final = frozenset(
    f"aten::{name}_"
    for name in ("relu", "hardtanh", "silu", "hardswish", "hardsigmoid", "leaky_relu", "elu", "mish", "sigmoid", "tanh")
)
"""Activations that write to their operand, whatever its order in memory is."""
_ASKING: Final = frozenset({"aten::dim", "aten::size"})


class _Order:
    """Determines which values may be in channels-last order, and converts them to the default order for users whose
    result depends on the order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.aliases = AliasDb(graph, is_frozen=True)
        self.written = 0
        """Memory written through views, or by operators other than in-place activations."""
        for node in graph.all_nodes():
            if not node.blocks and may_write(node) and not _works_on_own_result(node):
                self.written |= self.aliases.writes_to(node)
        self.other_order: set[Value] = set()
        self.orders: dict[Value, Value] = {}
        """The memory order that PyTorch's operators would produce for a value, as a value of type int computed when the
        program runs."""

    def keep(self) -> None:
        for node in list(self.graph.all_nodes()):
            if node.kind in _LAST_ORDER:
                changes_order = not _has_channels_last_weights(node) or self._has_other_order(node)
            else:
                changes_order = node.has_trait(Trait.ANY_LAYOUT) and self._has_other_order(node)
            if changes_order:
                self._decide(node.output)

    def _has_other_order(self, node: Node) -> bool:
        first, *_ = node.inputs
        operands = first.node.inputs if first.node.kind == "prim::ListConstruct" else node.inputs
        return any(value in self.other_order for value in operands)

    def _decide(self, value: Value) -> None:
        uses = list(value.uses)
        works_in_place = any(use.user.kind in _IN_PLACE for use in uses)
        if self.aliases.reachable(value) & self.written or (works_in_place and len(uses) > 1):
            self._reorder(value, uses)
            return
        minding = [use for use in uses if not _does_not_mind(use)]
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
            first, *_ = node.inputs
            if node.kind in _LAST_ORDER and _has_channels_last_weights(node):
                with self.graph.inserting_before(node):
                    known = self.orders[value] = self.graph.insert_constant(number_of(torch.channels_last))
                return known
            operands = first.node.inputs if first.node.kind == "prim::ListConstruct" else node.inputs
            before = next((operand for operand in operands if operand in self.other_order), None)
            if before is not None:
                known = self._order_of(before)
            else:
                made = self.graph.create(IMAGE_ORDER, [first], types=[INT], range=node.range)
                known = made.insert_before(node).output
            self.orders[value] = known
        return known


def _works_on_own_result(node: Node) -> bool:
    """Return whether a node is an in-place activation of the result of a packed operator, or of an operator that
    accepts any layout; not of a view."""
    if node.kind not in _IN_PLACE:
        return False
    maker = node.inputs[0].node
    return maker.kind in _LAST_ORDER or maker.has_trait(Trait.ANY_LAYOUT)


def _has_channels_last_weights(node: Node) -> bool:
    """Return whether the weight of a convolution is in channels-last order: PyTorch then returns the result in that
    order for every image."""
    weight = value_of(node.inputs[1].node)
    return isinstance(weight, torch.Tensor) and suggest_memory_format(weight) is torch.channels_last


_FRESH_ORDER: Final = frozenset({"aten::contiguous", "aten::layer_norm", "aten::linear", LINEAR})
"""Kinds with results in the usual memory order, whatever the order of the first operand."""
_REORDERING: Final = frozenset({"aten::permute", "aten::transpose"})


def _does_not_mind(use: Use) -> bool:
    """Return whether the memory order of a tensor affects nothing that its user computes, and no observable memory
    order."""
    user = use.user
    if user.kind in _LAST_ORDER:
        return use.offset in (0, 3)
    if _forgets_order(use):
        return True
    if user.kind == "aten::mean":
        return _gives_one_place(user)
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
    return user.kind in _ASKING or (user.kind in _FRESH_ORDER and use.offset == 0)


def _gives_one_place(mean: Node) -> bool:
    """Return whether a mean of images leaves one number for each channel, so that their memory order is not
    observable."""
    dims = _ints(mean.inputs[1]) if len(mean.inputs) > 2 else None
    return dims is not None and {dim % 4 for dim in dims} == {2, 3}

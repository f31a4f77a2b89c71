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

Images stay in channels-last order between convolutions, as :mod:`rekindle.passes.frozen_modules.image_order` describes.

What runs these kinds, and how it is chosen: :mod:`rekindle.codegen.convolution.packed_operators`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_int, constant_ints, is_constant, value_of
from rekindle.ir.graph import AttributeValue, Graph, Node, Value
from rekindle.ir.types import NoneType
from rekindle.passes.frozen_modules.foldable import fixed_tensor
from rekindle.passes.frozen_modules.image_order import (
    ADDING,
    CONVOLUTION,
    LINEAR,
    TRANSPOSED,
    ImageOrder,
    is_metadata_query,
)
from rekindle.rewriting.changes import may_change

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
            ImageOrder(graph).keep()
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
    """Return the two items of a constant list of two ints, or the item of a list of one, twice; None for another
    value."""
    known = constant_ints(value) or []
    return known * 2 if len(known) == 1 else known if len(known) == 2 else None


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
        (each.kind in (CONVOLUTION, ADDING) or is_metadata_query(each))
        and each.owning_block is add.owning_block
        and each.is_before(add)
        for each in others
    )

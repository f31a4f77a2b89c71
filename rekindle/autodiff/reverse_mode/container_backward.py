"""Backward of operators that only pack and unpack values.

An operator that extends or changes a list returns a new list here: programs that write to lists are functionalized
first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rekindle.analysis.constants import constant_int
from rekindle.autodiff.reverse_mode.collected_lists import joins_collected_rows
from rekindle.autodiff.reverse_mode.gradient_regions import GradientTree, gradient_type, optional
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import INT, NONE, TENSOR, DictType, ListType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from rekindle.autodiff.reverse_mode.reverse import BlockBackward


def backward_of_container_op(scope: BlockBackward, node: Node) -> bool:
    """Emit the backward of ``node``, an operator on lists, tuples or dicts. Return False, and emit nothing, for other
    nodes."""
    match node.kind:
        case "prim::ListConstruct" | "prim::TupleConstruct":
            gradient = scope.gradients[node.output]
            for value, part in zip(node.inputs, elements_of(scope, gradient, len(node.inputs)), strict=True):
                scope.add(value, part)
        case "prim::ListUnpack" | "prim::TupleUnpack":
            scope.add(node.input, [scope.of(output) for output in node.outputs])
        case "prim::TupleIndex" if constant_int(node.named_input("i")) is not None:
            _tuple_item(scope, node)
        case "prim::ConstantChunk":
            _chunk(scope, node)
        case "prim::unchecked_cast" | "prim::unchecked_unwrap_optional" | "aten::_unwrap_optional":
            scope.add(node.input, scope.of(node.output))
        case "aten::add" if isinstance(node.output.type, ListType):
            _concatenation(scope, node)
        case "aten::append":
            _collected(scope, node)
        case "aten::cat" if joins_collected_rows(node):
            gradient = scope.as_value(scope.gradients[node.output])
            dim = scope.constant(constant_int(node.inputs[1]))
            scope.add(node.inputs[0], scope.insert("aten::split", [gradient, scope.constant(1), dim], ListType(TENSOR)))
        case "aten::slice" if isinstance(node.output.type, ListType):
            _slice(scope, node)
        case "aten::values" | "aten::items" if _holds_tensors(node.input.type):
            scope.add(node.input, _values(scope, node))
        case "autodiff::plus" | "autodiff::sum_of" | "autodiff::added":
            for value in node.inputs:
                scope.add(value, scope.of(node.output))
        case "autodiff::or_zeros" | "autodiff::with_value":
            value, *_ = node.inputs
            scope.add(value, scope.of(node.output))
        case _ if node.kind in _RULES:
            gradient = scope.as_value(scope.gradients[node.output])
            for value, part in zip(node.inputs, _RULES[node.kind](scope, node, gradient), strict=False):
                scope.add(value, part)
        case _:
            return False
    return True


def _with_item(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    whole, index, item = node.inputs
    place = scope.residual(index)
    parts: list[Value | None] = [None, None, None]
    if whole in scope.way.active:
        type = gradient_type(whole.type)
        none = scope.constant(None, type.contained[0])
        parts[0] = scope.insert("autodiff::with_item", [scope.places.fitting(gradient, type), place, none], type)
    if item in scope.way.active:
        parts[2] = scope.insert("aten::__getitem__", [gradient, place], gradient.type.contained[0])
    return parts


def _without_item(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    whole, index = node.inputs
    type = gradient_type(whole.type)
    inputs = [scope.places.fitting(gradient, type), scope.residual(index)]
    return [scope.insert("autodiff::with_room", inputs, type)]


def _with_entry(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    whole, key, value = node.inputs
    place = scope.residual(key)
    parts: list[Value | None] = [None, None, None]
    if whole in scope.way.active:
        parts[0] = scope.insert("autodiff::without_entry", [gradient, place], gradient.type)
    if value in scope.way.active:
        parts[2] = _entry(scope, gradient, place, value)
    return parts


def _entry(scope: BlockBackward, gradient: Value, key: Value, value: Value) -> Value:
    return scope.insert("autodiff::entry", [gradient, key], optional(gradient_type(value.type)))


def _entries(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    parts: list[Value | None] = []
    for key, value in zip(node.inputs[::2], node.inputs[1::2], strict=True):
        parts += [None, _entry(scope, gradient, scope.residual(key), value) if value in scope.way.active else None]
    return parts


def _item(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    """Emit the backward of reading one element of a list or dict: the other elements get no gradient from it."""
    whole, key = node.inputs
    if isinstance(whole.type, ListType):
        inputs = [gradient, scope.graph.insert("aten::len", [scope.residual(whole)]), scope.residual(key)]
        element = TENSOR if isinstance(gradient.type, TensorType) else gradient.type
        return [scope.insert("autodiff::only_at", inputs, ListType(optional(element)))]
    type = gradient_type(whole.type)
    return [scope.insert("prim::DictConstruct", [scope.residual(key), gradient], type)]


def _holds_tensors(type: Type) -> bool:
    return isinstance(type, DictType) and isinstance(type.value, TensorType)


def _values(scope: BlockBackward, node: Node) -> Value:
    """Emit the gradients of a dict from those of the list of its values, or of its items."""
    gradient = scope.places.fitting(scope.as_value(scope.gradients[node.output]), gradient_type(node.output.type))
    if node.kind == "aten::items":
        gradient = scope.insert("autodiff::second_of", [gradient], ListType(optional(TENSOR)))
    whole = node.input
    return scope.insert("autodiff::entries_of", [gradient, scope.residual(whole)], gradient_type(whole.type))


def _entries_of(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    _, whole = node.inputs
    inputs = [gradient, scope.residual(whole)]
    return [scope.insert("autodiff::values_of", inputs, ListType(optional(TENSOR)))]


def _values_of(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    whole, keys = node.inputs
    inputs = [scope.places.fitting(gradient, ListType(optional(TENSOR))), scope.residual(keys)]
    return [scope.insert("autodiff::entries_of", inputs, gradient_type(whole.type))]


def _second_of(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    return [scope.insert("autodiff::as_second", [gradient], gradient_type(node.input.type))]


def _as_second(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    given = scope.places.fitting(gradient, gradient_type(node.output.type))
    return [scope.insert("autodiff::second_of", [given], ListType(optional(TENSOR)))]


def _only_at(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    _, _, index = node.inputs
    place = scope.residual(index)
    return [scope.insert("aten::__getitem__", [gradient, place], gradient.type.contained[0])]


def _with_room(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    _, index = node.inputs
    return [scope.insert("autodiff::without_item", [gradient, scope.residual(index)], gradient.type)]


def _without_entry(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    _, key = node.inputs
    return [scope.insert("autodiff::without_entry", [gradient, scope.residual(key)], gradient.type)]


def _collected(scope: BlockBackward, node: Node) -> None:
    """Emit the backward of ``node``, the append by which a loop fills a list: add the element of the list's gradient
    for this iteration to the item's gradient. :mod:`rekindle.autodiff.reverse_mode.collected_lists` does the rest."""
    whole, item = node.inputs
    block = node.owning_block
    assert block is not None
    iteration = scope.residual(block.inputs[0])
    gradient = scope.as_value(scope.gradients[whole])
    scope.add(item, scope.insert("aten::__getitem__", [gradient, iteration], gradient.type.contained[0]))


def _slice(scope: BlockBackward, node: Node) -> None:
    whole, *options = node.inputs
    gradient = scope.as_value(scope.gradients[node.output])
    count = scope.graph.insert("aten::len", [scope.residual(whole)])
    type = gradient_type(whole.type)
    inputs = [scope.places.fitting(gradient, type), count, *(scope.residual(option) for option in options)]
    scope.add(whole, scope.insert("autodiff::unsliced", inputs, type))


def _fitted(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    _, value = node.inputs
    return [None, in_dtype_of(scope, gradient, scope.residual(value))]


def _in_dtype(scope: BlockBackward, node: Node, gradient: Value) -> list[Value | None]:
    return [in_dtype_of(scope, gradient, scope.residual(node.named_input("gradient")))]


def in_dtype_of(scope: BlockBackward, gradient: Value, value: Value) -> Value:
    """Insert the conversion of ``gradient`` to the dtype that ``value`` has at run time; return the result."""
    return scope.insert("autodiff::in_dtype", [gradient, scope.insert("autodiff::dtype_of", [value], INT)])


_RULES: Final[dict[str, Callable[[BlockBackward, Node, Value], list[Value | None]]]] = {
    "autodiff::with_item": _with_item,
    "autodiff::without_item": _without_item,
    "autodiff::with_entry": _with_entry,
    "autodiff::without_entry": _without_entry,
    "autodiff::entry": _item,
    "autodiff::only_at": _only_at,
    "autodiff::with_room": _with_room,
    "autodiff::fitted": _fitted,
    "autodiff::in_dtype": _in_dtype,
    "autodiff::entries_of": _entries_of,
    "autodiff::values_of": _values_of,
    "autodiff::second_of": _second_of,
    "autodiff::as_second": _as_second,
    "prim::DictConstruct": _entries,
    "aten::__getitem__": _item,
}
"""Functions that return the gradients of the inputs of a node, given that of its result."""


def elements_of(scope: BlockBackward, gradient: GradientTree, count: int) -> list[GradientTree | None]:
    """Return the gradients of the ``count`` elements of a list whose gradient is ``gradient``."""
    if isinstance(gradient, list):
        return gradient
    type = gradient.type
    assert isinstance(type, ListType)
    unpack = scope.graph.create("prim::ListUnpack", [gradient], types=[type.element] * count)
    return list(scope.graph.insert_node(unpack).outputs)


def _chunk(scope: BlockBackward, node: Node) -> None:
    gradients = [scope.of(output) for output in node.outputs]
    is_whole = all(isinstance(gradient, Value) and isinstance(gradient.type, TensorType) for gradient in gradients)
    parts = [] if is_whole else [scope.residual(output) for output in node.outputs]
    whole = scope.as_value(gradients)
    sizes = scope.insert("prim::ListConstruct", parts, ListType(TENSOR))
    inputs = [whole, sizes, scope.constant(node["dim"])]
    scope.add(node.input, scope.insert("autodiff::join", inputs))


def _tuple_item(scope: BlockBackward, node: Node) -> None:
    whole, number = node.inputs
    index, type = constant_int(number), whole.type
    assert index is not None
    assert isinstance(type, TupleType)
    parts: list[GradientTree | None] = [None] * len(type.elements)
    parts[index] = scope.of(node.output)
    scope.add(whole, parts)


def _concatenation(scope: BlockBackward, node: Node) -> None:
    """Emit the backward of the concatenation of two lists."""
    first, second = node.inputs
    gradient = scope.as_value(scope.gradients[node.output])
    type = gradient.type
    count = scope.graph.insert("aten::len", [scope.residual(first)])
    none = scope.constant(None, NONE)
    one = scope.constant(1)
    if first in scope.way.active:
        scope.add(first, scope.insert("aten::slice", [gradient, none, count, one], type))
    if second in scope.way.active:
        scope.add(second, scope.insert("aten::slice", [gradient, count, none, one], type))

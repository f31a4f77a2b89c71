"""The way back through what only puts values together and takes them apart.

A list that is made longer or changed is a new list here: programs that write to lists are rewritten first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rekindle.autodiff.places import GradientOf, gradient_type
from rekindle.ir.graph import Node
from rekindle.ir.types import NONE, TENSOR, ListType

if TYPE_CHECKING:
    from rekindle.autodiff.reverse import Scope


def through(scope: Scope, node: Node) -> bool:
    """Go back through ``node``; False where it is of another kind."""
    match node.kind:
        case "prim::ListConstruct" | "prim::TupleConstruct":
            gradient = scope.gradients[node.output]
            for value, part in zip(node.inputs, elements_of(scope, gradient, len(node.inputs)), strict=True):
                scope.add(value, part)
        case "prim::ListUnpack" | "prim::TupleUnpack":
            scope.add(node.input, [scope.of(output) for output in node.outputs])
        case "prim::ConstantChunk":
            _chunk(scope, node)
        case "aten::__getitem__" if isinstance(node.inputs[0].type, ListType):
            _item(scope, node)
        case "prim::unchecked_cast" | "prim::unchecked_unwrap_optional" | "aten::_unwrap_optional":
            scope.add(node.inputs[0], scope.of(node.output))
        case "aten::add" if isinstance(node.output.type, ListType):
            _concatenation(scope, node)
        case "autodiff::plus" | "autodiff::sum_of":
            for value in node.inputs:
                scope.add(value, scope.of(node.output))
        case _:
            return False
    return True


def elements_of(scope: Scope, gradient: GradientOf, count: int) -> list[GradientOf | None]:
    """The gradients of the elements of a list."""
    if isinstance(gradient, list):
        return gradient
    type = gradient.type
    assert isinstance(type, ListType)
    unpack = scope.graph.create("prim::ListUnpack", [gradient], types=[type.element] * count)
    return list(scope.graph.insert_node(unpack).outputs)


def _chunk(scope: Scope, node: Node) -> None:
    gradients = [scope.of(output) for output in node.outputs]
    parts = [] if None not in gradients else [scope.mirror(output) for output in node.outputs]
    whole = scope.as_value(gradients)
    sizes = scope.insert("prim::ListConstruct", parts, ListType(TENSOR))
    inputs = [whole, sizes, scope.constant(node["dim"])]
    scope.add(node.input, scope.insert("autodiff::join", inputs))


def _item(scope: Scope, node: Node) -> None:
    """A list of which one element is taken: no other has a gradient by that."""
    whole, index = node.inputs
    count = scope.graph.insert("aten::len", [scope.mirror(whole)])
    inputs = [scope.as_value(scope.gradients[node.output]), count, scope.mirror(index)]
    scope.add(whole, scope.insert("autodiff::only_at", inputs, gradient_type(whole.type)))


def _concatenation(scope: Scope, node: Node) -> None:
    """Two lists, one behind the other."""
    first, second = node.inputs
    gradient = scope.as_value(scope.gradients[node.output])
    type = gradient.type
    count = scope.graph.insert("aten::len", [scope.mirror(first)])
    none = scope.constant(None, NONE)
    one = scope.constant(1)
    if first in scope.way.needed:
        scope.add(first, scope.insert("aten::slice", [gradient, none, count, one], type))
    if second in scope.way.needed:
        scope.add(second, scope.insert("aten::slice", [gradient, count, none, one], type))

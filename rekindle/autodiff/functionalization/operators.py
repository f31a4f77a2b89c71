"""Functional forms of operators that write, and inverses of views: how a change of a view changes its base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rekindle.analysis.effects import is_write
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TENSOR, DictType, ListType, TensorType
from rekindle.passes.simplification.functional_variants import functional_kind

FunctionalResult = tuple[Value, dict[Value, Value]]
"""The new value after a write, and replacements for results of the write that differ from the written value."""


def written_operand(node: Node) -> Value | None:
    """Return the first operand if ``node`` writes to it and to no other operand; None otherwise."""
    schema = node.schema
    if schema is None or not schema.arguments or not node.inputs:
        return None
    (operand, *_), (first, *others) = node.inputs, schema.arguments
    return operand if is_write(first.alias) and not any(is_write(other.alias) for other in others) else None


def functional_variant(graph: Graph, node: Node, arguments: Sequence[Value]) -> FunctionalResult | None:
    """Insert the functional variant of an in-place ``node`` at the insertion point, with ``arguments`` as inputs.
    Return the new value, and replacements for results of ``node``; None, with nothing inserted, if there is no
    variant."""
    written, *_ = node.inputs
    if isinstance(written.type, ListType):
        made = _LISTS.get(node.kind)
        return None if made is None else made(graph, node, list(arguments))
    if isinstance(written.type, DictType):
        if node.kind != "aten::_set_item":
            return None
        return _insert(graph, "autodiff::with_entry", arguments, node), {}
    found = _of_tensor(graph, node, list(arguments))
    return None if found is None else (found, {})


def _insert(graph: Graph, kind: str, inputs: Sequence[Value], like: Node) -> Value:
    """Insert a node with the source range of ``like`` and the type of the value that ``like`` writes to."""
    written, *_ = like.inputs
    type = TENSOR if isinstance(written.type, TensorType) else written.type
    return graph.insert_node(graph.create(kind, inputs, types=[type], range=like.range)).output


# ---------------------------------------------------------------------------------------------------------------- lists


def _append(graph: Graph, node: Node, arguments: list[Value]) -> FunctionalResult:
    whole, item = arguments
    one = _insert(graph, "prim::ListConstruct", [item], node)
    return _insert(graph, "aten::add", [whole, one], node), {}


def _extend(graph: Graph, node: Node, arguments: list[Value]) -> FunctionalResult:
    return _insert(graph, "aten::add", arguments, node), {}


def _set_item(graph: Graph, node: Node, arguments: list[Value]) -> FunctionalResult:
    return _insert(graph, "autodiff::with_item", arguments, node), {}


def _pop(graph: Graph, node: Node, arguments: list[Value]) -> FunctionalResult:
    inputs = arguments if len(arguments) == 2 else [arguments[0], graph.insert_constant(-1)]
    item = graph.create("aten::__getitem__", inputs, types=[node.output.type], range=node.range)
    graph.insert_node(item)
    return _insert(graph, "autodiff::without_item", inputs, node), {node.output: item.output}


def _clear(graph: Graph, node: Node, arguments: list[Value]) -> FunctionalResult:
    return _insert(graph, "prim::ListConstruct", [], node), {}


_LISTS: Final[dict[str, Callable[[Graph, Node, list[Value]], FunctionalResult]]] = {
    "aten::append": _append,
    "aten::extend": _extend,
    "aten::add_": _extend,
    "aten::_set_item": _set_item,
    "aten::pop": _pop,
    "aten::clear": _clear,
}


# -------------------------------------------------------------------------------------------------------------- tensors


def _of_tensor(graph: Graph, node: Node, arguments: list[Value]) -> Value | None:
    whole = arguments[0]
    match node.kind:
        case "aten::copy_":
            value = graph.insert("aten::type_as", [arguments[1], whole])
            return graph.insert("aten::expand_as", [value, whole], range=node.range)
        case "aten::zero_":
            return graph.insert("aten::zeros_like", [whole], range=node.range)
        case "aten::fill_" if isinstance(node.named_input("value").type, TensorType):
            value = graph.insert("aten::type_as", [arguments[1], whole])
            return graph.insert("aten::expand_as", [value, whole], range=node.range)
        case "aten::fill_":
            return graph.insert("aten::full_like", [whole, arguments[1]], range=node.range)
    if not node.kind.endswith("_") or node.kind.endswith("__"):
        return None
    if node.has_trait(Trait.RESHAPES) or node.kind in ("aten::detach_", "aten::requires_grad_"):
        return None
    new = graph.create(node.kind[:-1], arguments, range=node.range)
    operator = new.operator
    if operator is None or any(is_write(each.alias) for each in operator.schema.arguments):
        new.destroy()
        return None
    value = graph.insert_node(new).output
    if functional_kind(node, sizes_stay=True) is not None:
        return value
    return _insert(graph, "autodiff::fitted", [whole, value], node)


# ---------------------------------------------------------------------------------------------------------------- views

_ViewInverse = Callable[[Graph, Node, Value, Value], Value]


def _scatter(kind: str) -> _ViewInverse:
    def put(graph: Graph, view: Node, base: Value, new: Value) -> Value:
        return graph.insert_node(graph.create(kind, [base, new, *view.inputs[1:]])).output

    return put


def _narrow(graph: Graph, view: Node, base: Value, new: Value) -> Value:
    _, dim, start, length = view.inputs
    end = graph.insert("aten::add", [start, length])
    return graph.insert("aten::slice_scatter", [base, new, dim, start, end, 1])


def _same_again(graph: Graph, view: Node, base: Value, new: Value) -> Value:
    return graph.insert_node(graph.create(view.kind, [new, *view.inputs[1:]])).output


def _as_before(graph: Graph, view: Node, base: Value, new: Value) -> Value:
    size = graph.insert("aten::size", [base])
    return graph.insert("aten::reshape", [new, size])


def _permuted(graph: Graph, view: Node, base: Value, new: Value) -> Value:
    order = graph.insert("autodiff::inverse_order", [view.named_input("dims")])
    return graph.insert("aten::permute", [new, order])


VIEWS: Final[dict[str, _ViewInverse]] = {
    "aten::select": _scatter("aten::select_scatter"),
    "aten::slice": _scatter("aten::slice_scatter"),
    "aten::diagonal": _scatter("aten::diagonal_scatter"),
    "aten::narrow": _narrow,
    "aten::t": _same_again,
    "aten::transpose": _same_again,
    "aten::permute": _permuted,
    **dict.fromkeys(
        ("aten::view", "aten::view_as", "aten::unsqueeze", "aten::squeeze", "aten::alias"),
        _as_before,
    ),
}
"""View operators, each with the function that writes a changed view back into its base."""


def view_base(node: Node) -> Value | None:
    """Return the base of the view that ``node`` returns, if an inverse of the view operator is known; None
    otherwise."""
    if node.kind not in VIEWS:
        return None
    base, *_ = node.inputs
    return base if isinstance(base.type, TensorType) and isinstance(node.output.type, TensorType) else None


def apply_view_inverse(graph: Graph, view: Node, base: Value, new: Value) -> Value | None:
    """Insert the inverse of a view: return ``base`` with the part that ``view`` selects replaced by ``new``. Return
    None if there is no inverse."""
    put = VIEWS.get(view.kind)
    return None if put is None else put(graph, view, base, new)

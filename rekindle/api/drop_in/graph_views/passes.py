"""Functions of ``torch._C`` that take graphs, for views of graphs: ``torch._C._jit_pass_inline(graph)``.

While the drop-in is installed, each is replaced by a function that looks at its first argument: a view is passed to the
functions in this file, anything else to PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import torch

from rekindle.api.drop_in.graph_views.views import GraphView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.verifier import verify
from rekindle.passes import (
    CommonSubexpressionElimination,
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    LowerSimpleTuples,
    Pass,
    Peephole,
    RemoveMutation,
    run_passes,
)
from rekindle.passes.canonicalization.inlining import replace_call


def inline_with_scopes(graph: Graph) -> None:
    """Inline every call except recursive ones, in place, and set the scope of inlined nodes: the modules that they run
    in.

    Before::

        %fc = prim::GetAttr[name="fc"](%self)
        %y = prim::CallMethod[name="forward"](%fc, %x)

    After::

        %fc = prim::GetAttr[name="fc"](%self)
        %w = prim::GetAttr[name="weight"](%fc), scope: __module.fc
        %y = aten::linear(%x, %w, %none), scope: __module.fc
    """
    work = [graph.block]
    while work:
        block = work.pop()
        node = block.return_node.next
        while node is not block.return_node:
            record = called_function(node)
            if record is None or record.is_recursive:
                work.extend(node.blocks)
                node = node.next
                continue
            scope, following = _scope_of_callee(node), node.next
            node = replace_call(node, record, record.graph)
            each = node
            while each is not following:
                for inner in (each, *each.inner_nodes()):
                    inner.scope = scope
                each = each.next


def _scope_of_callee(call: Node) -> str:
    """Return the scope of the callee: that of the call, followed by the path of the module whose method is called; the
    scope of the call alone if that module is not read from a block's input, and for functions."""
    path: list[str] = []
    value: Value = call.inputs[0]
    while call.kind == "prim::CallMethod" and value.node.kind == "prim::GetAttr":
        path.insert(0, str(value.node.attributes["name"]))
        value = value.node.input
    if not path or value.node.kind != "prim::Param":
        return call.scope
    inner = ".".join(("__module", *path))
    return f"{call.scope}/{inner}" if call.scope else inner


def _runs(optimization: Callable[[], Pass]) -> Callable[..., None]:
    def run(graph: GraphView, *options: object) -> None:
        run_passes(graph.ir, [optimization()])

    return run


def _canonicalize(graph: GraphView, *options: object) -> GraphView:
    """Return a copy whose values are numbered in order, without names."""
    copied = Graph()
    numbers: dict[Value, Value] = {value: copied.add_input(type=value.type) for value in graph.ir.inputs}
    for node in graph.ir.nodes:
        copied.insert_clone(node, numbers)
    for output in graph.ir.outputs:
        copied.add_output(numbers[output])
    for value in copied.block.all_values():
        value.set_name("")
    return GraphView(copied)


FUNCTIONS_OF_GRAPHS: Final[dict[str, Callable[..., Any]]] = {
    "_jit_pass_canonicalize": _canonicalize,
    "_jit_pass_constant_pooling": _runs(ConstantPooling),
    "_jit_pass_constant_propagation": _runs(ConstantPropagation),
    "_jit_pass_cse": _runs(CommonSubexpressionElimination),
    "_jit_pass_dce": _runs(DeadCodeElimination),
    "_jit_pass_inline": lambda graph: inline_with_scopes(graph.ir),
    "_jit_pass_lint": lambda graph: verify(graph.ir),
    "_jit_pass_lower_all_tuples": _runs(LowerSimpleTuples),
    "_jit_pass_peephole": _runs(Peephole),
    "_jit_pass_remove_mutation": _runs(RemoveMutation),
}
"""The functions by their names in ``torch._C``."""


def for_views(name: str) -> Callable[..., Any]:
    """Return a function that replaces ``torch._C``'s function ``name``: it handles views of graphs by this file's
    function, and passes other arguments to the original."""
    original, for_view = getattr(torch._C, name), FUNCTIONS_OF_GRAPHS[name]

    @wraps(original)
    def function(graph: Any, *options: Any, **named: Any) -> Any:
        chosen = for_view if isinstance(graph, GraphView) else original
        return chosen(graph, *options, **named)

    return function

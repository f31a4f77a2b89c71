"""Lower contexts and asynchronous calls before a program is differentiated.

.. code-block:: text

    %f : Future(Tensor) = prim::fork_0(%x)
    %1 : Tensor = aten::wait(%f)                 %1 : Tensor = aten::mul(%x, %x)
    %2 : … = prim::Enter(%no_grad)     becomes
    %3 : Tensor = aten::mul(%1, %two)            %3 : Tensor = aten::mul(%1, %two)
    %4 : Tensor = prim::Exit(%no_grad)           %4 : Tensor = aten::detach(%3)
    return (%3)                                  return (%4)
"""

from __future__ import annotations

from typing import Final

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.functionalization.operators import functional_variant, written_operand
from rekindle.autodiff.reverse_mode.tape import is_differentiable_type
from rekindle.errors import DifferentiationError
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import ClassType, FutureType, TensorType, Type
from rekindle.passes import Inlining, run_passes


def lower_contexts(graph: Graph) -> None:
    """Replace forks by direct calls, and detach the values computed in regions without gradients.

    Raises:
        DifferentiationError: an argument is a future, a context is not known, ``enable_grad`` is within ``no_grad``, or
            a value or a write in a region without gradients cannot be detached.
    """
    _run_in_place(graph)
    _plain_block(graph.block)


# ---------------------------------------------------------------------------------------------------------------- forks


def _run_in_place(graph: Graph) -> None:
    """Replace forks by direct calls. A future is then its result, at all uses.

    Raises:
        DifferentiationError: an argument is a future.
    """
    for value in graph.inputs:
        if _is_future(value.type):
            raise DifferentiationError(
                f"gradients cannot go back through a value of type {value.type}, which is an argument",
                hint="wait for it before, and pass what it gives",
            )
    forks = graph.find_nodes("prim::fork")
    if not forks:
        return
    while forks:
        for node in forks:
            forked = node.get_graph("Subgraph").copy()
            run_passes(forked, (Inlining(),))
            with graph.inserting_before(node):
                (result,) = graph.insert_graph(forked, list(node.inputs))
            node.replace_with(result)
        forks = graph.find_nodes("prim::fork")
    for value in graph.block.all_values():
        value.type = _without_futures(value.type)
    for wait in graph.find_nodes("aten::wait"):
        wait.replace_with(wait.input)


def _is_future(type: Type) -> bool:
    return isinstance(type, FutureType) or any(map(_is_future, type.contained))


def _without_futures(type: Type) -> Type:
    if isinstance(type, FutureType):
        return _without_futures(type.element)
    return type.with_contained([_without_futures(part) for part in type.contained]) if _is_future(type) else type


# ------------------------------------------------------------------------------------------------------------- contexts

_WITHOUT: Final = "__torch__.torch.autograd.grad_mode.no_grad"
_WITH: Final = "__torch__.torch.autograd.grad_mode.enable_grad"


def _plain_block(block: Block) -> None:
    for node in list(block.nodes):
        for inner in node.blocks:
            _plain_block(inner)
        if node.in_block and node.kind in ("prim::Enter", "prim::With"):
            _plain_context(node)


def _plain_context(enter: Node) -> None:
    context = enter.input
    type = context.type
    name = type.name if isinstance(type, ClassType) else ""
    if enter.kind == "prim::With" or name not in (_WITHOUT, _WITH):
        raise DifferentiationError(
            f"gradients cannot go back through this context, a {type}",
            enter.range,
            hint="leave the context out of what is differentiated; of contexts, no_grad and enable_grad are known",
        )
    within: list[Node] = []
    node = enter.next
    while not (node.kind == "prim::Exit" and node.input is context):
        within.append(node)
        node = node.next
    if name == _WITHOUT:
        _refuse_gradients(within)
        _detach(within, node)
    maker = context.node
    for use in context.uses:
        if use.user.kind in ("prim::Enter", "prim::Exit", "prim::SetAttr") and not use.user.has_uses:
            use.user.destroy()
    if not context.has_uses:
        maker.destroy()


def _refuse_gradients(within: list[Node]) -> None:
    """Check that no node ``within`` a region without gradients, nested blocks included, enables gradients.

    Raises:
        DifferentiationError: a node enters ``enable_grad``.
    """
    nested = (each for node in within for block in node.blocks for each in block.all_nodes())
    for node in (*within, *nested):
        if node.kind == "prim::Enter" and isinstance(node.input.type, ClassType) and node.input.type.name == _WITH:
            raise DifferentiationError(
                "gradients cannot go back through enable_grad within no_grad",
                node.range,
                hint="end the no_grad before, and begin another after it",
            )


def _detach(within: list[Node], end: Node) -> None:
    """Replace the uses, after ``end``, of values computed ``within`` by detached values.

    Raises:
        DifferentiationError: one of the values is a list, a tuple or a dict of tensors, or a write to a tensor from
            outside has no functional variant.
    """
    graph = end.graph
    for node in within:
        written = written_operand(node)
        if written is not None and may_contain_tensor(written.type) and written.node not in within:
            _write_without(node, written)
            continue
        for output in node.outputs:
            outside = [use for use in output.uses if use.user.is_after(end) or use.user.kind == "prim::Return"]
            outside = [use for use in outside if not any(each in within for each in use.user.ancestors())]
            if not outside or not is_differentiable_type(output.type):
                continue
            if not isinstance(output.type, TensorType):
                raise DifferentiationError(
                    f"a value of type {output.type} is computed within no_grad",
                    node.range,
                    hint="detach the tensors in it instead",
                )
            with graph.inserting_before(end):
                detached = graph.insert("aten::detach", [output])
            for use in outside:
                use.user.replace_input(use.offset, detached)


def _write_without(node: Node, written: Value) -> None:
    """Replace an operator that writes to a tensor: compute the new value without a write, detach it, and then write
    it.

    Raises:
        DifferentiationError: the operator has no functional variant.
    """
    graph = node.graph
    if isinstance(written.type, TensorType):
        with graph.inserting_before(node):
            arguments = [
                graph.insert("aten::detach", [value]) if isinstance(value.type, TensorType) else value
                for value in node.inputs
            ]
            form = functional_variant(graph, node, arguments)
            if form is not None:
                graph.insert("autodiff::with_value_", [written, form[0]], range=node.range)
                node.replace_with(written)
                return
    raise DifferentiationError(
        "gradients cannot go back through a write within no_grad",
        node.range,
        hint="compute a new value instead of writing to one",
    )

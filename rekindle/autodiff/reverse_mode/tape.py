"""Tape: the steps of a graph, each with the formula of its gradient. Reverse mode traverses them from the last to the
first.

Composite operators are written out first, and operators whose formula has a forward of its own are replaced by it.
Branches and loops are steps that hold the steps of their blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rekindle.analysis.constants import constant_bool, constant_int, is_constant, value_of
from rekindle.analysis.effects import is_nondeterministic, may_write
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.complex_numbers import ComplexValues
from rekindle.autodiff.formula import Formula, FormulaFunction, formula_of, is_constant_operator
from rekindle.autodiff.reverse_mode.collected_lists import collected_lists, is_collecting, joins_collected_rows
from rekindle.errors import DifferentiationError
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type


@dataclass(slots=True, eq=False)
class TapeEntry:
    """An entry of the tape: a node of the forward graph, or a part of its replacement. ``values`` are its arguments,
    results and residuals by name; ``blocks`` are the entries of its blocks."""

    node: Node | None
    formula: Formula | None
    values: dict[str, Value] = field(default_factory=dict)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    blocks: list[list[TapeEntry]] = field(default_factory=list)


STRUCTURE: Final = frozenset(
    {
        *("prim::Constant", "prim::ListConstruct", "prim::ListUnpack", "prim::TupleConstruct", "prim::TupleUnpack"),
        *("prim::ConstantChunk", "prim::unchecked_cast", "prim::unchecked_unwrap_optional"),
    }
)
"""Kinds that the derivative goes back through by itself."""


_CONSTANT: Final = frozenset({"autodiff::unit", "autodiff::seed"})
"""Kinds defined by this package whose results have no gradient."""


def is_differentiable_type(type: Type) -> bool:
    """Return whether a value of this type may have a gradient: a tensor, or a list, a tuple or a dict of tensors."""
    if isinstance(type, (OptionalType, ListType)):
        return is_differentiable_type(type.contained[0])
    if isinstance(type, DictType):
        return is_differentiable_type(type.value)
    if isinstance(type, TupleType):
        return any(is_differentiable_type(part) for part in type.contained)
    return isinstance(type, TensorType)


def is_constant_for_gradients(node: Node) -> bool:
    """Return whether the results of ``node`` have no gradient, whatever its inputs are."""
    if node.kind == "prim::Constant" or not any(is_differentiable_type(output.type) for output in node.outputs):
        return True
    if is_constant_operator(node) or node.kind in _CONSTANT:
        return True
    schema = node.schema
    index = None if schema is None else schema.argument_index("dtype")
    if index is None or index >= len(node.inputs):
        return False
    number = constant_int(node.inputs[index])
    if number is None:
        return False
    dtype = DTYPES[number]
    return dtype is not None and not dtype.is_floating_point and not dtype.is_complex


def build_tape(block: Block, complexes: ComplexValues | None = None) -> list[TapeEntry]:
    """Return the tape of ``block``: its nodes in order. In the graph, composite operators are expanded, and operators
    whose formula has a forward of its own are replaced by it. ``complexes`` are the complex values of the enclosing
    blocks."""
    complexes = ComplexValues() if complexes is None else complexes
    steps: list[TapeEntry] = []
    node = block.return_node.next
    while node is not block.return_node:
        formula = None
        if not (complexes.touches(node) or is_constant_for_gradients(node) or joins_collected_rows(node)):
            formula = formula_of(node)
        if formula is not None and formula.composite is not None:
            node = _write_out(node, formula, formula.composite)
            continue
        following = node.next
        steps.append(_step(node, formula, complexes))
        node = following
    return steps


def _write_out(node: Node, formula: Formula, part: FormulaFunction) -> Node:
    """Replace a composite ``node`` by its definition ``part``; return the first of the new nodes."""
    before = node.prev
    results = _insert(node, formula, part)
    for output, result in zip(node.outputs, results, strict=True):
        _keep_type(output, result)
    node.replace_with(*results)
    return before.next


def _keep_type(output: Value, result: Value) -> None:
    """Copy the type of ``output`` to ``result``, which replaces it, and to what the branches of ``result`` return,
    except for subtypes: loops and branches rely on it."""
    if result.type.is_subtype_of(output.type):
        return
    result.set_type(output.type)
    for block in result.node.blocks if result.node.kind == "prim::If" else ():
        returned = block.outputs[result.offset]
        if returned.node.owning_block is not block:  # elsewhere, less may be known of it
            cast = block.append(output.graph.create("prim::unchecked_cast", [returned], types=[output.type]))
            block.return_node.replace_input(result.offset, cast.output)
        else:
            _keep_type(output, returned)


def _insert(node: Node, formula: Formula, part: FormulaFunction) -> list[Value]:
    """Insert the graph of ``part`` before ``node``, on the arguments of ``node``; return its results."""
    graph = node.graph
    arguments = dict(zip((argument.name for argument in formula.schema.arguments), node.inputs, strict=True))
    with graph.inserting_before(node):
        before = node.prev
        passed = [arguments[name] for name in part.parameters]
        (result,) = graph.insert_graph(part.graph_for(passed), passed)
        each = before.next
        while each is not node:
            for inserted in (each, *each.inner_nodes()):
                inserted.range, inserted.callstack, inserted.scope = node.range, node.callstack, node.scope
            each = each.next
        return unpacked(graph, result) if len(part.returns) > 1 else [result]


def unpacked(graph: Graph, value: Value) -> list[Value]:
    """Return the elements of a tuple: those that it was packed from, or new values at the insertion point."""
    if value.node.kind == "prim::TupleConstruct":
        return list(value.node.inputs)
    unpack = graph.create("prim::TupleUnpack", [value], types=list(value.type.contained))
    return list(graph.insert_node(unpack).outputs)


def _step(node: Node, formula: Formula | None, complexes: ComplexValues) -> TapeEntry:
    if formula is None and is_collecting(node):  # a step towards the list that is filled
        return TapeEntry(node, None, {}, list(node.inputs), [node.inputs[0]])
    if formula is None:
        complexes.enter(node)
        filled = [each.value for each in collected_lists(node)] if node.kind == "prim::Loop" else []
        has_none = is_constant_for_gradients(node) and not filled
        blocks = [] if has_none else [build_tape(block, complexes) for block in node.blocks]
        complexes.leave(node)
        return TapeEntry(node, None, {}, list(node.inputs), [*node.outputs, *filled], blocks)
    values = dict(zip((argument.name for argument in formula.schema.arguments), node.inputs, strict=True))
    inputs, outputs = list(node.inputs), list(node.outputs)
    part = formula.forward
    if part is not None:
        found = _insert(node, formula, part)
        values.update(zip(part.returns, found, strict=True))
        for output, result in zip(node.outputs, found, strict=False):
            _keep_type(output, result)
            output.replace_all_uses_with(result)
            if output.has_name:
                result.copy_metadata(output)
        outputs = found[: len(outputs)]
        node.destroy()
    for index, (name, result) in enumerate(zip(formula.result_names, outputs, strict=True)):
        values[name] = values[f"result{index}"] = result
    return TapeEntry(None if part is not None else node, formula, values, inputs, outputs)


# ------------------------------------------------------------------------------------------------------ what needs what


def active_values(steps: Sequence[TapeEntry], inputs: Collection[Value]) -> set[Value]:
    """Return the active values: those that may depend on the ``inputs`` whose gradients are wanted, and that have
    gradients themselves.

    Raises:
        DifferentiationError: an operator has no gradient for an active argument, or a node other than a branch or a
            loop has blocks.
    """
    found = set(inputs)
    _mark(steps, found)
    _check(steps, found)
    return found


_WITHOUT_GRADIENT: Final = {
    "aten::soft_margin_loss": "target",
    "aten::binary_cross_entropy": "weight",
    "aten::binary_cross_entropy_with_logits": "weight",
    "aten::nll_loss": "weight",
    "aten::nll_loss2d": "weight",
    "aten::nll_loss_nd": "weight",
    "aten::cross_entropy_loss": "weight",
    "aten::multi_margin_loss": "weight",
}
"""Arguments for which PyTorch raises instead of returning no gradient."""


def _check(steps: Sequence[TapeEntry], found: Collection[Value]) -> None:
    for step in steps:
        for inner in step.blocks:
            _check(inner, found)
        schema = None if step.formula is None else step.formula.schema
        name = None if schema is None else _WITHOUT_GRADIENT.get(schema.name)
        if name is not None and schema is not None and step.values[name] in found:
            raise DifferentiationError(
                f"{schema.name} is not differentiable with respect to its argument '{name}'",
                None if step.node is None else step.node.range,
                hint="detach that argument",
            )


def _mark(steps: Sequence[TapeEntry], found: set[Value]) -> None:
    for step in steps:
        if not step.blocks:
            found.update(output for output in _differentiable_outputs(step) if _depends(step, found))
        elif step.node is not None and step.node.kind == "prim::If":
            _mark_branches(step, step.node, found)
        elif step.node is not None and step.node.kind == "prim::Loop":
            _mark_loop(step, step.node, found)
        elif step.node is not None:
            raise DifferentiationError(
                f"gradients cannot go back through {step.node.kind}",
                step.node.range,
                hint="compute it outside of the differentiated function",
            )


def _mark_branches(step: TapeEntry, node: Node, found: set[Value]) -> None:
    for inner in step.blocks:
        _mark(inner, found)
    for block in node.blocks:
        pairs = zip(node.outputs, block.outputs, strict=True)
        found.update(output for output, result in pairs if result in found and is_differentiable_type(output.type))


def _mark_loop(step: TapeEntry, node: Node, found: set[Value]) -> None:
    carried = [each for each in LoopView(node).carried if is_differentiable_type(each.parameter.type)]
    while True:
        before = len(found)
        for start, inside, result, output in carried:
            if start in found or result in found:
                found.update((inside, output))
        _mark(step.blocks[0], found)
        if len(found) == before:
            return


def _depends(step: TapeEntry, found: set[Value]) -> bool:
    if step.formula is not None:
        return any(step.values[name] in found for name in step.formula.targets)
    return any(value in found for value in step.inputs)


_RESULTS_WITHOUT_GRADIENT: Final = {
    "aten::linalg_lstsq": ("rank", "singular_values"),
    "aten::linalg_lu": ("P",),
    "aten::lu_unpack": ("P",),
}
"""For operators without a formula: the results that have no gradient in PyTorch's autograd."""


def _differentiable_outputs(step: TapeEntry) -> list[Value]:
    formula = step.formula
    if step.node is not None and is_constant_for_gradients(step.node):
        return []
    outputs = [output for output in step.outputs if is_differentiable_type(output.type)]
    if step.node is not None and step.node.kind in _RESULTS_WITHOUT_GRADIENT and step.node.schema is not None:
        without = _RESULTS_WITHOUT_GRADIENT[step.node.kind]
        names = [result.name for result in step.node.schema.returns]
        return [output for output, name in zip(step.outputs, names, strict=True) if name not in without]
    if formula is None or len(step.outputs) == 1:
        return outputs
    return [output for index, output in enumerate(step.outputs) if f"grad{index}" in formula.uses]


def is_recomputable(node: Node) -> bool:
    """Return whether running ``node`` again, also where autograd records nothing, yields the same results and has no
    effect on others. False for a node with blocks."""
    if may_write(node) or node.blocks or _reads_records(node):
        return False
    return not is_nondeterministic(node) or draws_nothing(node)


def _reads_records(node: Node) -> bool:
    """Return whether ``node`` depends on what autograd has recorded, which is nothing in a differentiable graph."""
    if node.kind in _TEXTS:  # the text of a tensor names its grad_fn
        return any(may_contain_tensor(value.type) for value in node.inputs)
    return node.kind in _OF_AUTOGRAD


_OF_AUTOGRAD: Final = frozenset(
    {
        *("prim::requires_grad", "prim::grad", "aten::is_leaf", "aten::is_grad_enabled", "aten::is_inference"),
        *("aten::is_inference_mode_enabled", "aten::retains_grad", "aten::output_nr", "aten::_version"),
    }
)
_TEXTS: Final = frozenset({"aten::str", "aten::format", "aten::percentFormat"})


def draws_nothing(node: Node) -> bool:
    """Return whether a random operator such as dropout has a rate of 0 or is in evaluation mode, so that it draws
    nothing."""
    rates, flags = _dropping(node)
    return 0.0 in rates or False in flags


def may_be_identity_dropout(node: Node) -> bool:
    """Return whether a node that may draw random numbers may return its argument."""
    operator = node.operator
    if operator is None or not operator.may_alias_inputs or not is_nondeterministic(node):
        return False
    rates, flags = _dropping(node)
    return not is_recomputable(node) and (None in rates or None in flags)


def _dropping(node: Node) -> tuple[list[Any], list[bool | None]]:
    """Return the rates at which a node drops elements, and whether it is in training mode; None for unknown values."""
    schema = node.schema
    if schema is None:
        return [], []
    named = dict(zip((argument.name for argument in schema.arguments), node.inputs, strict=False))
    names = ("dropout", "dropout_p", *(("p",) if "train" in named else ()))
    rates = [value_of(named[name].node) if is_constant(named[name]) else None for name in names if name in named]
    flags = [constant_bool(named[name]) for name in ("train", "training") if name in named]
    return rates, flags

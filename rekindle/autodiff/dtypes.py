"""Where the gradient of a value may be of another dtype than the value, and is converted, as PyTorch's autograd does.

.. code-block:: text

    %y : Tensor = aten::mul(%x, %w)     becomes     %1 : Tensor = aten::mul(%grad, %w)
                                                    %2 : Tensor = autodiff::in_dtype(%1, %dtype_of_x)

The gradient of the product is of the dtype that the factors are promoted to. Where a factor may be of another one, its
gradient is converted before an operator gets it that takes tensors of one dtype alone, such as products of matrices and
layers, and before it is a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rekindle.analysis.effects import CASTS
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.reverse_mode.tape import TapeEntry
from rekindle.ir.control_flow import incoming_values
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import NONE, OptionalType, TensorType, Type
from rekindle.ops.registration.traits import traits_of_kind


def introduces_dtypes(graph: Graph) -> bool:
    """Return whether a tensor in ``graph`` may have another dtype than the floating-point inputs of the graph."""
    return any(node.has_trait(Trait.CONVERTS) or _has_dtype(node) or _is_new(node) for node in graph.all_nodes())


def _has_dtype(node: Node) -> bool:
    schema = node.schema
    index = None if schema is None else schema.argument_index("dtype")
    return index is not None and index < len(node.inputs) and node.inputs[index].type != NONE


def _is_new(node: Node) -> bool:
    """Return whether ``node`` creates a tensor without taking one, so that its dtype may be the default dtype."""
    if node.kind.startswith("prim::") and node.kind != "prim::NumToTensor":
        return node.kind == "prim::Constant" and isinstance(node.output.type, TensorType)
    takes = any(may_contain_tensor(value.type) for value in node.inputs)
    return not takes and any(isinstance(output.type, TensorType) for output in node.outputs)


def values_to_convert(steps: Sequence[TapeEntry]) -> set[Value]:
    """Return the tensors whose gradients may be of other dtypes than they are themselves, and have to be converted:
    those that the graph takes, and results of operators whose formulas do more than promoting arithmetic."""
    made_by = {output: step for step in _every(steps) for output in step.outputs}
    pending = [value for step in _every(steps) if _promotes(step) for value in step.inputs if _is_tensor(value.type)]
    found, seen = set(), set(pending)
    while pending:
        value = pending.pop()
        step = made_by.get(value)
        if step is not None and step.formula is not None and Trait.CONVERTS in traits_of_kind(step.formula.schema.name):
            continue
        if step is not None and _takes_any_dtype(step):
            sources = [each for each in step.inputs if _is_tensor(each.type)]
        else:
            sources = _sources(value)
            if not sources:
                found.add(value)
        for source in sources:
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return found


def _takes_any_dtype(step: TapeEntry) -> bool:
    """Return whether the derivative formula of ``step`` accepts a gradient of any dtype."""
    if step.formula is None:
        return False
    schema = step.formula.schema
    is_view = any(result.alias is not None for result in schema.returns)
    return is_view or Trait.PROMOTING_GRADIENT in traits_of_kind(schema.name)


def _every(steps: Sequence[TapeEntry]) -> Iterator[TapeEntry]:
    for step in steps:
        yield step
        for inner in step.blocks:
            yield from _every(inner)


def _promotes(step: TapeEntry) -> bool:
    """Return whether the tensor inputs of ``step`` may have other dtypes than its results."""
    if step.formula is None:
        return step.node is not None and step.node.kind == "prim::ListConstruct"
    if traits_of_kind(step.formula.schema.name) & {Trait.ONE_DTYPE, Trait.CONVERTS}:
        return False
    tensors = [value.type for value in step.inputs if _is_tensor(value.type)]
    if _are_known_as_one([*tensors, *(output.type for output in step.outputs)]):
        return False
    dtype = step.values.get("dtype")
    return len(tensors) > 1 or (dtype is not None and dtype.type != NONE)


def _is_tensor(type: Type) -> bool:
    return isinstance(type.element if isinstance(type, OptionalType) else type, TensorType)


def _are_known_as_one(types: Sequence[Type]) -> bool:
    dtypes = {type.dtype if isinstance(type, TensorType) else None for type in types}
    return len(dtypes) == 1 and None not in dtypes


def _sources(value: Value) -> list[Value]:
    """Return the values that ``value`` may be equal to: results of branches, loop-carried values, operands of casts;
    empty for others."""
    node = value.node
    if node.kind in CASTS:
        return [node.input]
    return incoming_values(value) or []

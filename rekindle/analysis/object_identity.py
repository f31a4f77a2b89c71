"""Object identity: which values are known to be different objects.

.. code-block:: text

    %y : Tensor = aten::add(%x, %x, %one)
    %same : bool = aten::__is__(%y, %x)      # False: the sum is created after %x

An operator of the dispatcher creates its results when it runs, unless it may return an argument itself. So its result
differs from every value that was computed before. This holds for views too: they are new tensors.
"""

from __future__ import annotations

from rekindle.analysis.aliasing.alias_summaries import alias_summary_of
from rekindle.ir.graph import Value
from rekindle.ir.operators.registry import Operator
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TensorType


def are_distinct_objects(a: Value, b: Value) -> bool:
    """Return whether ``a is b`` is known to be False, of two values that a node may both read. One must be a tensor."""
    return _is_created_after(a, b) or _is_created_after(b, a)


def _is_created_after(value: Value, other: Value) -> bool:
    """Return whether a tensor is a new object, created after ``other`` was computed."""
    node = value.node
    if not isinstance(value.type, TensorType) or other.node is node or not other.node.is_before(node):
        return False
    if node.kind == "prim::If":
        return all(_is_created_after(block.outputs[value.offset], other) for block in node.blocks)
    operator = node.operator
    return operator is not None and not node.blocks and creates_results(operator)


def creates_results(operator: Operator) -> bool:
    """Return whether tensors that ``operator`` returns are new objects, neither arguments nor elements of them. That is
    only known of PyTorch's own operators: schemas of the others may leave out what their results are."""
    if not operator.is_dispatched or not operator.name.startswith("aten::"):
        return False
    summary = alias_summary_of(operator)
    if summary.may_alias_inputs:
        return False
    return Trait.VIEW in operator.traits or not (summary.sources or summary.from_wildcard)

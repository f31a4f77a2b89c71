"""Which values may be complex numbers. Formulas are those of real ones: what touches others is left to PyTorch's
autograd, which knows conjugates, and that the gradient of a real number is real."""

from __future__ import annotations

from torch import Tensor

from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import COMPLEX, TensorType


class ComplexValues:
    """The values that may be complex, among the nodes visited so far, in order."""

    def __init__(self) -> None:
        self._known: set[Value] = set()

    def touches(self, node: Node) -> bool:
        """Return whether ``node`` may have complex inputs or outputs. Outputs that may be complex are recorded."""
        makes = _makes(node)
        takes = any(value in self._known or _is_by_type(value) for value in node.inputs)
        if makes or (takes and not node.has_trait(Trait.MAKES_REAL)):
            self._known.update(node.outputs)
        return makes or takes

    def enter(self, node: Node) -> None:
        """Mark the block inputs of ``node`` if they may be complex, before its blocks are visited."""
        if self.touches(node) or (node.kind == "prim::Loop" and any(map(_holds, node.blocks))):
            for block in node.blocks:
                self._known.update(block.inputs)

    def leave(self, node: Node) -> None:
        """Mark the outputs of ``node`` if its blocks return complex numbers, after they are visited."""
        for block in node.blocks:
            if any(value in self._known or _is_by_type(value) for value in block.outputs):
                self._known.update(node.outputs)


def _holds(block: Block) -> bool:
    """Return whether a node in ``block`` creates complex numbers."""
    return any(_makes(node) or any(map(_holds, node.blocks)) for node in block.nodes)


def _makes(node: Node) -> bool:
    if node.has_trait(Trait.MAKES_COMPLEX) or any(value.type == COMPLEX for value in (*node.inputs, *node.outputs)):
        return True
    if node.kind == "prim::Constant":
        value = node.attributes.get("value")
        return isinstance(value, complex) or (isinstance(value, Tensor) and value.is_complex())
    schema = node.schema
    index = None if schema is None else schema.argument_index("dtype")
    number = None if index is None or index >= len(node.inputs) else constant_int(node.inputs[index])
    dtype = None if number is None else DTYPES[number]
    return dtype is not None and dtype.is_complex


def _is_by_type(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.dtype is not None and type.dtype.is_complex

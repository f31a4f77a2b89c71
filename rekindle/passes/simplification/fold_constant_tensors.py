"""Evaluate operators on constant tensors, lists and dicts at compile time.

.. code-block:: text

    %w : Tensor = prim::Constant[value=…]()
    %t : Tensor = aten::t(%w)
    %s : Tensor = aten::mul(%t, %two)                       %s : Float(3, 2) = prim::Constant[value=…]()
    %n : int = aten::size(%w, %zero)             becomes    %n : int = prim::Constant[value=2]()
    %y : Tensor = aten::matmul(%x, %s)                      %y : Tensor = aten::matmul(%x, %s)

For graphs whose constants are private, as those of frozen modules. Nothing in the graph may write to the operands or
the result, and the result may not reach a caller, since each call would return the same object. A result that is much
larger than its operands, such as a contiguous copy of an ``expand``, is not folded. Nothing is folded under autocast.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import value_of
from rekindle.analysis.effects import (
    FORWARDING_KINDS,
    FRESH_VALUE_KINDS,
    UNPACKS,
    has_side_effects,
    is_immutable,
    is_nondeterministic,
    may_write,
)
from rekindle.errors import GraphError
from rekindle.ir.attributes import constant_attribute
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import DictType, FunctionType, ListType, TensorType, TupleType, Type
from rekindle.ops.registration.traits import queries_of
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class FoldConstantTensors:
    '''Evaluate operators on constant tensors, lists and dicts at compile time. The docstring of the module shows the IR
    before and after. Then dead code is eliminated. Nothing is done while autocast is on, or if the graph has
    ``with`` blocks other than those of the gradient mode.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import FoldConstantTensors, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = prim::Constant[value={2.5}]()
        ...   %2 : Tensor = aten::neg(%1)
        ...   %3 : Tensor = aten::mul(%x, %2)
        ...   return (%3)
        ... """)
        >>> run_passes(graph, [FoldConstantTensors()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %5 : Float(requires_grad=0, device=cpu) = prim::Constant[value={-2.5}]()
          %3 : Tensor = aten::mul(%x, %5)
          return (%3)
    '''

    name: ClassVar[str] = "fold_constant_tensors"
    largest_growth: int = 1 << 16
    """Maximum number of bytes by which a result may exceed its operands."""

    def run(self, graph: Graph) -> bool:
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda") or _sets_modes(graph):
            return False
        work = _Work(graph, self.largest_growth)
        changed = False
        for node in list(graph.all_nodes()):
            if node.in_block and work.can_be_computed(node):
                changed |= work.compute(node)
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed


_GRAD_MODES: Final = ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode")


def _sets_modes(graph: Graph) -> bool:
    """Return whether the graph has ``with`` blocks other than those of the gradient mode. Under autocast, operators
    compute something else."""
    entered = (node.input.type for node in graph.find_nodes("prim::Enter"))
    return any(not str(type).endswith(_GRAD_MODES) for type in entered)


_NOT_FOLDED: Final = (FORWARDING_KINDS - UNPACKS) | FRESH_VALUE_KINDS | queries_of(Trait.READS_IDENTITY)


class _Work:
    def __init__(self, graph: Graph, largest_growth: int) -> None:
        self.graph = graph
        self.largest_growth = largest_growth
        self.aliases = AliasDb(graph, is_frozen=True)
        self.leaving = 0
        for value in graph.outputs:
            self.leaving |= self.aliases.reachable(value)

    def can_be_computed(self, node: Node) -> bool:
        if node.kind in _NOT_FOLDED or is_foreign(node.kind) or node.blocks or not node.outputs:
            return False
        if not any(_is_constant_holder(value) for value in node.inputs):
            return False
        if not all(self._is_fixed(value) for value in node.inputs):
            return False
        if node.operator is None or may_write(node) or has_side_effects(node) or is_nondeterministic(node):
            return False
        return all(self._stays(value) for value in node.outputs)

    def _is_fixed(self, value: Value) -> bool:
        node = value.node
        if isinstance(value.type, FunctionType) or (not is_immutable(value.type) and self.aliases.has_writers(value)):
            return False
        if node.kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            return not self.aliases.escapes(value) and all(self._is_fixed(item) for item in node.inputs)
        return node.kind == "prim::Constant"

    def _stays(self, value: Value) -> bool:
        """Return whether nothing writes to ``value``, and it does not escape to a caller."""
        if is_immutable(value.type):
            return True
        if not isinstance(value.type, (TensorType, ListType, TupleType)):
            return False
        aliases = self.aliases
        if aliases.has_writers(value) or aliases.escapes(value):
            return False
        return not aliases.reachable(value) & self.leaving

    def compute(self, node: Node) -> bool:
        """Run the node at compile time, and replace its outputs by constants. Return whether that succeeded."""
        operator = node.operator
        assert operator is not None
        given = [_value(value) for value in node.inputs]
        if node.kind in _REPEATING and not (_tensors(given) and node.kind == "aten::mul"):
            return False
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("error")
                result: Any = operator.operation_of(node)(*given)
        except (MemoryError, RecursionError):
            raise
        except Exception:
            return False  # whatever it is, the program is to raise it when it runs, if it comes here at all
        results = [result] if len(node.outputs) == 1 else list(result)
        before, after = _tensors(given), _tensors(results)
        if _bytes(after) > _bytes(before) + self.largest_growth:
            return False
        if any(map(_is_inexact, after)) and not any(map(_is_inexact, before)):
            return False  # its dtype may be the default one, which may change
        if not may_change("compute", node):
            return False
        replaced = [self._replace(output, value) for output, value in zip(node.outputs, results, strict=True)]
        return any(replaced)

    def _replace(self, output: Value, value: Any) -> bool:
        try:
            constant_attribute(value)
        except GraphError:
            return False
        node = self.graph.create_constant(value, _type(value, output.type), output.node.range)
        node.callstack = output.node.callstack
        node.insert_before(output.node)
        made = node.output
        if not made.type.is_subtype_of(output.type):
            node.destroy()
            return False
        self.aliases.replace_with_new_value(output, made)
        output.replace_all_uses_with(made)
        return True


def _is_constant_holder(value: Value) -> bool:
    """Return whether ``value`` is a constant tensor, list, dict or tuple, or a list or tuple literal with such an
    item."""
    node = value.node
    if node.kind in ("prim::ListConstruct", "prim::TupleConstruct"):
        return any(_is_constant_holder(item) for item in node.inputs)
    return node.kind == "prim::Constant" and isinstance(value.type, (TensorType, ListType, DictType, TupleType))


def _value(value: Value) -> Any:
    node = value.node
    if node.kind == "prim::ListConstruct":
        return [_value(item) for item in node.inputs]
    if node.kind == "prim::TupleConstruct":
        return tuple(_value(item) for item in node.inputs)
    return _copied(value_of(node))


def _copied(value: Any) -> Any:
    """Return the value with copies of its lists and dicts, which a program gets at each use."""
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, dict) else value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _bytes(tensors: list[torch.Tensor]) -> int:
    """Return the size of the memory of tensors in bytes; shared memory counts once."""
    sizes: dict[int, int] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            continue
        sizes[storage._cdata] = storage.nbytes()
    return sum(sizes.values())


_REPEATING: Final = frozenset({"aten::repeat", "aten::repeat_interleave", "aten::tile", "aten::mul", "aten::pad"})
"""Kinds whose results may have any size whatever the sizes of their inputs: ``mul`` repeats a list."""


def _type(value: Any, declared: Type) -> Type | None:
    if isinstance(value, torch.Tensor):
        return TensorType.of(value) if type(value) is torch.Tensor else declared
    return declared if value is None or isinstance(value, (list, tuple)) else None

"""Fold checks of gradients that are known to be defined or undefined.

.. code-block:: text

    graph(%a : Tensor[Undefined], %b : Tensor):
      %c : Tensor = prim::AutogradAdd(%a, %b)
      %p : bool = prim::AutogradAnyNonZero(%a)                  %p : bool = prim::Constant[value=0]()
      %d : Tensor = prim::GradOf[name="aten::relu"](%a)  becomes  %d : Tensor = prim::AutogradZero()
        block0():                                               return (%b, %p, %d)
          …
      return (%c, %p, %d)

The types of inputs may state whether they are defined. ``prim::AutogradZero`` is undefined, and the results of
operators are defined. Sums of two defined gradients become ``aten::add``. Constant propagation removes the branches
whose condition is constant then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import NONE, TensorType
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class SpecializeAutogradZero:
    '''Resolve tests of gradients that are known to be defined or undefined. The docstring of the module shows the IR
    before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import SpecializeAutogradZero, run_passes
        >>> graph = parse_graph("""
        ... graph(%d : Tensor[Undefined]):
        ...   %g : Tensor = prim::GradOf[name="aten::neg"](%d)
        ...     block0():
        ...       %h : Tensor = aten::neg(%d)
        ...       -> (%h)
        ...   return (%g)
        ... """)
        >>> run_passes(graph, [SpecializeAutogradZero()])
        True
        >>> print(graph)
        graph(%d : Tensor[Undefined]):
          %g : Tensor = prim::AutogradZero()
          return (%g)
    '''

    name: ClassVar[str] = "specialize_autograd_zero"

    def run(self, graph: Graph) -> bool:
        return _Specialization(graph).block(graph.block)


class _Specialization:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.exists: dict[Value, bool] = {}
        """Whether a gradient exists, for gradients of which that is known."""
        for value in graph.inputs:
            if isinstance(value.type, TensorType) and value.type.undefined is not None:
                self.exists[value] = not value.type.undefined

    def block(self, block: Block) -> bool:
        changed = False
        for node in block.nodes:
            rule = _RULES.get(node.kind)
            if rule is not None:
                changed |= rule(self, node)
                continue
            for inner in node.blocks:
                changed |= self.block(inner)
            if node.kind == "prim::If":
                self._join(node)
            elif _gives_a_tensor(node):
                self.exists[node.output] = True
        return changed

    def known(self, values: Iterable[Value]) -> list[bool | None]:
        return [False if value.type == NONE else self.exists.get(value) for value in values]

    def _join(self, node: Node) -> None:
        for output, *results in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
            first, second = self.known(results)
            if first is not None and first == second:
                self.exists[output] = first

    # ------------------------------------------------------------------------------------------------------------ rules

    def zero(self, node: Node) -> bool:
        self.exists[node.output] = False
        return False

    def add(self, node: Node) -> bool:
        left, right = node.inputs
        first, second = self.known(node.inputs)
        if first is False:
            return self._give_way(node, right)
        if second is False:
            return self._give_way(node, left)
        if first is None and second is None:
            return False
        self.exists[node.output] = True
        if not (first and second) or not may_change("make a plain sum of", node):
            return False
        one = self.graph.create_constant(1, range=node.range).insert_before(node)
        inputs = (*node.inputs, one.output)
        new = self.graph.create("aten::add", inputs, types=[node.output.type], range=node.range).insert_before(node)
        new.callstack, new.scope = node.callstack, node.scope
        self.exists[new.output] = True
        node.replace_with(new.output.copy_metadata(node.output))
        return True

    def _give_way(self, node: Node, other: Value) -> bool:
        found = self.known([other])[0]
        if not other.type.is_subtype_of(node.output.type) or not may_change("leave out", node):
            if found is not None:
                self.exists[node.output] = found
            return False
        node.replace_with(other)
        return True

    def any_non_zero(self, node: Node) -> bool:
        return self._answer(node, _any(self.known(node.inputs)))

    def all_non_zero(self, node: Node) -> bool:
        missing = _any(None if each is None else not each for each in self.known(node.inputs))
        return self._answer(node, None if missing is None else not missing)

    def all_zero(self, node: Node) -> bool:
        found = _any(self.known(node.inputs))
        return self._answer(node, None if found is None else not found)

    def _answer(self, node: Node, answer: bool | None) -> bool:
        if answer is None or not may_change("answer", node):
            return False
        constant = self.graph.create_constant(answer, range=node.range).insert_before(node)
        node.replace_with(constant.output.copy_metadata(node.output))
        return True

    def gradient_of(self, node: Node) -> bool:
        known = self.known(node.inputs)
        if not any(each is not False for each in known):
            return self._leave_out(node)
        changed = self.block(node.blocks[0])
        if _any(known) and may_change("always compute", node):
            body = node.blocks[0]
            for inner in body.nodes:
                inner.move_before(node)
            node.replace_with(*body.outputs)
            return True
        return changed

    def _leave_out(self, node: Node) -> bool:
        if not may_change("leave out", node):
            return False
        for output in node.outputs:
            zero = self.graph.create("prim::AutogradZero", range=node.range).insert_before(node)
            self.exists[zero.output] = False
            output.replace_all_uses_with(zero.output.copy_metadata(output))
        node.destroy()
        return True


def _any(known: Iterable[bool | None]) -> bool | None:
    """Return whether one of ``known`` is True; None if that is unknown."""
    found: bool | None = False
    for each in known:
        if each:
            return True
        if each is None:
            found = None
    return found


def _gives_a_tensor(node: Node) -> bool:
    """Return whether ``node`` is an operator with one result, a tensor that is never undefined."""
    takes_container = bool(node.inputs) and node.inputs[0].type.kind not in ("TensorType", "OptionalType")
    is_tensor = len(node.outputs) == 1 and isinstance(node.output.type, TensorType)
    return is_tensor and node.kind.startswith("aten::") and not takes_container and node.operator is not None


Rule = Callable[[_Specialization, Node], bool]

_RULES: Final[dict[str, Rule]] = {
    "prim::AutogradZero": _Specialization.zero,
    "prim::AutogradAdd": _Specialization.add,
    "prim::AutogradAnyNonZero": _Specialization.any_non_zero,
    "prim::AutogradAllNonZero": _Specialization.all_non_zero,
    "prim::AutogradAllZero": _Specialization.all_zero,
    "prim::GradOf": _Specialization.gradient_of,
}

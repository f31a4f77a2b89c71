"""The way back: from gradients of what a graph gives to gradients of what it takes.

.. code-block:: text

    graph(%x : Tensor, %w : Tensor):                graph(%grad : Tensor, %w : Tensor, %x : Tensor):
      %y : Tensor = aten::mm(%x, %w)     becomes      %1 : Tensor = aten::t(%w)
      return (%y)                                     %2 : Tensor = aten::mm(%grad, %1)
                                                      …
                                                      return (%2, %4)

The graph that is made has an input for each value of the forward graph that it reads: which of them are kept, and how,
is for :mod:`rekindle.autodiff.captures` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rekindle.autodiff.formula import Formula
from rekindle.autodiff.steps import Step, can_be_recomputed
from rekindle.errors import InternalError
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import NONE, TENSOR, ListType, OptionalType, Type

GradientOf = Value | list[Value | None]
"""The gradient of a tensor, or those of the elements of a list or a tuple."""


@dataclass(slots=True, eq=False)
class Backward:
    """A backward graph: its first inputs are the gradients of ``roots``, the others stand for the values ``read`` of
    the forward graph. It returns the gradients of the inputs that were asked for; None for those that do not exist.

    ``reached`` are the forward values that gradients came to.
    """

    graph: Graph
    roots: list[Value]
    read: list[Value]
    reached: set[Value]


@dataclass(slots=True, eq=False)
class _Builder:
    steps: Sequence[Step]
    needed: set[Value]
    graph: Graph = field(default_factory=Graph)
    gradients: dict[Value, GradientOf] = field(default_factory=dict)
    mirrored: dict[Value, Value] = field(default_factory=dict)
    """What stands here for a value of the forward graph."""
    read: list[Value] = field(default_factory=list)

    # --------------------------------------------------------------------------------------------- the forward's values

    def mirror(self, value: Value) -> Value:
        """What stands for a value of the forward graph: a copy of a constant, else an input."""
        found = self.mirrored.get(value)
        if found is None:
            if value.node.kind == "prim::Constant":
                with self.graph.inserting_before(self.graph.return_node.next):
                    found = self.graph.insert_node(self.graph.create_clone(value.node, self.mirror)).output
            else:
                found = self.graph.add_input(type=value.type)
                self.read.append(value)
            self.mirrored[value] = found
        return found

    def constant(self, value: object, type: Type | None = None) -> Value:
        return self.graph.insert_constant(value, type)

    # -------------------------------------------------------------------------------------------------------- gradients

    def add(self, value: Value, gradient: GradientOf | None) -> None:
        """``gradient`` is one summand of the gradient of ``value``."""
        if gradient is None or value not in self.needed:
            return
        known = self.gradients.get(value)
        self.gradients[value] = gradient if known is None else self._sum(known, gradient)

    def _sum(self, a: GradientOf, b: GradientOf) -> GradientOf:
        if isinstance(a, Value) and isinstance(b, Value):
            if isinstance(a.type, ListType):
                type = ListType(OptionalType(TENSOR))
                return self.graph.insert_node(self.graph.create("autodiff::added", [a, b], types=[type])).output
            return self.graph.insert("aten::add", [a, b])
        if isinstance(a, Value) or isinstance(b, Value):
            return self._sum(self._as_value(a), self._as_value(b))
        return [
            y if x is None else x if y is None else self._single(self._sum(x, y)) for x, y in zip(a, b, strict=True)
        ]

    def of(self, value: Value) -> GradientOf | None:
        return self.gradients.get(value)

    def elements_of(self, gradient: GradientOf, count: int) -> list[Value | None]:
        """The gradients of the elements of a list."""
        if isinstance(gradient, list):
            return gradient
        type = gradient.type
        assert isinstance(type, ListType)
        unpack = self.graph.create("prim::ListUnpack", [gradient], types=[type.element] * count)
        return [self.unwrapped(output) for output in self.graph.insert_node(unpack).outputs]

    def unwrapped(self, value: Value) -> Value:
        """A gradient that a formula says may be None, where it is known to be wanted."""
        if not isinstance(value.type, OptionalType):
            return value
        node = self.graph.create("prim::unchecked_unwrap_optional", [value], types=[value.type.element])
        return self.graph.insert_node(node).output

    @staticmethod
    def _single(gradient: GradientOf) -> Value:
        assert isinstance(gradient, Value)
        return gradient

    # ------------------------------------------------------------------------------------------------------------ steps

    def step(self, step: Step) -> None:
        if all(output not in self.gradients for output in step.outputs):
            return
        if step.formula is not None:
            self._apply(step, step.formula)
        elif step.node is not None:
            self._structure(step.node)

    def _apply(self, step: Step, formula: Formula) -> None:
        part = formula.backward
        arguments = [self._argument(step, formula, name) for name in part.parameters]
        (result,) = self.graph.insert_graph(part.graph, arguments)
        found = [result]
        if len(part.returns) > 1:
            unpack = self.graph.create("prim::TupleUnpack", [result], types=list(result.type.contained))
            found = list(self.graph.insert_node(unpack).outputs)
        for name, gradient in zip(part.returns, found, strict=True):
            value = step.values[name]
            if value in self.needed and gradient.type != NONE:
                self.add(value, self.unwrapped(gradient))

    def _argument(self, step: Step, formula: Formula, name: str) -> Value:
        """What a parameter of a backward means at ``step``."""
        if name in step.values:
            return self.mirror(step.values[name])
        if name.startswith("needs_"):
            return self.constant(step.values[name.removeprefix("needs_")] in self.needed)
        if name == "grad":
            return self._single(self.gradients[step.outputs[0]])
        if name == "grads":
            return self._list(self.gradients[step.outputs[0]])
        gradient = self.gradients.get(step.outputs[int(name.removeprefix("grad"))])
        return self.constant(None, NONE) if gradient is None else self._single(gradient)

    def _list(self, gradient: GradientOf) -> Value:
        """The gradient of a list, as a list."""
        if isinstance(gradient, Value):
            return gradient
        elements = [self.constant(None, OptionalType(TENSOR)) if item is None else item for item in gradient]
        type = ListType(OptionalType(TENSOR))
        return self.graph.insert_node(self.graph.create("prim::ListConstruct", elements, types=[type])).output

    def _structure(self, node: Node) -> None:
        """The way back through what only takes apart and puts together, and through what has no formula."""
        match node.kind:
            case "prim::ListConstruct" | "prim::TupleConstruct":
                gradients = self.elements_of(self.gradients[node.output], len(node.inputs))
                for value, gradient in zip(node.inputs, gradients, strict=True):
                    self.add(value, gradient)
            case "prim::ListUnpack" | "prim::TupleUnpack":
                self.add(node.input, [self._maybe_single(self.of(output)) for output in node.outputs])
            case "prim::ConstantChunk":
                self._chunk(node)
            case "aten::__getitem__":
                self._item(node)
            case "prim::unchecked_cast" | "prim::unchecked_unwrap_optional":
                self.add(node.input, self.of(node.output))
            case _:
                self._by_autograd(node)

    @staticmethod
    def _maybe_single(gradient: GradientOf | None) -> Value | None:
        assert not isinstance(gradient, list)
        return gradient

    def _chunk(self, node: Node) -> None:
        gradients = [self._maybe_single(self.of(output)) for output in node.outputs]
        type = ListType(TENSOR)
        parts = [] if None not in gradients else [self.mirror(output) for output in node.outputs]
        sizes = self.graph.create("prim::ListConstruct", parts, types=[type])
        inputs = [self._list(gradients), self.graph.insert_node(sizes).output, self.constant(node["dim"])]
        self.add(node.input, self.graph.insert_node(self.graph.create("autodiff::join", inputs)).output)

    def _item(self, node: Node) -> None:
        """A list of which one element is taken: no other has a gradient by that."""
        count = self.graph.insert("aten::len", [self.mirror(node.inputs[0])])
        inputs = [self._as_value(self.gradients[node.output]), count, self.mirror(node.inputs[1])]
        type = ListType(OptionalType(TENSOR))
        self.add(
            node.inputs[0], self.graph.insert_node(self.graph.create("autodiff::only_at", inputs, types=[type])).output
        )

    def _by_autograd(self, node: Node) -> None:
        """Run ``node`` again, and have PyTorch's autograd go back through it."""
        if not can_be_recomputed(node):
            raise InternalError(f"{node.kind} has no formula, and cannot be run again for PyTorch's autograd")
        wanted = [index for index, value in enumerate(node.inputs) if value in self.needed]
        given = [index for index, output in enumerate(node.outputs) if output in self.gradients]
        subgraph = Graph()
        local = {value: subgraph.add_input(type=value.type) for value in dict.fromkeys(node.inputs)}
        clone = subgraph.append_node(subgraph.create_clone(node, local.__getitem__))
        for output in clone.outputs:
            subgraph.add_output(output)
        places = list(local)
        gradients = [self._as_value(self.gradients[node.outputs[index]]) for index in given]
        call = self.graph.create(
            "autodiff::backward_of",
            [*gradients, *(self.mirror(value) for value in places)],
            types=[node.inputs[index].type for index in wanted],
            attributes={
                "Subgraph": subgraph,
                "given": given,
                "wanted": [places.index(node.inputs[index]) for index in wanted],
            },
            range=node.range,
        )
        self.graph.insert_node(call)
        for index, gradient in zip(wanted, call.outputs, strict=True):
            self.add(node.inputs[index], self.unwrapped(gradient))

    def _as_value(self, gradient: GradientOf) -> Value:
        return gradient if isinstance(gradient, Value) else self._list(gradient)


def go_back(
    forward: Graph, steps: Sequence[Step], needed: set[Value], roots: Sequence[Value], wanted: Sequence[Value]
) -> Backward:
    """The backward graph of ``forward``: from gradients of ``roots`` to those of ``wanted``, by way of ``needed``."""
    builder = _Builder(steps, needed)
    for root in roots:
        builder.add(root, builder.graph.add_input("grad", root.type))
    for step in reversed(steps):
        builder.step(step)
    for value in wanted:
        gradient = builder.of(value)
        if gradient is None:
            builder.graph.add_output(builder.constant(None, NONE))
        else:
            builder.graph.add_output(builder._as_value(gradient))
    return Backward(builder.graph, list(roots), builder.read, set(builder.gradients))

"""Reverse-mode differentiation: build the graph from the gradients of a graph's outputs to those of its inputs.

.. code-block:: text

    graph(%x : Tensor, %w : Tensor):                graph(%grad : Tensor, %w : Tensor, %x : Tensor):
      %y : Tensor = aten::mm(%x, %w)     becomes      %1 : Tensor = aten::t(%w)
      return (%y)                                     %2 : Tensor = aten::mm(%grad, %1)
                                                      …
                                                      return (%2, %4)

The backward graph has an input for each value of the forward graph that it reads, including those within branches and
loops. :mod:`rekindle.autodiff.residuals.selection` decides which of them are saved, and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rekindle.autodiff.dtypes import introduces_dtypes, values_to_convert
from rekindle.autodiff.formula import Formula
from rekindle.autodiff.reverse_mode import container_backward, control_flow
from rekindle.autodiff.reverse_mode.gradient_regions import (
    GradientRegion,
    GradientRegions,
    GradientTree,
    constant,
    gradient_type,
    leaves,
    optional,
)
from rekindle.autodiff.reverse_mode.tape import TapeEntry, is_recomputable
from rekindle.errors import DifferentiationError
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import INT, NONE, TENSOR, ListType, OptionalType, TensorType, Type


@dataclass(slots=True, eq=False)
class LinkedBackward:
    """A backward graph: its first inputs are the gradients of ``roots``, the others represent the values ``read`` of
    the forward graph. It returns the requested gradients of the inputs; None for those that do not exist.

    ``reached`` are the values of the forward's top-level block that have gradients. ``scopes`` has the builder of each
    block's backward, by the forward block.
    """

    graph: Graph
    roots: list[Value]
    read: list[Value]
    reached: set[Value]
    scopes: dict[Block, BlockBackward]


@dataclass(slots=True, eq=False)
class BackwardContext:
    """State shared by all blocks of a backward graph."""

    active: set[Value]
    graph: Graph = field(default_factory=Graph)
    residuals: dict[Value, Value] = field(default_factory=dict)
    """Backward values, by the forward value that they represent."""
    control_values: dict[Value, Value] = field(default_factory=dict)
    """Backward values of the conditions and trip counts that control which blocks run, by their forward value."""
    read: list[Value] = field(default_factory=list)
    scopes: dict[Block, BlockBackward] = field(default_factory=dict)
    """The builders of the backward of blocks, by the forward block."""
    carried_types: dict[Node, list[Type | None]] = field(default_factory=dict)
    """The types of the gradients that the backward of each loop carries, as it was last built."""
    converted: set[Value] = field(default_factory=set)
    """Values of the forward graph to whose dtypes their gradients are converted."""


@dataclass(slots=True, eq=False)
class BlockBackward:
    """The backward of the block ``forward``, emitted into ``block``."""

    way: BackwardContext
    forward: Block
    block: Block
    gradients: dict[Value, GradientTree] = field(default_factory=dict)
    places: GradientRegions = field(init=False)
    place: GradientRegion = field(init=False)
    """Region of the current step."""

    def __post_init__(self) -> None:
        self.place = GradientRegion(self.block)
        self.places = GradientRegions(self.way.graph, self.place)
        self.way.scopes[self.forward] = self

    @property
    def graph(self) -> Graph:
        return self.way.graph

    def inner(self, forward: Block, block: Block) -> BlockBackward:
        """Return the builder of the backward of a block within this one: of ``forward``, into ``block``."""
        return BlockBackward(self.way, forward, block)

    # --------------------------------------------------------------------------------------------- the forward's values

    def residual(self, value: Value) -> Value:
        """Return the backward value for a value of the forward graph: a copy of a constant, else an input."""
        way = self.way
        found = way.residuals.get(value)
        if found is None:
            if value.node.kind == "prim::Constant":
                clone = way.graph.create_clone(value.node, self.residual)
                found = clone.insert_before(way.graph.return_node.next).output
            else:
                found = way.graph.add_input(type=value.type)
                way.read.append(value)
            way.residuals[value] = found
        return found

    def control_values(self, value: Value) -> Value:
        """Return the backward value for a forward value that controls which blocks run, and how often. It is an
        input, even for a constant, so that no pass removes a block before its residuals are stashed."""
        way = self.way
        found = way.control_values.get(value)
        if found is None:
            found = way.residuals.get(value) if value.node.kind != "prim::Constant" else None
            if found is None:
                found = way.graph.add_input(type=value.type)
                way.read.append(value)
                if value.node.kind != "prim::Constant":
                    way.residuals[value] = found
            way.control_values[value] = found
        return found

    def constant(self, value: object, type: Type | None = None) -> Value:
        return self.graph.insert_constant(value, type)

    def insert(self, kind: str, inputs: Sequence[Value], type: Type = TENSOR) -> Value:
        """Insert a node with one result, and return that."""
        return self.graph.insert_node(self.graph.create(kind, inputs, types=[type])).output

    # -------------------------------------------------------------------------------------------------------- gradients

    def add(self, value: Value, gradient: GradientTree | None) -> None:
        """Add ``gradient`` to the gradient of ``value``; None adds nothing."""
        if gradient is None or value not in self.way.active:
            return
        known = self.gradients.get(value)
        self.gradients[value] = gradient if known is None else self.places.sum(known, gradient)

    def of(self, value: Value) -> GradientTree | None:
        return self.gradients.get(value)

    def as_value(self, gradient: GradientTree) -> Value:
        """Return ``gradient`` as one value, in the region of the current step."""
        return self.places.value(gradient, self.place)

    # ------------------------------------------------------------------------------------------------------------ steps

    def build_backward(self, steps: Sequence[TapeEntry]) -> None:
        for step in reversed(steps):
            if any(output in self.gradients for output in step.outputs):
                self._enter(step)
                with self.graph.inserting_at_end(self.place.block):
                    self._step(step)
        self.place = self.places.root

    def _enter(self, step: TapeEntry) -> None:
        """Begin a step: set the insertion point to the region in which the gradients of the results of ``step``
        exist."""
        own: list[GradientTree] = []
        for output in step.outputs:
            gradient = self.gradients.get(output)
            if isinstance(gradient, Value):
                self.gradients[output] = gradient = self.places.unwrap_in_region(gradient)
            if gradient is not None:
                own.append(gradient)
        values = [value for gradient in own for value in leaves(gradient)]
        self.place = self.places.common(values)
        here = [value if isinstance(value, list) else self.places.at(value, self.place) for value in own]
        doubtful = [value for value in here if isinstance(value, Value) and isinstance(value.type, OptionalType)]
        if len(here) > 1 and len(doubtful) == len(here):
            self.place = self.places.region_where_any_defined(doubtful, self.place)
        outputs = [output for output in step.outputs if output in self.gradients]
        self.gradients.update(zip(outputs, here, strict=True))
        for output in outputs:
            if output in self.way.converted:
                self.gradients[output] = self._converted(output, self.gradients[output], self.place)

    def _converted(self, value: Value, gradient: GradientTree, place: GradientRegion) -> GradientTree:
        """Return ``gradient`` of the region ``place``, converted to the dtype of ``value``. Lists are returned
        unchanged."""
        if not isinstance(gradient, Value) or not isinstance(gradient.type, TensorType):
            return gradient
        with self.graph.inserting_at_end(place.block):
            return container_backward.in_dtype_of(self, gradient, self.places.unwrapped(self.residual(value)))

    def result(self, value: Value) -> GradientTree | None:
        """Return the gradient of ``value``, an input of the graph, in its dtype; None if it has none."""
        gradient = self.gradients.get(value)
        if value not in self.way.converted or not isinstance(gradient, Value):
            return gradient
        there = self.places.unwrap_in_region(gradient)
        return self._converted(value, there, self.places.place_of(there))

    def _step(self, step: TapeEntry) -> None:
        if step.formula is not None:
            self._apply(step, step.formula)
            return
        node = step.node
        if node is None:
            return
        if node.kind == "prim::If":
            control_flow.backward_of_if(self, step, node)
        elif node.kind == "prim::Loop":
            control_flow.backward_of_loop(self, step, node)
        elif not container_backward.backward_of_container_op(self, node):
            self._by_autograd(node)

    def _apply(self, step: TapeEntry, formula: Formula) -> None:
        part = formula.backward
        arguments = [self._argument(step, formula, name) for name in part.parameters]
        (result,) = self.graph.insert_graph(part.graph_for(arguments), arguments)
        found = [result]
        if len(part.returns) > 1:
            unpack = self.graph.create("prim::TupleUnpack", [result], types=list(result.type.contained))
            found = list(self.graph.insert_node(unpack).outputs)
        for name, gradient in zip(part.returns, found, strict=True):
            value = step.values[name]
            if value in self.way.active and gradient.type != NONE:
                self.add(value, self.places.unwrapped(gradient))

    def _argument(self, step: TapeEntry, formula: Formula, name: str) -> Value:
        """Return the value of a parameter of a backward formula at ``step``."""
        if name in step.values:
            return self.residual(step.values[name])
        if name.startswith("needs_"):
            return self.constant(step.values[name.removeprefix("needs_")] in self.way.active)
        if name in ("grad", "grads"):
            return self.as_value(self.gradients[step.outputs[0]])
        gradient = self.gradients.get(step.outputs[int(name.removeprefix("grad"))])
        return self.constant(None, NONE) if gradient is None else self.as_value(gradient)

    def _by_autograd(self, node: Node) -> None:
        """Emit the backward of ``node`` by PyTorch's autograd: a node that runs it again and differentiates it.

        Raises:
            DifferentiationError: the node is nondeterministic or has side effects, or takes a value that autograd
                cannot track.
        """
        if not is_recomputable(node):
            raise DifferentiationError(
                f"gradients cannot go back through {node.kind}: it has no formula, and may answer differently when it "
                "runs again",
                node.range,
                hint="compute what it gives before, and pass it as an argument",
            )
        wanted = [index for index, value in enumerate(node.inputs) if value in self.way.active]
        if not all(_is_plain(node.inputs[index].type) for index in wanted):
            raise DifferentiationError(
                f"gradients cannot go back through {node.kind}: it has no formula, and takes a value of type "
                f"{next(node.inputs[index].type for index in wanted if not _is_plain(node.inputs[index].type))}",
                node.range,
                hint="take the tensors out one by one",
            )
        given = [index for index, output in enumerate(node.outputs) if output in self.gradients]
        gradients = [self.as_value(self.gradients[node.outputs[index]]) for index in given]
        inputs = [self.residual(value) for value in node.inputs]
        schema = node.schema
        if schema is None or schema.is_vararg or node.attributes:
            found = self._backward_of_subgraph(node, gradients, inputs, given, wanted)
        else:
            found = self._backward_of_call(node, schema.qualified_name, [*gradients, *inputs], given, wanted)
        for index, gradient in zip(wanted, found, strict=True):
            self.add(node.inputs[index], gradient)

    def _backward_of_call(
        self, node: Node, name: str, inputs: Sequence[Value], given: list[int], wanted: list[int]
    ) -> list[Value]:
        """Return the gradients of the inputs ``wanted``: insert a node that differentiates one call of the operator
        ``name``."""
        graph = self.graph
        call = [self.constant(name), self.constant(given, ListType(INT)), self.constant(wanted, ListType(INT))]
        parts = ListType(OptionalType(TENSOR))
        every = graph.create("autodiff::backward_of_call", [*call, *inputs], types=[ListType(parts)], range=node.range)
        result = graph.insert_node(every).output
        found = []
        for place, index in enumerate(wanted):
            part = self.insert("aten::__getitem__", [result, self.constant(place)], parts)
            type = node.inputs[index].type
            if not isinstance(type, ListType):
                part = self.insert("aten::__getitem__", [part, self.constant(0)], parts.element)
                found.append(self.places.unwrapped(part))
            else:
                found.append(part)
        return found

    def _backward_of_subgraph(
        self, node: Node, gradients: Sequence[Value], inputs: Sequence[Value], given: list[int], wanted: list[int]
    ) -> list[Value]:
        """Return the gradients of the inputs ``wanted``: insert a node that contains and differentiates a copy of
        ``node``."""
        subgraph = Graph()
        own = iter([subgraph.add_input(type=value.type) for value in node.inputs])
        clone = subgraph.append_node(subgraph.create_clone(node, lambda value: next(own)))
        for output in clone.outputs:
            subgraph.add_output(output)
        call = self.graph.create(
            "autodiff::backward_of",
            [*gradients, *inputs],
            types=[node.inputs[index].type for index in wanted],
            attributes={"Subgraph": subgraph, "given": given, "wanted": wanted},
            range=node.range,
        )
        return [self.places.unwrapped(output) for output in self.graph.insert_node(call).outputs]


def _is_plain(type: Type) -> bool:
    """Return whether PyTorch's autograd computes gradients of values of this type."""
    if isinstance(type, (OptionalType, ListType)):
        return isinstance(type.element, TensorType) or _is_plain(type.element)
    return isinstance(type, TensorType)


def build_backward(
    forward: Graph,
    steps: Sequence[TapeEntry],
    needed: set[Value],
    roots: Sequence[Value],
    wanted: Sequence[Value],
    *,
    may_be_missing: bool = False,
    one_dtype: bool = True,
) -> LinkedBackward:
    """Return the backward graph of ``forward``: it takes gradients of ``roots`` and returns those of ``wanted``.

    Where gradients of roots ``may_be_missing``, they may be None. With ``one_dtype`` all floats that the graph takes
    are of one dtype. ``forward`` is changed only where its loops may end by their condition: they get an output that
    counts iterations.

    Raises:
        DifferentiationError: gradients flow through an operator without a formula that cannot be run again, or that
            takes a value that autograd cannot track.
    """
    way = BackwardContext(needed)
    if not one_dtype or introduces_dtypes(forward):
        way.converted = values_to_convert(steps) & needed
    scope = BlockBackward(way, forward.block, way.graph.block)
    for root in roots:
        type = root.type if isinstance(root.type, TensorType) else gradient_type(root.type)
        is_optional = may_be_missing or isinstance(root.type, OptionalType)
        scope.add(root, way.graph.add_input("grad", optional(type) if is_optional else type))
    scope.build_backward(steps)
    for value in wanted:
        gradient = scope.result(value)
        if gradient is None:
            way.graph.add_output(constant(way.graph, None, NONE))
        else:
            way.graph.add_output(scope.as_value(gradient))
    return LinkedBackward(way.graph, list(roots), way.read, set(scope.gradients), way.scopes)

"""A fused graph and the layouts of its inputs become a kernel, with the numbers to call it with.

Each output is asked for its elements, from there on backwards: an elementwise operator asks its operands for theirs, a
view asks its base for the element that stands elsewhere, an input is loaded. So views and broadcasts cost nothing; they
change strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from rekindle.codegen.fusible import qualified_name
from rekindle.codegen.layout import Ints, Layout, NoBroadcast, broadcast_sizes, elementwise_strides, result_dtype
from rekindle.codegen.loops.builder import ARGUMENT_TYPES, Builder, Unsupported
from rekindle.codegen.loops.form import Access, Expression, Kernel, Nest, Phase, Step, Store
from rekindle.codegen.loops.scalars import OF_DTYPE, Scalar, arithmetic_type
from rekindle.codegen.operators import RULES, VIEWS, Result, Rule
from rekindle.codegen.operators.views import IndexMap, broadcast, compose
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import TensorType
from rekindle.passes.constants import value_of

# ----------------------------------------------------------------------------------------------- what values are


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """A tensor that is passed; ``number`` counts tensors."""

    layout: Layout
    number: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number: constant, or passed (``number`` counts those that are)."""

    type: type
    value: float | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """What an elementwise operator gives; ``scalar`` is the type that it computes with."""

    layout: Layout
    rule: Rule
    arguments: tuple[Any, ...]
    """Tensors, numbers, other constants."""
    conditions: frozenset[int]
    """Which arguments keep their own types."""
    scalar: Scalar


@dataclass(frozen=True, slots=True, eq=False)
class ViewOf:
    """A view of a tensor that is passed or computed."""

    layout: Layout
    base: Tensor
    places: IndexMap


Tensor = Input | Computed | ViewOf


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel, the layouts of what it writes, and the numbers that it is called with: for each nest the sizes of its
    loops, then for each access an offset and its strides in bytes."""

    kernel: Kernel
    outputs: tuple[Layout, ...]
    parameters: tuple[int, ...]
    heeds_default_dtype: bool


def lower(graph: Graph, inputs: Sequence[Layout | type]) -> Lowered:
    """The kernel of ``graph`` for inputs of these layouts, and numbers of these types.

    Raises:
        Unsupported: there can be none; or the operators would raise, and say why better.
    """
    try:
        return _Lowering(graph, inputs).lowered()
    except NoBroadcast:
        raise Unsupported("sizes do not fit together") from None


# ------------------------------------------------------------------------------------------------- node after node


class _Lowering:
    def __init__(self, graph: Graph, inputs: Sequence[Layout | type]) -> None:
        self.graph = graph
        self.values: dict[Value, Any] = {}
        self.scalars: list[Scalar] = []
        self.arguments: list[Scalar] = []
        self.heeds_default_dtype = False
        for value, given in zip(graph.inputs, inputs, strict=True):
            if isinstance(given, Layout):
                self.values[value] = Input(given, len(self.scalars))
                self.scalars.append(_scalar(given.dtype))
            else:
                self.values[value] = Number(given, number=len(self.arguments))
                self.arguments.append(ARGUMENT_TYPES[given])

    def lowered(self) -> Lowered:
        for node in self.graph.nodes:
            self._node(node)
        outputs: list[Tensor] = [self.values[value] for value in self.graph.outputs]
        groups: dict[tuple[Ints, Ints], list[int]] = {}
        for index, output in enumerate(outputs):
            groups.setdefault((output.layout.sizes, output.layout.strides), []).append(index)
        nests, parameters = [], []
        for (sizes, _), indices in groups.items():
            nest, numbers = _NestBuilder(outputs[indices[0]].layout, len(self.scalars)).nest(outputs, indices)
            if 0 not in sizes:
                nests.append(nest)
                parameters += numbers
        written = tuple(_scalar(output.layout.dtype) for output in outputs)
        kernel = Kernel(tuple(self.scalars), written, tuple(self.arguments), tuple(nests))
        layouts = tuple(output.layout for output in outputs)
        return Lowered(kernel, layouts, tuple(parameters), self.heeds_default_dtype)

    def _node(self, node: Node) -> None:
        if node.kind == "prim::Constant":
            self.values[node.output] = _constant(node)
            return
        name = qualified_name(node)
        if name is None:
            raise Unsupported(f"{node.kind} of these types")
        arguments = [self.values[value] for value in node.inputs]
        if name in VIEWS:
            self._view(node, name, arguments)
            return
        rule = RULES.get(name)
        if rule is None:
            raise Unsupported(name)
        schema = node.schema
        assert schema is not None
        self.values[node.output] = self._computed([each.name for each in schema.arguments], rule, arguments)

    def _view(self, node: Node, name: str, arguments: list[Any]) -> None:
        base: Tensor = arguments[0]
        numbers = [each.value if isinstance(each, Number) else each for each in arguments[1:]]
        if node.kind == "prim::ConstantChunk":
            numbers = [node.attributes["chunks"], node.attributes["dim"]]
        try:
            views = VIEWS[name](base.layout.sizes, *numbers)
        except (IndexError, ValueError) as error:
            raise Unsupported(f"{name} of these sizes") from error
        for output, (sizes, places) in zip(node.outputs, views, strict=True):
            strides = tuple(
                sum(steps[loop] * own for (_, steps), own in zip(places, base.layout.strides, strict=True))
                for loop in range(len(sizes))
            )
            self.values[output] = ViewOf(Layout(sizes, strides, base.layout.dtype), base, places)

    def _computed(self, names: list[str], rule: Rule, arguments: list[Any]) -> Computed:
        operands: list[Layout | type] = []
        laid_out: list[Layout] = []
        conditions = set()
        for index, (name, argument) in enumerate(zip(names, arguments, strict=True)):
            if isinstance(argument, Tensor):
                laid_out.append(argument.layout)
                if name in rule.conditions:
                    conditions.add(index)
                else:
                    operands.append(argument.layout)
            elif isinstance(argument, Number):
                if name in rule.wrapped:
                    laid_out.append(Layout((), (), torch.bool))
                if name in rule.wrapped or name in rule.promoting:
                    operands.append(argument.type)
        sizes = broadcast_sizes([layout.sizes for layout in laid_out])
        common = self._common_dtype(rule, operands)
        dtype = common
        if rule.result is Result.TRUTH:
            dtype = torch.bool
        elif rule.result is Result.GIVEN:
            dtype = self._given_dtype(names, arguments)
        layout = Layout(sizes, elementwise_strides(sizes, laid_out), dtype)
        _scalar(dtype)
        return Computed(layout, rule, tuple(arguments), frozenset(conditions), arithmetic_type(_scalar(common)))

    def _common_dtype(self, rule: Rule, operands: list[Layout | type]) -> torch.dtype:
        first = operands[0]
        if rule.result in (Result.SELF, Result.GIVEN):
            assert isinstance(first, Layout)
            return first.dtype
        common = result_dtype(operands)
        if rule.result is Result.FLOAT and not (common.is_floating_point or common.is_complex):
            common = torch.get_default_dtype()
        if common.is_floating_point and not any(isinstance(each, Layout) and each.dtype == common for each in operands):
            self.heeds_default_dtype = True
        return common

    @staticmethod
    def _given_dtype(names: list[str], arguments: list[Any]) -> torch.dtype:
        given = dict(zip(names, arguments, strict=True))
        if given.get("memory_format") is not None:
            raise Unsupported("a conversion to another memory format")
        number = given["dtype"].value
        dtype = DTYPES[number] if isinstance(number, int) else None
        if dtype is None:
            raise Unsupported("a dtype that is not known")
        return dtype


def _constant(node: Node) -> Any:
    """A constant as rules take it."""
    if isinstance(node.output.type, TensorType):
        raise Unsupported("a constant tensor")
    value = value_of(node)
    if isinstance(value, bool):
        return value
    return Number(type(value), value) if isinstance(value, int | float) else value


def _scalar(dtype: torch.dtype) -> Scalar:
    scalar = OF_DTYPE.get(dtype)
    if scalar is None:
        raise Unsupported(f"elements of {dtype}")
    return scalar


# -------------------------------------------------------------------------------------------------- nest after nest


@dataclass(slots=True)
class _Walk:
    """An access before loops are joined."""

    buffer: int
    scalar: Scalar
    offset: int
    strides: list[int]
    """In bytes."""


@dataclass(slots=True)
class _NestBuilder:
    """Makes the loops that write outputs of one layout."""

    layout: Layout
    inputs: int
    loops: int = 0
    b: Builder = field(default_factory=Builder)
    walks: list[_Walk] = field(default_factory=list)
    numbers: dict[tuple[int, int, Ints], int] = field(default_factory=dict)
    """Of the accesses, by buffer, offset and strides."""
    made: dict[tuple[Tensor, IndexMap], Expression] = field(default_factory=dict)

    def nest(self, outputs: Sequence[Tensor], indices: Sequence[int]) -> tuple[Nest, list[int]]:
        """The nest that writes the ``outputs`` of these indices, and its parameters."""
        sizes, strides = self.layout.sizes, self.layout.strides
        loops = sorted((dim for dim in range(len(sizes)) if sizes[dim] > 1), key=lambda dim: (-strides[dim], dim))
        self.loops = len(loops)
        places = tuple((0, tuple(int(loop == dim) for loop in loops)) for dim in range(len(sizes)))
        stores = []
        for index in indices:
            layout = outputs[index].layout
            value = self.b.cast(self.element(outputs[index], places), _scalar(layout.dtype))
            stores.append(Store(self.access(self.inputs + index, layout, places), value))
        return self._joined([sizes[dim] for dim in loops], stores)

    def access(self, buffer: int, layout: Layout, places: IndexMap) -> int:
        """The number of the access to a tensor at ``places``."""
        scalar = _scalar(layout.dtype)
        offset = sum(start * stride for (start, _), stride in zip(places, layout.strides, strict=True))
        strides = [
            sum(steps[loop] * stride for (_, steps), stride in zip(places, layout.strides, strict=True)) * scalar.size
            for loop in range(self.loops)
        ]
        key = (buffer, offset, tuple(strides))
        if key not in self.numbers:
            self.numbers[key] = len(self.walks)
            self.walks.append(_Walk(buffer, scalar, offset * scalar.size, strides))
        return self.numbers[key]

    # ------------------------------------------------------------------------------------------------------- elements

    def element(self, value: Tensor, places: IndexMap) -> Expression:
        """The element of ``value`` at ``places``, of its own dtype."""
        key = (value, places)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self._make(value, places)
        return found

    def _make(self, value: Tensor, places: IndexMap) -> Expression:
        if isinstance(value, ViewOf):
            return self.element(value.base, compose(value.places, places, self.loops))
        if isinstance(value, Input):
            access = self.access(value.number, value.layout, places)
            return self.b.load(access, _scalar(value.layout.dtype))
        arguments = [
            self._argument(value, argument, places, index in value.conditions)
            for index, argument in enumerate(value.arguments)
        ]
        return self.b.cast(value.rule.build(self.b, *arguments), _scalar(value.layout.dtype))

    def _argument(self, user: Computed, argument: object, places: IndexMap, is_condition: bool) -> object:
        if isinstance(argument, Number):
            if argument.type is float and not user.scalar.is_float:
                raise Unsupported("a float among integers")
            if argument.value is not None:
                return self.b.constant(argument.value, user.scalar)
            assert argument.number is not None
            return self.b.cast(self.b.argument(argument.number, ARGUMENT_TYPES[argument.type]), user.scalar)
        if not isinstance(argument, Tensor):
            return argument
        own = argument.layout.sizes
        if own != user.layout.sizes:
            places = compose(broadcast(own, user.layout.sizes), places, self.loops)
        element = self.element(argument, places)
        return element if is_condition else self.b.cast(element, user.scalar)

    # ----------------------------------------------------------------------------------------------------------- loops

    def _joined(self, sizes: list[int], stores: list[Store]) -> tuple[Nest, list[int]]:
        """The nest with as few loops as can be, and its parameters."""
        at = len(sizes) - 2
        while at >= 0:
            if all(walk.strides[at] == walk.strides[at + 1] * sizes[at + 1] for walk in self.walks):
                sizes[at] *= sizes.pop(at + 1)
                for walk in self.walks:
                    del walk.strides[at]
            at -= 1
        if not sizes:
            sizes.append(1)
            for walk in self.walks:
                walk.strides.append(walk.scalar.size if walk.buffer >= self.inputs else 0)
        accesses = tuple(_access(walk) for walk in self.walks)
        parameters = [*sizes, *(number for walk in self.walks for number in (walk.offset, *walk.strides))]
        return Nest(len(sizes), accesses, (Phase(tuple(stores)),)), parameters


def _access(walk: _Walk) -> Access:
    inner = walk.strides[-1]
    step = Step.STAYS if inner == 0 else Step.NEXT if inner == walk.scalar.size else Step.STRIDE
    return Access(walk.buffer, walk.scalar, step, not any(walk.strides))

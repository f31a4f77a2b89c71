"""A fused graph and the layouts of its inputs become a kernel, with the numbers to call it with.

Each output is asked for its elements, from there on backwards: an elementwise operator asks its operands for theirs, a
view asks its base for the element that stands elsewhere, an input is loaded. So views and broadcasts cost nothing; they
change strides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rekindle.codegen.fusible import qualified_name
from rekindle.codegen.layout import (
    Ints,
    Layout,
    NoBroadcast,
    broadcast_sizes,
    contiguous_strides,
    elementwise_strides,
    result_dtype,
)
from rekindle.codegen.loops.builder import ARGUMENT_TYPES, Unsupported
from rekindle.codegen.loops.form import Kernel
from rekindle.codegen.loops.scalars import Scalar, arithmetic_type
from rekindle.codegen.nesting import nest_of
from rekindle.codegen.operators import ROWS, RULES, VIEWS, Result, RowRule, Rule
from rekindle.codegen.values import Computed, Folded, Input, Number, Tensor, ViewOf, rows_of, scalar_of
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import TensorType
from rekindle.passes.constants import value_of


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
                self.scalars.append(scalar_of(given.dtype))
            else:
                self.values[value] = Number(given, number=len(self.arguments))
                self.arguments.append(ARGUMENT_TYPES[given])

    def lowered(self) -> Lowered:
        for node in self.graph.nodes:
            self._node(node)
        outputs: list[Tensor] = [self.values[value] for value in self.graph.outputs]
        groups: dict[tuple[Ints, Ints, Ints | None], list[int]] = {}
        for index, output in enumerate(outputs):
            groups.setdefault((output.layout.sizes, output.layout.strides, rows_of(output)), []).append(index)
        nests, parameters = [], []
        for (sizes, _, lengths), indices in groups.items():
            nest, numbers = nest_of(outputs, indices, len(self.scalars), lengths).nest()
            if 0 not in sizes:
                nests.append(nest)
                parameters += numbers
        written = tuple(scalar_of(output.layout.dtype) for output in outputs)
        kernel = Kernel(tuple(self.scalars), written, tuple(self.arguments), tuple(nests))
        layouts = tuple(output.layout for output in outputs)
        return Lowered(kernel, layouts, tuple(parameters), self.heeds_default_dtype)

    def _node(self, node: Node) -> None:
        if node.kind == "prim::Constant":
            self.values[node.output] = _constant(node)
            return
        if node.kind == "prim::ListConstruct":
            self.values[node.output] = [self.values[value].value for value in node.inputs]
            return
        name = qualified_name(node)
        if name is None:
            raise Unsupported(f"{node.kind} of these types")
        arguments = [self.values[value] for value in node.inputs]
        if name in VIEWS:
            self._view(node, name, arguments)
            return
        schema = node.schema
        assert schema is not None
        names = [each.name for each in schema.arguments]
        if name in RULES:
            self.values[node.output] = self._computed(names, RULES[name], arguments)
        elif name in ROWS:
            self.values[node.output] = self._folded(names, ROWS[name], arguments)
        else:
            raise Unsupported(name)

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
        if rule.refuses_bool and any(
            each is bool or (isinstance(each, Layout) and each.dtype is torch.bool) for each in operands
        ):
            raise Unsupported("an operand of truth values")
        sizes = broadcast_sizes([layout.sizes for layout in laid_out])
        common = self._common_dtype(rule, operands)
        dtype = common
        if rule.result is Result.TRUTH:
            dtype = torch.bool
        elif rule.result is Result.GIVEN:
            dtype = self._given_dtype(names, arguments)
        layout = Layout(sizes, elementwise_strides(sizes, laid_out), dtype)
        scalar_of(dtype)
        return Computed(layout, rule, tuple(arguments), frozenset(conditions), arithmetic_type(scalar_of(common)))

    def _folded(self, names: list[str], rule: RowRule, arguments: list[Any]) -> Folded:
        given = dict(zip(names, arguments, strict=True))
        layout: Layout = arguments[0].layout
        count = _length_of_rows(layout, given[rule.shape]) if rule.shape else _last_dims(layout, given[rule.dims])
        if layout.strides != contiguous_strides(layout.sizes):
            raise Unsupported("rows of a tensor with gaps, or of another memory format")
        if any(isinstance(each, Tensor) and each.layout.dtype != layout.dtype for each in arguments):
            raise Unsupported("rows of several dtypes")
        outer, lengths = layout.sizes[: layout.rank - count], layout.sizes[layout.rank - count :]
        if 0 in lengths:
            raise Unsupported("empty rows")
        if "correction" in given:
            less = given["correction"]
            if (1 if less is None else less.value) >= math.prod(lengths):
                raise Unsupported("a variance without degrees of freedom, of which PyTorch warns")
        sizes = layout.sizes
        if rule.is_folded:
            sizes = (*outer, *(1,) * count) if given["keepdim"] else outer
        dtype = torch.bool if rule.result is Result.TRUTH else layout.dtype
        result = Layout(sizes, contiguous_strides(sizes), dtype)
        return Folded(result, rule, tuple(arguments), layout.sizes, lengths, arithmetic_type(scalar_of(layout.dtype)))

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


def _length_of_rows(layout: Layout, shape: Any) -> int:
    """How many dimensions a row has that is of this shape."""
    if not isinstance(shape, list | tuple) or layout.sizes[layout.rank - len(shape) :] != tuple(shape):
        raise Unsupported("rows of another shape")
    return len(shape)


def _last_dims(layout: Layout, given: Any) -> int:
    """How many of the last dimensions ``given`` names, if it names no others."""
    if isinstance(given, Number):
        given = [given.value]
    if not isinstance(given, list | tuple) or not given or not layout.rank:
        raise Unsupported("everything folded into one element")
    dims = sorted({dim % layout.rank for dim in given if -layout.rank <= dim < layout.rank})
    if len(dims) != len(given) or dims != list(range(layout.rank - len(dims), layout.rank)):
        raise Unsupported("rows that do not lie along the last dimensions")
    return len(dims)

"""Lower a fused graph and the layouts of its inputs to a kernel and its call parameters.

Lowering starts at the outputs and proceeds to the inputs: an elementwise operator requests the elements of its
operands, a view requests an element of its base at another position, an input is loaded. So views and broadcasts cost
nothing; they only change strides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, TypeVar

import torch

from rekindle.analysis.constants import value_of
from rekindle.codegen.fusible import qualified_name
from rekindle.codegen.layout import (
    Ints,
    Layout,
    NoBroadcast,
    are_equal,
    broadcast_sizes,
    channels_last_strides,
    contiguous_strides,
    elementwise_strides,
    is_contiguous,
    is_dense,
    result_dtype,
    suggests_channels_last,
    with_trailing_dims,
)
from rekindle.codegen.loop_ir import nodes
from rekindle.codegen.loop_ir.builder import ARGUMENT_TYPES, CPU_ARITHMETIC, GPU_ARITHMETIC, Arithmetic, Unsupported
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest
from rekindle.codegen.loop_ir.scalar_types import ScalarType, arithmetic_type
from rekindle.codegen.matmul import product_nest
from rekindle.codegen.nest_builder import NeedsMaterialization, StoreTarget, nest_of, shared_nests, split_groups
from rekindle.codegen.operators import (
    COMPOSITES,
    JOINS,
    LOOKUPS,
    POOLS,
    PRODUCTS,
    ROWS,
    RULES,
    STACKS,
    VIEWS,
    PointwiseOp,
    ResultDtype,
    RowOp,
)
from rekindle.codegen.operators.composites import Composite
from rekindle.codegen.operators.gather import GatherOp
from rekindle.codegen.operators.matmul import MAX_MULTIPLICATIONS, ROWS_AS_MATRIX, TooManyMultiplications
from rekindle.codegen.operators.pointwise_ops import CHECKS
from rekindle.codegen.operators.pooling import Pool, beyond_the_edge, windows
from rekindle.codegen.operators.views import View, along_channels, grouping, same, unsqueeze
from rekindle.codegen.value_descriptors import (
    Concat,
    FlattenedRows,
    Gather,
    Input,
    Matmul,
    MergedGroups,
    Pointwise,
    RowOpResult,
    ScalarValue,
    Tensor,
    ViewValue,
    scalar_of,
)
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES
from rekindle.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel, the layouts of its outputs, and its numeric arguments: for each nest the sizes of its loops, then for
    each access an offset and its strides in bytes, then additional numbers; after the nests, the sizes of the
    temporaries in bytes."""

    kernel: Kernel
    outputs: tuple[Layout, ...]
    parameters: tuple[int, ...]
    depends_on_default_dtype: bool


def lower(
    graph: Graph,
    inputs: Sequence[Layout | type],
    device_type: str = "cpu",
    *,
    defer_to_libraries: bool = True,
    max_multiplications: int = MAX_MULTIPLICATIONS,
) -> LoweredKernel:
    """Lower ``graph`` to a kernel for inputs of these layouts, and numbers of these types, on a device of this type.

    Raises:
        Unsupported: there can be no kernel, or the operators would raise errors, which are better raised by PyTorch.
            With ``defer_to_libraries``, also if oneDNN is expected to be faster, or a matrix product has more than
            ``max_multiplications``.
    """
    try:
        on_gpu = device_type != "cpu"
        lowering = _Lowering(graph, inputs, max_multiplications if defer_to_libraries else None, on_gpu)
        if on_gpu:
            return lowering.lowered(GPU_ARITHMETIC)
        if defer_to_libraries:
            lowering.leave_to_onednn()
        return lowering.lowered(CPU_ARITHMETIC)
    except NoBroadcast:
        raise Unsupported("sizes do not fit together") from None


Made = TypeVar("Made")

_CACHED: Final = 1024
"""Below this number of elements, strided access stays in the L1 cache."""

_LEFT_TO_ONEDNN: Final = {("aten::gelu", "none"): 1 << 15}
"""Minimum number of float32 or bfloat16 elements for which oneDNN computes an operator faster if it is alone in its
group."""


class _NestSequence:
    """The nests of a kernel, one after the other. A nest may load what earlier ones have stored."""

    def __init__(self, inputs: int, outputs: Sequence[Tensor], arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self.buffers = inputs + len(outputs)
        self.nests: list[LoopNest | nodes.MatmulNest] = []
        self.parameters: list[int] = []
        self.temporaries: list[Layout] = []
        self.materialized: dict[Tensor, Input] = {}

    def write(self, targets: Sequence[StoreTarget]) -> None:
        """Add the nests that write ``targets``, except those without elements. Values that a nest needs in memory are
        materialized first."""
        unwritten: dict[StoreTarget, int] = {}
        for group in shared_nests(targets):
            self._nest([store for _, store in group])
            for target, _ in group:
                unwritten[target] = unwritten.get(target, len(target.parts())) - 1
                is_computed = not isinstance(target.value, Input | ViewValue | FlattenedRows)
                if not unwritten[target] and is_computed:
                    self.materialized[target.value] = Input(target.layout, target.buffer)

    def _nest(self, targets: Sequence[StoreTarget]) -> None:
        first = targets[0]
        if isinstance(first.value, Matmul) and first.value not in self.materialized:
            if first.layout.strides[-1] == 1:
                product, numbers = self._retried(targets, lambda: product_nest(first, self.materialized))
                if math.prod(first.layout.sizes) != 0:
                    self.nests.append(product)
                    self.parameters += numbers
                return
            self._keep(first.value)
        split = split_groups(targets, self.materialized)
        builder = self._retried(targets, lambda: nest_of(split, self.materialized, self.arithmetic))
        nest, numbers = builder.nest()
        if 0 not in builder.layout.sizes:
            self.nests.append(nest)
            self.parameters += numbers

    def _retried(self, targets: Sequence[StoreTarget], make: Callable[[], Made]) -> Made:
        """Return the result of ``make``. If it needs a value in memory, materialize the value and retry.

        Raises:
            NeedsMaterialization: the value is in memory already, or is itself the only target.
        """
        while True:
            try:
                return make()
            except NeedsMaterialization as error:
                value = error.value
                if value in self.materialized or [value] == [target.value for target in targets]:
                    raise
                self._keep(value)

    def _keep(self, value: Tensor) -> None:
        """Materialize ``value``: add the nest that writes it to a temporary."""
        buffer = self.buffers + len(self.temporaries)
        self.temporaries.append(value.layout)
        self.write([StoreTarget(buffer, value, value.layout)])


class _Lowering:
    def __init__(
        self, graph: Graph, inputs: Sequence[Layout | type], max_multiplications: int | None, on_gpu: bool
    ) -> None:
        self.graph = graph
        self.max_multiplications = max_multiplications
        self.on_gpu = on_gpu
        self.values: dict[Value, Any] = {}
        self.scalars: list[ScalarType] = []
        self.arguments: list[ScalarType] = []
        self.depends_on_default_dtype = False
        self.checks_values = False
        for value, given in zip(graph.inputs, inputs, strict=True):
            if isinstance(given, Layout):
                self.values[value] = Input(given, len(self.scalars))
                self.scalars.append(scalar_of(given.dtype))
            elif given in ARGUMENT_TYPES:
                self.values[value] = ScalarValue(given, number=len(self.arguments))
                self.arguments.append(ARGUMENT_TYPES[given])
            else:
                raise Unsupported(f"an input that is a {given.__name__}, where a tensor or a number may be")
        for node in graph.nodes:
            self._node(node)

    def lowered(self, arithmetic: Arithmetic) -> LoweredKernel:
        outputs: list[Tensor] = [self.values[value] for value in self.graph.outputs]
        plan = _NestSequence(len(self.scalars), outputs, arithmetic)
        plan.write([StoreTarget(buffer, each, each.layout) for buffer, each in enumerate(outputs, len(self.scalars))])
        written = tuple(scalar_of(output.layout.dtype) for output in outputs)
        temporaries = tuple(scalar_of(layout.dtype) for layout in plan.temporaries)
        looks_up = any(isinstance(nest, LoopNest) and nest.extra_parameters for nest in plan.nests)
        kernel = Kernel(
            tuple(self.scalars),
            written,
            tuple(self.arguments),
            tuple(plan.nests),
            temporaries,
            looks_up,
            self.checks_values,
        )
        sizes = [
            math.prod(layout.sizes) * scalar.size for layout, scalar in zip(plan.temporaries, temporaries, strict=True)
        ]
        layouts = tuple(output.layout for output in outputs)
        return LoweredKernel(kernel, layouts, (*plan.parameters, *sizes), self.depends_on_default_dtype)

    def leave_to_onednn(self) -> None:
        """Check that oneDNN does not compute the graph faster.

        Raises:
            Unsupported: oneDNN does: the graph is one activation of many elements.
        """
        nodes = [node for node in self.graph.nodes if node.kind != "prim::Constant"]
        if len(nodes) != 1 or len(nodes[0].inputs) != 2:
            return
        layout, option = self.values[nodes[0].output].layout, self.values[nodes[0].inputs[1]]
        least = _LEFT_TO_ONEDNN.get((nodes[0].kind, option)) if isinstance(option, str) else None
        if least is not None and layout.dtype in (torch.float32, torch.bfloat16) and math.prod(layout.sizes) >= least:
            raise Unsupported("an activation of so many elements that oneDNN is faster")

    def _node(self, node: Node) -> None:
        if node.kind == "prim::Constant":
            self.values[node.output] = _constant(node)
            return
        if node.kind == "prim::ListConstruct":
            items = [self.values[value] for value in node.inputs]
            self.values[node.output] = [each.value if isinstance(each, ScalarValue) else each for each in items]
            return
        name = qualified_name(node)
        if name is None:
            raise Unsupported(f"{node.kind} of these types")
        arguments = [self.values[value] for value in node.inputs]
        if node.kind == "prim::ConstantChunk":
            results = _views(name, [*arguments, node.attributes["chunks"], node.attributes["dim"]])
        else:
            schema = node.schema
            assert schema is not None
            results = self._applied(name, [each.name for each in schema.arguments], arguments)
        self.values.update(zip(node.outputs, results, strict=True))

    def _applied(self, name: str, names: list[str], arguments: list[Any]) -> Sequence[Tensor]:
        """Return the symbolic outputs of an operator, whose parameters have these ``names``.

        Raises:
            Unsupported: kernels do not compute the operator.
        """
        if name in VIEWS:
            return _views(name, arguments)
        if name == ROWS_AS_MATRIX:
            return (_rows_as_matrix(arguments[0]),)
        if name in RULES:
            return (self._computed(names, RULES[name], arguments),)
        if name in JOINS:
            return (self._joined(name, arguments),)
        if name in LOOKUPS:
            return (_looked(LOOKUPS[name], arguments),)
        if name in POOLS:
            return (self._pooled(names, POOLS[name], arguments),)
        if name in PRODUCTS:
            return (self._multiplied(name, arguments),)
        if name in COMPOSITES:
            return self._expanded(COMPOSITES[name], names, arguments)
        if name == "autodiff::sum_to":
            return (self._summed_to_size(names, ROWS[name][0], *arguments),)
        if name in ROWS:
            rules = [(rule, self._of_channels if rule.channels else self._folded) for rule in ROWS[name]]
            return [fold(names, rule, arguments) for rule, fold in rules]
        raise Unsupported(name)

    def _emit(self, operator: str, *arguments: Any) -> Any:
        """Apply an operator within a composite: see :class:`~rekindle.codegen.operators.composites.Emitter`."""
        if operator in CHECKS:
            self.checks_values = True
            names, check = CHECKS[operator]
            return self._computed(names.split(), check, [_argument(each) for each in arguments])
        name = f"aten::{operator}"
        found = REGISTRY.find(name)
        assert found is not None, name
        parameters = found.schema.arguments
        given = [*arguments, *(each.default for each in parameters[len(arguments) :])]
        (result,) = self._applied(name, [each.name for each in parameters], [_argument(each) for each in given])
        return result

    def _expanded(self, rule: Composite, names: list[str], arguments: list[Any]) -> Sequence[Tensor]:
        dtypes = set[torch.dtype]()
        for name, argument in zip(names, arguments, strict=True):
            for each in argument if isinstance(argument, list) else [argument]:
                if isinstance(each, Tensor) and name not in rule.indices:
                    dtypes.add(each.layout.dtype)
        if len(dtypes) != 1 or not dtypes <= {torch.float32, torch.float64}:
            raise Unsupported("a composite of such dtypes")
        found = rule.expand(self._emit, *(each.value if isinstance(each, ScalarValue) else each for each in arguments))
        return found if isinstance(found, tuple) else (found,)

    def _computed(self, names: list[str], rule: PointwiseOp, arguments: list[Any]) -> Pointwise:
        arguments = _with_channels(names, rule.channels, arguments) if rule.channels else arguments
        operands: list[Layout | type] = []
        laid_out: list[Layout] = []
        conditions = set()
        for index, (name, argument) in enumerate(zip(names, arguments, strict=True)):
            if isinstance(argument, Tensor):
                laid_out.insert(0 if name == rule.laid_out_as else len(laid_out), argument.layout)
                if name in rule.conditions:
                    conditions.add(index)
                else:
                    operands.append(argument.layout)
            elif isinstance(argument, ScalarValue):
                if name in rule.wrapped:
                    laid_out.append(Layout((), (), torch.bool))
                if name in rule.wrapped or name in rule.promoting:
                    operands.append(argument.type)
        if rule.refuses_bool and any(
            each is bool or (isinstance(each, Layout) and each.dtype is torch.bool) for each in operands
        ):
            raise Unsupported("an operand of truth values")
        if rule.one_dtype and len({layout.dtype for layout in laid_out}) > 1:
            raise Unsupported("operands of several dtypes")
        if rule.channels:
            del laid_out[1:]
            if not is_dense(laid_out[0]):
                raise Unsupported("a normalization of a tensor with gaps, or of another memory format")
        sizes = broadcast_sizes([layout.sizes for layout in laid_out])
        common = self._common_dtype(rule, operands)
        for name, argument in zip(names, arguments, strict=True):
            if isinstance(argument, ScalarValue):
                _refuse_overflow(argument, common, name in rule.wrapped and not rule.conditions)
        is_short = arithmetic_type(scalar_of(common)) is not scalar_of(common)
        if is_short and rule.result not in (ResultDtype.SELF, ResultDtype.GIVEN):
            arguments = [
                argument if index in conditions else self._rounded(rule, name, argument, common)
                for index, (name, argument) in enumerate(zip(names, arguments, strict=True))
            ]
        dtype = common
        if rule.result is ResultDtype.TRUTH:
            dtype = torch.bool
        elif rule.result is ResultDtype.GIVEN:
            dtype = self._given_dtype(names, arguments)
        strides = contiguous_strides(sizes) if rule.is_contiguous else elementwise_strides(sizes, laid_out)
        layout = Layout(sizes, strides, dtype)
        scalar_of(dtype)
        return Pointwise(layout, rule, tuple(arguments), frozenset(conditions), arithmetic_type(scalar_of(common)))

    def _rounded(self, rule: PointwiseOp, name: str, argument: Any, dtype: torch.dtype) -> Any:
        """Return an argument of an operator, rounded to half precision if PyTorch rounds it before it computes."""
        if isinstance(argument, Tensor):
            if argument.layout.dtype is dtype:
                return argument
            is_number = not self.on_gpu and are_equal(argument.layout.sizes, (1,) * argument.layout.rank)
            return argument if is_number and name in rule.rounding.unrounded else self._as_dtype(argument, dtype)
        is_operand = name in rule.wrapped | rule.promoting | rule.rounding.factors
        is_unrounded = name in (rule.rounding.unrounded_on_gpu if self.on_gpu else rule.rounding.unrounded)
        if isinstance(argument, ScalarValue) and is_operand and not is_unrounded:
            return replace(argument, rounded=scalar_of(dtype))
        return argument

    def _as_dtype(self, value: Tensor, dtype: torch.dtype) -> Tensor:
        converted: Tensor = self._emit("to.dtype", value, DTYPE_NUMBERS[dtype])
        return converted

    def _folded(self, names: list[str], rule: RowOp, arguments: list[Any]) -> RowOpResult:
        given = dict(zip(names, arguments, strict=True))
        layout: Layout = arguments[0].layout
        dims, keeps = _row_dims(layout, given.get(rule.dims)), bool(given.get("keepdim"))
        if rule.shape:
            shape = given[rule.shape]
            dims = _rows_of_shape(layout, shape)
            if any(isinstance(each, Tensor) and each.layout.sizes != tuple(shape) for each in arguments[1:]):
                raise Unsupported("weights of another shape than the rows")
        elif rule.size:
            dims, keeps = _dims_beyond(layout, given[rule.size])
        if any(isinstance(each, Tensor) and each.layout.dtype != layout.dtype for each in arguments):
            raise Unsupported("rows of several dtypes")
        lengths = tuple(layout.sizes[dim] for dim in dims)
        if 0 in lengths:
            raise Unsupported("empty rows")
        if rule.is_variance and _less_degrees(given) >= math.prod(lengths):
            raise Unsupported("a variance without degrees of freedom, of which PyTorch warns")
        sizes = layout.sizes
        is_flat = rule.is_folded and rule.is_ordered and given.get(rule.dims) is None  # argmax of all elements
        if (is_flat or not (rule.is_folded or rule.is_ordered)) and _is_scattered(layout):
            raise Unsupported("rows of a tensor whose dimensions have another order in memory")
        if rule.is_folded:
            numbered = ((dim, size) for dim, size in enumerate(layout.sizes))
            sizes = tuple(1 if dim in dims else size for dim, size in numbered if keeps or dim not in dims)
        computed = self._row_dtype(rule, layout.dtype, given)
        dtype = torch.int64 if rule.result is ResultDtype.INDEX else computed
        if rule.result is ResultDtype.TRUTH and dtype is not torch.uint8:  # whose truth PyTorch gives as what it is
            dtype = torch.bool
        result = Layout(sizes, contiguous_strides(sizes), dtype)
        return RowOpResult(result, rule, tuple(arguments), layout.sizes, dims, arithmetic_type(scalar_of(computed)))

    def _summed_to_size(self, names: list[str], rule: RowOp, value: Tensor, size: Sequence[int]) -> Tensor:
        """Return ``sum_to_size``: the sum over the dimensions that ``size`` lacks, and over those that it has with size
        1."""
        missing = value.layout.rank - len(size)
        if missing > 0:
            value = self._folded(names, rule, [value, list(value.layout.sizes[missing:])])
        if are_equal(value.layout.sizes, tuple(size)):
            return _viewed(value, same(value.layout.sizes)[0])
        return self._folded(names, rule, [value, size])

    def _of_channels(self, names: list[str], rule: RowOp, arguments: list[Any]) -> RowOpResult | MergedGroups:
        """Return a normalization with statistics for each channel, or for each group of channels.

        Raises:
            Unsupported: the tensor is not contiguous or has no elements, or groups do not fit or have one element.
        """
        layout: Layout = arguments[0].layout
        arguments = _with_channels(names, rule.channels, arguments)
        given = dict(zip(names, arguments, strict=True))
        if not is_contiguous(layout) or layout.rank < 2 or 0 in layout.sizes:
            raise Unsupported("a normalization of a tensor with gaps, of another memory format, or without elements")
        groups = layout.sizes[1] if not rule.groups else given[rule.groups].value
        inner = layout.sizes[1] // groups if groups > 0 else 0
        if not inner or inner * groups != layout.sizes[1] or math.prod(layout.sizes[2:]) * inner == 1:
            raise Unsupported("groups that do not fit, or of one element")
        if inner == 1:
            dims, sizes = tuple(range(2, layout.rank)), layout.sizes
        else:
            arguments = [_grouped(each, layout, inner) if isinstance(each, Tensor) else each for each in arguments]
            sizes = arguments[0].layout.sizes
            dims = tuple(range(2, len(sizes)))
        result = Layout(sizes, contiguous_strides(sizes), layout.dtype)
        found = RowOpResult(result, rule, tuple(arguments), sizes, dims, arithmetic_type(scalar_of(layout.dtype)))
        if inner == 1:
            return found
        return MergedGroups(Layout(layout.sizes, contiguous_strides(layout.sizes), layout.dtype), found)

    @staticmethod
    def _pooled(names: list[str], pool: Pool, arguments: list[Any]) -> RowOpResult:
        given = dict(zip(names, arguments, strict=True))
        layout: Layout = arguments[0].layout
        outer = layout.rank - pool.dims
        if layout.dtype not in (torch.float32, torch.float64) or outer not in (1, 2) or 0 in layout.sizes:
            raise Unsupported("pooling of such an image")
        scalar = scalar_of(layout.dtype)
        if pool.is_adaptive:
            if set(given["output_size"]) != {1}:
                raise Unsupported("adaptive pooling to more than one element")
            sizes = (*layout.sizes[:outer], *(1,) * pool.dims)
            dims = tuple(range(outer, layout.rank))
            return RowOpResult(
                _pooled_layout(sizes, layout), pool.rule, tuple(arguments[:1]), layout.sizes, dims, scalar
            )
        kernel, stride, padding, dilation = (
            _for_each_dim(given.get(name), pool.dims, default)
            for name, default in (("kernel_size", None), ("stride", None), ("padding", 0), ("dilation", 1))
        )
        stride = stride or kernel
        image: Tensor = arguments[0]
        try:
            for at in range(pool.dims):
                options = kernel[at], stride[at], padding[at], dilation[at], bool(given["ceil_mode"])
                beyond = beyond_the_edge(layout.sizes[outer + at], *options)
                if pool.is_mean and (beyond > padding[at] or (padding[at] and not given["count_include_pad"])):
                    raise Unsupported("means over the edge that count fewer elements than others")
                image = _padded(image, outer + at, (padding[at], beyond), pool)
            view = windows(image.layout.sizes, kernel, stride, dilation)
        except ValueError as error:
            raise Unsupported("windows that do not fit") from error
        if given.get("divisor_override") is not None:
            raise Unsupported("means that are divided by another number")
        sizes = view[0][: layout.rank]
        dims = tuple(range(layout.rank, layout.rank + pool.dims))
        found = _viewed(image, view)
        return RowOpResult(_pooled_layout(sizes, layout), pool.rule, (found,), view[0], dims, scalar)

    @staticmethod
    def _row_dtype(rule: RowOp, own: torch.dtype, given: dict[str, Any]) -> torch.dtype:
        """Return the dtype in which an operator on rows computes."""
        wanted = given.get("dtype")
        if wanted is not None:
            return _dtype(wanted)
        is_whole = not (own.is_floating_point or own.is_complex)
        return torch.int64 if rule.result is ResultDtype.SUM and is_whole else own

    def _joined(self, name: str, arguments: list[Any]) -> Concat:
        given: list[Any] = arguments[0]
        if not all(isinstance(part, Tensor) and part.layout.rank for part in given):
            raise Unsupported("parts that are none, or without dimensions")
        parts: list[Tensor] = given
        dim = arguments[-1].value
        if name in STACKS:
            parts = [_viewed(part, unsqueeze(part.layout.sizes, dim)[0]) for part in parts]
        filled = [part for part in parts if part.layout.rank != 1 or part.layout.sizes[0] != 0]
        first, *others = filled or parts
        rank = first.layout.rank
        if not -rank <= dim < rank:
            raise Unsupported("a dimension that is not there")
        dim %= rank
        sizes, length = first.layout.sizes, first.layout.sizes[dim]
        for part in others:
            own = part.layout.sizes
            if own[:dim] + own[dim + 1 :] != sizes[:dim] + sizes[dim + 1 :]:
                raise Unsupported("parts that do not fit together")
            length += own[dim]
        dtype = result_dtype([part.layout for part in parts])
        scalar_of(dtype)
        whole = (*sizes[:dim], length, *sizes[dim + 1 :])
        layout = Layout(whole, _joined_strides(whole, [part.layout for part in parts]), dtype)
        return Concat(layout, tuple(self._converted(part, dtype) for part in filled or parts), dim)

    def _converted(self, part: Tensor, dtype: torch.dtype) -> Tensor:
        """Return a part of a concatenation of this ``dtype``: ``part`` itself, whose elements are converted where they
        are computed, unless it is a concatenation of another dtype. Such a part is converted as a whole: its own parts
        are rounded to its dtype first."""
        if not isinstance(part, Concat) or part.layout.dtype is dtype:
            return part
        return self._as_dtype(part, dtype)

    def _multiplied(self, name: str, arguments: list[Any]) -> Tensor:
        """Return a matrix product, with a bias or other summand added if the operator has one.

        Raises:
            Unsupported: the product or the summand is scaled, or the ranks, sizes or dtypes do not fit together.
        """
        if name == "aten::addmm":
            addend, a, b = arguments[:3]
            if any(each.value != 1 for each in arguments[3:]):
                raise Unsupported("an addend or a product that is scaled")
        else:
            (a, b), addend = arguments[:2], arguments[2] if name == "aten::linear" else None
        ranks = {"aten::mm": (2, 2), "aten::addmm": (2, 2), "aten::bmm": (3, 3)}.get(name)
        if ranks not in (None, (a.layout.rank, b.layout.rank)):
            raise Unsupported("matrices with other dimensions")
        if name == "aten::linear":
            if b.layout.rank != 2 or (addend is not None and addend.layout.rank != 1):
                raise Unsupported("weights that are not a matrix")
            b = _viewed(b, VIEWS["aten::t"](b.layout.sizes)[0])
        product = self._product(a, b)
        if name == "aten::bmm" and a.layout.sizes[0] != b.layout.sizes[0]:
            raise Unsupported("sizes do not fit together")
        if addend is None:
            return product
        added = self._computed(
            ["self", "other", "alpha"], RULES["aten::add.Tensor"], [addend, product, ScalarValue(int, 1)]
        )
        if added.layout != product.layout or addend.layout.dtype != product.layout.dtype:
            raise Unsupported("an addend of other sizes or of another dtype")
        return added

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the matrix product of ``a`` and ``b``, as ``torch.matmul`` defines it: batch dimensions are broadcast.

        Raises:
            Unsupported: the operands are vectors, of several dtypes, of integers or half precision, or sum over no
                elements.
            TooManyMultiplications: BLAS is expected to be faster.
            NoBroadcast: the sizes do not fit together.
        """
        if not a.layout.rank or not b.layout.rank or a.layout.dtype != b.layout.dtype:
            raise Unsupported("factors of several dtypes, or without dimensions")
        if a.layout.dtype not in (torch.float32, torch.float64):
            raise Unsupported(f"a product of matrices of {a.layout.dtype}")
        are_rows = a.layout.rank == 1, b.layout.rank == 1
        if all(are_rows) or (a.layout.rank < b.layout.rank and b.layout.rank > 2):
            raise Unsupported("a product of vectors, or of a matrix with many")
        if are_rows[0]:
            a = _viewed(a, unsqueeze(a.layout.sizes, 0)[0])
        if are_rows[1]:
            b = _viewed(b, unsqueeze(b.layout.sizes, 1)[0])
        if a.layout.sizes[-1] != b.layout.sizes[-2]:
            raise NoBroadcast
        outer = broadcast_sizes([a.layout.sizes[:-2], b.layout.sizes[:-2]])
        sizes = (*outer, a.layout.sizes[-2], b.layout.sizes[-1])
        work = math.prod(sizes) * a.layout.sizes[-1]
        if work == 0 and (a.layout.sizes[-1] == 0 or 0 not in sizes):
            raise Unsupported("sums of no elements")
        limit = self.max_multiplications
        if limit is not None and limit > MAX_MULTIPLICATIONS and sizes[-2] == 1:
            limit = MAX_MULTIPLICATIONS  # reading the matrix takes the time of a large product with one row
        if limit is not None and work > limit:
            raise TooManyMultiplications(work)
        made: Tensor = Matmul(Layout(sizes, contiguous_strides(sizes), a.layout.dtype), a, b)
        if are_rows[0] or are_rows[1]:
            made = _viewed(made, VIEWS["aten::select.int"](sizes, -2 if are_rows[0] else -1, 0)[0])
        return made

    def _common_dtype(self, rule: PointwiseOp, operands: list[Layout | type]) -> torch.dtype:
        first = operands[0]
        if rule.result in (ResultDtype.SELF, ResultDtype.GIVEN):
            assert isinstance(first, Layout)
            return first.dtype
        common = result_dtype(operands)
        if rule.result is ResultDtype.FLOAT and not (common.is_floating_point or common.is_complex):
            common = torch.get_default_dtype()
        if common.is_floating_point and not any(isinstance(each, Layout) and each.dtype == common for each in operands):
            self.depends_on_default_dtype = True
        return common

    @staticmethod
    def _given_dtype(names: list[str], arguments: list[Any]) -> torch.dtype:
        given = dict(zip(names, arguments, strict=True))
        if given.get("memory_format") is not None:
            raise Unsupported("a conversion to another memory format")
        return _dtype(given["dtype"])


def _dtype(given: ScalarValue) -> torch.dtype:
    """Return the dtype that a number stands for, as in schemas.

    Raises:
        Unsupported: the number does not stand for a dtype.
    """
    number = given.value
    dtype = DTYPES[int(number)] if number is not None else None
    if dtype is None:
        raise Unsupported("a dtype that is not known")
    return dtype


_NARROW: Final = frozenset({torch.float16, torch.int8, torch.uint8, torch.int16, torch.int32})
"""The dtypes into which numbers of ordinary programs may not fit."""


def _refuse_overflow(number: ScalarValue, dtype: torch.dtype, is_operand: bool) -> None:
    """Check that PyTorch can convert a number to ``dtype``. Operands may exceed the range of ``dtype``; other numbers,
    such as the bounds of a clamp, may not. Numbers that a call passes are expected to fit into a float32 and an int64.

    Raises:
        Unsupported: the number is a constant int beyond 64 bits, or is not an operand and beyond the range of
            ``dtype``, or a number of a call that may be.
    """
    value = number.value
    if value is None and not is_operand and dtype in _NARROW:
        raise Unsupported(f"a number of a call that may be beyond the range of {dtype}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Unsupported("an int beyond 64 bits")
    if isinstance(value, int) and not is_operand and not dtype.is_floating_point and dtype is not torch.bool:
        if not torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max:
            raise Unsupported(f"a number beyond the range of {dtype}")
    if isinstance(value, float) and not is_operand and math.isfinite(value) and dtype.is_floating_point:
        if abs(value) > torch.finfo(dtype).max:
            raise Unsupported(f"a number beyond the range of {dtype}")


def _constant(node: Node) -> Any:
    """Return the constant of a node in the form in which operator rules take it.

    Raises:
        Unsupported: it is a tensor.
    """
    if isinstance(node.output.type, TensorType):
        raise Unsupported("a constant tensor")
    return _argument(value_of(node))


def _argument(value: Any) -> Any:
    """Return a Python value in the form in which operator rules take it."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ScalarValue(type(value), value) if is_number else value


def _views(name: str, arguments: list[Any]) -> Sequence[Tensor]:
    base: Tensor = arguments[0]
    numbers = [each.value if isinstance(each, ScalarValue) else each for each in arguments[1:]]
    try:
        views = VIEWS[name](base.layout.sizes, *numbers)
    except (IndexError, ValueError) as error:
        raise Unsupported(f"{name} of these sizes") from error
    return [_viewed(base, view) for view in views]


def _rows_as_matrix(value: Tensor) -> Tensor:
    """Return ``value`` as a matrix whose rows are its last dimension. It is copied if its rows have no constant
    distance.

    Raises:
        Unsupported: it has no dimensions.
    """
    layout = value.layout
    if layout.rank < 2:
        if not layout.rank:
            raise Unsupported("rows of a tensor without dimensions")
        return _viewed(value, unsqueeze(layout.sizes, 0)[0])
    if layout.rank == 2:
        return value
    dim = _dim_of_rows(layout)
    if dim is None:
        scalar = scalar_of(layout.dtype)
        layout = Layout(layout.sizes, contiguous_strides(layout.sizes), layout.dtype)
        value = Pointwise(layout, _COPY, (value,), frozenset(), scalar)
        dim = layout.rank - 2
    sizes = math.prod(layout.sizes[:-1]), layout.sizes[-1]
    return FlattenedRows(Layout(sizes, (layout.strides[dim], layout.strides[-1]), layout.dtype), value, dim)


_COPY: Final = PointwiseOp(lambda b, self: self, ResultDtype.SELF)


def _dim_of_rows(layout: Layout) -> int | None:
    """Return the dimension whose stride is the distance between rows; None if there is none."""
    wide = [dim for dim in range(layout.rank - 1) if layout.sizes[dim] != 1]
    for outer, inner in pairwise(wide):
        if layout.strides[outer] != layout.strides[inner] * layout.sizes[inner]:
            return None
    return wide[-1] if wide else layout.rank - 2


def _viewed(base: Tensor, view: View) -> ViewValue:
    sizes, places = view
    strides = tuple(
        sum(steps[loop] * own for (_, steps), own in zip(places, base.layout.strides, strict=True))
        for loop in range(len(sizes))
    )
    return ViewValue(Layout(sizes, strides, base.layout.dtype), base, places)


def _looked(rule: GatherOp, arguments: list[Any]) -> Gather:
    """Return a gather in PyTorch's layout: contiguous, except that indexing preserves the memory order of the
    dimensions after the first.

    Raises:
        Unsupported: a tensor has no elements, or the index has another dtype than int64 (int32 where the rule allows
            it), or ranks do not fit.
    """
    base: Tensor = arguments[0]
    index = arguments[rule.index]
    if isinstance(index, list):
        (index,) = index
    if rule.is_vector and not index.layout.rank:
        index = _viewed(index, unsqueeze((), 0)[0])
    own, layout = base.layout, index.layout
    dim = 0 if rule.dim is None else arguments[rule.dim].value
    short = (torch.int32,) if rule.may_be_short else ()
    if layout.dtype not in (torch.int64, *short) or 0 in own.sizes or 0 in layout.sizes:
        raise Unsupported("indices of such a dtype, or no elements")
    if not -own.rank <= dim < own.rank or (rule.is_vector and layout.rank != 1):
        raise Unsupported("indices or dimensions that do not fit")
    dim %= own.rank
    if rule.is_aligned:
        if layout.rank != own.rank or any(
            size > whole for at, (size, whole) in enumerate(zip(layout.sizes, own.sizes, strict=True)) if at != dim
        ):
            raise Unsupported("indices or dimensions that do not fit")
        sizes = layout.sizes
    else:
        sizes = (*own.sizes[:dim], *layout.sizes, *own.sizes[dim + 1 :])
    scalar_of(own.dtype)
    strides = contiguous_strides(sizes)
    if rule.is_indexing:
        rows = Layout((*(1,) * layout.rank, *own.sizes[1:]), (*(0,) * layout.rank, *own.strides[1:]), own.dtype)
        strides = elementwise_strides(sizes, [rows, with_trailing_dims(layout, own.rank - 1)])
    return Gather(Layout(sizes, strides, own.dtype), base, index, dim, rule.is_aligned, rule.is_indexing)


def _joined_strides(sizes: Ints, parts: Sequence[Layout]) -> Ints:
    """Return the strides of a concatenation: PyTorch's choice, by the memory formats that the strides of the parts
    suggest.

    Raises:
        Unsupported: the parts suggest different memory formats.
    """
    last = channels_last_strides(sizes)
    are_last = [suggests_channels_last(part) for part in parts]
    if last is not None and all(are_last):
        return last
    if any(are_last) or (len(sizes) == 5 and not all(map(is_contiguous, parts))):
        raise Unsupported("joining tensors of different memory formats")
    return contiguous_strides(sizes)


def _with_channels(names: list[str], channels: frozenset[str], arguments: list[Any]) -> list[Any]:
    """Return ``arguments``, in which the per-channel vectors named by ``channels`` are reshaped to broadcast.

    Raises:
        Unsupported: a vector has another number of elements than the channels, or a dtype that does not fit.
    """
    layout: Layout = arguments[0].layout
    found = []
    for name, argument in zip(names, arguments, strict=True):
        if name in channels and isinstance(argument, Tensor):
            own = argument.layout
            is_wider = own.dtype is torch.float32 and layout.dtype in (torch.bfloat16, torch.float16)
            if layout.rank < 2 or own.sizes != (layout.sizes[1],) or not (own.dtype is layout.dtype or is_wider):
                raise Unsupported("channels of another number or dtype")
            argument = _viewed(argument, along_channels(own.sizes[0], layout.rank))
        found.append(argument)
    return found


def _grouped(value: Tensor, layout: Layout, inner: int) -> ViewValue:
    """Return a view of ``value``, which broadcasts to ``layout``, with its channels in groups of ``inner``. The groups
    are a dimension of their own."""
    whole = layout.sizes if value.layout.rank == layout.rank else (1, *value.layout.sizes)
    if value.layout.rank < layout.rank:
        value = _viewed(value, unsqueeze(value.layout.sizes, 0)[0])
    sizes = (whole[0], whole[1] // inner, inner, *whole[2:])
    return _viewed(value, (sizes, grouping(len(whole), inner)))


def _padded(image: Tensor, dim: int, counts: tuple[int, int], pool: Pool) -> Tensor:
    """Return ``image`` padded with neutral elements along ``dim``: ``counts`` before and after it."""
    layout, parts = image.layout, [image]
    for count in counts:
        parts.reverse()
        if count != 0:
            sizes = (*layout.sizes[:dim], count, *layout.sizes[dim + 1 :])
            scalar = scalar_of(layout.dtype)
            edge = Pointwise(_pooled_layout(sizes, layout), pool.filling(scalar), (), frozenset(), scalar)
            parts.append(edge)
    if len(parts) == 1:
        return image
    whole = (*layout.sizes[:dim], sum(part.layout.sizes[dim] for part in parts), *layout.sizes[dim + 1 :])
    return Concat(_pooled_layout(whole, layout), tuple(parts), dim)


def _pooled_layout(sizes: Ints, image: Layout) -> Layout:
    """Return the layout of a pooled image, in the memory format of the image.

    Raises:
        Unsupported: the image is neither contiguous nor in channels-last order.
    """
    if is_contiguous(image):
        return Layout(sizes, contiguous_strides(sizes), image.dtype)
    last = channels_last_strides(sizes)
    if last is None or image.strides != channels_last_strides(image.sizes):
        raise Unsupported("pooling of an image with gaps, or in another order in memory")
    return Layout(sizes, last, image.dtype)


def _for_each_dim(given: Any, dims: int, default: int | None) -> list[int]:
    """Return one number for each dimension. Image operators accept a single number, one for each, or none: then each is
    ``default``, or the result is empty if that is None."""
    if isinstance(given, ScalarValue):
        given = [given.value]
    found = list(given) if given else [] if default is None else [default]
    return found * dims if len(found) == 1 else found


def _is_scattered(layout: Layout) -> bool:
    """Return whether neighbors in a contiguous tensor of these sizes are far apart in memory here, and numerous enough
    to fall out of the cache: strides that are powers of two share a cache set."""
    wide = [dim for dim, size in enumerate(layout.sizes) if size > 1]
    if not wide or layout.strides[wide[-1]] == 1 or math.prod(layout.sizes) <= _CACHED:
        return False
    return any(layout.strides[dim] == 1 for dim in wide)


def _rows_of_shape(layout: Layout, shape: Any) -> Ints:
    """Return the last dimensions, which must have the sizes ``shape``.

    Raises:
        Unsupported: they have other sizes.
    """
    if not isinstance(shape, list | tuple) or layout.sizes[layout.rank - len(shape) :] != tuple(shape):
        raise Unsupported("rows of another shape")
    return tuple(range(layout.rank - len(shape), layout.rank))


def _dims_beyond(layout: Layout, size: Any) -> tuple[Ints, bool]:
    """Return the dimensions to sum over for ``sum_to_size``, and whether they remain with size 1.

    Raises:
        Unsupported: the size does not broadcast to that of the operand, dimensions would be removed and kept at once,
            or the sizes are equal.
    """
    missing = layout.rank - len(size)
    added = tuple(range(missing))
    wide = tuple(dim for dim in range(missing, layout.rank) if size[dim - missing] != layout.sizes[dim])
    if missing < 0 or any(size[dim - missing] != 1 for dim in wide):
        raise Unsupported("a sum to a size that does not broadcast")
    if bool(added) == bool(wide):
        raise Unsupported("a sum over what a size lacks and what it has once")
    return added or wide, not added


def _row_dims(layout: Layout, given: Any) -> Ints:
    """Return the dimensions that ``given`` names; all where it names none.

    Raises:
        Unsupported: the tensor has no dimensions, or a dimension does not exist or is named twice.
    """
    if not layout.rank:
        raise Unsupported("rows of a tensor without dimensions")
    if isinstance(given, ScalarValue):
        given = [given.value]
    if not given:
        return tuple(range(layout.rank))
    dims = sorted({dim % layout.rank for dim in given if -layout.rank <= dim < layout.rank})
    if len(dims) != len(given):
        raise Unsupported("dimensions that are not there, or twice")
    return tuple(dims)


def _less_degrees(given: dict[str, Any]) -> float:
    """Return the correction of a variance: the number of elements less its degrees of freedom."""
    if "unbiased" in given:
        return int(given["unbiased"])
    correction = given["correction"]
    return 1 if correction is None else float(correction.value)

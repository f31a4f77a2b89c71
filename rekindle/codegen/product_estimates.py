"""Estimate the matrix products of a graph from the arguments of a call: how many rows and multiplications each has.

The sizes of weights are those of the arguments, or of the parameters of modules among them. A product has as many rows
as the tensors that its first factor is computed from. Only speed depends on these estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor, nn

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.codegen.llvm.target import host_target
from rekindle.codegen.operators.matmul import MAX_MULTIPLICATIONS, PRODUCTS
from rekindle.codegen.product_selection import is_measured, max_multiplications
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ops.tensor.torch_tracer import is_traced_by_torch

_DTYPES: Final = (torch.float32, torch.float64)
"""The dtypes of products in kernels."""
_TRANSPOSES: Final = frozenset({"aten::t", "aten::transpose"})
_LARGE_FOR_ROW: Final = 1 << 16
"""Number of elements of a matrix from which BLAS multiplies it with a row as fast: both read it from memory."""
_OF_GRADIENTS: Final = 0.4
"""Number of launches that are saved where kernels compute the gradients of a small product, less what they take
longer."""
_PER_LAUNCH: Final = 1 << 18
"""Number of multiplications of a product for which kernels are faster than BLAS by the time of a launch, if they
compute the product and its two gradients."""


@dataclass(slots=True)
class ProductEstimates:
    """The products of graphs that are called with ``arguments``; without arguments, nothing is known of them. Where
    calls on a GPU are ``captured``, a graph with a backward graph of its own is replayed as a whole. If not
    ``measures``, BLAS is expected to be faster where it would have to be measured."""

    arguments: Sequence[object] = ()
    captured: bool = False
    measures: bool = True
    is_provisional: bool = False
    """Whether there was a product that would have to be measured."""
    depends_on_rows: bool = False
    """Whether there was a product that kernels compute only for several rows."""
    _rows: dict[Value, int] = field(default_factory=dict)
    _visited: Graph | None = None
    _in_kernel: dict[Node, bool] = field(default_factory=dict)

    def is_in_kernel(self, node: Node) -> bool:
        """Return whether ``node`` is a product that a kernel is expected to compute, rather than BLAS."""
        if node.kind not in PRODUCTS:
            return False
        found = self._in_kernel.get(node)
        if found is None:
            found = self._in_kernel[node] = self._has_dtype and self._decide(node)
        return found

    def belongs_in_graph(self, node: Node) -> bool:
        """Return whether ``node`` is a product that is faster in a graph with a backward graph of its own: one that a
        kernel computes, or that is replayed with the operators around it."""
        return node.kind in PRODUCTS if self.captured else self.is_in_kernel(node)

    @property
    def on_gpu(self) -> bool:
        """Whether the graphs are called with tensors on a GPU."""
        return has_gpu_tensors(self.arguments)

    def forget(self) -> None:
        """Release the arguments and the graph."""
        self.arguments = ()
        self._rows, self._visited, self._in_kernel = {}, None, {}

    def _decide(self, node: Node) -> bool:
        first, second = _factors(node)
        rows, weight = self._rows_of(first), self._object(second)
        if rows is None:
            return False
        if not isinstance(weight, Tensor):
            needed = MAX_MULTIPLICATIONS + 1
            return rows > 1 and self._most >= needed and self._kernel_is_faster(needed)
        if weight.dtype not in _DTYPES or weight.device.type != "cpu":
            return False
        count = rows * weight.numel()
        if count > MAX_MULTIPLICATIONS and not self._kernel_is_faster(count):
            return False
        is_large = weight.numel() >= _LARGE_FOR_ROW
        self.depends_on_rows = self.depends_on_rows or is_large
        return rows > 1 or not is_large

    def _kernel_is_faster(self, multiplications: int) -> bool:
        """Return whether a kernel computes a product of that size faster than BLAS. If that would have to be measured,
        and is not to be, return False, and note that the decision is provisional."""
        if not self.measures and not is_measured(multiplications):
            self.is_provisional = True
            return False
        return max_multiplications(multiplications) >= multiplications

    def launches_saved(self, node: Node) -> float:
        """Return how many launches are saved where a product is in a graph, beside those of operators that are fused
        with it: those of its gradients, and as many as take the time that BLAS would take longer."""
        if not self.belongs_in_graph(node):
            return 0.0
        if self.captured:
            return 1.0
        count = self.multiplications(node)
        saved = 0.0 if count is None or count <= MAX_MULTIPLICATIONS else count / _PER_LAUNCH
        return _OF_GRADIENTS + saved

    def multiplications(self, node: Node) -> int | None:
        """Return the number of multiplications of the matrix product ``node``; None if its second factor is not a
        weight among the arguments, or the rows of the first one do not follow from them."""
        first, second = _factors(node)
        rows, weight = self._rows_of(first), self._object(second)
        return rows * weight.numel() if rows is not None and isinstance(weight, Tensor) else None

    @property
    def signature(self) -> str:
        """A key of the properties that the estimates depend on, in coarse steps."""
        if self.on_gpu:
            return f"on a GPU, captured {self.captured}"
        most, is_row = self._most, has_one_row(self.arguments)
        machine = "any" if most <= MAX_MULTIPLICATIONS else host_target().cpu
        return f"products {most.bit_length()} {machine} {is_row} {self._has_dtype}"

    @property
    def _most(self) -> int:
        """The number of multiplications of a product of the largest weight with all rows."""
        rows = _most_rows(self.arguments)
        if not rows:
            return 0
        modules = [each for each in self.arguments if isinstance(each, nn.Module)]
        weights = [*_tensors(self.arguments), *(each for module in modules for each in module.parameters())]
        return rows * max(each.numel() for each in weights)

    @property
    def _has_dtype(self) -> bool:
        """Whether kernels multiply tensors of the dtype and on the device of the arguments."""
        tensors = [each for each in _tensors(self.arguments) if each.is_floating_point()]
        return all(each.dtype in _DTYPES and each.device.type == "cpu" for each in tensors)

    def _rows_of(self, value: Value) -> int | None:
        graph = value.graph
        if graph is not self._visited:
            self._visited = graph
            self._rows = {}
            self._visit(graph)
        return self._rows.get(value)

    def _visit(self, graph: Graph) -> None:
        """Estimate the rows of all values that are computed from arguments."""
        tensors = _tensors(self.arguments)
        for value, argument in zip(graph.inputs, self.arguments, strict=False):
            if isinstance(argument, Tensor) and any(argument is each for each in tensors):
                self._rows[value] = _rows(argument)
        self._visit_block(graph.block)

    def _visit_block(self, block: Block) -> None:
        for node in block.nodes:
            if node.kind == "prim::Loop":
                for carried in LoopView(node).carried:
                    self._take_most(carried.parameter, [carried.initial])
            for inner in node.blocks:
                self._visit_block(inner)
            if node.kind == "prim::Loop":
                for carried in LoopView(node).carried:
                    self._take_most(carried.result, [carried.initial, carried.following])
            elif node.kind == "prim::If":
                for index, output in enumerate(node.outputs):
                    results = [inner.outputs[index] for inner in node.blocks]
                    results = [each for each in results if each.node.kind not in _WITHOUT_ROWS]
                    if all(each in self._rows for each in results):  # which branch runs is not known
                        self._take_most(output, results)
            else:
                for output in node.outputs:
                    self._take_most(output, _operands_with_rows(node))

    def _take_most(self, value: Value, sources: Sequence[Value]) -> None:
        """Note that ``value`` has as many rows as the one of ``sources`` that has the most, if it may hold tensors."""
        known = [self._rows[source] for source in sources if source in self._rows]
        if known and may_contain_tensor(value.type):
            self._rows[value] = max(known)

    def _object(self, value: Value) -> object:
        """Return the argument, or the attribute of a module, that ``value`` reads, perhaps transposed; None for other
        values."""
        while value.node.kind in _TRANSPOSES:
            value = value.node.inputs[0]
        names: list[str] = []
        while value.node.kind == "prim::GetAttr":
            names.append(str(value.node["name"]))
            value = value.node.input
        inputs = list(value.graph.inputs)
        index = inputs.index(value) if value in inputs else len(self.arguments)
        found = self.arguments[index] if index < len(self.arguments) else None
        for name in reversed(names):
            if not isinstance(found, nn.Module):
                return None
            tables = (found._modules, found._parameters, found._buffers)
            found = next((table[name] for table in tables if name in table), None)
        return found


def has_one_row(arguments: Sequence[object]) -> bool:
    """Return whether no tensor among the arguments has more than one row."""
    return _most_rows(arguments) <= 1


def has_gpu_tensors(arguments: Sequence[object]) -> bool:
    """Return whether there is a tensor on a GPU among the arguments."""
    return _CUDA_IS_BUILT and any(isinstance(each, Tensor) and each.is_cuda for each in arguments)


_CUDA_IS_BUILT: Final = torch.backends.cuda.is_built()


def _most_rows(arguments: Sequence[object]) -> int:
    return max(map(_rows, _tensors(arguments)), default=0)


def _tensors(arguments: Sequence[object]) -> Sequence[Tensor]:
    if is_traced_by_torch():  # sizes are tensors then
        return []
    return [each for each in arguments if isinstance(each, Tensor) and type(each) in (Tensor, nn.Parameter)]


def _rows(tensor: Tensor) -> int:
    """Return the number of rows of a tensor; the number of elements of indices, which stand for rows."""
    width = tensor.shape[-1] if tensor.is_floating_point() and tensor.dim() else 1
    return tensor.numel() // max(width, 1)


_WITHOUT_ROWS: Final = frozenset({"prim::Constant", "prim::Uninitialized"})
"""What a branch returns in place of a tensor: None, or nothing, after an exception."""
_NEW: Final = frozenset({"aten::new_zeros", "aten::new_ones", "aten::new_full", "aten::new_empty"})
"""Operators whose sizes are numbers, whatever tensor they take."""
_INTO_FIRST: Final = frozenset(
    f"aten::{name}{suffix}"
    for name in ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_put")
    for suffix in ("", "_")
)
"""Operators whose result has the sizes of the first operand, however many rows they write to it."""


def _operands_with_rows(node: Node) -> Sequence[Value]:
    """Return the operands that the number of rows of the results follows from."""
    if node.kind in PRODUCTS:
        return _factors(node)[:1]
    if node.kind in _INTO_FIRST:
        return node.inputs[:1]
    return () if node.kind in _NEW else node.inputs


def _factors(node: Node) -> Sequence[Value]:
    return node.inputs[1:3] if node.kind == "aten::addmm" else node.inputs[:2]

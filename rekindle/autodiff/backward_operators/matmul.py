"""Backward of matrix products and embeddings, and accumulation of the gradients of a weight that is used often."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import Sizes, sum_to
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import Operation
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.types import INT, ListType
from rekindle.ops.registration.declare import implements, implements_for_node


@implements("autodiff::matmul_self(Tensor grad, int[] size, Tensor other) -> Tensor")
def matmul_self(grad: Tensor, size: Sizes, other: Tensor) -> Tensor:
    """Return the gradient of the first factor of ``torch.matmul``, which has the ``size`` given."""
    if other.dim() == 1:
        return grad.unsqueeze(-1) * other if len(size) > 1 else grad * other
    if len(size) == 1:
        return (grad.unsqueeze(-2) @ other.mT).squeeze(-2).sum_to_size(size)
    if other.dim() == 2:
        return grad @ other.t()
    return sum_to(grad @ other.mT, size)


def _matrix(tensor: Tensor) -> Tensor:
    """Return ``tensor``, of one dimension or more, as a matrix with its last dimension."""
    return tensor if tensor.dim() == 2 else tensor.unsqueeze(0) if tensor.dim() == 1 else tensor.flatten(0, -2)


@implements("autodiff::matmul_other(Tensor grad, Tensor self, int[] size) -> Tensor")
def matmul_other(grad: Tensor, self: Tensor, size: Sizes) -> Tensor:
    """Return the gradient of the second factor of ``torch.matmul``, which has the ``size`` given."""
    if self.dim() == 1:
        return grad * self if len(size) == 1 else (self.unsqueeze(-1) * grad.unsqueeze(-2)).sum_to_size(size)
    if len(size) == 1:
        return _matrix(self).t().mv(grad.reshape(-1))
    if len(size) == 2:
        return _matrix(self).t() @ _matrix(grad)
    return sum_to(self.mT @ grad, size)


@implements("autodiff::linear_input(Tensor grad, int[] size, Tensor weight) -> Tensor")
def linear_input(grad: Tensor, size: Sizes, weight: Tensor) -> Tensor:
    """Return the gradient of the input of ``torch.nn.functional.linear``."""
    if weight.dim() == 1:
        return grad.unsqueeze(-1) * weight
    return grad @ weight


@implements("autodiff::linear_weight(Tensor grad, Tensor input, int[] size) -> Tensor")
def linear_weight(grad: Tensor, input: Tensor, size: Sizes) -> Tensor:
    """Return the gradient of the weight of ``torch.nn.functional.linear``."""
    if len(size) == 1:
        return _matrix(input).t().mv(grad.reshape(-1))
    return _matrix(grad).t() @ _matrix(input)


@implements("autodiff::inner_back(Tensor grad, Tensor self, Tensor other) -> (Tensor, Tensor)")
def inner_back(grad: Tensor, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of both arguments of ``torch.inner``, which sums over the last dimension, or multiplies by a
    number."""
    if self.dim() == 0 or other.dim() == 0:
        return sum_to(grad * other, self.shape), sum_to(grad * self, other.shape)
    free = self.dim() - 1
    of_self = torch.tensordot(grad, other, (list(range(free, grad.dim())), list(range(other.dim() - 1))))
    of_other = torch.tensordot(grad, self, (list(range(free)), list(range(free))))
    return of_self, of_other


@implements("autodiff::kron_back(Tensor grad, Tensor self, Tensor other) -> (Tensor, Tensor)")
def kron_back(grad: Tensor, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``torch.kron``, whose result has a block for each element of ``self``."""
    rank = grad.dim()
    outer = [1] * (rank - self.dim()) + list(self.shape)
    inner = [1] * (rank - other.dim()) + list(other.shape)
    blocks = grad.reshape([size for pair in zip(outer, inner, strict=True) for size in pair])
    if rank == 0:
        return grad * other, grad * self
    wide_self = self.reshape([size for length in outer for size in (length, 1)])
    wide_other = other.reshape([size for length in inner for size in (1, length)])
    of_self = (blocks * wide_other).sum(list(range(1, 2 * rank, 2)))
    of_other = (blocks * wide_self).sum(list(range(0, 2 * rank, 2)))
    return of_self.reshape(self.shape), of_other.reshape(other.shape)


@implements(
    "autodiff::tensordot_back(Tensor grad, Tensor self, Tensor other, int[] dims_self, int[] dims_other)"
    " -> (Tensor, Tensor)"
)
def tensordot_back(
    grad: Tensor, self: Tensor, other: Tensor, dims_self: Sizes, dims_other: Sizes
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``torch.tensordot``. A dimension of size 1 was broadcast against the
    dimension of the other tensor."""
    first = [dim % self.dim() for dim in dims_self]
    second = [dim % other.dim() for dim in dims_other]
    free = [dim for dim in range(self.dim()) if dim not in first]
    rest = [dim for dim in range(other.dim()) if dim not in second]
    a, b = self, other
    for here, there in zip(first, second, strict=True):
        if self.shape[here] != other.shape[there]:
            a = a.sum(here, keepdim=True)
            b = b.sum(there, keepdim=True)
    count = len(free)
    of_self = torch.tensordot(grad, b, (list(range(count, grad.dim())), rest))  # free, then as dims_other are ordered
    order = [*free, *[here for _, here in sorted(zip(second, first, strict=True))]]
    of_other = torch.tensordot(grad, a, (list(range(count)), free))
    behind = [*rest, *[there for _, there in sorted(zip(first, second, strict=True))]]
    return (
        of_self.permute([order.index(dim) for dim in range(self.dim())]).expand(self.shape),
        of_other.permute([behind.index(dim) for dim in range(other.dim())]).expand(other.shape),
    )


@implements("autodiff::multi_dot_back(Tensor grad, Tensor[] tensors) -> Tensor[]")
def multi_dot_back(grad: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients of a product of matrices, whose ends may be vectors."""
    row, column = tensors[0].dim() == 1, tensors[-1].dim() == 1
    factors = list(tensors)
    factors[0] = factors[0].unsqueeze(0) if row else factors[0]
    factors[-1] = factors[-1].unsqueeze(-1) if column else factors[-1]
    back = grad.reshape(factors[0].shape[0], factors[-1].shape[1])
    found: list[Tensor] = []
    for index, factor in enumerate(factors):
        behind = factors[index + 1 :]
        rest = behind[0] if len(behind) == 1 else torch.linalg.multi_dot(behind) if behind else None
        found.append((back if rest is None else back @ rest.mT).reshape(tensors[index].shape))
        back = factor.mT @ back
    return found


@implements(
    "autodiff::cdist_back(Tensor grad, Tensor x1, Tensor x2, float p, Tensor result) -> (Tensor, Tensor)",
)
def cdist_back(grad: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``cdist``: the distances of each row of ``x1`` to each row of ``x2``."""
    batch = list(result.shape[:-2])
    a = x1.expand([*batch, *x1.shape[-2:]]).contiguous()
    b = x2.expand([*batch, *x2.shape[-2:]]).contiguous()
    of_first = torch.ops.aten._cdist_backward(grad.contiguous(), a, b, p, result.contiguous())
    of_second = torch.ops.aten._cdist_backward(grad.mT.contiguous(), b, a, p, result.mT.contiguous())
    return sum_to(of_first, x1.shape), sum_to(of_second, x2.shape)


@implements_for_node(
    "autodiff::accumulate(Tensor[](a!) grads, Tensor[][] inputs, Tensor?[] sums, int[]?[] sizes) -> Tensor?[]",
    may_alias_inputs=True,
)
def accumulate_in_kernels(node: Node) -> Operation:
    """Return the operation of :func:`accumulate` for a node. Kernels compute the matrix products for which they are
    faster than BLAS."""
    weight_gradient = _CompiledOperator("autodiff::linear_weight", [0, 0])  # of whose size the length alone is read
    return lambda grads, inputs, sums, sizes: accumulate(grads, inputs, sums, sizes, weight_gradient)


def accumulate(
    grads: list[Tensor],
    inputs: Sequence[Sequence[Tensor]],
    sums: Sequence[Tensor | None],
    sizes: Sequence[Sizes | None],
    weight_gradient: Product = lambda grad, input: linear_weight(grad, input, (0, 0)),
) -> list[Tensor | None]:
    """Return ``sums`` with a gradient added to each; None counts as zero. To the first ones, one for each of
    ``inputs``, the gradient of a weight of ``linear`` is added, for ``grads`` and these inputs; to the others the sum
    of ``grads``, reduced to a size if there is one. ``weight_gradient`` computes :func:`linear_weight` for weights that
    are matrices. ``grads`` is emptied, as early as possible."""
    if not grads:
        return list(sums)
    lengths = {grad.shape[-1] if grad.dim() else None for grad in grads}
    rows = _rows(grads) if len(lengths) == 1 and None not in lengths else None
    weights, others = sizes[: len(inputs)], sizes[len(inputs) :]
    are_matrices = all(size is not None and len(size) == 2 for size in weights)
    if rows is not None and are_matrices and all(_are_of_length(rows, size) for size in others):
        grads.clear()  # the rows hold all that is read: they would be in memory twice
    found: list[Tensor | None] = []
    for number, (total, size) in enumerate(zip(sums, sizes, strict=True)):
        if number >= len(inputs):
            each = _summed(grads, rows, size)
            found.append(each if total is None else total + each)
        else:
            assert size is not None, "a weight has a size"
            if rows is not None and len(size) == 2:
                each = weight_gradient(rows, _rows(inputs[number]))
            else:
                pairs = zip(grads, inputs[number], strict=True)
                each = torch.stack([linear_weight(*pair, size) for pair in pairs]).sum(0)
            found.append(each if total is None else each.add_(total))
    grads.clear()
    return found


Product = Callable[[Tensor, Tensor], Tensor]


class _CompiledOperator:
    """An operator on two tensors and further constants, compiled when it is first called."""

    def __init__(self, operator: str, *constants: Sequence[int]) -> None:
        self._graph = Graph()
        inputs = [self._graph.add_input(), self._graph.add_input()]
        inputs += [self._graph.insert_constant(list(each), ListType(INT)) for each in constants]
        self._graph.add_output(self._graph.insert(operator, inputs))
        self._run: Callable[..., Tensor] | None = None

    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        if self._run is None:
            self._run = callable_of(self._graph, "product of matrices", optimized=True)
        return self._run(first, second)


def _rows(tensors: Sequence[Tensor]) -> Tensor:
    """Return the rows of several ``tensors``, of one dimension or more, as one matrix. A single tensor is returned as
    it is."""
    return tensors[0] if len(tensors) == 1 else torch.cat([_matrix(each) for each in tensors])


def _are_of_length(rows: Tensor, size: Sizes | None) -> bool:
    """Return whether ``rows`` are a matrix whose rows have this ``size``."""
    return size is not None and rows.dim() == 2 and list(size) == [rows.shape[1]]


def _summed(grads: Sequence[Tensor], rows: Tensor | None, size: Sizes | None) -> Tensor:
    """Return the sum of ``grads``, which have these ``rows``, each summed to ``size`` if there is one."""
    if size is None:
        return grads[0] if len(grads) == 1 else torch.stack(list(grads)).sum(0)
    if rows is not None and _are_of_length(rows, size):
        return rows.sum(0)
    if all(grad.shape == grads[0].shape for grad in grads):
        return sum_to(grads[0] if len(grads) == 1 else torch.stack(list(grads)), size)
    return torch.stack([sum_to(grad, size) for grad in grads]).sum(0)


@implements_for_node(
    "autodiff::placed(Tensor[] grads, int[] indices, Tensor? sum, int[] size, int dim, Tensor? weight) -> Tensor?",
    may_alias_inputs=True,
)
def placed_by_kernels(node: Node) -> Operation:
    """Return the operation of :func:`placed` for a node. Kernels compute the matrix products for which they are faster
    than BLAS."""
    product = _CompiledOperator("aten::matmul")
    return lambda grads, indices, sum, size, dim, weight: placed(grads, indices, sum, size, dim, weight, product)


def placed(
    grads: Sequence[Tensor],
    indices: Sequence[int],
    sum: Tensor | None,
    size: Sizes,
    dim: int,
    weight: Tensor | None,
    product: Product = torch.matmul,
) -> Tensor | None:
    """Return ``sum`` plus the gradient of a tensor of ``size`` for those of its parts with these ``indices`` along
    ``dim``: ``grads``, or their products with ``weight``. None counts as zero; without ``grads``, ``sum`` itself is
    returned."""
    if not grads:
        return sum
    rank = len(size)
    dim %= rank
    if weight is not None and dim == rank - 1:
        grads, weight = [product(grad, weight) for grad in grads], None
    length = size[dim]
    wrapped = [index % length for index in indices]
    if wrapped == list(range(length - 1, -1, -1)):
        grads, wrapped = grads[::-1], wrapped[::-1]
    values = torch.stack(list(grads), dim)
    if weight is not None:
        values = product(values, weight)
    if wrapped != list(range(length)):
        whole = values.new_zeros(size) if sum is None else sum
        return whole.index_add(dim, torch.tensor(wrapped, device=values.device), values)
    return values if sum is None else sum + values


@implements(
    "autodiff::embedded(Tensor[] grads, Tensor[] indices, Tensor? sum, SymInt num_weights, SymInt padding_idx)"
    " -> Tensor?",
    may_alias_inputs=True,
)
def embedded(
    grads: Sequence[Tensor], indices: Sequence[Tensor], sum: Tensor | None, num_weights: int, padding_idx: int
) -> Tensor | None:
    """Return ``sum`` plus the gradient of the weight of an embedding for the lookups at ``indices``, as a new tensor.
    None counts as zero; without ``grads``, ``sum`` itself is returned."""
    if not grads:
        return sum
    rows = torch.cat([grad.reshape(-1, grad.shape[-1]) for grad in grads])
    places = torch.cat([index.reshape(-1) for index in indices])
    found: Tensor = torch.ops.aten.embedding_dense_backward(rows, places, num_weights, padding_idx, False)
    return found if sum is None else sum + found

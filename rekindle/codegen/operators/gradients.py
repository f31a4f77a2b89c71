"""Composite operators of backward graphs: the gradients of matrix products.

See :mod:`rekindle.autodiff.backward_operators.matmul` for what each computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.operators.composites import Emitter, composite

Tensor = Any


@composite("autodiff::linear_input", multiplies=True)
def linear_input(emit: Emitter, grad: Tensor, size: Sequence[int], weight: Tensor) -> Tensor:
    """Return the gradient of the input of ``linear``.

    Raises:
        Unsupported: the weight is not a matrix.
    """
    if weight.layout.rank != 2:
        raise Unsupported("a weight that is not a matrix")
    return emit("matmul", grad, weight)


@composite("autodiff::linear_weight", multiplies=True)
def linear_weight(emit: Emitter, grad: Tensor, input: Tensor, size: Sequence[int]) -> Tensor:
    """Return the gradient of the weight of ``linear``.

    Raises:
        Unsupported: the weight is not a matrix.
    """
    if len(size) != 2:
        raise Unsupported("a weight that is not a matrix")
    return _sum_over_rows(emit, grad, input)


@composite("autodiff::matmul_self", multiplies=True)
def matmul_self(emit: Emitter, grad: Tensor, size: Sequence[int], other: Tensor) -> Tensor:
    """Return the gradient of the first factor of ``matmul``.

    Raises:
        Unsupported: a factor is a vector.
    """
    if len(size) < 2 or other.layout.rank < 2:
        raise Unsupported("a factor that is a vector")
    return _summed(emit, emit("matmul", grad, emit("transpose.int", other, -2, -1)), size)


@composite("autodiff::matmul_other", multiplies=True)
def matmul_other(emit: Emitter, grad: Tensor, self: Tensor, size: Sequence[int]) -> Tensor:
    """Return the gradient of the second factor of ``matmul``.

    Raises:
        Unsupported: a factor is a vector.
    """
    if len(size) < 2 or self.layout.rank < 2:
        raise Unsupported("a factor that is a vector")
    if len(size) == 2:
        return _sum_over_rows(emit, self, grad)
    return _summed(emit, emit("matmul", emit("transpose.int", self, -2, -1), grad), size)


def _sum_over_rows(emit: Emitter, first: Tensor, second: Tensor) -> Tensor:
    """Return the sum of the outer products of the rows of two tensors."""
    a, b = (emit("flatten.using_ints", each, 0, -2) for each in (first, second))
    return emit("mm", emit("t", a), b)


def _summed(emit: Emitter, product: Tensor, size: Sequence[int]) -> Tensor:
    """Return a product summed to ``size``, from which one of its factors was broadcast."""
    missing = product.layout.rank - len(size)
    if missing:
        product = emit("sum.dim_IntList", product, list(range(missing)))
    pairs = zip(product.layout.sizes, size, strict=True)
    dims = [dim for dim, (own, wanted) in enumerate(pairs) if own != wanted]
    return emit("sum.dim_IntList", product, dims, True) if dims else product

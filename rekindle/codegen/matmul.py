"""Matrix products as loop nests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rekindle.codegen.layout import Ints
from rekindle.codegen.loop_ir import nodes
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.nodes import Access, AccessStride
from rekindle.codegen.nest_builder import NeedsMaterialization, StoreTarget
from rekindle.codegen.operators.views import compose, identity
from rekindle.codegen.value_descriptors import FlattenedRows, Input, Matmul, Tensor, ViewValue, scalar_of


def product_nest(target: StoreTarget, materialized: Mapping[Tensor, Input]) -> tuple[nodes.MatmulNest, list[int]]:
    """Return the loop nest of a matrix product, the value of ``target``, and its parameters. The columns of the second
    factor and of the result must be adjacent in memory.

    Raises:
        NeedsMaterialization: a factor has to be materialized first.
        Unsupported: columns are not adjacent in memory.
    """
    product, layout = target.value, target.layout
    assert isinstance(product, Matmul)
    a, b = _Factor(product.a, materialized), _Factor(product.b, materialized)
    batch = layout.rank - 2
    sizes = [*layout.sizes, product.a.layout.sizes[-1]]
    # Of each loop, how far it goes in a, b and the result.
    steps = [
        *((a.outer(dim, batch), b.outer(dim, batch), layout.strides[dim]) for dim in range(batch)),
        (a.strides[-2], 0, layout.strides[-2]),
        (0, b.strides[-1], layout.strides[-1]),
        (a.strides[-1], b.strides[-2], 0),
    ]
    for dim in range(batch - 1, -1, -1):
        if sizes[dim] == 1:
            del sizes[dim], steps[dim]
    m = len(sizes) - 3
    if m and sizes[m] == 1 and isinstance(steps[m - 1][1], int) and steps[m - 1][1] == 0:
        del sizes[m], steps[m]  # many rows by the same matrix are a matrix
        m -= 1
    while m and _are_rows_of_one_matrix(sizes, steps, m):
        sizes[m - 1 : m + 1] = [sizes[m - 1] * sizes[m]]
        del steps[m - 1]
        m -= 1
    across = not (steps[-1][0] == 1 and steps[-1][1] == 1)
    if across and steps[-2][1] != 1 and sizes[-2] != 1:
        raise Unsupported("a product of matrices with gaps")
    scalar = scalar_of(layout.dtype)
    numbers = list(sizes)
    for factor, offset in enumerate((a.offset, b.offset, target.offset)):
        numbers += (offset * scalar.size, *(step[factor] * scalar.size for step in steps))
    accesses = (
        Access(a.buffer, scalar, AccessStride.STRIDE if across else AccessStride.NEXT),
        Access(b.buffer, scalar, AccessStride.NEXT),
        Access(target.buffer, scalar, AccessStride.NEXT),
    )
    return nodes.MatmulNest(len(sizes), accesses, across, is_row=sizes[m] == 1), numbers


def _are_rows_of_one_matrix(sizes: Sequence[int], steps: Sequence[tuple[int, int, int]], m: int) -> bool:
    """Return whether the matrices along the loop before ``m`` follow one another in memory, and are all multiplied by
    the same one."""
    outer, inner = steps[m - 1], steps[m]
    return (
        type(outer[1]) is int and outer[1] == 0 and all(outer[factor] == inner[factor] * sizes[m] for factor in (0, 2))
    )


class _Factor:
    """Memory of a factor ``value``: the buffer, the offset, and the strides."""

    def __init__(self, value: Tensor, materialized: Mapping[Tensor, Input]) -> None:
        self.sizes = value.layout.sizes
        self.buffer: int
        rank = len(self.sizes)
        places = identity(rank)
        while isinstance(value, ViewValue) and value not in materialized:
            places = compose(value.places, places, rank)
            value = value.base
        start, own = self._memory(value, materialized)
        self.offset = start + sum(first * stride for (first, _), stride in zip(places, own, strict=True))
        self.strides: Ints = tuple(
            sum(steps[loop] * stride for (_, steps), stride in zip(places, own, strict=True)) for loop in range(rank)
        )

    def _memory(self, value: Tensor, materialized: Mapping[Tensor, Input]) -> tuple[int, Ints]:
        """Set ``buffer`` to that of ``value``; return the offset and the strides in the buffer.

        Raises:
            NeedsMaterialization: the value is computed in the kernel, and not in memory.
        """
        if isinstance(value, FlattenedRows):
            base = _Factor(value.base, materialized)
            self.buffer = base.buffer
            return base.offset, (base.strides[value.dim], base.strides[-1])
        found = materialized.get(value, value)
        if not isinstance(found, Input):
            raise NeedsMaterialization(value)
        self.buffer = found.number
        return 0, found.layout.strides

    def outer(self, dim: int, batch: int) -> int:
        """Return the stride of batch dimension ``dim``, of ``batch`` dimensions before the matrices; 0 if the factor is
        broadcast along it."""
        own = dim - batch + len(self.sizes) - 2
        return 0 if own < 0 or self.sizes[own] == 1 else self.strides[own]

"""Products of matrices and vectors, contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

import torch

from rekindle.ir.types import TensorType
from rekindle.ops.result_types import sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import (
    agreement,
    first,
    list_agreement,
    list_promotion,
    list_result_type,
    named,
    only_floating,
    promote_types,
    promotion,
)
from rekindle.ops.result_types.rules import ALL, SOME, Rules, SizesRule, each, tensor
from rekindle.ops.result_types.sizes import broadcast, last, unknown_of


def matmul_sizes(a: Sizes | None, b: Sizes | None) -> Sizes | None:
    """Return the sizes of ``a @ b``; None if a rank is unknown or 0, or leading dimensions do not broadcast."""
    if a is None or b is None or not a or not b:
        return None
    batch = broadcast(a[:-2], b[:-2])
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return None if batch is None else (*batch, *rows, *columns)


def _matmul(left: str, right: str) -> SizesRule:
    return lambda call: matmul_sizes(call.tensor(left).sizes, call.tensor(right).sizes)


def _of_rank(rank: int, rule: Callable[[Call], Sizes | None]) -> SizesRule:
    """Return a rule for the sizes of ``rule``; only the rank if those are unknown."""

    def sizes_of(call: Call) -> Sizes | None:
        found = rule(call)
        return found if found is not None and len(found) == rank else (None,) * rank

    return sizes_of


def _mm(left: str = "self", right: str = "mat2") -> SizesRule:
    def rule(call: Call) -> Sizes:
        return (last(call.tensor(left).sizes, 2)[0], last(call.tensor(right).sizes, 2)[1])

    return rule


def _bmm(left: str, right: str) -> SizesRule:
    def rule(call: Call) -> Sizes:
        a, b = last(call.tensor(left).sizes, 3), last(call.tensor(right).sizes, 3)
        return (sizes.same(a[0], b[0]), a[1], b[2])

    return rule


def _linear(call: Call) -> Sizes | None:
    """Return the sizes of ``linear``: the last one is the number of rows of the weight; a vector as weight removes
    it. None if not known."""
    given, weight = call.first.sizes, call.tensor("weight").sizes
    if given is None or weight is None or not given:
        return None
    return (*given[:-1], *weight[:-1])


def _outer(call: Call) -> Sizes:
    names = [argument.name for argument in call.schema.arguments][-4:]
    left, right = ("self", "vec2") if "vec2" in names else ("self", "other")
    if call.has("vec1"):
        left = "vec1"
    return (last(call.tensor(left).sizes, 1)[0], last(call.tensor(right).sizes, 1)[0])


def _inner(call: Call) -> Sizes | None:
    a, b = call.first.sizes, call.tensor("other").sizes
    if a is None or b is None:
        return None
    if not a or not b:
        return a or b
    return (*a[:-1], *b[:-1])


def _tensordot(call: Call) -> Sizes | None:
    a, b = call.first.sizes, call.tensor("other").sizes
    of_a, of_b = call.ints("dims_self"), call.ints("dims_other")
    if a is None or b is None or of_a is None or of_b is None:
        return None
    chosen_a, chosen_b = sizes.axes(of_a, len(a)), sizes.axes(of_b, len(b))
    if chosen_a is None or chosen_b is None:
        return unknown_of(len(a) + len(b) - len(of_a) - len(of_b))
    kept_a = [size for index, size in enumerate(a) if index not in chosen_a]
    return (*kept_a, *(size for index, size in enumerate(b) if index not in chosen_b))


def _einsum(call: Call) -> Sizes | None:
    """Return the sizes of an ``einsum`` from the letters of its equation; None if the equation or the number of tensors
    is not known, or the equation has an ellipsis."""
    equation, tensors = call.value("equation"), call.list_of_tensors("tensors")
    if not isinstance(equation, str) or tensors is None or "." in equation:
        return None
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        letters = inputs.replace(",", "")
        output = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    known: dict[str, int | None] = {}
    for term, each_tensor in zip(terms, tensors, strict=False):
        found = each_tensor.sizes if each_tensor.sizes is not None else (None,) * len(term)
        for letter, size in zip(term, found, strict=False):
            known[letter] = sizes.broadcast_size(known.get(letter, 1), size)
    return tuple(known.get(letter) for letter in output)


def _multi_dot(call: Call) -> Sizes | None:
    tensors = call.list_of_tensors("tensors")
    if not tensors or tensors[0].rank is None or tensors[-1].rank is None:
        return None
    return reduce(matmul_sizes, (_as_matrix(each_tensor, len(tensors), i) for i, each_tensor in enumerate(tensors)))


def _as_matrix(tensor: TensorType, count: int, index: int) -> Sizes | None:
    is_inner = 0 < index < count - 1
    return (None, None) if is_inner and tensor.sizes is None else tensor.sizes


def _kron(call: Call) -> Sizes | None:
    a, b = call.first.sizes, call.tensor("other").sizes
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    pairs: Sequence[tuple[int | None, int | None]] = list(
        zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    )
    return tuple(sizes.product(pair) for pair in pairs)


def _kron_dtype(call: Call) -> torch.dtype | None:
    """Return the dtype of a Kronecker product. Both operands are first brought to one rank, so that both have the same
    priority in promotion. None if not known."""
    return promote_types(call.first.dtype, call.tensor("other").dtype)


def _cdist(call: Call) -> Sizes | None:
    a, b = call.tensor("x1").sizes, call.tensor("x2").sizes
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    batch = broadcast(a[:-2], b[:-2])
    return None if batch is None else (*batch, a[-2], b[-2])


def _block_diagonal(call: Call) -> Sizes | None:
    tensors = call.list_of_tensors("tensors")
    if tensors is None or any(each_tensor.sizes is None for each_tensor in tensors):
        return (None, None)
    shapes = [(1,) * (2 - len(t.sizes)) + t.sizes for t in tensors if t.sizes is not None]
    totals = [[shape[place] for shape in shapes] for place in (0, 1)]
    return tuple(None if None in total else sum(size or 0 for size in total) for total in totals)


def _bilinear(call: Call) -> Sizes | None:
    given, weight = call.first.sizes, call.tensor("weight").sizes
    return None if not given else (*given[:-1], last(weight, 3)[0])


_OUT_DTYPE: Final = named(first, "out_dtype")

RULES: Final[Rules] = {
    **each(tensor(first, _matmul("self", "other"), flow=ALL), "matmul linalg_matmul"),
    "mm": tensor(_OUT_DTYPE, _mm(), flow=ALL),
    "_sparse_mm": tensor(first, _mm("sparse", "dense"), flow=ALL),
    "bmm": tensor(_OUT_DTYPE, _of_rank(3, _bmm("self", "mat2")), flow=ALL),
    "addmm": tensor(_OUT_DTYPE, _mm("mat1", "mat2"), flow=ALL),
    "sparse_sampled_addmm": tensor(first, sizes.first, flow=ALL),
    "addmv": tensor(first, lambda call: (last(call.tensor("mat").sizes, 2)[0],), flow=ALL),
    "addr": tensor(promotion("self", "vec1", "vec2"), _outer, flow=ALL),
    "baddbmm": tensor(_OUT_DTYPE, _bmm("batch1", "batch2"), flow=ALL),
    "addbmm": tensor(
        first,
        lambda call: (last(call.tensor("batch1").sizes, 3)[1], last(call.tensor("batch2").sizes, 3)[2]),
        flow=ALL,
    ),
    "mv": tensor(first, lambda call: (last(call.first.sizes, 2)[0],), flow=ALL),
    **each(tensor(first, sizes.scalar, flow=ALL), "dot vdot"),
    "linear": tensor(first, _linear, flow=ALL),
    **each(tensor(promotion("self", "vec2"), _outer, flow=ALL), "outer ger"),
    "inner": tensor(promotion("self", "other"), _inner, flow=ALL),
    "tensordot": tensor(first, _tensordot, flow=ALL),
    "einsum": tensor(only_floating(list_agreement("tensors")), _einsum, flow=SOME),
    **each(tensor(list_promotion("tensors"), _multi_dot, flow=SOME), "linalg_multi_dot chain_matmul"),
    "kron": tensor(_kron_dtype, _kron, flow=ALL),
    "cdist": tensor(agreement("x1", "x2"), _cdist, flow=ALL),
    "pdist": tensor(first, sizes.of_rank(1)),
    "block_diag": tensor(list_result_type("tensors"), _block_diagonal, flow=SOME),
    "bilinear": tensor(first, _bilinear, flow=ALL),
}

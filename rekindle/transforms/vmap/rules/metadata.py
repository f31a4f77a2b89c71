"""Batching rules of metadata queries: the result is the same for all examples."""

from __future__ import annotations

from typing import Final

from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import queries_of

TEXT: Final = """
batch size(self):
    return inner_sizes(self)

batch size.int(self, dim):
    return torch.size(self, inner(self, dim))

batch sym_size.int(self, dim):
    return torch.size(self, inner(self, dim))

batch stride(self):
    return torch.slice(torch.stride(self), 1)

batch stride.int(self, dim):
    return torch.stride(self, inner(self, dim))

batch dim(self):
    return self.dim() - 1

batch len.Tensor(t):
    return torch.size(t, inner(t, 0))

batch numel(self):
    number = 1
    for size in inner_sizes(self):
        number = number * size
    return number

batch result_type.Tensor(tensor, batched_tensor, other, batched_other):
    x = torch.empty([1 for _ in range(example_rank(tensor, batched_tensor))], dtype=tensor.dtype)
    y = torch.empty([1 for _ in range(example_rank(other, batched_other))], dtype=other.dtype)
    return torch.result_type(x, y)

batch is_same_size(self, batched_self, other, batched_other):
    mine = inner_sizes(self) if batched_self else torch.size(self)
    others = inner_sizes(other) if batched_other else torch.size(other)
    return mine == others

# ---- Numbers, one for each example: a tensor with one dimension.

batch Int.Tensor, IntImplicit(a):
    return torch.to(torch.reshape(a, [batch_size]), 4)

batch Float.Tensor, FloatImplicit(a):
    return torch.to(torch.reshape(a, [batch_size]), 7)

batch Bool.Tensor(a):
    return torch.ne(torch.reshape(a, [batch_size]), 0)

batch is_nonzero(self):
    return torch.ne(torch.reshape(self, [batch_size]), 0)

batch equal(self, other):
    if torch.size(self) != torch.size(other):
        return torch.zeros([batch_size], dtype=11)
    return torch.all(flat(self == other), 1)
"""

UNCHANGED: Final = queries_of(
    *(Trait.READS_DTYPE, Trait.READS_DEVICE, Trait.READS_LAYOUT, Trait.READS_REQUIRES_GRAD, Trait.READS_IDENTITY)
)
"""Property queries of what is the same for a batch as for an example: all but ranks, sizes and strides."""

SCALARS: Final[dict[str, str]] = {
    **{
        f"aten::{name}.{types}": f"{{0}} {sign} {{1}}"
        for name, sign in (
            ("add", "+"),
            ("sub", "-"),
            ("mul", "*"),
            ("lt", "<"),
            ("le", "<="),
            ("gt", ">"),
            ("ge", ">="),
            ("eq", "=="),
            ("ne", "!="),
        )
        for types in ("int", "float", "int_float", "float_int")
    },
    "aten::eq.bool": "{0} == {1}",
    "aten::ne.bool": "{0} != {1}",
    "aten::neg.int": "torch.neg({0})",
    "aten::neg.float": "torch.neg({0})",
    "aten::__not__": "torch.logical_not({0})",
    "aten::__and__.bool": "{0} & {1}",
    "aten::__or__.bool": "{0} | {1}",
    "aten::Float.int": "torch.to({0}, 7)",
    "aten::Int.float": "torch.to({0}, 4)",
    "aten::Int.bool": "torch.to({0}, 4)",
    "aten::Bool.int": "torch.ne({0}, 0)",
    "aten::Bool.float": "torch.ne({0}, 0)",
    "prim::abs.int": "torch.abs({0})",
    "prim::abs.float": "torch.abs({0})",
}
"""Computations with numbers, where at least one is a number for each example. Ints are int64, which is
exact unless they overflow, and floats are float64."""

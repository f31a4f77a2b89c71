"""Number of dimensions that operators require of a tensor of one example.

The operators that compute a batch take more dimensions: a batch of vectors is a matrix. Without a check, ``x.mT`` of
vectors would transpose the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_ANY: Final = 2**31
"""No limit."""

_TABLE: Final = """
mm: self 2, mat2 2
bmm: self 3, mat2 3
mv: self 2, vec 1
dot: self 1, tensor 1
vdot: self 1, other 1
outer ger: self 1, vec2 1
addmm: mat1 2, mat2 2
addmv: mat 2, vec 1
addr: vec1 1, vec2 1
addbmm baddbmm: batch1 3, batch2 3
matmul linalg_matmul: self 1.., other 1..
linear: input 1.., weight 1..2
scaled_dot_product_attention: query 2.., key 2.., value 2..
nuclear_norm: self 2..
cdist _cdist_forward: x1 2.., x2 2..
trace: self 2
t t_copy: self 0..2
matrix_H: self 0..2
diag: self 1..2
diag_embed: self 1..
renorm: self 2..
cov: self 0..2
vander: x 1
mT mH adjoint: self 2..
inverse det slogdet logdet cholesky cholesky_inverse svd qr matrix_exp linalg_matrix_exp pinverse matrix_power: self 2..
linalg_cholesky linalg_cholesky_ex linalg_eigvalsh linalg_eigh linalg_eig linalg_eigvals linalg_matrix_power: self 2..
linalg_slogdet linalg_det _linalg_slogdet _linalg_det linalg_svd linalg_svdvals _linalg_svd _linalg_eigh: A 2..
linalg_inv linalg_inv_ex linalg_qr linalg_lu_factor linalg_lu_factor_ex linalg_lu: A 2..
linalg_pinv linalg_pinv.atol_rtol_float linalg_cond linalg_ldl_factor linalg_ldl_factor_ex geqrf: self 2..
linalg_matrix_rank linalg_matrix_rank.atol_rtol_float: self 2..
linalg_householder_product: input 2.., tau 1..
tril triu tril_ triu_: self 2..
lu_unpack: LU_data 2.., LU_pivots 1..
linalg_solve linalg_solve_ex: A 2.., B 1..
linalg_lu_solve: LU 2.., B 2..
linalg_solve_triangular: self 2.., B 2..
triangular_solve: self 2.., A 2..
cholesky_solve: self 2.., input2 2..
pixel_shuffle pixel_unshuffle channel_shuffle: self 3..
hsplit.int hsplit.array: self 1..
vsplit.int vsplit.array: self 2..
dsplit.int dsplit.array: self 3..
flipud: self 1..
fliplr: self 2..
view_as_complex view_as_complex_copy: self 1..
"""


def _ranks(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    return int(low), int(high) if high else (_ANY if dots else int(low))


def _entries() -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    for line in _TABLE.strip().splitlines():
        operators, _, arguments = line.partition(": ")
        ranks = {name: _ranks(text) for name, text in (part.split() for part in arguments.split(", "))}
        for operator in operators.split():
            yield operator, ranks


RANKS: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = dict(_entries())
"""Smallest and largest number of dimensions of arguments, by operator and argument name."""


def checks(operator: str, batched: Iterable[str]) -> list[str]:
    """Return the statements that check the arguments of ``operator``, of which those in ``batched`` have one dimension
    more than those of an example."""
    statements = []
    for name, (low, high) in RANKS.get(operator, {}).items():
        wanted = f"at least {low}" if high == _ANY else f"{low} to {high}" if high > low else f"{low}"
        noun = "dimension" if wanted.endswith("1") else "dimensions"
        text = f"{operator.partition('.')[0]}: '{name}' must have {wanted} {noun}"
        statements.append(f"    check_rank({name}, {name in batched}, {low}, {high}, {text!r})\n")
    return statements

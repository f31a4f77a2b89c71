"""Linear algebra and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from rekindle.ops.result_types import dtypes, sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import always, first, floating, real, to_complex
from rekindle.ops.result_types.facts import Fact
from rekindle.ops.result_types.rules import ALL, NEVER, SOME, Rule, Rules, SizesRule, each, several, tensor
from rekindle.ops.result_types.sizes import broadcast, broadcasting, reduced, unknown_of

_SAME: Final = tensor(first, sizes.first)


def _less(count: int) -> SizesRule:
    """Return the rule for the sizes of the first argument without the last ``count``."""

    def rule(call: Call) -> Sizes | None:
        known = call.first.sizes
        return None if known is None or len(known) < count else known[: len(known) - count]

    return rule


def _square(call: Call) -> Sizes | None:
    known = call.first.sizes
    return None if known is None or len(known) < 2 else known


_MATRIX: Final = tensor(first, sizes.rank_of_first)
_BATCH_OF_INTS: Final = tensor(always(torch.int32), _less(2), flow=NEVER)
_PIVOTS: Final = tensor(always(torch.int32), lambda call: unknown_of(_rank(call, -1)), flow=NEVER)
_REAL_VECTOR: Final = tensor(real(first), lambda call: unknown_of(_rank(call, -1)))
_EIGENVALUES: Final = tensor(to_complex(first), _less(1))
_SQUARES: Final = tensor(first, _square)
_DETERMINANT: Final = tensor(first, _less(2))


def _rank(call: Call, more: int) -> int | None:
    rank = call.first.rank
    return None if rank is None or rank + more < 0 else rank + more


def _pseudo_inverse(call: Call) -> Sizes | None:
    """Return the sizes of a pseudo-inverse; None if the tolerance may be a tensor, which is broadcast."""
    has_others = len(call.tensors) > 1
    return None if has_others else sizes.rank_of_first(call)


def _matrix_rank(call: Call) -> Sizes | None:
    return _less(2)(call) if len(call.tensors) == 1 else None


def _solved(call: Call) -> Sizes | None:
    """Return the rank of ``linalg_solve(A, B)``, with unknown sizes. B may be a vector or matrices, so the rank is
    known only if both ranks are equal or B has rank 1; else None."""
    a, b = call.first.rank, call.tensor("B").rank
    if a is None or b is None:
        return None
    return unknown_of(a) if a == b else unknown_of(a - 1) if b == 1 else None


def _solved_triangular(call: Call) -> Sizes | None:
    a, b = call.first.rank, call.tensor("B").rank
    return None if a is None or b is None else unknown_of(max(a, b))


def _older_solve(call: Call) -> Sizes | None:
    return unknown_of(_larger_rank(call, *(argument.name for argument in call.schema.arguments[:2])))


def _qr(call: Call) -> Sequence[Fact]:
    result = _MATRIX.type(call)
    is_full = not call.has("mode") or call.value("mode") in ("reduced", "complete")
    return [result if is_full else tensor(first).type(call), result]


def _if_set(flag: str) -> SizesRule:
    """Return a rule: the rank of the first argument, with unknown sizes, if the bool argument ``flag`` is known to be
    True. Otherwise nothing is known, because the operator may return an empty vector."""
    return lambda call: unknown_of(call.first.rank) if call.flag(flag) else None


def _svd(call: Call) -> Sequence[Fact]:
    matrix, values = _MATRIX.type(call), _REAL_VECTOR.type(call)
    return [matrix, values, matrix]


def _least_squares(call: Call) -> Sequence[Fact]:
    """Return the types of ``lstsq``: the solution, whose rank is known if both sides have it, then residuals, ranks and
    singular values."""
    a, b = call.first.rank, call.tensor("b").rank
    solution = tensor(first, lambda call: unknown_of(a) if a == b else None, flow=SOME)
    others = (tensor(real(first), flow=SOME), tensor(always(torch.int64), flow=NEVER), tensor(real(first), flow=SOME))
    return [result.type(call) for result in (solution, *others)]


def _tensor_inverse(call: Call) -> Sizes | None:
    return sizes.rank_of_first(call)


def _cross(call: Call) -> Sizes | None:
    return broadcasting("self", "other")(call)


def _vecdot(call: Call) -> Sizes | None:
    found = broadcast(call.tensor("x").sizes, call.tensor("y").sizes)
    return None if not found else unknown_of(len(found) - 1)


def _larger_rank(call: Call, *names: str) -> int | None:
    ranks = [call.tensor(name).rank for name in names]
    return None if None in ranks else max(rank or 0 for rank in ranks)


def _spectrum_sizes(call: Call) -> Sizes | None:
    """Return the sizes of a spectrogram, which are unknown, but not their number: the dimensions of the batch,
    frequencies, frames, and, if the result is not complex, real and imaginary part. None if not known."""
    is_complex = call.flag("return_complex")
    return None if is_complex is None else unknown_of(_rank(call, 1 if is_complex else 2))


def _signal(call: Call) -> torch.dtype | None:
    is_complex = call.flag("return_complex")
    return None if is_complex is None else first(call) if is_complex else dtypes.real_of(first(call))


def _spectrum(call: Call) -> torch.dtype | None:
    is_complex = call.flag("return_complex")
    return None if is_complex is None else dtypes.complex_of(first(call)) if is_complex else dtypes.real_of(first(call))


# -------------------------------------------------------------------------------------------------- Fourier transforms


_TO_COMPLEX: Final = to_complex(floating(first))


def _fourier(dtype: dtypes.DtypeRule) -> Rule:
    """Return the rule of a Fourier transform: the rank of the input."""
    return tensor(dtype, sizes.rank_of_first)


_NAMES: Final = ("fft", "fft2", "fftn")

RULES: Final[Rules] = {
    **each(_SQUARES, "linalg_cholesky cholesky linalg_inv inverse linalg_matrix_exp linalg_matrix_power"),
    **each(_SQUARES, "cholesky_inverse"),
    **each(tensor(first, _pseudo_inverse), "linalg_pinv pinverse"),
    **each(_DETERMINANT, "linalg_det det logdet"),
    **each(several(_DETERMINANT, tensor(real(first), _less(2))), "linalg_slogdet slogdet"),
    **each(several(_SQUARES, _BATCH_OF_INTS), "linalg_inv_ex linalg_cholesky_ex"),
    **each(several(tensor(real(first), _less(1)), _SQUARES), "linalg_eigh"),
    "linalg_eigvalsh": tensor(real(first), _less(1)),
    "linalg_eig": several(_EIGENVALUES, tensor(to_complex(first), _square)),
    "linalg_eigvals": _EIGENVALUES,
    "linalg_svdvals": _REAL_VECTOR,
    **each(_svd, "linalg_svd svd"),
    **each(_qr, "linalg_qr qr"),
    "geqrf": several(_MATRIX, tensor(first, lambda call: unknown_of(_rank(call, -1)))),
    **each(_SAME, "linalg_householder_product"),
    "ormqr": tensor(first, lambda call: unknown_of(call.tensor("input3").rank), flow=ALL),
    **each(several(_MATRIX, _PIVOTS), "linalg_lu_factor"),
    **each(several(_MATRIX, _PIVOTS, _BATCH_OF_INTS), "linalg_lu_factor_ex _lu_with_info"),
    "linalg_lu": several(tensor(first, _if_set("pivot"), flow=NEVER), _MATRIX, _MATRIX),
    "lu_unpack": several(
        tensor(first, _if_set("unpack_pivots"), flow=SOME),
        tensor(first, _if_set("unpack_data"), flow=SOME),
        tensor(first, _if_set("unpack_data"), flow=SOME),
    ),
    "linalg_ldl_factor": several(_SQUARES, _PIVOTS),
    "linalg_ldl_factor_ex": several(_SQUARES, _PIVOTS, _BATCH_OF_INTS),
    "linalg_ldl_solve": tensor(first, lambda call: unknown_of(_larger_rank(call, "LD", "B"))),
    **each(tensor(first, _solved, flow=ALL), "linalg_solve"),
    "linalg_solve_ex": several(tensor(first, _solved, flow=ALL), _BATCH_OF_INTS),
    "linalg_solve_triangular": tensor(first, _solved_triangular, flow=ALL),
    "linalg_lu_solve": tensor(first, lambda call: unknown_of(_larger_rank(call, "LU", "B")), flow=ALL),
    **each(tensor(first, _older_solve, flow=ALL), "cholesky_solve lu_solve"),
    "triangular_solve": several(tensor(first, _older_solve, flow=SOME), tensor(first, _older_solve, flow=SOME)),
    "linalg_lstsq": _least_squares,
    "linalg_tensorinv": tensor(first, _tensor_inverse),
    "linalg_tensorsolve": tensor(first),
    "linalg_matrix_rank": tensor(always(torch.int64), _matrix_rank, flow=NEVER),
    "linalg_cond": tensor(real(first), _less(2)),
    "linalg_norm": tensor(dtypes.real(dtypes.named(first)), reduced("dim")),
    "linalg_matrix_norm": tensor(dtypes.real(dtypes.named(first)), reduced("dim")),
    **each(tensor(dtypes.agreement("self", "other"), _cross, flow=ALL), "cross linalg_cross"),
    "linalg_vecdot": tensor(dtypes.promotion("x", "y"), _vecdot, flow=ALL),
    # Fourier transforms
    **{f"fft_{name}": _fourier(_TO_COMPLEX) for name in (*_NAMES, "ifft", "ifft2", "ifftn")},
    **{f"fft_{name}": _fourier(_TO_COMPLEX) for name in ("rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn")},
    **{
        f"fft_{name}": _fourier(real(floating(first)))
        for name in ("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn")
    },
    "stft": tensor(_spectrum, _spectrum_sizes, flow=SOME),
    "istft": tensor(_signal, lambda call: unknown_of(_rank(call, -1)), flow=SOME),
}

"""Reductions, statistics and scans."""

from __future__ import annotations

from typing import Final

import torch

from rekindle.ops.result_types import sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import always, first, floating, named, only_floating, promotion, real, summed
from rekindle.ops.result_types.elementwise import PROMOTED_SIZES
from rekindle.ops.result_types.facts import Fact
from rekindle.ops.result_types.rules import ALL, NEVER, SOME, Rules, each, several, tensor
from rekindle.ops.result_types.sizes import reduced

_ALONG_DIM: Final = reduced("dim")
_INDICES: Final = tensor(always(torch.int64), _ALONG_DIM, flow=NEVER)
_VALUES: Final = tensor(first, _ALONG_DIM)
_EXTREMES: Final = several(_VALUES, _INDICES)


def _truth(call: Call) -> torch.dtype | None:
    """Return the dtype of ``all`` and ``any``: bool, or uint8 for uint8; None if it is not known."""
    found = first(call)
    return None if found is None else torch.uint8 if found == torch.uint8 else torch.bool


def _plain_softmax(call: Call) -> torch.dtype | None:
    return first(call) if call.flag("half_to_float") is False else None


def _extreme(call: Call) -> list[Fact]:
    """Return the types of ``max(self)``, of ``max(self, dim)`` with its indices, or of ``max(self, other)``; also for
    ``min``."""
    if call.has("other"):
        return [tensor(promotion("self", "other"), PROMOTED_SIZES, flow=ALL).type(call)]
    return list(_EXTREMES(call)) if call.has("dim") else [tensor(first, sizes.scalar).type(call)]


def _middle(call: Call) -> list[Fact]:
    return list(_EXTREMES(call)) if call.has("dim") else [tensor(first, sizes.scalar).type(call)]


def _quantile_sizes(call: Call) -> Sizes | None:
    found = _ALONG_DIM(call)
    quantiles = call.tensor("q")
    if call.schema.arguments[1].type.kind != "TensorType":
        return found
    if found is None or quantiles.sizes is None:
        return None
    return (*quantiles.sizes, *found)


def _norm_dtype(call: Call) -> torch.dtype | None:
    return real(named(first))(call)


def _nuclear_norm(call: Call) -> Sizes | None:
    """Return the sizes of ``nuclear_norm``, which reduces the last two dimensions where none are named. None if not
    known."""
    if call.has("dim"):
        return _ALONG_DIM(call)
    known, keep = call.first.sizes, call.flag("keepdim")
    return None if known is None or keep is None else (*known[:-2], 1, 1) if keep else known[:-2]


_SUM = tensor(named(summed(first)), _ALONG_DIM)
_VARIANCE = tensor(real(first), _ALONG_DIM)
_SCAN = tensor(first, sizes.first)
_SPREAD_AND_MEAN = several(_VARIANCE, _VALUES)

RULES: Final[Rules] = {
    **each(_SUM, "sum nansum prod"),
    **each(tensor(named(first), _ALONG_DIM), "mean nanmean"),
    **each(tensor(_truth, reduced("dim", empty="none"), flow=NEVER), "all any"),
    **each(_INDICES, "argmax argmin"),
    **each(_extreme, "max min"),
    **each(_middle, "median nanmedian"),
    **each(_EXTREMES, "mode kthvalue"),
    **each(_VALUES, "amax amin"),
    "aminmax": several(_VALUES, _VALUES),
    **each(_VARIANCE, "var std"),
    **each(_SPREAD_AND_MEAN, "var_mean std_mean"),
    **each(tensor(floating(first), reduced("dim", empty="unknown")), "logsumexp special_logsumexp"),
    **each(tensor(_norm_dtype, _ALONG_DIM), "norm frobenius_norm linalg_vector_norm"),
    "nuclear_norm": tensor(_norm_dtype, _nuclear_norm),
    "count_nonzero": tensor(always(torch.int64), reduced("dim", None), flow=NEVER),
    **each(tensor(first, _quantile_sizes, flow=ALL), "quantile nanquantile"),
    "trace": tensor(summed(first), sizes.scalar),
    "dist": tensor(real(promotion("self", "other")), sizes.scalar, flow=SOME),
    **each(tensor(named(summed(first)), sizes.first), "cumsum cumprod"),
    "logcumsumexp": _SCAN,
    **each(several(_SCAN, tensor(always(torch.int64), sizes.first, flow=NEVER)), "cummax cummin"),
    "hash_tensor": tensor(always(torch.uint64), reduced("dim"), flow=NEVER),
    **each(tensor(named(first), sizes.first), "softmax log_softmax special_softmax special_log_softmax"),
    "_safe_softmax": tensor(named(first), sizes.first),
    "_softmax": tensor(_plain_softmax, sizes.first),
    "_log_softmax": tensor(_plain_softmax, sizes.first),
    "sum_to_size": tensor(only_floating(first), sizes.listed("size")),
}

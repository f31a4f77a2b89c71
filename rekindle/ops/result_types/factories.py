"""Operators that make tensors of sizes and numbers: filled ones, ranges, random ones; casts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import torch

from rekindle.ops.result_types import dtypes, sizes
from rekindle.ops.result_types.call import Call, Sizes, number_kind
from rekindle.ops.result_types.dtypes import DtypeRule, always, default, first, named
from rekindle.ops.result_types.facts import Constant, Fact
from rekindle.ops.result_types.rules import (
    NEVER,
    SOME,
    DeviceRule,
    Result,
    Rules,
    SizesRule,
    default_device,
    each,
    first_device,
    made_on,
    tensor,
)


def _made(dtype: DtypeRule, sizes: SizesRule, device: DeviceRule = default_device) -> Result:
    return tensor(named(dtype), sizes, device=made_on(device), flow=NEVER)


def _of_number(name: str) -> DtypeRule:
    """Return the rule for the dtype of a tensor that is filled with the number ``name``."""
    return lambda call: dtypes.promoted([call.fact(name)], call.default_dtype)


def _of_range(call: Call) -> torch.dtype | None:
    """Return the dtype of ``arange``: the default dtype if a number is a float, int64 if all are ints; else None."""
    kinds = [number_kind(call.fact(name)) for name in ("start", "end", "step") if call.has(name)]
    if any(kind == "float" for kind in kinds):
        return call.default_dtype
    return torch.int64 if all(kind in ("int", "bool") for kind in kinds) else None


def _of_ends(call: Call) -> torch.dtype | None:
    """Return the dtype of ``linspace``: the default dtype, if both ends are real; else None."""
    kinds = [number_kind(call.fact(name)) for name in ("start", "end")]
    return call.default_dtype if set(kinds) <= {"int", "float", "bool"} else None


def _range_length(call: Call) -> Sizes | None:
    start, end, step = (
        call.int(name) if call.has(name) else default for name, default in (("start", 0), ("end", 0), ("step", 1))
    )
    return (None,) if start is None or end is None or not step else (max(0, -((start - end) // step)),)


def _steps(call: Call) -> Sizes:
    return (call.int("steps"),)


def _identity(call: Call) -> Sizes:
    rows = call.int("n")
    return (rows, call.int("m") if call.has("m") else rows)


def _like(dtype: DtypeRule = first, rule: SizesRule = sizes.first) -> Result:
    return _made(dtype, rule, first_device)


def _nested_sizes(call: Call) -> Sizes | None:
    """Return the sizes of ``torch.tensor`` of a number, or of nested lists of numbers; None for other data."""
    fact: Any = call.arguments[0]
    found: list[int | None] = []
    while isinstance(fact, tuple) or (isinstance(fact, Constant) and isinstance(fact.value, (list, tuple))):
        items: Any = fact if isinstance(fact, tuple) else fact.value
        found.append(len(items))
        if not items:
            return tuple(found)
        fact = items[0] if isinstance(fact, tuple) else Constant(items[0])
    return tuple(found) if number_kind(fact) is not None else None


def _nested_dtype(call: Call) -> torch.dtype | None:
    """Return the dtype of ``torch.tensor`` for nested lists, by the declared type of the numbers, or else for a number,
    by its class; None if it is not known."""
    text = str(call.schema.arguments[0].type)
    for kind, dtype in (("int", torch.int64), ("bool", torch.bool), ("float", call.default_dtype)):
        if text.rstrip("[]") == kind:
            return dtype
    return _of_number(call.schema.arguments[0].name)(call)


def _tensor(call: Call) -> Sequence[Fact]:
    found = _made(_nested_dtype, _nested_sizes).type(call)
    requires = call.flag("requires_grad")
    return [replace(found, requires_grad=False if requires is False else None)]


def _converted(call: Call) -> Sequence[Fact]:
    """Infer the results of ``to``: dtype and device from the arguments, otherwise unchanged."""
    given = call.first
    if call.has("other"):
        other = call.tensor("other")
        found = replace(given, dtype=other.dtype, device=other.device, strides=None)
    else:
        dtype = named(first)(call) if call.has("dtype") else given.dtype
        device = made_on(first_device)(call) if call.has("device") else given.device
        found = replace(given, dtype=dtype, device=device, strides=None)
    may_require = dtypes.may_require_grad(found.dtype) and dtypes.may_require_grad(given.dtype)
    return [replace(found, requires_grad=_kept(given.requires_grad, found.dtype) if may_require else False)]


def _kept(requires_grad: bool | None, dtype: torch.dtype | None) -> bool | None:
    return requires_grad if not requires_grad or dtype is not None else None


def _cast(call: Call) -> torch.dtype | None:
    return call.tensor("other").dtype


def _normal(call: Call) -> Sequence[Fact]:
    """Return the type of samples from a mean and a standard deviation: of the argument ``size`` if the overload has it,
    else of the sizes to which both broadcast."""
    if call.has("size"):
        return _made(default, _SIZE)(call)
    names = [name for name in ("mean", "std") if number_kind(call.fact(name)) is None]
    return tensor(dtypes.agreement(*names), sizes.broadcasting("mean", "std"), flow=SOME)(call)


_SIZE = sizes.listed("size")

RULES: Final[Rules] = {
    **each(_made(default, _SIZE), "zeros ones empty rand randn empty_strided empty_permuted"),
    **each(_made(always(torch.int64), _SIZE), "randint"),
    "full": _made(_of_number("fill_value"), _SIZE),
    "scalar_tensor": _made(default, sizes.scalar),
    "arange": _made(_of_range, _range_length),
    "range": _made(default, sizes.of_rank(1)),
    **each(tensor(named(_of_ends), _steps, device=made_on(default_device), flow=SOME), "linspace logspace"),
    "eye": _made(default, _identity),
    **each(_made(always(torch.int64), sizes.of_rank(2)), "tril_indices triu_indices"),
    "randperm": _made(always(torch.int64), lambda call: (call.int("n"),)),
    **each(
        _made(default, sizes.of_rank(1)), "hann_window hamming_window bartlett_window blackman_window kaiser_window"
    ),
    **each(_like(), "zeros_like ones_like empty_like full_like rand_like randn_like"),
    "randint_like": tensor(named(first), sizes.first, device=made_on(first_device), flow=SOME),
    **each(_like(rule=_SIZE), "new_zeros new_ones new_empty new_full new_empty_strided"),
    "tensor": _tensor,
    "to": _converted,
    "type_as": tensor(_cast, sizes.first, device=lambda call: call.tensor("other").device),
    "_to_copy": tensor(named(first), sizes.first, device=made_on(first_device)),
    "to_dense": tensor(named(first), sizes.first),
    "chalf": tensor(always(torch.complex32), sizes.first),
    "copy": tensor(first, sizes.first, device=first_device),
    # Random numbers after given ones
    **each(tensor(first, sizes.first), "bernoulli poisson"),
    "multinomial": tensor(
        always(torch.int64),
        lambda call: None if not call.first.sizes else (*call.first.sizes[:-1], call.int("num_samples")),
        flow=NEVER,
    ),
    "normal": _normal,
    **each(tensor(named(first), sizes.first, flow=SOME), "to_sparse"),
    "binomial": tensor(dtypes.of("count"), sizes.broadcasting("count", "prob"), flow=SOME),
}

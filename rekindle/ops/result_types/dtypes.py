"""Dtypes of results: type promotion, and the dtypes that arguments name.

A dtype rule maps a call to the dtype of a result, None where it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from itertools import product
from typing import Final, TypeAlias

import torch

from rekindle.ir.types import TensorType
from rekindle.ops.result_types.call import Call, number_kind
from rekindle.ops.result_types.facts import Constant, Fact

DtypeRule: TypeAlias = Callable[[Call], torch.dtype | None]

_COMPLEX_OF: Final = {
    torch.float16: torch.complex32,
    torch.float32: torch.complex64,
    torch.float64: torch.complex128,
}
REAL_OF: Final = {complex_: real for real, complex_ in _COMPLEX_OF.items()}


def complex_of(dtype: torch.dtype | None) -> torch.dtype | None:
    """Return the complex dtype whose parts are of ``dtype``; a complex dtype is returned itself. None if there is no
    such dtype, or ``dtype`` is None."""
    return None if dtype is None else _COMPLEX_OF.get(dtype, dtype if dtype.is_complex else None)


def real_of(dtype: torch.dtype | None) -> torch.dtype | None:
    """Return the dtype of the absolute value of numbers of ``dtype``; None if ``dtype`` is None."""
    return None if dtype is None else REAL_OF.get(dtype, dtype)


ORDINARY: Final = frozenset(
    {
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex32, torch.complex64, torch.complex128),
    }
)
"""Dtypes that rules know. Quantized numbers and the like follow other rules."""


def is_integral(dtype: torch.dtype) -> bool:
    """Return whether ``dtype`` is an integer dtype or bool."""
    return not dtype.is_floating_point and not dtype.is_complex


def may_require_grad(dtype: torch.dtype | None) -> bool:
    """Return whether tensors of ``dtype`` may require a gradient; True if it is not known."""
    return dtype is None or dtype.is_floating_point or dtype.is_complex


@cache
def promote_types(a: torch.dtype | None, b: torch.dtype | None) -> torch.dtype | None:
    """Return ``torch.promote_types(a, b)``, computed without an operator; None if one is unknown, or not an ordinary
    dtype."""
    if a is None or b is None or not {a, b} <= ORDINARY:
        return None
    if a == b:
        return a
    lower, higher = sorted((a, b), key=_kind)
    if _kind(higher) == _COMPLEX_KIND and _kind(lower) >= _FLOAT_KIND:
        return complex_of(promote_types(real_of(lower), real_of(higher)))
    if _kind(lower) != _kind(higher):
        return higher
    if {a, b} == {torch.float16, torch.bfloat16}:
        return torch.float32
    if {a, b} == {torch.uint8, torch.int8}:
        return torch.int16
    return max(a, b, key=lambda dtype: dtype.itemsize)


_FLOAT_KIND: Final = 2
_COMPLEX_KIND: Final = 3


def _kind(dtype: torch.dtype) -> int:
    """Return 0 for bools, 1 for integers, 2 for floating dtypes, 3 for complex ones."""
    return _COMPLEX_KIND if dtype.is_complex else _FLOAT_KIND if dtype.is_floating_point else int(dtype != torch.bool)


# ------------------------------------------------------------------------------------------------------ type promotion

_CATEGORIES: Final = ("tensor", "scalar tensor", "number")
"""Operands in the order of their priority: a dtype of a later category counts only where its kind is higher."""

_KINDS: Final = ("bool", "int", "float", "complex")


def promoted(operands: Iterable[Fact], default_dtype: torch.dtype | None) -> torch.dtype | None:
    """Return ``torch.result_type`` of the operands: types of tensors, and numbers. None if it is not known.

    A tensor of unknown rank may have no dimensions, and an unknown number may be of any kind: all combinations must
    give the same dtype.
    """
    choices = [_operand_choices(operand, default_dtype) for operand in operands]
    if not all(choices):
        return None
    found = {_combine(chosen) for chosen in product(*choices)}
    return found.pop() if len(found) == 1 else None


def _operand_choices(operand: Fact, default: torch.dtype | None) -> Sequence[tuple[int, torch.dtype]]:
    """Return the possible pairs of category (an index in ``_CATEGORIES``) and dtype of the operand; none if they are
    unknown."""
    if isinstance(operand, TensorType):
        if operand.dtype is None:
            return ()
        if operand.rank is None:
            return (0, operand.dtype), (1, operand.dtype)
        return ((0 if operand.rank else 1, operand.dtype),)
    kind = number_kind(operand)
    defaults = _DEFAULTS if default is None else (default,)
    kinds = _KINDS if kind == "number" else (kind,)
    found = {_dtype_of_number(each, default) for each in kinds for default in defaults}
    return [(2, dtype) for dtype in found if dtype is not None] if None not in found else ()


_DEFAULTS: Final = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Possible default dtypes, if it is unknown."""


def _dtype_of_number(kind: str | None, default: torch.dtype) -> torch.dtype | None:
    if kind == "bool":
        return torch.bool
    if kind == "int":
        return torch.int64
    if kind == "float":
        return default
    return _complex_like(default) if kind == "complex" else None


def _complex_like(dtype: torch.dtype) -> torch.dtype | None:
    """Return the complex dtype to which a floating dtype promotes among complex operands: complex64 for bfloat16,
    None in releases that have another for it."""
    if dtype == torch.bfloat16:
        return None if hasattr(torch, "bcomplex32") else torch.complex64
    return complex_of(dtype)


@cache
def _combine(operands: tuple[tuple[int, torch.dtype], ...]) -> torch.dtype | None:
    """Return the common dtype of operands given as pairs of category and dtype, as ``at::native::result_type`` computes
    it; None for dtypes that are not promoted."""
    found: torch.dtype | None = None
    for category in reversed(range(len(_CATEGORIES))):
        dtypes = [dtype for each, dtype in operands if each == category]
        if not dtypes:
            continue
        common: torch.dtype | None = dtypes[0]
        for dtype in dtypes[1:]:
            common = promote_types(common, dtype)
        if common is None:
            return None
        found = common if found is None else _combine_categories(common, found)
        if found is None:
            return None
    return found


def _combine_categories(higher: torch.dtype, lower: torch.dtype) -> torch.dtype | None:
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return _complex_like(higher) if lower.is_complex else higher
    if higher == torch.bool or lower.is_floating_point or lower.is_complex:
        return promote_types(higher, lower)
    return higher


# --------------------------------------------------------------------------------------------------------------- rules


def of(name: str) -> DtypeRule:
    """Return the rule for the dtype of the tensor ``name``."""
    return lambda call: call.tensor(name).dtype


def first(call: Call) -> torch.dtype | None:
    """Return the dtype of the first argument; None if it is not known."""
    return call.first.dtype


def always(dtype: torch.dtype) -> DtypeRule:
    """Return a rule for a fixed dtype."""
    return lambda call: dtype


def unknown(call: Call) -> torch.dtype | None:
    """Return None: the dtype is unknown."""
    return None


def promotion(*names: str) -> DtypeRule:
    """Return the rule for the common dtype of these arguments, as far as the overload has them."""

    def rule(call: Call) -> torch.dtype | None:
        operands = [call.fact(name) for name in names if call.has(name)]
        operands = [operand for operand in operands if operand != Constant(None)]
        return promoted(operands, call.default_dtype) if operands else None

    return rule


def list_promotion(name: str) -> DtypeRule:
    """Return the rule for the common dtype of the tensors in a list, all of equal priority."""

    def rule(call: Call) -> torch.dtype | None:
        items = call.list_of_tensors(name)
        return reduce(promote_types, (item.dtype for item in items)) if items else None

    return rule


def floating(rule: DtypeRule) -> DtypeRule:
    """Return a rule: the default dtype if ``rule`` infers an integer or bool, otherwise the dtype of ``rule``."""

    def to_float(call: Call) -> torch.dtype | None:
        found = rule(call)
        return call.default_dtype if found is not None and is_integral(found) else found

    return to_float


def only_floating(rule: DtypeRule) -> DtypeRule:
    """Return a rule: the dtype of ``rule`` if that is floating or complex, otherwise unknown."""

    def not_int(call: Call) -> torch.dtype | None:
        found = rule(call)
        return None if found is None or is_integral(found) else found

    return not_int


def agreement(*names: str) -> DtypeRule:
    """Return a rule for the common dtype of these tensors, unknown if their dtypes differ."""

    def rule(call: Call) -> torch.dtype | None:
        given = [name for name in names if call.is_none(name) is not True]
        found = {call.tensor(name).dtype for name in given}
        return found.pop() if len(found) == 1 else None

    return rule


def list_result_type(name: str) -> DtypeRule:
    """Return the rule for the result type of the tensors in a list."""

    def rule(call: Call) -> torch.dtype | None:
        items = call.list_of_tensors(name)
        return promoted(items, call.default_dtype) if items else None

    return rule


def list_agreement(name: str) -> DtypeRule:
    """Return the rule for the dtype of the tensors in a list; unknown if they differ."""

    def rule(call: Call) -> torch.dtype | None:
        items = call.list_of_tensors(name) or ()
        found = {item.dtype for item in items}
        return found.pop() if len(found) == 1 else None

    return rule


def summed(rule: DtypeRule) -> DtypeRule:
    """Return a rule: int64 if the dtype of ``rule`` is an integer or bool, otherwise the dtype of ``rule``."""

    def accumulated(call: Call) -> torch.dtype | None:
        found = rule(call)
        return torch.int64 if found is not None and is_integral(found) else found

    return accumulated


def real(rule: DtypeRule) -> DtypeRule:
    """Return a rule for the real counterpart of the dtype inferred by ``rule``."""
    return lambda call: real_of(rule(call))


def to_complex(rule: DtypeRule) -> DtypeRule:
    """Return a rule for the complex counterpart of the dtype inferred by ``rule``."""
    return lambda call: complex_of(rule(call))


def named(otherwise: DtypeRule, name: str = "dtype") -> DtypeRule:
    """Return a rule for the dtype passed as the argument ``name``, or the dtype inferred by ``otherwise`` if that is
    None."""

    def rule(call: Call) -> torch.dtype | None:
        if call.is_none(name):
            return otherwise(call)
        return call.dtype(name)

    return rule


def default(call: Call) -> torch.dtype | None:
    """Return the default dtype; None if it is not known."""
    return call.default_dtype

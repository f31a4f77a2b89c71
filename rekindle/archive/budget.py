"""Resource limits of code that runs while an archive is loaded: steps of about two microseconds each, and bytes.

The cost of an operator is computed before it runs, from the sizes of its arguments: a few characters of a hostile
archive may request a string of a terabyte, or the sum of a tensor whose stride of 0 makes it huge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isqrt
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from rekindle.errors import ArchiveLimitError, UnsafeArchiveError
from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import traits_of_kind


class Budget:
    """The steps and bytes that ``__setstate__`` of an archive may still use."""

    def __init__(self, steps: int, bytes: int) -> None:
        self._steps = steps
        self._bytes = bytes

    def step(self) -> None:
        """Subtract one step of the interpreter from the budget.

        Raises:
            ArchiveLimitError: no step is left.
        """
        self._steps -= 1
        if self._steps < 0:
            raise _too_much("takes too many steps", "steps")

    def spend(self, steps: int, bytes: int) -> None:
        """Subtract ``steps`` of the interpreter and ``bytes`` of memory from what an archive may still use.

        Raises:
            ArchiveLimitError: the budget has fewer steps or bytes left.
        """
        self._steps -= steps
        self._bytes -= bytes
        if self._steps < 0:
            raise _too_much("takes too many steps", "steps")
        if self._bytes < 0:
            raise _too_much("takes too much memory", "setstate_bytes")


def _too_much(problem: str, limit: str) -> ArchiveLimitError:
    return ArchiveLimitError(
        f"'__setstate__' {problem}.",
        hint=f"If you trust this file, raise the limit: limits=rekindle.ArchiveLimits({limit}=…).",
    )


def refusal(method: str, kind: str) -> UnsafeArchiveError:
    """Return the error to raise if the method ``method`` calls the operator ``kind``, which may not run."""
    return UnsafeArchiveError(
        f"'{method}' calls '{kind}', which may not run while an archive is loaded.",
        hint="Do not trust this file, unless you know why it does that.",
    )


# ---------------------------------------------------------------------------------------- numbers, texts and containers


def size_of(value: object) -> int:
    """Return the approximate number of bytes of a value, without its items. Tensors are counted elsewhere.

    Raises:
        OverflowError: ``value`` is an integer below -2^64 or from 2^64 on, which programs do not have.
    """
    kind = type(value)
    if kind is int:
        if not -_LARGEST <= value < _LARGEST:  # type: ignore[operator]
            raise OverflowError("an integer of more than 64 bits")
        return 0
    if kind is str:
        return 4 * len(value)  # type: ignore[arg-type]
    return 16 * len(value) if isinstance(value, (list, tuple, dict)) else 0


_LARGEST: Final = 1 << 64


def cost_of(kind: str, arguments: Sequence[Any]) -> tuple[int, int]:
    """Return the additional steps and bytes of a call of the operator ``kind``: steps for reading long arguments, and
    bytes of results that are much larger than the arguments.

    Raises:
        OverflowError: the result would be an integer of far more than 64 bits.
    """
    reading = 0
    for argument in arguments:
        if isinstance(argument, (str, list, tuple, dict)):
            reading += len(argument) // 16
    growth = _GROWTH.get(kind)
    return reading, 0 if growth is None else growth(*arguments)


def _power(base: object, exponent: object = 0, *rest: object) -> int:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * max(exponent, 0) > 1100:
        raise OverflowError("an integer of more than 64 bits")
    return 0


def _shift(value: object, places: object = 0) -> int:
    if isinstance(value, int) and isinstance(places, int) and value.bit_length() + places > 1100:
        raise OverflowError("an integer of more than 64 bits")
    return 0


def _factorial(value: object) -> int:
    if isinstance(value, int) and value > 170:
        raise OverflowError("an integer of more than 64 bits")
    return 0


def _times(left: object, right: object = 1) -> int:
    if isinstance(left, int):
        left, right = right, left
    return size_of(left) * max(right, 0) if isinstance(left, (list, str)) and isinstance(right, int) else 0


def _padded(text: str, width: int, *fill: str) -> int:
    return 4 * max(width, 0)


def _replaced(text: str, old: str, new: str, most: int = -1) -> int:
    return 4 * (text.count(old) + 1) * len(new)


_GROWTH: Final[dict[str, Callable[..., int]]] = {
    **dict.fromkeys(("aten::pow", "aten::float_power"), _power),
    "aten::__lshift__": _shift,
    "aten::factorial": _factorial,
    **dict.fromkeys(("aten::mul", "aten::mul_"), _times),
    **dict.fromkeys(("aten::ljust", "aten::rjust", "aten::center", "aten::zfill"), _padded),
    "aten::expandtabs": lambda text, tab=8: 4 * len(text) * max(tab, 1),
    "aten::replace": _replaced,
    "aten::join": lambda text, parts: 4 * (len(text) * len(parts) + sum(map(len, parts))),
}
"""Operators on numbers, strings and lists whose results may be much larger than their arguments: functions that take
the arguments and return an upper bound of the bytes, or raise OverflowError."""


# -------------------------------------------------------------------------------------------------------------- tensors


class TensorCosts(TorchDispatchMode):
    """Dispatch mode that subtracts the cost of each operator of PyTorch from a budget before the operator runs. It
    computes the sizes of results with meta tensors, or estimates them from the sizes of the arguments.

    Raises:
        ArchiveLimitError: in a call of an operator, if the budget does not suffice.
        UnsafeArchiveError: in a call of an operator that may not run, or the size of whose result is unknown.
    """

    def __init__(self, budget: Budget, method: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._budget = budget
        self._method = method

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        read = [tensor.numel() for tensor in given]
        name = func._schema.name
        if name in _NEVER:
            raise refusal(self._method, name)
        self._budget.spend(_FLAT + sum(read) // _AT_ONCE, 0)
        written, bytes = self._results(func, args, kwargs, given)
        self._budget.spend(_work(func, read, written) // _AT_ONCE, bytes)
        return func(*args, **kwargs)

    def _results(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], given: list[torch.Tensor]
    ) -> tuple[int, int]:
        """Return the number of elements of the results of ``func``, and the bytes of results that are not views. For
        operators with results about as large as the arguments, both are estimates.

        Raises:
            UnsafeArchiveError: the sizes cannot be computed without running ``func``.
        """
        name = func._schema.name
        if Trait.ABOUT_AS_LARGE in traits_of_kind(name) or name.startswith(("quantized::", "sparse::", "rnn::")):
            return sum(tensor.numel() for tensor in given), 2 * sum(_bytes(tensor) for tensor in given)
        if any(tensor.is_quantized or tensor.layout != torch.strided for tensor in given):
            raise refusal(self._method, name)
        emptied = tree_map_only(torch.Tensor, _without_content, (args, kwargs))
        device = {"device": torch.device("meta")} if any(a.name == "device" for a in func._schema.arguments) else {}
        try:
            made = func(*emptied[0], **(emptied[1] | device))
        except NotImplementedError:
            raise refusal(self._method, name) from None  # the size of its result is unknown before it runs
        found = list(_tensors(made))
        is_new = func._schema.is_mutable or not any(result.alias_info for result in func._schema.returns)
        return sum(tensor.numel() for tensor in found), sum(_bytes(tensor) for tensor in found) if is_new else 0


_FLAT: Final = 100
"""Steps that each call of an operator of PyTorch costs at least."""
_AT_ONCE: Final = 500
"""Number of elements, or of multiplications, that cost one step."""

_NEVER: Final = frozenset({"aten::from_file", "aten::_pin_memory", "aten::record_stream"})


def _work(func: Any, read: Sequence[int], written: int) -> int:
    """Return an upper bound of the elements or products that ``func`` computes with."""
    traits = traits_of_kind(func._schema.name)
    linear = sum(read) + written
    is_linear = torch.Tag.pointwise in func.tags or Trait.LINEAR_COST in traits
    is_linear |= func._schema.name.endswith("_prepack")  # weights are put in another order
    if is_linear or any(result.alias_info for result in func._schema.returns):
        return linear
    if Trait.ABOUT_AS_LARGE in traits:
        return 2 * linear
    if Trait.MATRIX_PRODUCT in traits:
        factors = sorted(read)[-2:]
        return linear + isqrt(factors[0] * factors[-1] * max(written, 1)) if factors else linear
    return linear + max(read, default=1) * max(written, 1)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _without_content(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()

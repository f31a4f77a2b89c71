"""Autocast in traces: the conversions of arguments become part of the program.

The program computes the same whether autocasting is enabled when it runs or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch

from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.tracing.recording.recorder import Recorder

_DEVICES: Final = ("cpu", "cuda", "xpu", "mps")

_PRODUCTS: Final = ("bilinear", "chain_matmul", "einsum", "inner", "kron", "linalg_multi_dot", "tensordot")
_RECURRENT: Final = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CONVERTED_WHOLE: Final = frozenset(f"aten::{name}" for name in (*_PRODUCTS, *_RECURRENT))
"""Operators that rearrange their arguments before they are converted: all of them are converted."""


def is_on() -> bool:
    """Return whether autocasting is enabled for the device ``cpu``, ``cuda``, ``xpu`` or ``mps``, which this machine
    need not have."""
    return any(torch.is_autocast_enabled(device) for device in _DEVICES)


@contextmanager
def no_cache() -> Iterator[None]:
    """Disable the cache of autocasting: while the body runs, parameters are converted at each use, so that each
    conversion is recorded."""
    kept = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(kept)


class Casts:
    """The dtype conversions that autocasting inserts within one call of an operator."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[torch.Tensor, torch.dtype]] = {}

    def note(self, function: Any, args: tuple[Any, ...], result: Any) -> None:
        """Record ``args[0]`` as converted to the dtype of ``result``, if ``function`` is a dtype conversion."""
        if function is torch.ops.aten._to_copy.default and isinstance(result, torch.Tensor):
            self._found[id(args[0])] = args[0], result.dtype

    @contextmanager
    def recorded(self, recorder: Recorder, kind: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
        """Record the conversions of the arguments of a call of the operator ``kind``. Within the ``with`` block, the
        arguments are bound to the converted values. If tensors other than the arguments were converted, nothing is
        recorded, and the trace report gets an entry, unless ``kind`` is known to convert all its arguments."""
        tensors = {id(tensor): tensor for tensor in _tensors([*args, *kwargs.values()])}
        wanted = {number: dtype for number, (_, dtype) in self._found.items() if number in tensors}
        if len(wanted) < len(self._found):
            dtypes = {dtype for _, dtype in self._found.values()}
            if kind in _CONVERTED_WHOLE and len(dtypes) == 1:
                wanted = {number: dtypes.copy().pop() for number, x in tensors.items() if x.is_floating_point()}
            else:
                wanted = {}
                recorder.bake_setting("autocasting", f"on within {kind}", "the trace does not convert what is in there")
        kept = {number: recorder.value_of_tensor(tensors[number]) for number in wanted}
        for number, dtype in wanted.items():
            recorder.bind(
                tensors[number], recorder.insert("aten::to", [NamedValue(kept[number]), NamedValue(constant=dtype)])
            )
        yield
        for number, value in kept.items():
            recorder.bind(tensors[number], value)


def _tensors(items: Iterable[Any]) -> Iterator[torch.Tensor]:
    for item in items:
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from _tensors(item)

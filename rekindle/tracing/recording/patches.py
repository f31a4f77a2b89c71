"""Functions that are replaced while a trace is recorded, because no mode of PyTorch intercepts them.

Each replacement first checks whether its own thread records, and otherwise calls the original.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any, Final

import torch

from rekindle.errors import TracingError
from rekindle.program.modules.module import ScriptModule
from rekindle.tracing.recording import grad_mode
from rekindle.tracing.recording.active import active_recorder, recording
from rekindle.tracing.recording.numbers import KeptFloat, KeptInt, TracedFloat, TracedInt, all_plain, plain
from rekindle.tracing.recording.recorder import UNNAMED_SCOPES, Recorder, description
from rekindle.tracing.report import Baked
from rekindle.tracing.source_locations import current_place, users_place

Wrapper = Callable[[Any], Any]

_ASKS: Final = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
"""Tests of PyTorch's Python functions for an override (``__torch_function__``). While this thread records, they
return False: the bodies of the functions run, and the operators that these call are recorded."""

_MATH: Final = {
    1: (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
        *("degrees", "radians", "erf", "erfc", "gamma", "lgamma", "fabs", "factorial"),
        *("exp", "expm1", "log", "log10", "log1p", "log2", "sqrt"),
    ),
    2: ("atan2", "copysign", "fmod", "gcd", "log"),
}
"""Functions of ``math`` that an operator of the same name computes, by their number of arguments."""

_INTERCEPTED: Final = frozenset({"ceil", "floor", "trunc", "prod", "sumprod"})
"""Functions of ``math`` that call methods of their arguments. All others convert them to plain numbers."""

_NUMBERS: Final = (int, float, TracedInt, TracedFloat)
_LARGEST: Final = {"max": "prim::max", "min": "prim::min"}
"""Functions that would compare sizes, and fix which is larger."""


_CONVERTS: Final = (
    (torch, "sym_int"),
    (torch, "sym_float"),
    (torch.nn.functional, "_sym_int"),
    (torch.nn.functional, "int"),
)
"""Names under which code converts sizes to ints and floats, where nothing depends on the classes themselves. The
last is not a name of the module, but shadows Python's."""


def replacements() -> Iterator[tuple[Any, str, Wrapper]]:
    """Yield the attributes that are replaced while a trace is recorded: owner, name, and the function that wraps the
    original."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch"):
            for name in _ASKS:
                if name in vars(module):
                    yield module, name, _asks_nobody
    yield builtins, "len", _length
    for name, function in vars(math).items():
        if callable(function) and name not in _INTERCEPTED and not name.startswith("_"):
            yield math, name, partial(_of_math, name)
    for owner, name in _CONVERTS:
        yield owner, name, _keeps_floats if name.endswith("float") else _keeps_ints
    for name, kind in _LARGEST.items():
        yield builtins, name, partial(_largest, kind)
    yield builtins, "range", _ranges
    yield torch.nn.Module, "__call__", _in_scope
    yield torch.nn.Parameter, "__new__", _parameter
    yield torch.Tensor, "__iter__", _iterated
    yield torch.Tensor, "__deepcopy__", _copied
    yield torch.Tensor, "__format__", _unrecorded
    yield torch, "manual_seed", _seeded
    yield torch.Tensor, "__reduce_ex__", _baked_contents
    yield torch.Tensor, "as_subclass", _of_class
    yield torch._tensor_str, "_str", _unrecorded
    for manager in grad_mode.MANAGERS:
        yield manager, "__enter__", grad_mode.entered
        yield manager, "__exit__", grad_mode.left
    yield torch.autograd, "_engine_run_backward", run_backward
    yield torch._C, "_get_tracing_state", _tracing_state
    yield torch._C, "_is_tracing", _reported_to_packages


def _asks_nobody(original: Callable[..., bool]) -> Callable[..., bool]:
    def has_torch_function(*args: Any) -> bool:
        return False if active_recorder() is not None else original(*args)

    return has_torch_function


def _length(original: Callable[[Any], int]) -> Callable[[Any], int]:
    """Return a replacement of ``len`` that returns the size of a tensor as a traced number. The original converts it to
    a plain int."""

    def length(obj: Any, /) -> int:
        if isinstance(obj, torch.Tensor) and active_recorder() is not None and obj.dim() > 0:
            return obj.size(0)
        return original(obj)

    return length


def _of_math(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of a function of ``math`` that records the operator of the same name. If there is none, the
    result is a constant."""

    def function(*args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        if recorder is None or not any(map(recorder.is_traced_number, _numbers_within(args))):
            return original(*args, **kwargs)
        result = original(*all_plain(args), **kwargs)
        if name not in _MATH.get(len(args), ()) or kwargs or not all(type(n) in _NUMBERS for n in args):
            recorder.bake_number(f"math.{name}() of a size", result)
            return result
        if name == "log2":
            args = tuple(recorder.arithmetic("aten::Float", args, float(all_plain(args[0]))) for _ in args)
            return recorder.arithmetic("python::log2", args, result)
        return recorder.arithmetic(f"aten::{name}", args, result)

    return function


def _numbers_within(args: Sequence[Any]) -> Iterator[Any]:
    for item in args:
        yield from item if isinstance(item, (tuple, list)) else (item,)


def _keeps_ints(original: object) -> type:
    return KeptInt


def _keeps_floats(original: object) -> type:
    return KeptFloat


def _largest(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        numbers = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if recorder is None or kwargs or len(numbers) < 2 or not all(type(n) in _NUMBERS for n in numbers):
            return original(*args, **kwargs)
        if not any(recorder.is_traced_number(n) for n in numbers):
            return original(*args)
        found = numbers[0]
        for number in numbers[1:]:
            if isinstance(found, int) != isinstance(number, int):
                return original(*args)  # an int or a float: which, depends on the sizes
            found = recorder.arithmetic(kind, (found, number), original(plain(found), plain(number)))
        return found

    return function


class _RangeMeta(type):
    """The metaclass of a substitute of ``range``: instances of ``range`` are instances of the substitute."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Range.original)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_Range.original, name)


class _Range(metaclass=_RangeMeta):
    """``range`` that reports loops over sizes."""

    original = range

    def __new__(cls, *args: Any) -> Any:
        recorder = active_recorder()
        found = cls.original(*(plain(item) for item in args))
        if recorder is not None and any(recorder.is_traced_number(item) for item in args):
            recorder.bake_number("the trip count of a loop over a size", len(found), Baked.LOOP)
        return found


_Range.__name__ = "range"


def _ranges(original: type[range]) -> type:
    _Range.original = original
    return _Range


def _in_scope(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of a module's ``__call__`` that records the operators of the call in a scope. Each scope is
    lowered to a method of the submodule."""

    def __call__(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        path = None if recorder is None or isinstance(self, ScriptModule) else recorder.place_of_module(self)
        if recorder is None or path is None:
            return original(self, *args, **kwargs)
        with recorder.scope(path, current_place()):
            result = original(self, *args, **kwargs)
            recorder.leave_module(self, path)
            return result

    return __call__


def _iterated(original: Callable[[torch.Tensor], Iterator[Any]]) -> Callable[[torch.Tensor], Iterator[Any]]:
    def __iter__(self: torch.Tensor) -> Iterator[Any]:
        recorder = active_recorder()
        if recorder is not None and self.dim() > 0 and recorder.known(self) is not None:
            recorder.bake_tensor("the trip count of a loop over a tensor", self.size(0).__index__(), Baked.LOOP)
        return original(self)

    return __iter__


def knows_of_traces(original: Callable[[], bool]) -> Callable[[], bool]:
    """Return a replacement of ``torch.jit.is_tracing`` that also returns True while this thread records a trace."""

    def is_tracing() -> bool:
        return active_recorder() is not None or original()

    return is_tracing


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame runs code of PyTorch's package, whose queries refer to PyTorch's own tracer."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"


def _tracing_state(original: Callable[[], Any]) -> Callable[[], Any]:
    """Return a replacement of ``torch._C._get_tracing_state``. While this thread records, it returns to callers outside
    of PyTorch an object with ``push_scope`` and ``pop_scope``."""

    def _get_tracing_state() -> Any:
        recorder = active_recorder()
        if recorder is None or _is_own(sys._getframe(1)):
            return original()
        return UNNAMED_SCOPES if recorder.scopes is None else recorder.scopes

    return _get_tracing_state


def _reported_to_packages(original: Callable[[], bool]) -> Callable[[], bool]:
    """Return a replacement of ``torch._C._is_tracing``: it also returns True while this thread records, unless
    PyTorch's own code calls it."""

    def _is_tracing() -> bool:
        return original() or (active_recorder() is not None and not _is_own(sys._getframe(1)))

    return _is_tracing


def _baked_contents(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of ``Tensor.__reduce_ex__`` that reports tensors of the trace. ``copy.copy`` and pickling
    create a tensor from the storage of another, so that its contents become constants."""

    def __reduce_ex__(self: torch.Tensor, protocol: Any) -> Any:
        recorder = active_recorder()
        if recorder is None or recorder.known(self) is None:
            return original(self, protocol)
        recorder.bake_tensor("the contents of a tensor", description(self))
        with recorder.within_call():
            return original(self, protocol)

    return __reduce_ex__


def _of_class(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a replacement of ``Tensor.as_subclass`` that records the result as an alias of the tensor."""

    def as_subclass(self: torch.Tensor, cls: type) -> torch.Tensor:
        recorder = active_recorder()
        if recorder is None or recorder.known(self) is None:
            return original(self, cls)
        with recorder.within_call():
            result = original(self, cls)
        found: torch.Tensor = recorder.bind_result(result, recorder.insert("aten::alias", [self]))
        return found

    return as_subclass


def _seeded(original: Callable[[int], torch.Generator]) -> Callable[[int], torch.Generator]:
    def manual_seed(seed: int) -> torch.Generator:
        recorder = active_recorder()
        if recorder is not None and not recorder.within_calls:
            recorder.insert("aten::manual_seed", [seed])
        return original(plain(seed))

    return manual_seed


def _unrecorded(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement that calls the original without recording: its result, a string, has no influence on
    tensors."""

    def function(*args: Any, **kwargs: Any) -> Any:
        with recording(None):
            return original(*args, **kwargs)

    return function


def _copied(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a replacement of ``Tensor.__deepcopy__`` that records ``aten::clone``. The original copies a storage,
    which no operator does."""

    def __deepcopy__(self: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        recorder = active_recorder()
        if recorder is None or id(self) in memo or recorder.known(self) is None:
            return original(self, memo)
        with recorder.within_call():
            result = original(self, memo)
        found: torch.Tensor = recorder.bind_result(result, recorder.insert("aten::clone", [self]))
        return found

    return __deepcopy__


def _parameter(original: Callable[..., torch.Tensor]) -> Any:
    """Return a replacement of the constructor of ``nn.Parameter`` that records the parameter made from a tensor of the
    trace."""

    def __new__(cls: type, data: torch.Tensor | None = None, requires_grad: bool = True) -> torch.Tensor:
        recorder = active_recorder()
        if recorder is None or data is None or recorder.known(data) is None:
            return original(cls, data, requires_grad)
        with recorder.within_call():
            result = original(cls, data, requires_grad)
        recorder.bind(result, recorder.insert("aten::detach", [data]))
        found: torch.Tensor = recorder.bind_result(
            result, recorder.insert("aten::requires_grad_", [result, requires_grad])
        )
        return found

    return staticmethod(__new__)


# ------------------------------------------------------------------------------------------------------------ gradients


def run_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of the function through which ``backward`` and ``torch.autograd.grad`` run. It records the
    call as an operator, and raises TracingError for arguments that the operator does not have."""

    def function(outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        if recorder is None or recorder.within_calls or torch._C._functorch.maybe_current_level() is not None:
            return original(outputs, *args, **kwargs)
        return _record(recorder, original, outputs, args, kwargs)

    return function


def _record(
    recorder: Recorder,
    original: Callable[..., Any],
    outputs: Sequence[Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    grads, retain_graph, create_graph, inputs, *unused = args
    accumulates = kwargs["accumulate_grad"]
    if (accumulates and inputs) or not all(isinstance(item, torch.Tensor) for item in (*outputs, *inputs)):
        raise TracingError(
            "these arguments of a gradient cannot be recorded",
            users_place(),
            hint="torch.autograd.grad(outputs, inputs) of tensors can",
        )
    lists = [recorder.argument(list(items)) for items in (outputs, *([] if accumulates else [inputs]), grads)]
    flags = [retain_graph, create_graph, *([] if accumulates else unused)]
    with recorder.within_call():
        found = original(outputs, *args, **kwargs)
    value = recorder.insert("aten::backward" if accumulates else "aten::grad", [*lists, *flags])
    if accumulates:
        return found
    return tuple(recorder.bind_result(list(found), value))

"""What kind of tensors an operator returns, asked of PyTorch itself: the operator runs on tensors without data.

Where all inputs are of known size, one run tells the answer. Where a size, or an int among the arguments, is not
known, the operator runs several times with numbers in its place: the same one everywhere, then numbers drawn at random.
What comes out each time alike is taken for certain: the dtype, the device and the number of dimensions where some run
succeeds, a size only where all runs with one number do, 0 and 1 among them::

    x : (*, *)    aten::relu(x) : (*, *)          x : (*, *), w : (8, 4)    aten::linear(x, w) : rank 2
    x : (*, *)    aten::sum(x, [0], True) : (1, *)                          (only a size of 4 fits)
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rekindle.ir.types import TensorType


@dataclass(slots=True, frozen=True)
class _Trial:
    run: Callable[..., Any]
    on_data: bool
    only_on_data: bool


@dataclass(slots=True, frozen=True)
class Unknown:
    """An argument of which only the kind is known: ``int``, ``float``, ``bool``."""

    kind: str


class Several(list[Any]):
    """The result of an operator that returns a list, of a length that is not known: what is true of each item."""


_SIZES: Final = (0, 1, 2, 3, 7)
"""What stands in for what is not known, where the inputs do not suggest more."""

_MOST_SIZES: Final = 9

_LARGEST: Final = 1 << 20
"""Ints beyond this say "to the end" and the like."""

_DRAWS: Final = 6

_SMALL: Final = 1 << 15
"""The most elements of tensors that an operator is tried on."""

_MOST_INTS: Final = 2
"""With more unknown ints than this, there are too many ways to put numbers in."""

CPU: Final = torch.device("cpu")
_META: Final = torch.device("meta")


def run_on_types(
    run: Callable[..., Any], arguments: Sequence[Any], *, on_data: bool = False, only_on_data: bool = False
) -> Any:
    """The result of ``run`` with :class:`TensorType` in place of tensors; None where nothing can be told.

    With ``on_data``, small tensors on the CPU are real ones, full of zeros: that needs nothing of the second that it
    takes PyTorch to load its formulas for tensors without data, but holds only where data does not decide about types.
    With ``only_on_data`` nothing else is tried.

    ``arguments`` are Python values, types of tensors with dtype, device and rank known, :class:`Unknown` ones, and
    lists of such. The requirement of gradients is told for a run that records them.
    """
    trial = _Trial(run, on_data, only_on_data)
    if not any(_is_open(leaf) for leaf in _leaves(arguments)):
        return _attempt(trial, arguments, lambda: 1, False)
    if sum(argument == Unknown("int") for argument in arguments) > _MOST_INTS:
        return None
    choices = _sizes_to_try(arguments)
    results = [_attempt(trial, arguments, lambda size=size: size, size % 2 == 1) for size in choices]  # type: ignore[misc]
    complete = None not in results
    draw = random.Random(0)
    results += [_attempt(trial, arguments, lambda: draw.choice(choices), draw.random() < 0.5) for _ in range(_DRAWS)]
    results += _with_small_ints(trial, arguments)
    found = [result for result in results if result is not None]
    if not found or (len(found) < 2 and any(isinstance(leaf, Unknown) for leaf in _leaves(arguments))):
        return None
    agreed = reduce(_agreement, found)
    return agreed if complete else without_sizes(agreed)


def _sizes_to_try(arguments: Sequence[Any]) -> list[int]:
    """Numbers to put in for what is not known: small ones, those that stand among the arguments, and one beyond all."""
    seen: set[int] = set()
    for leaf in _leaves(arguments):
        if isinstance(leaf, TensorType) and leaf.sizes is not None:
            seen.update(size for size in leaf.sizes if size is not None)
        elif isinstance(leaf, int) and not isinstance(leaf, bool) and abs(leaf) < _LARGEST:
            seen.add(abs(leaf))
    others = sorted(seen - set(_SIZES))
    return [*_SIZES, *others[: _MOST_SIZES - len(_SIZES) - 1], max([*others, *_SIZES]) + 6]


def _with_small_ints(trial: _Trial, arguments: Sequence[Any]) -> list[Any]:
    """The results with each pair of small numbers for the ints that are arguments of their own: where those are numbers
    of dimensions, few others fit."""
    places = [index for index, argument in enumerate(arguments) if argument == Unknown("int")]
    results = []
    for numbers in product((-1, 0, 1, 2), repeat=len(places)):
        chosen = list(arguments)
        for index, number in zip(places, numbers, strict=True):
            chosen[index] = number
        results.append(_attempt(trial, chosen, lambda: 2, False))
    return results if places else []


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _is_open(leaf: Any) -> bool:
    return isinstance(leaf, Unknown) or (isinstance(leaf, TensorType) and (leaf.sizes is None or None in leaf.sizes))


# ------------------------------------------------------------------------------------------------------------- one run


def _attempt(trial: _Trial, arguments: Sequence[Any], size: Callable[[], int], flag: bool) -> Any:
    """The types of what comes out, ``size()`` and ``flag`` put in for what is not known; None where it fails."""
    try:
        return _run_once(trial, arguments, size, flag)
    except Exception:
        return None  # whatever it is: these numbers do not fit, or there is no such kernel


def _run_once(trial: _Trial, arguments: Sequence[Any], size: Callable[[], int], flag: bool) -> Any:
    tensors = [leaf for leaf in _leaves(arguments) if isinstance(leaf, TensorType)]
    on_cpu = all(tensor.device == CPU for tensor in tensors)
    # Tensors of the meta device cost a third of fake ones, but do not know where they would be.
    made = [_stand_in(part, size, flag, _META) for part in arguments] if on_cpu else []
    if trial.on_data and on_cpu and _is_small(made):
        return _call(trial.run, [_with_data(part) for part in made], CPU)
    if trial.only_on_data:
        return None
    names_device = any(isinstance(leaf, torch.device) for leaf in _leaves(arguments))
    if tensors and on_cpu and not names_device:  # or real tensors would be made there, of real random numbers
        try:
            return _call(trial.run, made, CPU)
        except NotImplementedError:
            pass
    with FakeTensorMode():
        return _call(trial.run, [_stand_in(part, size, flag, None) for part in arguments], None)


def _is_small(arguments: Sequence[Any]) -> bool:
    """Whether tensors of these sizes are made in no time, on the CPU."""
    leaves = list(_leaves(arguments))
    numbers = [leaf.numel() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    elements = sum(number for number in numbers if isinstance(number, int) and not isinstance(number, bool))
    devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    has_tensors = any(isinstance(leaf, torch.Tensor) for leaf in leaves)
    is_here = all(device == CPU for device in devices) and (has_tensors or torch.get_default_device() == CPU)
    return is_here and elements <= _SMALL


def _with_data(value: Any) -> Any:
    """Tensors of the meta device as tensors of zeros."""
    if isinstance(value, (list, tuple)):
        return type(value)(_with_data(part) for part in value)
    if not isinstance(value, torch.Tensor):
        return value
    zeros = torch.zeros(value.shape, dtype=value.dtype)
    return zeros.requires_grad_().clone() if value.requires_grad else zeros


def _call(run: Callable[..., Any], arguments: list[Any], device: torch.device | None) -> Any:
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _type_of(run(*arguments), device)


def _stand_in(value: Any, size: Callable[[], int], flag: bool, device: torch.device | None) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_stand_in(part, size, flag, device) for part in value)
    if isinstance(value, Unknown):
        return size() if value.kind == "int" else flag if value.kind == "bool" else 0.5
    if not isinstance(value, TensorType):
        return value
    assert value.sizes is not None
    sizes = [size() if length is None else length for length in value.sizes]
    tensor = torch.empty(sizes, dtype=value.dtype, device=device or value.device)
    if value.requires_grad is False or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    return tensor.requires_grad_().clone()  # no leaf, so that it can be written to


def _type_of(value: Any, device: torch.device | None) -> Any:
    if isinstance(value, torch.Tensor):
        where = device if device is not None and value.device.type == "meta" else value.device
        return TensorType(value.dtype, where, tuple(value.shape), None, value.requires_grad)
    if isinstance(value, (list, tuple)):
        return [_type_of(part, device) for part in value]
    return None


# --------------------------------------------------------------------------------------------------------- several runs


def _agreement(a: Any, b: Any) -> Any:
    """What is true of both."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.merge(b)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) == len(b) and not isinstance(a, Several) and not isinstance(b, Several):
            return [_agreement(x, y) for x, y in zip(a, b, strict=True)]
        return Several([reduce(_agreement, [*a, *b])]) if a or b else Several()
    return None


def without_sizes(found: Any) -> Any:
    """A result of :func:`run_on_types` with the number of sizes alone."""
    if isinstance(found, TensorType):
        return replace(found.with_rank_only(), strides=None)
    return type(found)(map(without_sizes, found)) if isinstance(found, list) else None

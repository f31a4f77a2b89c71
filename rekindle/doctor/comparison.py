"""Compare the results of a compiled program with those of eager."""

from __future__ import annotations

import copy
import enum
from typing import Any

import torch
from torch.utils import _pytree as pytree


def copied(values: Any) -> Any:
    """Return a copy of arguments that a call may write to. Copies of Tensors keep ``requires_grad``.

    Raises:
        Exception: something cannot be copied.
    """
    return pytree.tree_map(_copied, values)


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return copy.deepcopy(value)


def is_plain(value: Any) -> bool:
    """Return whether ``torch.load`` can read a value back without running anything: Tensors, numbers, texts, None, and
    lists, tuples and dicts of them."""
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return type(value) in (torch.Tensor, int, float, bool, complex, str, type(None))


def difference(expected: Any, found: Any) -> str | None:
    """Describe how two results differ; None if they agree. Tensors may differ by the tolerances of
    ``torch.testing.assert_close`` for their dtypes; other values must be equal, objects in their attributes."""
    kinds = _kind(expected), _kind(found)
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} in eager, {kinds[1]} here"
    if isinstance(expected, torch.Tensor):
        return _of_tensors(expected, found)
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(found):
            return f"{len(expected)} items in eager, {len(found)} here"
        pairs = ((f"[{index}]", *pair) for index, pair in enumerate(zip(expected, found, strict=True)))
    elif isinstance(expected, dict):
        if list(expected) != list(found):
            return f"the keys {list(expected)} in eager, {list(found)} here"
        pairs = ((f"[{key!r}]", value, found[key]) for key, value in expected.items())
    elif isinstance(expected, enum.Enum) or type(expected).__module__ in ("builtins", "torch"):
        same = expected == found or (expected != expected and found != found)
        return None if same else f"{expected!r} in eager, {found!r} here"
    else:
        return _of_objects(expected, found)
    differences = ((name, difference(*pair)) for name, *pair in pairs)
    return next((f"{name}: {text}" for name, text in differences if text is not None), None)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "Tensor"
    for container in (list, dict):
        if isinstance(value, container):
            return container.__name__
    return type(value).__name__


def _of_tensors(expected: torch.Tensor, found: torch.Tensor) -> str | None:
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except (AssertionError, RuntimeError, NotImplementedError) as error:
        return " ".join(str(error).split())[:300]
    return None


def _of_objects(expected: Any, found: Any) -> str | None:
    if expected is found:
        return None
    state = getattr(expected, "__dict__", None)
    if state is None:
        return f"a {type(expected).__name__}, which is not compared"
    for name, value in state.items():
        text = difference(value, getattr(found, name, None))
        if text is not None:
            return f".{name}: {text}"
    return None

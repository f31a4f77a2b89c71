"""One call and all that comes of it: values, gradients, what it wrote and drew, who shares memory with whom."""

from __future__ import annotations

import contextlib
import copy
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from tests.differential.arguments import Arguments
from tests.support.equality import assert_same
from tests.support.trees import SCALARS, tensors_in

SEED = 20260


@dataclass(slots=True)
class Effects:
    """All that a call did, as plain values."""

    result: Any = None
    error: BaseException | None = None
    printed: str = ""
    arguments: Any = None
    """The arguments after the call, and the memory of which they are views."""
    facts: list[Any] = field(default_factory=list)
    """What each tensor of ``result`` is like: dtype, sizes, strides, whether it requires a gradient."""
    sharing: list[int] = field(default_factory=list)
    """For each tensor of ``result`` and ``arguments`` the number of its memory, in the order of first occurrence."""
    chance: torch.Tensor | None = None
    """The state of the generator of random numbers after the call."""
    gradients: Any = None
    gradient_error: BaseException | None = None


def call(function: Any, arguments: Arguments) -> Effects:
    """Call ``function``, and derive all that can be derived of what it gave and wrote."""
    torch.default_generator.manual_seed(SEED)  # torch.manual_seed() notes a stack for each device that is not here
    printed = io.StringIO()
    effects = Effects()
    answer: Any = None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(), arguments.mode():
        warnings.simplefilter("ignore")
        try:
            answer = function(*arguments.positional, **arguments.keywords)
        except Exception as error:
            effects.error = error
    effects.chance = torch.get_rng_state()
    effects.printed = printed.getvalue()
    found = (answer, arguments.positional, arguments.keywords, arguments.behind)
    tensors = tensors_in(found)
    with arguments.mode():  # views that were made in inference mode cannot be looked at outside
        effects.sharing = _sharing(tensors)
        effects.facts = [_facts(tensor) for tensor in tensors]
        effects.result, effects.arguments = _plain(answer), _plain(found[1:])
    if effects.error is None and arguments.mode is not torch.inference_mode:
        _derive(effects, tensors, arguments.behind, function)
    return effects


def assert_same_effects(actual: Effects, expected: Effects, where: str) -> None:
    """The same in everything; floats within ``torch.testing``'s tolerances."""
    _assert_same_error(actual.error, expected.error, actual.result, where)
    assert_same(actual.result, expected.result, where)
    assert actual.printed == expected.printed, f"{where} prints {actual.printed!r}, not {expected.printed!r}"
    assert_same(actual.arguments, expected.arguments, f"what {where} wrote to its arguments")
    for index, (ours, theirs) in enumerate(zip(actual.facts, expected.facts, strict=True)):
        assert ours == theirs, f"{where}, tensor {index} of the result and the arguments: {ours}, not {theirs}"
    assert actual.sharing == expected.sharing, f"{where} shares memory so: {actual.sharing}, not {expected.sharing}"
    assert actual.chance is not None
    assert expected.chance is not None
    assert torch.equal(actual.chance, expected.chance), f"{where} drew other random numbers"
    _assert_same_error(actual.gradient_error, expected.gradient_error, actual.gradients, f"deriving {where}")
    assert_same(actual.gradients, expected.gradients, f"gradients of {where}")


def _assert_same_error(actual: BaseException | None, expected: BaseException | None, got: Any, where: str) -> None:
    if expected is None:
        if actual is not None:
            raise AssertionError(f"{where} raises {actual!r}") from actual
        return
    assert actual is not None, f"{where} gives {got!r}, and does not raise {expected!r}"
    assert type(actual) is type(expected), f"{where} raises {actual!r}, not {expected!r}"
    assert _words(actual) == _words(expected), f"{where} raises {actual!r}, not {expected!r}"


def _words(error: BaseException) -> str:
    """Without frames of C++, and how often a tensor was written to: two writes may be made one. ``x[i]`` and
    ``torch.select`` are one operator in graphs; in eager each has words of its own for an index that is not there."""
    text = str(error).partition("\nException raised from ")[0]  # what follows are addresses in PyTorch's libraries
    if isinstance(error, IndexError) and _NOT_THERE.match(text):
        return "there is no such element"
    return re.sub(r"is at version \d+; expected version \d+", "is at another version", text)


_NOT_THERE = re.compile(
    r"select\(\): index -?\d+ out of range for tensor of size \[.*\] at dimension \d+$"
    r"|select\(\) cannot be applied to a 0-dim tensor\.$"
    r"|index -?\d+ is out of bounds for dimension \d+ with size \d+$"
    r"|invalid index of a 0-dim tensor\."
)


# ----------------------------------------------------------------------------------------------------------- gradients


def _derive(effects: Effects, tensors: Sequence[torch.Tensor], behind: list[torch.Tensor], function: Any) -> None:
    """The gradients of all leaves with respect to some sum of all that depends on them; the leaves are left without."""
    leaves = [tensor for tensor in behind if tensor.is_leaf and tensor.requires_grad]
    if isinstance(function, torch.nn.Module):
        leaves += [parameter for parameter in function.parameters() if parameter.requires_grad]
    if not leaves:
        return
    try:
        roots = [tensor for tensor in tensors if tensor.grad_fn is not None]
        if not roots:
            return
        torch.autograd.backward(roots, [_weights(root) for root in roots])
    except Exception as error:
        effects.gradient_error = error
    effects.gradients = _plain([leaf.grad for leaf in leaves])
    for leaf in leaves:
        leaf.grad = None


def _weights(root: torch.Tensor) -> torch.Tensor:
    """Factors of the elements, no two of them alike: results of one element differ from those of another."""
    with torch.no_grad():
        return _factors(root.numel(), root.dtype, root.device).reshape(root.shape).clone()


@lru_cache(64)
def _factors(count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, max(1, count), dtype=torch.float64)[:count].to(dtype).to(device)


# --------------------------------------------------------------------------------------------------------- plain values


def _plain(value: Any) -> Any:
    """A copy that no later call can change, of tensors without history."""
    return _copy(value, {})


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """Sizes are lists; objects are copied as far as they can be, those with a history inside by what they hold."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if type(value) in SCALARS:
        return value
    if isinstance(value, torch.Size):
        return list(value)
    if isinstance(value, dict) and type(value) is dict:
        return {key: _copy(item, memo) for key, item in value.items()}
    if type(value) is list:
        return [_copy(item, memo) for item in value]
    if isinstance(value, tuple):
        return tuple(_copy(item, memo) for item in value)
    try:
        return copy.deepcopy(tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), value), memo)
    except RuntimeError:
        return {name: _plain(item) for name, item in vars(value).items()}


def _facts(tensor: torch.Tensor) -> list[Any]:
    told: list[Any] = [tensor.dtype, tensor.requires_grad, tensor.layout, str(tensor.device), list(tensor.shape)]
    if tensor.layout is torch.strided:
        told += [tensor.is_conj(), tensor.is_neg()]
        if tensor.numel():
            told.append([stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1])
    return told


def _sharing(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Zero stands for no memory."""
    numbers: dict[int, int] = {0: 0}
    found: list[int] = []
    for tensor in tensors:
        memory = tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
        found.append(numbers.setdefault(memory, len(numbers)))
    return found

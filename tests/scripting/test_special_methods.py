"""Modules whose classes define ``__call__``, ``__iter__``, ``__len__`` or ``__getitem__`` in place of PyTorch's."""

from __future__ import annotations

import copy
import functools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import rekindle


class Shifted(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) + 1


class Typed(nn.Linear):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Call the layer."""
        return super().__call__(x)


class Forwarding(nn.Linear):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)


class Named(nn.Linear):
    def __call__(self, x, *, times: int):
        return super().__call__(x, times=times)

    def forward(self, x, *, times: int):
        return super().forward(x) * times


class Thrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Named(2, 2)

    def forward(self, x: torch.Tensor):
        return self.part(x, times=3)


class Twice(nn.Linear):
    def __call__(self, x, times=2):
        return super().__call__(x, times)

    def forward(self, x, times=1):
        return super().forward(x) * times


class Holder(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor):
        return self.part(x)


class Unused(Holder):
    def forward(self, x: torch.Tensor):
        return self.part.forward(x)


_MESSAGE = "the module '{}' defines '__call__', and calls of a compiled module run 'forward' only"


@pytest.mark.parametrize("cls", [Shifted, Twice])
def test_calls_from_python_that_do_more_are_rejected(cls: type[nn.Linear]) -> None:
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(cls(2, 2))
    assert str(caught.value).partition("\n")[0] == _MESSAGE.format(cls.__name__)


class Derived(Shifted):
    def __call__(self, x: torch.Tensor):
        return super().__call__(x * 2)


class Checked(nn.Linear):
    def __call__(self, x: torch.Tensor, scale: float = 2.0, **kwargs):
        try:
            return super().__call__(x * scale, **kwargs)
        except RuntimeError as error:
            raise ValueError(f"rows of {x.size(-1)}") from error

    def forward(self, x: torch.Tensor, bias: float = 0.0):
        return super().forward(x) + bias


class Biased(Holder):
    def forward(self, x: torch.Tensor):
        return self.part(x, bias=3.0), self.part(x, 1.5), self.part.forward(x)


def shifted_by_name(function):
    @functools.wraps(function)
    def wrapper(self, x):
        return function(self, x) + 1

    return wrapper


class Decorated(nn.Linear):
    @shifted_by_name
    def __call__(self, x: torch.Tensor):
        y = super().__call__(x)
        return y * 2


def doubled(module: Any, args: Any, result: torch.Tensor) -> torch.Tensor:
    return result * 2


@pytest.mark.parametrize("has_hook", [False, True])
@pytest.mark.parametrize(
    "module",
    [
        *(Holder(cls(2, 2)) for cls in (Shifted, Twice, Derived, Checked, Decorated)),
        Biased(Checked(2, 2)),
        nn.Sequential(Shifted(2, 2), Twice(2, 2)),
    ],
    ids=lambda module: type(getattr(module, "part", module)).__name__,
)
def test_calls_of_parts_run_the_call_of_their_class(module: nn.Module, has_hook: bool) -> None:
    module = copy.deepcopy(module)
    if has_hook:
        next(module.children()).register_forward_hook(doubled)
    x = torch.randn(3, 2)
    torch.testing.assert_close(rekindle.script(module)(x), module(x))


def test_errors_within_the_call_of_a_class() -> None:
    with pytest.raises(ValueError, match=r"^rows of 3$"):
        rekindle.script(Holder(Checked(2, 2)))(torch.zeros(1, 3))


def test_archives_have_the_call_of_a_class(tmp_path: Path) -> None:
    module = Holder(Derived(2, 2))
    rekindle.save(rekindle.script(module), tmp_path / "module.pt")
    x = torch.randn(3, 2)
    for load in (rekindle.load, torch.jit.load):
        torch.testing.assert_close(load(tmp_path / "module.pt")(x), module(x))


def checked_by_name(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        names = [name for name in ("x", "y") if name in kwargs]
        for index in range(len(names)):
            assert args[index] is not None
        return function(*args, **kwargs)

    return wrapper


class Prepared(nn.Linear):
    @checked_by_name
    def __call__(self, x):
        if x.dim() > 2:
            raise ValueError("too many dimensions")
        return super().__call__(x)


@pytest.mark.parametrize("wrap", [Holder, lambda part: part])
def test_decorated_calls_that_prepare_the_arguments_are_omitted_with_a_warning(wrap) -> None:
    module = wrap(Prepared(2, 2))
    x = torch.randn(3, 2)
    message = (
        "compiled calls of 'Prepared' run 'forward' without the decorated '__call__' of its class, which checks or "
        "completes the arguments"
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        scripted = rekindle.script(module)
    torch.testing.assert_close(scripted(x), module(x))


@pytest.mark.parametrize("part", [Typed(2, 2), Forwarding(2, 2), Thrice()])
def test_calls_that_forward_are_compiled(part: nn.Module) -> None:
    x = torch.randn(3, 2)
    for module in (part, Holder(part)):
        torch.testing.assert_close(rekindle.script(module)(x), module(x))


def test_forward_may_be_called_by_name() -> None:
    module = Unused(Shifted(2, 2))
    x = torch.randn(3, 2)
    torch.testing.assert_close(rekindle.script(module)(x), module(x))


class Reversed(nn.ModuleList):
    def __iter__(self):
        return iter(list(self._modules.values())[::-1])


class Counted(nn.Sequential):
    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> int:
        return index * 2


class Iterating(nn.Module):
    def __init__(self, parts: nn.Module) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Counting(Iterating):
    def forward(self, x):
        return self.parts(x), len(self.parts), self.parts[3]


def test_loops_over_containers_with_an_order_of_their_own_are_rejected() -> None:
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(Iterating(Reversed([nn.Linear(2, 2), nn.ReLU()])))
    assert str(caught.value).partition("\n")[0] == (
        "the container 'Reversed' defines '__iter__', and compiled code iterates over its items"
    )


def test_containers_have_the_length_and_items_of_their_class() -> None:
    module = Counting(Counted(nn.Linear(2, 2), nn.ReLU()))
    x = torch.randn(3, 2)
    found, expected = rekindle.script(module)(x), module(x)
    torch.testing.assert_close(found[0], expected[0])
    assert found[1:] == expected[1:] == (7, 6)

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


class Switched(nn.Linear):
    """Call ``forward`` unless ``is_shifted``, which is False."""

    is_shifted = False

    def __call__(self, *args, **kwargs):
        if self.is_shifted and self.training:
            shift = len(args)
            return super().__call__(*args, **kwargs) + shift
        return super().__call__(*args, **kwargs)


class Trained(Switched):
    """The condition begins with what may change, and is False nonetheless."""

    def __call__(self, x: torch.Tensor):
        if self.training and self.is_shifted:
            return super().__call__(x) + 1
        elif not self.is_shifted:
            return super().__call__(x)
        else:
            return None


class Final(nn.Linear):
    __constants__ = ("is_shifted",)

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.is_shifted = False

    def __call__(self, x):
        return super().__call__(x + 1) if False else super().__call__(x)


class Declared(Final):
    def __call__(self, x):
        if not self.is_shifted or self.training:
            return self.forward(x)
        return self.forward(x + 1)


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("cls", [Switched, Trained, Declared])
def test_conditions_on_constants_of_the_class_are_decided(cls: type[nn.Linear], is_training: bool) -> None:
    x = torch.randn(3, 2)
    part = cls(2, 2).train(is_training)
    for module in (part, Holder(part)):
        scripted = rekindle.script(module)
        torch.testing.assert_close(scripted(x), module(x))
        torch.testing.assert_close(scripted.train(not is_training)(x), module.train(not is_training)(x))
        module.train(is_training)


@pytest.mark.parametrize("cls", [Switched, Trained, Declared])
def test_constants_that_decide_a_call_cannot_change_once_it_is_compiled(cls: type[nn.Linear]) -> None:
    part = cls(2, 2)
    for scripted in (rekindle.script(part), rekindle.script(Holder(part)).part):
        assert scripted.is_shifted is False
        with pytest.raises(AttributeError, match="'is_shifted' is a constant of the compiled module"):
            scripted.is_shifted = True
        with pytest.raises(AttributeError, match="'is_shifted'"):
            del scripted.is_shifted


def test_a_constant_that_decides_a_call_is_read_again_by_the_next_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = Switched(2, 2), torch.randn(3, 2)
    torch.testing.assert_close(rekindle.script(module)(x), module(x))
    monkeypatch.setattr(Switched, "is_shifted", True)
    with pytest.raises(rekindle.errors.NotScriptableError, match="defines '__call__'"):
        rekindle.script(module)


def _set(module: Switched) -> Switched:
    module.is_shifted = False
    return module


class Assigning(Switched):
    def forward(self, x: torch.Tensor):
        y = super().forward(x)
        self.is_shifted = True
        return y


class OfProperty(Switched):
    @property
    def is_shifted(self) -> bool:  # type: ignore[override]
        return self.weight.size(0) > 5


class OnTraining(nn.Linear):
    def __call__(self, x):
        if self.training:
            return super().__call__(x) + 1
        return super().__call__(x)


class Asking(nn.Linear):
    is_shifted = False

    def asked(self):
        raise AssertionError

    def __call__(self, x):
        if self.asked() and self.is_shifted:
            return super().__call__(x) + 1
        return super().__call__(x)


class WithEffect(nn.Linear):
    is_shifted = False

    def __call__(self, x):
        if not self.is_shifted:
            x += 1
        return super().__call__(x)


class InOrder(nn.Bilinear):
    def __call__(self, x, y):
        return super().__call__(y, x)


class ForwardingToMore(Shifted):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)


class ByName(nn.Linear):
    def __call__(self, x):
        return self.forward(x)


def shifted_without_syntax(function):
    @functools.wraps(function)
    def wrapper(self, x):
        return function(self, x) + 1

    return wrapper


class Wrapped(nn.Linear):
    def __call__(self, x):
        y = super().__call__(x)
        return y + 1

    __call__ = shifted_without_syntax(__call__)


class WrappedForwarding(nn.Linear):
    def __call__(self, x):
        return super().__call__(x)

    __call__ = shifted_without_syntax(__call__)


def test_calls_that_are_wrapped_without_decorator_syntax_are_omitted_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="run 'forward' without the decorated '__call__' of its class"):
        rekindle.script(WrappedForwarding(2, 2))


def _hooked(module: nn.Module) -> nn.Module:
    module.register_forward_hook(doubled)
    return module


@pytest.mark.parametrize(
    "make",
    [
        lambda: _set(Switched(2, 2)),
        lambda: Assigning(2, 2),
        lambda: OfProperty(2, 2),
        lambda: OnTraining(2, 2),
        lambda: Asking(2, 2),
        lambda: WithEffect(2, 2),
        lambda: InOrder(2, 2, 2),
        lambda: ForwardingToMore(2, 2),
        lambda: _hooked(ByName(2, 2)),
        lambda: Wrapped(2, 2),
        lambda: Final(2, 2),
    ],
)
def test_calls_that_are_not_known_to_only_forward_are_rejected(make) -> None:
    module = make()
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(module)
    assert str(caught.value).partition("\n")[0] == _MESSAGE.format(type(module).__name__)


class AssigningToPart(Holder):
    def forward(self, x: torch.Tensor):
        self.part.is_shifted = True
        return self.part(x)


def test_programs_cannot_assign_constants_that_decide_a_call() -> None:
    with pytest.raises(rekindle.errors.CompileError) as caught:
        rekindle.script(AssigningToPart(Switched(2, 2)))
    assert "'is_shifted' is a constant of the module 'Switched' and cannot be assigned" in str(caught.value)
    assert "the '__call__' of the class depends on 'is_shifted'; set it before compiling" in str(caught.value)


@pytest.mark.parametrize("module", [ForwardingToMore(2, 2), _set(Switched(2, 2)), OnTraining(2, 2)])
def test_parts_run_calls_that_may_do_more(module: nn.Module) -> None:
    x = torch.randn(3, 2)
    holder = Holder(module)
    scripted = rekindle.script(holder)
    torch.testing.assert_close(scripted(x), holder(x))
    torch.testing.assert_close(scripted.eval()(x), holder.eval()(x))


def test_archives_of_modules_with_decided_calls(tmp_path: Path) -> None:
    module, x = Switched(2, 2), torch.randn(3, 2)
    rekindle.save(rekindle.script(module), tmp_path / "module.pt")
    for load in (rekindle.load, torch.jit.load):
        torch.testing.assert_close(load(tmp_path / "module.pt")(x), module(x))


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

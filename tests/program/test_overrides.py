"""Methods of ``nn.Module`` that a class overrides do on compiled modules what they do in eager."""

from __future__ import annotations

import copy
import functools
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle


class Backbone(nn.Module):
    """Its batch norm stays in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.rest = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
        self.changes = 0

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eval()
        self.changes += 1
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(self.linear(x))


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x))


class Head(Around):
    """Trains its head alone."""

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        return self.head.parameters(recurse)

    def requires_grad_(self, requires_grad: bool = True) -> Head:
        self.head.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none=False)

    def half(self) -> Head:
        return self

    def eval(self) -> Head:
        super().eval()
        self.backbone.changes = -1
        return self


class KeepsABuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("frequencies", torch.tensor([0.1, 1000.1]))
        self.scale = torch.ones(2)

    def _apply(self, fn: Any, recurse: bool = True) -> KeepsABuffer:
        kept = self.frequencies.clone()
        super()._apply(fn, recurse)
        self.frequencies = kept
        self.scale = fn(self.scale)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * self.scale + self.frequencies.to(x.dtype)


def both(make: type[nn.Module]) -> tuple[nn.Module, rekindle.ScriptModule]:
    torch.manual_seed(0)
    module = make()
    return module, rekindle.script(copy.deepcopy(module))


@pytest.mark.parametrize("make", [Backbone, Around])
def test_an_override_of_train_sees_the_classes_of_the_parts(make: type[nn.Module]) -> None:
    modules = both(make)
    for mode in (True, False, True):
        results = []
        for module in modules:
            assert module.train(mode) is module
            torch.manual_seed(1)
            y = module(torch.randn(8, 3) + 5)
            backbone: Any = module if make is Backbone else module.backbone
            norm, dropout = backbone.rest
            modes = (module.training, backbone.training, norm.training, dropout.training)
            results.append((y, norm.running_mean, modes, backbone.changes))
        torch.testing.assert_close(*results)
        assert results[0][2] == (mode, mode, False, mode)


def test_other_overrides() -> None:
    found = []
    for module in both(Head):
        count = len(list(module.parameters()))
        assert module.half() is module
        module(torch.ones(2, 3)).sum().backward()
        module.zero_grad()
        module.requires_grad_(False)
        assert module.eval() is module
        gradients = [each.grad is not None for _, each in module.named_parameters()]
        wanted = [each.requires_grad for _, each in module.named_parameters()]
        found.append((count, module.head.weight.dtype, gradients, wanted, module.backbone.changes, module.training))
    assert found[0] == found[1]
    assert found[0][:3] == (2, torch.float32, [True] * 6)


def test_an_override_of_apply_assigns_attributes() -> None:
    for module in both(KeepsABuffer):
        assert module.double() is module
        assert module.frequencies.dtype is torch.float32
        assert (module.scale.dtype, module.linear.weight.dtype) == (torch.float64, torch.float64)
        assert module(torch.ones(1, 2, dtype=torch.float64)).dtype is torch.float64


def keep_mode(self: nn.Module, mode: bool = True) -> nn.Module:
    return self


def keeps_any_mode(mode: bool = True) -> None:
    pass


def test_methods_that_are_replaced_on_the_object() -> None:
    for make in (
        lambda part: types.MethodType(keep_mode, part),
        lambda part: functools.partial(keep_mode, part),
        lambda part: keeps_any_mode,
    ):
        net = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5))
        net[1].train = make(net[1])
        compiled = rekindle.script(net)
        compiled.eval()
        for each in (compiled, copy.deepcopy(compiled)):
            assert [part.training for part in each] == [False, True]


def test_replacements_that_may_belong_to_the_original_are_not_taken() -> None:
    net = nn.Sequential(nn.Dropout(0.5))
    original = net.train
    for replacement in (lambda mode=True: original(mode), trains_another):
        net.train = replacement
        with pytest.warns(UserWarning, match="does not have the 'train' that was assigned to the module 'Sequential'"):
            compiled = rekindle.script(net)
        assert not compiled.eval()[0].training


ANOTHER = nn.Linear(1, 1)


def trains_another(mode: bool = True) -> nn.Module:
    return ANOTHER.train(mode)


class Detector(nn.Module):
    """Its backbone keeps its mode, but for its batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.BatchNorm1d(2), nn.ReLU())
        self.backbone.train = types.MethodType(train_the_rest, self.backbone)
        self.activation = torch.relu
        self.empty = nn.ModuleList()
        self.dtype = torch.float32

    def train(self, mode: bool = True) -> Detector:
        super().train(mode)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eval()
        self.lists = sum(isinstance(part, nn.ModuleList) for part in self.modules())
        self.activation(torch.ones(1, dtype=self.dtype))
        return self

    def double(self) -> Detector:
        self.dtype = torch.float64
        return super().double()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.backbone(x))


def train_the_rest(self: nn.Sequential, mode: bool = True) -> nn.Sequential:
    self.training = mode
    for part in self:
        part.train(mode)
    return self


def test_overrides_see_replaced_methods_functions_dtypes_and_empty_containers() -> None:
    for module in both(Detector):
        module.eval().train()
        assert [part.training for part in module.backbone] == [False, True]
        assert module.lists == 1
        module.double().train()
        assert module.backbone[0].running_mean.dtype is torch.float64


class Swaps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def eval(self) -> nn.Module:
        self.a, self.b = self.b, self.a
        self.last = self.a
        return super().eval()

    def train(self, mode: bool = True) -> nn.Module:
        super().train(mode)
        return self.a

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x)


def test_views_do_not_leave_an_override() -> None:
    for module in both(Swaps):
        first = module.a
        assert module.train() is first
        module.eval()
        assert module.b is first
        assert module.last is module.a


class WithWrongType(Swaps):
    def eval(self) -> nn.Module:
        super().eval()
        self.a = nn.ReLU()
        return self


def test_nothing_is_assigned_if_something_cannot_be() -> None:
    compiled = rekindle.script(WithWrongType())
    parts = compiled.a, compiled.b
    with pytest.raises(TypeError, match="is a compiled module"):
        compiled.eval()
    assert (compiled.a, compiled.b) == parts
    assert [module.training for module in compiled.modules()] == [True] * 3


class Hooks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def eval(self) -> Hooks:
        self.linear.register_forward_hook(lambda module, arguments, result: result * 0)
        return super().eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


def test_hooks_that_an_override_registers() -> None:
    compiled = rekindle.script(Hooks()).eval()
    with pytest.raises(RuntimeError, match="has a hook that was registered after compiling"):
        compiled(torch.ones(1, 2))


class NeedsMore(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settings = object()

    def train(self, mode: bool = True) -> NeedsMore:
        return super().train(mode and self.settings is not None)

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_what_programs_cannot_hold_is_named() -> None:
    with pytest.raises(AttributeError) as caught:
        rekindle.script(NeedsMore()).train()
    assert str(caught.value) == (
        "'NeedsMore' object has no attribute 'settings': the method train() of its class needs it, and the compiled"
        " module has the attributes that programs can hold, and no others. Call train() on the module that was compiled"
    )


def test_a_method_that_raises_changes_no_attribute() -> None:
    compiled = rekindle.script(Fails().eval())
    with pytest.raises(ValueError, match="never"):
        compiled.train()
    assert not compiled.training


class Fails(nn.Module):
    def train(self, mode: bool = True) -> Fails:
        super().train(mode)
        if mode:
            raise ValueError("never")
        return self

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_archives_lose_overrides_with_a_warning(tmp_path: Path) -> None:
    compiled = rekindle.script(Around())
    with pytest.warns(UserWarning, match="the archive does not keep") as caught:
        rekindle.save(compiled, tmp_path / "net.pt")
    assert [str(each.message) for each in caught] == [
        "the archive does not keep train of the class 'Backbone': what is loaded from it has those of nn.Module"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rekindle.save(rekindle.script(nn.LSTM(2, 2)), tmp_path / "net.pt")  # overrides of PyTorch's own

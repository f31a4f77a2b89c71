"""Modules with programs for this machine answer as before, for every input, and are saved as what runs anywhere."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import NotScriptableError
from rekindle.ir.verifier import verify
from tests.api.test_frozen_numerics import FrozenNorm, kinds, network, random_statistics


def images(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


class Views(nn.Module):
    """Looks at the order of results in memory, and writes to them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.other = nn.Conv2d(16, 16, 3, padding=1, stride=2, groups=2)
        self.linear = nn.Linear(512, 256)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.conv(x))
        flat = y.view(y.size(0), -1)
        z = self.other(y)
        z[:, 1].add_(1.0)
        mixed = torch.cat([z, torch.sigmoid(z)], 1).view(z.size(0), -1)
        rows = torch.relu(self.linear(mixed.view(-1, 512)))
        return rows.sum(1).view(z.size(0), -1) + flat.sum(1, keepdim=True) + mixed.sum(1, keepdim=True)


class Ways(nn.Module):
    """Adds what convolutions give to much else."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.a = nn.Conv2d(16, 16, 3, padding=1)
        self.b = nn.Conv2d(16, 16, 3, padding=1)
        self.c = nn.Conv2d(16, 16, 1)
        self.smaller = nn.Conv2d(16, 16, 3, padding=1, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        y = torch.relu(x + self.a(x))  # adds what it convolves
        z = self.b(y)
        z += y  # which is read again
        z = torch.relu_(z) * 1.0
        z += self.c(y)  # the convolution is what is added
        row = self.c(z)
        row += y[:, :, :1]  # broadcasts
        other = self.smaller(row)
        twice = other + other
        wide = self.smaller(y)[:, :, :1] + twice
        before = self.a(wide)
        wide = wide * 2.0
        return (before + wide) * self.b(before).add(twice, alpha=2)


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(1)
        return self.conv(x) * self.total

    @torch.jit.export
    def twice(self, x: Tensor) -> Tensor:
        return self.conv(x) * 2


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "a residual network": (network, (2, 3, 65, 70)),
    "normalized by products and sums": (lambda: network(FrozenNorm), (2, 3, 65, 70)),
    "views": (Views, (2, 3, 64, 64)),
    "additions": (Ways, (2, 3, 48, 64)),
    "a perceptron": (lambda: nn.Sequential(nn.Linear(256, 300), nn.ReLU(), nn.Linear(300, 300)), (70, 256)),
}


def optimized(name: str) -> tuple[nn.Module, rekindle.ScriptModule, Tensor]:
    make, shape = MODULES[name]
    torch.manual_seed(1)
    module = random_statistics(make())
    result = rekindle.optimize_for_inference(rekindle.script(copy.deepcopy(module)))
    verify(result.graph)
    return module, result, images(*shape)


@pytest.mark.parametrize("name", MODULES)
def test_answers(name: str) -> None:
    module, result, x = optimized(name)
    assert any(kind.startswith("prim::packed_") for kind in kinds(result))
    with torch.no_grad():
        for given in (x, x, x[:1]):
            found, expected = result(given.clone()), module(given.clone())
            same(found, expected)
            assert found.is_contiguous()
            assert expected.is_contiguous()


def test_channels_last_images() -> None:
    module, result, x = optimized("a residual network")
    with torch.no_grad():
        same(result(x.contiguous(memory_format=torch.channels_last)), module(x))


@pytest.mark.parametrize("name", MODULES)
def test_what_onednn_cannot_take(name: str) -> None:
    """Gradients, other dtypes, autocast, vmap, dual tensors: all as without it."""
    module, result, x = optimized(name)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    result(a).sum().backward()
    module(b).sum().backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        double = copy.deepcopy(result).double()
        same(double(x.double()), copy.deepcopy(module).double()(x.double()))
        same(result(x), module(x))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert result(x).dtype == module(x).dtype
        stacked = torch.stack([x, x + 1])
        if name == "a perceptron":
            same(torch.vmap(result)(stacked), torch.vmap(module)(stacked))
            with torch.autograd.forward_ad.dual_level():
                dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
                tangents = [torch.autograd.forward_ad.unpack_dual(each(dual)).tangent for each in (result, module)]
            same(*tangents)


def test_additions_are_part_of_convolutions() -> None:
    _, result, _ = optimized("additions")
    found = [
        (node.get_string("activation"), bool(node["is_in_place"]), bool(node["may_overwrite"]))
        for node in result.graph.find_nodes("prim::packed_convolution_add")
    ]
    assert found == [("relu", False, False), ("relu", True, False), ("none", True, False)]


@pytest.mark.parametrize("shape", [(2, 16, 12, 16), (1, 1, 12, 16)])
def test_what_is_added_has_other_sizes(shape: tuple[int, ...]) -> None:
    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(16, 16, 3, padding=1)

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            z = self.conv(x)
            z += y
            return z, self.conv(x) + y

    torch.manual_seed(0)
    module = Added().eval()
    result = rekindle.optimize_for_inference(rekindle.script(module))
    x, y = images(1, 16, 48, 64), images(*shape)
    with torch.no_grad():
        for found, expected in zip(result(x[:, :, :12, :16], y[:1]), module(x[:, :, :12, :16], y[:1]), strict=True):
            same(found, expected)
        message = r"The size of tensor a \(64\) must match the size of tensor b \(16\) at non-singleton dimension 3"
        with pytest.raises(RuntimeError, match=message):
            result(x, y)
        if shape[0] == 2:
            message = r"output with shape \[1, 16, 12, 16\] doesn't match the broadcast shape \[2, 16, 12, 16\]"
            with pytest.raises(RuntimeError, match=message):
                result(x[:, :, :12, :16], y)


def test_saved_it_is_the_frozen_module() -> None:
    module, result, x = optimized("a residual network")
    archive = result.save_to_buffer()
    for loaded in (rekindle.load(archive), torch.jit.load(io.BytesIO(archive)), copy.deepcopy(result)):
        with torch.no_grad():
            same(loaded(x), module(x))
    again = rekindle.optimize_for_inference(rekindle.load(archive))
    assert "prim::packed_convolution" in kinds(again)
    with torch.no_grad():
        same(again(x), module(x))


def test_state_and_other_methods() -> None:
    torch.manual_seed(2)
    module = Counts().eval()
    compiled = rekindle.script(copy.deepcopy(module))
    result = rekindle.optimize_for_inference(compiled, ["twice"])
    x = images(1, 3, 40, 40)
    with torch.no_grad():
        for _ in range(3):
            same(result(x), module(x))
            same(result.twice(x), module.twice(x))
        assert result.total.item() == 3
        same(rekindle.load(result.save_to_buffer())(x), module(x))
    assert compiled.total.item() == 0


def test_errors_are_those_of_the_operators() -> None:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Conv2d(3, 64, 5)).eval()
    result = rekindle.optimize_for_inference(rekindle.script(module))
    for shape in ((1, 2, 200, 200), (1, 3, 4, 20_000), (200, 200)):
        messages = []
        for each in (module, result):
            with pytest.raises(RuntimeError) as caught, torch.no_grad():
                each(torch.zeros(shape))
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_a_module_in_training_mode_is_evaluated() -> None:
    module = rekindle.script(random_statistics(network()).train())
    result = rekindle.optimize_for_inference(module)
    assert module.training
    assert not result.training
    x = images(2, 3, 65, 70)
    with torch.no_grad():
        same(result(x), copy.deepcopy(module).eval()(x))


def test_it_takes_compiled_modules() -> None:
    with pytest.raises(NotScriptableError) as caught:
        rekindle.optimize_for_inference(nn.ReLU())  # type: ignore[arg-type]
    assert str(caught.value) == (
        "'optimize_for_inference' takes compiled modules, not a ReLU\nHint: compile it first: rekindle.script(module)"
    )

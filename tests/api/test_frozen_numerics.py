"""What folds into the weights of frozen modules, and that the answers stay the same up to rounding."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import rekindle


def random_statistics(module: nn.Module) -> nn.Module:
    """The module with batch norms that do something."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
            if part.affine:
                nn.init.normal_(part.weight)
                nn.init.normal_(part.bias)
    return module.eval()


class FrozenNorm(nn.Module):
    """The normalization of backbones for detection: a product and a sum."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        for name in ("weight", "bias", "mean", "var"):
            self.register_buffer(name, torch.rand(channels) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight.reshape(1, -1, 1, 1) * (self.var.reshape(1, -1, 1, 1) + 1e-5).rsqrt()
        return x * scale + (self.bias.reshape(1, -1, 1, 1) - self.mean.reshape(1, -1, 1, 1) * scale)


class Residual(nn.Module):
    def __init__(self, wide: int, stride: int = 1, norm: Callable[[int], nn.Module] = nn.BatchNorm2d) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(wide, wide * stride, 3, stride, 1, bias=False)
        self.bn1 = norm(wide * stride)
        self.conv2 = nn.Conv2d(wide * stride, wide * stride, 3, 1, 1, bias=False)
        self.bn2 = norm(wide * stride)
        self.relu = nn.ReLU(inplace=True)
        self.down: nn.Module | None = None
        if stride > 1:
            self.down = nn.Sequential(nn.Conv2d(wide, wide * stride, 1, stride, bias=False), norm(wide * stride))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.down is not None:
            x = self.down(x)
        return self.relu(y + x)


def network(norm: Callable[[int], nn.Module] = nn.BatchNorm2d) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 7, 2, 3, bias=False), norm(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)),
        *(Residual(8, 1, norm), Residual(8, 2, norm), Residual(16, 1, norm)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(16, 10)),
    )


class Arithmetic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.scale = nn.Parameter(torch.rand(3, 1, 1) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return (3 - (self.conv(x) * self.scale + 2) / self.scale) * 0.5


PAIRS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4)), (3, 2, 7)),
    "conv2d": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding="same"), nn.BatchNorm2d(4)), (3, 2, 7, 6)),
    "conv2d with groups": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.BatchNorm2d(6)), (3, 4, 7, 6)),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(2, 4, 2), nn.BatchNorm3d(4, affine=False)), (3, 2, 4, 5, 6)),
    "transposed 1d": (lambda: nn.Sequential(nn.ConvTranspose1d(2, 4, 3), nn.BatchNorm1d(4)), (3, 2, 7)),
    "transposed 2d with groups": (
        lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6)),
        (3, 4, 7, 6),
    ),
    "transposed 3d": (lambda: nn.Sequential(nn.ConvTranspose3d(2, 4, 2), nn.BatchNorm3d(4)), (3, 2, 4, 5, 6)),
    "linear after flatten": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.BatchNorm1d(5)),
        (4, 2, 3),
    ),
    "a residual network": (network, (2, 3, 33, 40)),
}


def kinds(module: rekindle.ScriptModule) -> list[str]:
    return [node.kind for node in module.forward.graph.all_nodes()]


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("way", ["script", "trace"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normalizations_fold(name: str, way: str, dtype: torch.dtype) -> None:
    make, shape = PAIRS[name]
    torch.manual_seed(1)
    module = random_statistics(make()).to(dtype)
    x = torch.randn(shape, dtype=dtype)
    compiled = rekindle.script(module) if way == "script" else rekindle.trace(module, x)
    frozen = rekindle.freeze(compiled)
    assert "aten::batch_norm" not in kinds(frozen)
    assert "aten::batch_norm" in kinds(rekindle.freeze(compiled, optimize_numerics=False))
    for _ in range(3):
        same(frozen(x), module(x))
    same(frozen(x[:1]), module(x[:1]))


@pytest.mark.parametrize("name", PAIRS)
def test_torch_jit_folds_as_much(name: str) -> None:
    make, _ = PAIRS[name]
    module = make().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.freeze(torch.jit.script(module))
    left = str(theirs.inlined_graph).count("aten::batch_norm")
    assert kinds(rekindle.freeze(rekindle.script(module))).count("aten::batch_norm") <= left


def test_without_numerics_answers_are_the_same_to_the_last_bit() -> None:
    torch.manual_seed(2)
    module = random_statistics(network())
    frozen = rekindle.freeze(rekindle.script(module), optimize_numerics=False)
    x = torch.randn(2, 3, 33, 40)
    assert torch.equal(frozen(x), module(x))
    assert "aten::dropout" not in kinds(frozen)
    before = kinds(frozen)
    rekindle.run_frozen_optimizations(frozen, optimize_numerics=False)
    assert kinds(frozen) == before
    rekindle.run_frozen_optimizations(frozen)
    assert "aten::batch_norm" not in kinds(frozen)
    same(frozen(x), module(x))


def test_a_linear_map_of_rows_or_of_more() -> None:
    """Of three dimensions the second counts as the channels, here as many as the last."""
    torch.manual_seed(3)
    module = random_statistics(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU()))
    frozen = rekindle.freeze(rekindle.script(module))
    for shape in ((6, 4), (6, 5, 4)):
        x = torch.randn(shape)
        same(frozen(x), module(x))
    for given in (torch.randn(4), torch.randn(2, 2, 2, 4)):
        messages = []
        for each in (module, frozen):
            with pytest.raises(ValueError, match="expected 2D or 3D input") as caught:
                each(given)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_an_image_without_a_batch() -> None:
    module = random_statistics(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)))
    for way in (rekindle.script, lambda module: rekindle.trace(module, torch.randn(1, 2, 5, 6))):
        frozen = rekindle.freeze(way(module))
        with pytest.raises(ValueError, match=r"^expected 4D input \(got 3D input\)$"):
            frozen(torch.randn(2, 5, 6))


def test_sums_and_products_fold() -> None:
    torch.manual_seed(4)
    module = Arithmetic().eval()
    frozen = rekindle.freeze(rekindle.script(module))
    assert {*kinds(frozen)} == {"prim::Constant", "prim::ListConstruct", "aten::conv2d"}
    for shape in ((2, 2, 5, 6), (2, 5, 6)):
        x = torch.randn(shape)
        same(frozen(x), module(x))


def test_normalization_by_a_product_and_a_sum() -> None:
    """The first convolution does not show that there is a batch; after it everything has one."""
    torch.manual_seed(5)
    module = network(FrozenNorm).eval()
    frozen = rekindle.freeze(rekindle.script(module))
    assert kinds(frozen).count("aten::mul") == 1
    for shape in ((2, 3, 33, 40), (3, 33, 40)):
        x = torch.randn(shape)
        same(frozen(x), module(x))


def test_gradients_of_inputs() -> None:
    torch.manual_seed(6)
    module = random_statistics(network())
    frozen = rekindle.freeze(rekindle.script(module))
    x, y = (torch.ones(2, 3, 33, 40, requires_grad=True) for _ in range(2))
    frozen(x).square().sum().backward()
    module(y).square().sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-3, atol=1e-4)


def test_methods_that_are_not_there() -> None:
    frozen = rekindle.freeze(rekindle.script(nn.Sequential(nn.ReLU()).eval()))
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.run_frozen_optimizations(frozen, preserved_methods=["encode"])
    assert str(caught.value) == "the module 'Sequential' has no method 'encode'"

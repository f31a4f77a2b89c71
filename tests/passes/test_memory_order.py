"""What :class:`PackWeights` changes, above all the order of images in memory, is not to be seen from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import rekindle


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)


class ClampsSomeChannels(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        functional.hardtanh(y[:, 1:3], inplace=True)
        return self.second(y)


class ActivatesOneImage(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        torch.relu_(y[0])
        return self.second(y)


class ActivatesAPermutation(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        functional.silu(y.permute(0, 2, 3, 1), inplace=True)
        return self.second(y)


class ActivatesWhatMayBeTheSame(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        z = y if x.size(0) == 2 else self.second(y)
        torch.relu_(z)
        return self.second(y)


class ActivatesWhatIsContiguous(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        torch.relu_(y.contiguous())
        return self.second(y)


class ActivatesAnItem(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        items = [y]
        torch.relu_(items[0])
        return self.second(y)


class ActivatesBehindAnActivation(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu_(self.first(x))
        z = self.second(y)
        torch.relu_(z[:, 0])
        return self.second(z) + y


class PermutesThereAndBack(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = functional.gelu(self.first(x).permute(0, 2, 3, 1))
        return y.permute(0, 3, 1, 2).view(x.size(0), -1)


class ReadsMemoryBehindAPermutation(Net):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.first(x).permute(0, 2, 3, 1)).as_strided([6], [1])


class NormalizesOverChannels(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.second(y * torch.rsqrt(y.pow(2).mean(dim=[1], keepdim=True) + 1e-6))


class WeightsPlacesByTheirChannels(nn.Module):
    """Spatial attention: a convolution of images of two reductions, viewed as rows."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, padding=1)
        self.second = nn.Conv2d(2, 8, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        folded = torch.cat([y.mean(1, keepdim=True), y.amax(dim=1, keepdim=True)], 1)
        made = self.second(folded)
        return made.view(x.size(0), -1), torch.sigmoid(made) * y


class ReducesWithoutChannels(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.first(x)
        return y.sum(1), y.var(dim=(2, 3)), y.amax(dim=(-1, -2, 1), keepdim=True)


class ReducesRows(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        return y.mean(2), y.sum((1, 2), keepdim=True)


class SlicesChannels(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.second(torch.cat([torch.relu(y[:, :3]), y[:, 3:]], 1))


class SplitsChannels(Net):
    def forward(self, x: Tensor) -> Tensor:
        a, b = self.first(x).chunk(2, 1)
        parts = self.second(torch.cat([a * 2.0, b], 1)).split(4, 1)
        return torch.sigmoid(parts[0]) * parts[1]


class ViewsASlice(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        part = y[:, 2:6]
        return part[0].view(4, -1), part


class WritesToASlice(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y[:, :2].mul_(3.0)
        return self.second(y)


class WritesToAPart(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        a, b = y.chunk(2, 1)
        a.add_(b)
        return self.second(y)


class AddsBranches(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y += self.second(torch.relu(y * 2.0))
        z = y * 3.0
        z += self.second(z)
        z *= 0.5
        return z.view(x.size(0), -1)


class AddsToTheInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2.0
        z = y.add_(self.first(x))
        z.mul_(2.0)
        return y, z.permute(0, 2, 3, 1)


class AccumulatesInALoop(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for _ in range(x.size(0)):
            z = y.add_(self.second(x.repeat(1, 2, 1, 1)))
            z.mul_(0.5)
        return y


class ResizesAndPads(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = functional.interpolate(self.first(x), scale_factor=2.0, mode="nearest")
        z = functional.pad(functional.interpolate(y, size=[5, 4], mode="bilinear"), [1, 1, 2, 0])
        return self.second(functional.pad(z, [1, 1, 1, 1], mode="reflect"))


class MapsPlaces(Net):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(self.first(x).flatten(2).transpose(1, 2))


class FlattensAnImage(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        return y.flatten(1), torch.relu(y).flatten(2)


class CopiesInAnOrder(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.first(x)
        return y.clone(memory_format=torch.channels_last), y.clone(memory_format=torch.contiguous_format)


PROGRAMS = [
    ClampsSomeChannels,
    ActivatesOneImage,
    ActivatesAPermutation,
    ActivatesWhatMayBeTheSame,
    ActivatesWhatIsContiguous,
    ActivatesAnItem,
    ActivatesBehindAnActivation,
    PermutesThereAndBack,
    ReadsMemoryBehindAPermutation,
    NormalizesOverChannels,
    WeightsPlacesByTheirChannels,
    ReducesWithoutChannels,
    ReducesRows,
    SlicesChannels,
    SplitsChannels,
    ViewsASlice,
    WritesToASlice,
    WritesToAPart,
    AddsBranches,
    AddsToTheInput,
    AccumulatesInALoop,
    ResizesAndPads,
    MapsPlaces,
    FlattensAnImage,
    CopiesInAnOrder,
]


class LooksAtTheOrder(Net):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.second(torch.relu(self.first(x))))
        rows = y.permute(0, 2, 3, 1).contiguous()
        rows.add_(1.0)  # which is y, for images in channels-last order
        return y + float(y.is_contiguous()) + float(y.stride(1))


class HasWeightsOfBothOrders(Net):
    def __init__(self) -> None:
        super().__init__()
        self.second = self.second.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        z = self.second(y)
        return z * float(y.is_contiguous()) + float(z.is_contiguous())


Result = Tensor | tuple[Tensor, ...]


def outcome(module: Callable[[Tensor], Result], image: Tensor) -> list[Tensor] | str:
    """Return the results, or the last line of the error."""
    try:
        result = module(image)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]
    return [result] if isinstance(result, Tensor) else list(result)


@pytest.mark.parametrize("net", [*PROGRAMS, LooksAtTheOrder, HasWeightsOfBothOrders])
def test_programs_mean_the_same(net: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    module = net().eval()
    frozen = rekindle.optimize_for_inference(rekindle.script(module))
    x = torch.randn(2, 4, 6, 5)
    with torch.no_grad():
        for image in (x, x.contiguous(memory_format=torch.channels_last)):
            expected = outcome(module, image)
            for _ in range(3):
                results = outcome(frozen, image)
                if isinstance(expected, str) or isinstance(results, str):
                    assert results == expected
                    continue
                for result, wanted in zip(results, expected, strict=True):
                    torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
                    assert result.stride() == wanted.stride()


def test_images_are_not_copied_between_the_orders() -> None:
    """Neither reductions over channels, nor slices, nor sums in place need the usual order."""
    for net in (NormalizesOverChannels, SlicesChannels, SplitsChannels):
        graph = rekindle.optimize_for_inference(rekindle.script(net().eval())).graph
        assert len(list(graph.find_nodes("aten::contiguous"))) == 1, net  # of the result
    graph = rekindle.optimize_for_inference(rekindle.script(MapsPlaces().eval())).graph
    assert graph.find_node("aten::contiguous") is None


class ViewsChannelsLast(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, bool, Tensor]:
        y = torch.tanh(self.second(torch.relu(self.first(x))))
        rows = y.permute(0, 2, 3, 1).contiguous()
        rows.add_(1.0)  # which is y
        return y.permute(0, 2, 3, 1).view(-1), y.is_contiguous(), y


def test_a_model_in_channels_last_order_stays_in_it() -> None:
    torch.manual_seed(0)
    module = ViewsChannelsLast().eval().to(memory_format=torch.channels_last)
    frozen = rekindle.optimize_for_inference(rekindle.script(module))
    x = torch.randn(2, 4, 6, 5)
    with torch.no_grad():
        for image in (x, x.contiguous(memory_format=torch.channels_last)):
            numbers, is_contiguous, result = frozen(image)
            expected, _, expected_result = module(image)
            torch.testing.assert_close(numbers, expected, rtol=1e-4, atol=1e-5)
            assert not is_contiguous
            assert result.stride() == expected_result.stride()


def test_a_frozen_module_may_move_to_the_meta_device() -> None:
    module = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)).eval()
    frozen = rekindle.optimize_for_inference(rekindle.script(module))
    x = torch.randn(1, 4, 7, 7)
    with torch.no_grad():
        frozen(x)
        assert frozen.to("meta")(x.to("meta")).shape == (1, 8, 3, 3)

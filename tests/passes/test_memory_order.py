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


def outcome(module: Callable[[Tensor], Tensor], image: Tensor) -> Tensor | str:
    """Return the result, or the first line of the error."""
    try:
        return module(image)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]


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
                result = outcome(frozen, image)
                if isinstance(expected, str):
                    assert result == expected
                    continue
                torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
                assert isinstance(result, Tensor)
                assert result.stride() == expected.stride()


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

"""Kernels for constant weights: every candidate gives the same answers; PyTorch's operator is the last one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.codegen.selection import Selection


def force(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have selections choose the candidate of this number, or the last one where there are fewer."""
    monkeypatch.setattr(
        Selection,
        "_choose",
        lambda self, kind, arguments: list(self.candidates.values())[min(number, len(self.candidates) - 1)],
    )


@pytest.mark.parametrize("forced", [0, 1, 2, -1])
def test_every_candidate_gives_the_same_answers(forced: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is chosen: the first is a direct kernel, the last PyTorch's operator."""
    torch.manual_seed(0)
    force(forced, monkeypatch)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 24, 3, stride=2, padding=1)
            self.depthwise = nn.Conv2d(24, 24, 5, padding=2, groups=24)
            self.grouped = nn.Conv2d(24, 48, 3, padding=1, groups=3, bias=False)
            self.shortcut = nn.Conv2d(24, 48, 1)
            self.wide = nn.Conv2d(48, 20, 3, dilation=2)
            self.head = nn.Linear(20 * 12 * 12, 64)

        def forward(self, x: Tensor) -> Tensor:
            y = torch.relu(self.stem(x))
            y = torch.relu(self.depthwise(y) + y)
            y = torch.relu(self.shortcut(y) + self.grouped(y))
            y = self.wide(y)
            return torch.relu(self.head(y.flatten(1)))

    net = Net().eval()
    fast = rekindle.optimize_for_inference(rekindle.script(net))
    with torch.no_grad():
        for batch in (1, 3, 1):
            x = torch.randn(batch, 3, 32, 32)
            torch.testing.assert_close(fast(x), net(x), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(
                fast(x[:, :, :, ::1].transpose(2, 3)), net(x.transpose(2, 3)), rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("mode", ["same", "valid"])
@pytest.mark.parametrize(
    ("kernel", "dilation", "groups"),
    [
        ((3, 5), 1, 1),
        ((3, 3), 2, 1),
        ((2, 4), 2, 1),
        ((9, 9), 1, 8),
        ((4, 3), 1, 1),
        ((2, 2), 1, 8),
    ],
)
def test_padding_by_name(
    mode: str, kernel: tuple[int, int], dilation: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator is packed if PyTorch adds equally many zeros on both sides."""
    torch.manual_seed(0)
    force(0, monkeypatch)
    net = nn.Sequential(
        nn.Conv2d(8, 8, kernel, padding=mode, dilation=dilation, groups=groups),
        nn.ReLU(),
        nn.Conv2d(8, 4, 1),
    ).eval()
    fast = rekindle.optimize_for_inference(rekindle.script(net))
    is_symmetric = all((size - 1) * dilation % 2 == 0 for size in kernel)
    assert len(list(fast.graph.find_nodes("aten::conv2d"))) == (mode == "same" and not is_symmetric)
    with torch.no_grad():
        for image in (torch.randn(2, 8, 11, 13), torch.randn(8, 11, 13), torch.randn(0, 8, 11, 13)):
            result, expected = fast(image), net(image)
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
            assert result.stride() == expected.stride()


def test_what_kernels_cannot_take_the_operators_that_stood_there_run() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 1)).eval()
    fast = rekindle.optimize_for_inference(rekindle.script(net))
    x = torch.randn(2, 3, 9, 9)
    with torch.no_grad():
        torch.testing.assert_close(fast(x[0]), net(x[0]))
        torch.testing.assert_close(fast(x[:0]), net(x[:0]))
        torch.testing.assert_close(torch.vmap(fast)(x[None]), net(x)[None])
        with torch.autocast("cpu"):
            torch.testing.assert_close(fast(x), net(x))
        with pytest.raises(RuntimeError, match="expected input"):
            fast(x[:, :2])
        with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
            fast(x[:, :, :2])
    x.requires_grad_()
    (ours,) = torch.autograd.grad(fast(x).sum(), x)
    (theirs,) = torch.autograd.grad(net(x).sum(), x)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("forced", [0, 1, 2, -1])
def test_no_candidate_hides_nan(forced: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    force(forced, monkeypatch)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(4, 8, 3, padding=1)
            self.second = nn.Conv2d(8, 8, 3, padding=1)
            self.last = nn.Linear(8 * 6 * 5, 300)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = torch.relu(self.first(x))
            z = torch.relu(y + self.second(y))
            return y, z, torch.relu(self.last(z.flatten(1)))

    module = Block().eval()
    frozen = rekindle.optimize_for_inference(rekindle.script(module))
    x = torch.randn(3, 4, 6, 5)
    x[1, 2, 3, 4] = float("nan")
    with torch.no_grad():
        for result, expected in zip(frozen(x), module(x), strict=True):
            assert expected.isnan().any()
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_neither_the_default_dtype_nor_the_default_device_matters() -> None:
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
            self.second = nn.Conv2d(16, 16, 3, padding=1, bias=False)
            self.wider = nn.ConvTranspose2d(16, 8, 2, 2, bias=False)

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            y = self.wider(self.second(self.first(x)))
            return torch.nn.functional.scaled_dot_product_attention(y, y, y, mask)

    net = Net().eval()
    x, mask = torch.randn(1, 3, 8, 8), torch.rand(16, 16) > 0.2
    for forced in (0, 1):
        with torch.no_grad(), pytest.MonkeyPatch.context() as monkeypatch:
            force(forced, monkeypatch)
            fast = rekindle.optimize_for_inference(rekindle.script(net))
            expected = net(x, mask)
            torch.set_default_dtype(torch.float64)
            torch.set_default_device("meta")
            try:
                found = fast(x, mask)
            finally:
                torch.set_default_dtype(torch.float32)
                torch.set_default_device(None)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

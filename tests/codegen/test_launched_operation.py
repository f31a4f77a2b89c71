"""Packed operators run without Python where a launch fits, and by Python, with the same results, everywhere else."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.codegen import launched_operation
from rekindle.codegen.convolution import packed_operators
from rekindle.codegen.launched_operation import LaunchedOperation
from rekindle.codegen.llvm import call_sites
from rekindle.codegen.selection import Selection
from rekindle.ir.text.parser import parse_graph

pytestmark = pytest.mark.skipif(not call_sites.is_available(), reason="this build of torch is not known")

LAST = torch.channels_last


@pytest.fixture(autouse=True)
def own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have selections choose kernels of this package: Winograd's where it applies."""

    def choose(self: Selection, kind: object, arguments: tuple[object, ...]) -> Callable[..., Tensor | None]:
        return self.candidates.get("winograd", next(iter(self.candidates.values())))

    monkeypatch.setattr(Selection, "_choose", choose)


@pytest.fixture
def python_calls(monkeypatch: pytest.MonkeyPatch) -> list[LaunchedOperation]:
    """The operations that Python has run."""
    calls: list[LaunchedOperation] = []
    run = LaunchedOperation.__call__

    def counted(self: LaunchedOperation, *inputs: Any) -> Tensor:
        calls.append(self)
        return run(self, *inputs)

    monkeypatch.setattr(LaunchedOperation, "__call__", counted)
    return calls


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def frozen(net: nn.Module) -> Any:
    return rekindle.optimize_for_inference(rekindle.script(net.eval()))


class Adding(nn.Module):
    def __init__(self, *convolutions: nn.Module) -> None:
        super().__init__()
        self.first, self.second = convolutions

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return torch.relu(self.second(y) + y)


class Attention(nn.Module):
    def __init__(self, has_mask: bool, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal
        self.register_buffer("mask", torch.randn(9, 9) if has_mask else None)

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, self.mask, 0.0, self.is_causal)


class Written(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x @ x.transpose(-2, -1) / 3.0, -1) @ x


class Wider(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wider = nn.ConvTranspose2d(24, 7, (2, 3), (2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.wider(x)


IMAGE, HEADS = (2, 24, 9, 11), (2, 4, 9, 16)
CASES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "dense": (nn.Conv2d(24, 20, 3, 2, 1), IMAGE),
    "dilated": (nn.Conv2d(24, 20, (3, 2), 1, (2, 1), 2, bias=False), IMAGE),
    "pointwise": (nn.Sequential(nn.Conv2d(24, 40, 1), nn.SiLU()), IMAGE),
    "groups": (nn.Sequential(nn.Conv2d(24, 48, 3, padding=1, groups=3), nn.ReLU()), IMAGE),
    "depthwise": (nn.Sequential(nn.Conv2d(24, 24, 5, padding=2, groups=24), nn.Hardswish()), IMAGE),
    "long depthwise": (nn.Conv2d(24, 24, (1, 9), padding=(0, 4), groups=24), IMAGE),
    "Winograd": (nn.Conv2d(24, 32, 3, padding=1), IMAGE),
    "addition": (Adding(nn.Conv2d(24, 24, 1), nn.Conv2d(24, 24, 3, padding=1)), IMAGE),
    "depthwise addition": (Adding(nn.Conv2d(24, 24, 1), nn.Conv2d(24, 24, 3, 1, 1, groups=24)), IMAGE),
    "transposed": (Wider(), IMAGE),
    "linear": (nn.Sequential(nn.Linear(256, 260), nn.ReLU()), (3, 5, 256)),
    "linear of one row": (nn.Linear(256, 260, bias=False), (1, 256)),
    "attention": (Attention(False, False), HEADS),
    "causal attention": (Attention(False, True), HEADS),
    "masked attention": (Attention(True, False), HEADS),
    "written attention": (Written(), (2, 4, 40, 64)),
}


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found.double(), expected.double(), rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_later_calls_run_without_python(name: str, python_calls: list[LaunchedOperation]) -> None:
    net, sizes = CASES[name]
    fast = frozen(net)
    x = torch.randn(sizes)
    x = x.contiguous(memory_format=LAST) if sizes == IMAGE else x
    by_python = fast(x)
    assert python_calls
    for _ in range(3):
        fast(x)
    python_calls.clear()
    for _ in range(3):
        found = fast(x)
        assert torch.equal(found, by_python)
        assert found.stride() == by_python.stride()
    other = torch.randn_like(x)
    close(fast(other), net(other))
    assert not python_calls


@pytest.mark.parametrize("name", CASES)
def test_other_arguments_are_run_by_python(name: str) -> None:
    net, sizes = CASES[name]
    fast = frozen(net)
    x = torch.randn(sizes)
    x = x.contiguous(memory_format=LAST) if sizes == IMAGE else x
    for _ in range(4):
        fast(x)
    others = [
        torch.randn(sizes),
        torch.randn(5, *sizes[1:]),
        torch.randn(*sizes[:-1], 2 * sizes[-1])[..., ::2],
        torch.randn(3 * sizes[0], *sizes[1:])[1::3],
        torch.randn(*sizes[1:-1], sizes[-1], sizes[0]).movedim(-1, 0),
        torch.complex(torch.randn(sizes), torch.randn(sizes)).conj().imag,
        nn.Parameter(torch.randn(sizes)),
    ]
    if len(sizes) == 4:
        others.append(torch.randn(sizes[0], sizes[2], sizes[3], sizes[1]).permute(0, 3, 1, 2))
    for _ in range(3):
        for each in others:
            close(fast(each), net(each))
    with torch.inference_mode():
        made = torch.randn(sizes)
        close(fast(made), net(made))
        close(fast(x), net(x))
    close(torch.vmap(fast)(x[None]), net(x)[None])
    with torch.autocast("cpu"):
        assert fast(x).dtype == net(x).dtype
    with torch.enable_grad():
        given = x.clone().requires_grad_()
        (ours,) = torch.autograd.grad(fast(given).sum(), given)
        (theirs,) = torch.autograd.grad(net(given).sum(), given)
        close(ours, theirs)
    if list(net.parameters()):
        with pytest.raises(RuntimeError, match=r"dtype|type"):
            fast(x.double())


@pytest.mark.parametrize("name", CASES)
def test_infinite_numbers_and_nan(name: str) -> None:
    """They reach what they reach where Python runs the same kernels, and in PyTorch's convolutions."""
    net, sizes = CASES[name]
    fast = frozen(net)
    x = torch.randn(sizes)
    for _ in range(4):
        fast(x)
    for value in (torch.inf, -torch.inf, torch.nan, 3e38):
        given = x.clone()
        given.view(-1)[7], given.view(-1)[-3] = value, -value
        found, by_python = fast(given), frozen(net)(given)
        torch.testing.assert_close(found, by_python, rtol=0, atol=0, equal_nan=True)
        if sizes == IMAGE:
            expected = net(given)
            assert torch.equal(found.isfinite(), expected.isfinite())
            assert torch.equal(found.isnan(), expected.isnan())


class Several(nn.Module):
    """One of everything, for images whose sizes change."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.depthwise = nn.Conv2d(16, 16, 5, padding=2, groups=16)
        self.inner = nn.Conv2d(16, 16, 3, padding=1)
        self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.wider = nn.ConvTranspose2d(16, 8, 2, 2)
        self.head = nn.Linear(8 * 16, 512)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.stem(x))
        y = F.silu(self.depthwise(y)) + y
        y = torch.relu(self.inner(y) + y)
        y = y * torch.sigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        y = F.adaptive_avg_pool2d(self.wider(y), 4)
        return self.head(y.flatten(1))


def test_sizes_that_change_with_every_call(python_calls: list[LaunchedOperation]) -> None:
    """More of them than a site keeps launches of."""
    net = Several().eval()
    fast = frozen(net)
    images = [torch.randn(1 + number % 3, 3, 9 + number, 11) for number in range(call_sites.MAX_LAUNCHES + 4)]
    for _ in range(5):
        for image in images:
            close(fast(image), net(image))
    sites = [each._site for each in python_calls if each._site is not None]
    assert sites
    assert all(len(each._launches) <= call_sites.MAX_LAUNCHES for each in sites)


def test_the_number_of_layouts_that_are_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched_operation, "_MAX_LAYOUTS", 4)
    seen: list[tuple[int, ...]] = []

    def native_call(x: Tensor) -> None:
        seen.append(tuple(x.shape))

    operation = LaunchedOperation("neg", torch.neg, native_call, [0])
    for size in range(1, 10):
        for _ in range(9):
            assert torch.equal(operation(torch.ones(size)), -torch.ones(size))
    assert len(operation._seen) <= 4
    assert seen[:3] == [(1,)] * 3, "in the 2nd, the 4th and the 8th call"


def test_threads_call_one_module_at_once() -> None:
    torch.manual_seed(0)
    net = Several().eval()
    fast = frozen(net)
    images = [torch.randn(1 + number % 2, 3, 20 + number % 3, 32) for number in range(8)]
    expected = [net(image) for image in images]
    together = threading.Barrier(len(images))

    def call(number: int) -> None:
        together.wait()
        with torch.no_grad():
            for _ in range(40):
                close(fast(images[number]), expected[number])

    with ThreadPoolExecutor(len(images)) as pool:
        list(pool.map(call, range(len(images))))


def test_several_threads_of_pytorch() -> None:
    net = nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.Conv2d(64, 64, 5, padding=2, groups=64)).eval()
    fast, x = frozen(net), torch.randn(2, 32, 48, 48).contiguous(memory_format=LAST)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 1):
            torch.set_num_threads(threads)
            for _ in range(4):
                close(fast(x), net(x))
    finally:
        torch.set_num_threads(before)


def test_a_result_outlives_its_module() -> None:
    net = Several().eval()
    fast, x = frozen(net), torch.randn(2, 3, 24, 24)
    for _ in range(4):
        found = fast(x)
    expected = net(x)
    del fast
    gc.collect()
    torch.randn(1 << 18).sum()
    close(found, expected)


def test_results_are_new_tensors() -> None:
    net = nn.Conv2d(16, 16, 1).eval()
    fast, x = frozen(net), torch.randn(1, 16, 5, 5)
    results = [fast(x) for _ in range(6)]
    assert len({each.data_ptr() for each in results}) == 6
    results[-1].zero_()
    close(fast(x), net(x))


def test_other_weights_are_run_by_python(python_calls: list[LaunchedOperation]) -> None:
    """What was prepared from one weight is not used for another, and lives as long as a launch may use it."""
    graph = parse_graph(
        """
        graph(%x : Tensor, %w : Tensor, %b : Tensor):
          %y : Tensor = prim::packed_convolution[stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1,
                                                 activation="none"](%x, %w, %b)
          return (%y)
        """
    )
    (node,) = graph.find_nodes("prim::packed_convolution")
    operation = packed_operators.packed_convolution(node)
    x, first, second = torch.randn(1, 8, 5, 5), torch.randn(40, 8, 1, 1), torch.randn(40, 8, 1, 1)
    x, bias = x.contiguous(memory_format=LAST), torch.randn(40)
    function: list[Callable[..., Any]] = [operation]
    assert isinstance(operation, LaunchedOperation)
    operation.add_call_site(lambda other: function.append(other))
    for weight in (first, first, first, second, second, second, first, second, first):
        gc.collect()
        made = [torch.full((4096,), torch.nan) for _ in range(8)]
        close(function[-1](x, weight, bias), torch.conv2d(x, weight, bias))
        del made
    assert len(function) == 2
    python_calls.clear()
    function[-1](x, first, bias)
    assert not python_calls
    function[-1](x, second, bias)
    assert len(python_calls) == 1

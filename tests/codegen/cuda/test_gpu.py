"""Compiled programs on a GPU. They run where PyTorch has one; everywhere else their kernels are emulated
(tests/codegen/cuda/test_emulated.py)."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.codegen.fusion_executor import CAPTURING, SEVERAL_DEVICES, TOO_EARLY, FusionExecutor, group_of
from rekindle.runtime.cuda_graphs.captured_function import CapturedFunction

if not torch.cuda.is_available():
    pytest.skip("PyTorch has no GPU here", allow_module_level=True)


def chain(a: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(a * b + 1.0)


def rows(x: Tensor) -> Tensor:
    return torch.softmax(x * 2.0, -1)


def columns(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(0)


def mean_square(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).square().mean()


def several(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.sigmoid(x * 1.5) + x
        x = torch.sort(x)[0]
    return x


def _gpu(*sizes: int) -> Tensor:
    return torch.randn(*sizes, device="cuda")


def _groups(function: Any, *arguments: Any) -> list[FusionExecutor]:
    nodes = function.graph_for(*arguments).find_nodes("prim::FusionGroup")
    found = [group_of(node.get_graph("Subgraph")) for node in nodes]
    return [each for each in found if each is not None]


def _settled(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns once its kernels are made."""
    for _ in range(4):
        found = function(*arguments)
    return found


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (chain, lambda: (_gpu(1000), _gpu(1000))),
        (chain, lambda: (_gpu(10_007)[1:], _gpu(10_007)[1:])),
        (chain, lambda: (_gpu(64, 33).t(), _gpu(33, 64))),
        (chain, lambda: (_gpu(3, 1, 5), _gpu(4, 1))),
        (rows, lambda: (_gpu(64, 7),)),
        (rows, lambda: (_gpu(64, 128),)),
        (rows, lambda: (_gpu(64, 4096),)),
        (rows, lambda: (_gpu(64, 100_000),)),
        (columns, lambda: (_gpu(300, 70), _gpu(300, 70))),
        (columns, lambda: (_gpu(100_000, 8), _gpu(100_000, 8))),
        (mean_square, lambda: (_gpu(100), _gpu(100))),
        (mean_square, lambda: (_gpu(3, 1_000_003), _gpu(3, 1_000_003))),
        (several, lambda: (_gpu(100), 5)),
    ],
)
def test_answers_are_eagers(function: Callable[..., Tensor], arguments: Callable[[], tuple[Any, ...]]) -> None:
    torch.manual_seed(0)
    given = arguments()
    compiled = rekindle.script(function)
    with torch.no_grad():
        expected = function(*given)
        for _ in range(5):
            torch.testing.assert_close(compiled(*given), expected, rtol=2e-5, atol=1e-4, check_stride=True)
        before = [dict(group.fallbacks) for group in _groups(compiled, *given)]
        compiled(*given)
    assert before, "something has to fuse"
    groups = _groups(compiled, *given)
    assert [dict(group.fallbacks) for group in groups] == before, "the last call launched kernels without Python"
    assert all(set(group.fallbacks) <= {TOO_EARLY} for group in groups)


def test_kernels_run_on_the_current_stream() -> None:
    compiled = rekindle.script(chain)
    x = _gpu(1 << 22)
    with torch.no_grad():
        _settled(compiled, x, x)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)  # what another stream writes is not there yet
            y = x * 2
            found = compiled(y, y)
        stream.synchronize()
        torch.testing.assert_close(found, chain(y, y))


def test_kernels_are_captured_in_cuda_graphs() -> None:
    compiled = rekindle.script(mean_square)
    x, y = _gpu(100_000), _gpu(100_000)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            _settled(compiled, x, y)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = compiled(x, y)
        x.copy_(_gpu(100_000))
        graph.replay()
        torch.testing.assert_close(found, mean_square(x, y))


def test_no_kernel_is_compiled_while_a_cuda_graph_is_captured() -> None:
    def own(a: Tensor, b: Tensor) -> Tensor:
        return torch.tanh(a * b - 7.0)

    compiled = rekindle.script(own)
    x, y = _gpu(1000), _gpu(1000)
    with torch.no_grad():
        for _ in range(5):  # from the first call on
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = compiled(x, y)
            graph.replay()
            torch.testing.assert_close(found, own(x, y))
        torch.testing.assert_close(_settled(compiled, x, y), own(x, y))
        (group,) = _groups(compiled, x, y)
        assert CAPTURING in group.fallbacks
        assert group.recipes


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cumsum(torch.tanh(x * 2.0) + 1.0, -1) * torch.sigmoid(x + 1.0),
        lambda x: (torch.sigmoid(x * 2.0) * x).argmax(-1) * 2,
        lambda x: torch.relu(torch.nn.functional.linear(torch.tanh(x * 2.0), x)) * 2.0 + 1.0,
    ],
    ids=["cumsum", "argmax", "linear"],
)
def test_groups_are_split_where_gpus_have_no_kernel(function: Callable[[Tensor], Tensor]) -> None:
    compiled, x = rekindle.script(function), _gpu(64, 64)
    with torch.no_grad():
        for _ in range(12):
            torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-4)
        report = rekindle.report(compiled)
        assert report.kernels, "what is around that operator is fused"


@pytest.fixture
def cuda_graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every function that can be captured is replayed: whether a replay is faster depends on the machine, and
    tests/runtime/test_cuda_graphs.py tests that decision."""
    monkeypatch.setattr(CapturedFunction, "_check_time", lambda self, replay, call: None)
    before = rekindle.set_cuda_graphs(True)
    try:
        with torch.no_grad():
            yield
    finally:
        rekindle.set_cuda_graphs(before)


def _replays(compiled: Any) -> int:
    return sum(each.replays for each in _captured(compiled))


def _captured(compiled: Any) -> list[Any]:
    method = compiled.forward if isinstance(compiled, nn.Module) else compiled
    reports = [rekindle.report(each) for each in getattr(method, "overloads", [method])]
    return [version.cuda_graphs for report in reports for version in report.versions if version.cuda_graphs]


@pytest.mark.usefixtures("cuda_graphs")
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4)), (8, 16)),
        (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)), (2, 3, 16, 16)),
        (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (2, 5, 32)),
        (
            lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu"),
            (2, 5, 32),
        ),
        (lambda: nn.LSTM(16, 16, batch_first=True), (2, 5, 16)),
        (lambda: nn.GRUCell(16, 16), (4, 16)),
    ],
    ids=["mlp", "conv", "encoder", "norm_first", "lstm", "gru_cell"],
)
def test_calls_are_replayed(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    net = make().cuda().eval()
    compiled = rekindle.script(net)
    for _ in range(9):  # PyTorch may resolve a setting, such as the preferred BLAS, in the first call: another kind
        x = _gpu(*shape)
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)
    assert _replays(compiled) >= 4, _captured(compiled)
    for parameter in net.parameters():  # shared with the compiled module
        parameter.mul_(1.5)
    x = _gpu(*shape)
    torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("cuda_graphs")
def test_replays_draw_new_random_numbers() -> None:
    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = F.dropout(x, 0.5, True)
            for _ in range(10):
                x = F.dropout(torch.sort(x)[0], 0.1, True)
            return y + 0.0 * x

    compiled, x = rekindle.script(Noise()), torch.ones(10_000, device="cuda")
    found = [compiled(x) for _ in range(8)]
    assert _replays(compiled) >= 4, _captured(compiled)
    assert all(0.4 < float((each != 0).float().mean()) < 0.6 for each in found)
    assert len({float(each[:60].sum()) for each in found}) > 3


@pytest.mark.usefixtures("cuda_graphs")
def test_replays_under_autocast() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).cuda()
    compiled = rekindle.script(net)
    x = _gpu(8, 16)
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            for _ in range(6):
                x = _gpu(8, 16)
                torch.testing.assert_close(compiled(x), net(x), rtol=2e-2, atol=2e-2)
    waste = [torch.full((1 << 12,), float("nan"), device="cuda") for _ in range(64)]
    with torch.autocast("cuda", torch.bfloat16):
        torch.testing.assert_close(compiled(x), net(x), rtol=2e-2, atol=2e-2)
    assert _replays(compiled) >= 10
    del waste


@pytest.mark.usefixtures("cuda_graphs")
def test_a_call_that_cannot_be_captured_runs_plainly() -> None:
    def counted(x: Tensor) -> Tensor:
        found = x * 2.0
        if bool((found > 0).all()):
            found = found + 1.0
        return found

    def unique(x: Tensor) -> Tensor:
        found: Tensor = torch.unique(x)
        return found * 2.0

    for function in (counted, unique):
        compiled = rekindle.script(function)
        for _ in range(8):
            x = torch.randint(0, 5, (10,), device="cuda").float()
            torch.testing.assert_close(compiled(x), function(x))
        assert _replays(compiled) == 0
        assert any(each.reason for each in _captured(compiled))


@pytest.mark.usefixtures("cuda_graphs")
def test_a_failed_capture_restores_the_state_of_pytorch() -> None:
    """Indexing by a mask is found out only in the capture."""

    def masked(x: Tensor, mask: Tensor) -> Tensor:
        return x[mask] * 2.0

    compiled, stream = rekindle.script(masked), torch.cuda.current_stream()
    for _ in range(8):
        x = _gpu(10)
        mask = torch.randint(0, 2, (10,), device="cuda").bool()  # draws from the generator
        torch.testing.assert_close(compiled(x, mask), masked(x, mask))
        assert torch.cuda.current_stream() == stream
    assert [each.reason.startswith("a call raises ") for each in _captured(compiled)] == [True]
    held = torch.cuda.memory_reserved()
    waste = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    del waste
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= held, "the allocator gives memory back"
    other, x = rekindle.script(several), _gpu(77)
    for _ in range(8):
        torch.testing.assert_close(other(x, 9), several(x, 9))
    assert _replays(other) >= 4, _captured(other)


@pytest.mark.usefixtures("cuda_graphs")
def test_replays_on_several_streams_and_threads() -> None:
    net = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)).cuda()
    compiled = rekindle.script(net)

    def work(seed: int) -> None:
        stream = torch.cuda.Stream()
        generator = torch.Generator(device="cuda").manual_seed(seed)
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(30):
                x = torch.randn(8, 16, device="cuda", generator=generator)
                torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)
            stream.synchronize()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    # 26 of a stream: another thread may capture what this one waits for
    assert _replays(compiled) >= 26


class Net(nn.Module):
    """Something of everything that fuses, with gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(self.last(F.gelu(self.norm(self.first(x)))), -1)


def test_gradients() -> None:
    torch.manual_seed(0)
    net = Net().cuda()
    compiled = rekindle.script(net)
    x = _gpu(64, 16)
    parameters = list(net.parameters())
    expected = torch.autograd.grad(net(x).square().mean(), parameters)
    for _ in range(5):
        found = torch.autograd.grad(compiled(x).square().mean(), parameters)
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs)


def test_autocasting() -> None:
    torch.manual_seed(0)
    net = Net().cuda().eval()
    compiled = rekindle.script(net)
    x = _gpu(64, 16)
    with torch.no_grad():
        _settled(compiled, x)
        with torch.autocast("cuda", torch.bfloat16):
            expected, found = net(x), _settled(compiled, x)
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(compiled(x), net(x))


def test_tensors_on_both_devices() -> None:
    def mixed(x: Tensor, y: Tensor) -> Tensor:
        return torch.tanh(x * y + 1.0)

    compiled = rekindle.script(mixed)
    x, number, far = _gpu(10), torch.tensor(2.0), torch.randn(10)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(compiled(x, number), mixed(x, number))
            torch.testing.assert_close(compiled(far, far), mixed(far, far))
            torch.testing.assert_close(compiled(x, x), mixed(x, x))
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            compiled(x, far)


def test_numbers_of_the_cpu_are_read_by_kernels() -> None:
    def scaled(x: Tensor, by: Tensor, offset: Tensor) -> Tensor:
        return torch.tanh(x * by + offset) * 2.0

    compiled = rekindle.script(scaled)
    with torch.no_grad():
        for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64):
            x = (_gpu(100) * 10).to(dtype)
            for number in (2.5, -0.0, float("nan"), 1e-40):
                for by in (torch.tensor(number), torch.tensor(number, dtype=torch.float64), torch.tensor(3)):
                    for _ in range(3):
                        found, expected = compiled(x, by, torch.tensor(0.5)), scaled(x, by, torch.tensor(0.5))
                        torch.testing.assert_close(found, expected, equal_nan=True)
        (group,) = _groups(compiled, _gpu(100), torch.tensor(2.0), torch.tensor(0.5))
        assert group.recipes
        assert SEVERAL_DEVICES not in group.fallbacks
        y, on_cpu = _gpu(100), torch.tensor(2.0)
        assert compiled(on_cpu, on_cpu, on_cpu).device.type == "cpu"
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = compiled(y, torch.tensor(7.25), on_cpu)
        graph.replay()
        torch.testing.assert_close(found, scaled(y, torch.tensor(7.25), on_cpu))


def test_operators_of_the_cpu_in_a_group_stay_there() -> None:
    def both(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        number = a * b + 1.0
        return torch.tanh(x * number), number

    compiled = rekindle.script(both)
    x, a = _gpu(10), torch.tensor(2.0)
    with torch.no_grad():
        for _ in range(6):
            found, expected = compiled(x, a, a), both(x, a, a)
            assert [each.device for each in found] == [each.device for each in expected]
            torch.testing.assert_close(found, expected)


def test_inference_mode() -> None:
    compiled = rekindle.script(rows)
    with torch.inference_mode():
        x = _gpu(32, 64)
        torch.testing.assert_close(_settled(compiled, x), rows(x))


def test_memory_that_runs_out_is_pytorchs_error_and_leaves_nothing_behind() -> None:
    compiled = rekindle.script(chain)
    x = _gpu(1 << 28)
    with torch.no_grad():
        _settled(compiled, x, x)
        free, _ = torch.cuda.mem_get_info()
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        filler = torch.empty(free - (1 << 29), dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.cuda.OutOfMemoryError):
            compiled(x, x)
        del filler
        torch.cuda.empty_cache()
        torch.testing.assert_close(compiled(x, x), chain(x, x))


def test_archives_move_between_devices() -> None:
    net = Net().cuda().eval()
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(net), buffer)
    x = torch.randn(8, 16)
    for device in ("cuda", "cpu"):
        buffer.seek(0)
        loaded = rekindle.load(buffer, map_location=device)
        with torch.no_grad():
            found = _settled(loaded, x.to(device))
            assert found.device.type == device
            torch.testing.assert_close(found.cpu(), net(x.cuda()).cpu(), rtol=1e-4, atol=1e-5)


OUT_OF_BOUNDS = """
import torch, rekindle
from torch import Tensor

def take(x: Tensor, index: Tensor) -> Tensor:
    return x[index] * 2.0

compiled = rekindle.script(take)
x, index = torch.randn(10, 4, device="cuda"), torch.tensor([1, 2, 3], device="cuda")
with torch.no_grad():
    for _ in range(4):
        compiled(x, index)
    try:
        compiled(x, index + 100)
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""


def test_an_index_out_of_bounds_stops_the_device_as_in_eager(tmp_path: Any) -> None:
    """In a process of its own, since no call works after it."""
    path = tmp_path / "program.py"
    path.write_text(OUT_OF_BOUNDS)
    found = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert "device-side assert triggered" in found.stdout, found.stderr[-5000:]
    assert "index or value out of bounds" in found.stderr

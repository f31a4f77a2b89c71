"""Programs written for CUDA on a GPU: streams, events, devices, autocast, traces, archives. Without a GPU,
tests/scripting/test_cuda.py compares what they call."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle

if not torch.cuda.is_available():
    pytest.skip("PyTorch has no GPU here", allow_module_level=True)

CALLS = 5
ARCHIVE = Path(__file__).parents[2] / "archive" / "cuda" / "streams.pt"


def _same(found: Any, expected: Any) -> None:
    if isinstance(expected, Tensor):
        assert (found.device, found.dtype) == (expected.device, expected.dtype)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            _same(mine, theirs)
    else:
        assert found == expected


def _through_archives(function: Any, *, by_torch: bool = True) -> list[Any]:
    """Return the program as it is loaded from what rekindle and torch.jit save and load."""
    mine = io.BytesIO()
    rekindle.save(function, mine)
    mine.seek(0)
    found = [rekindle.load(mine)]
    if by_torch:
        mine.seek(0)
        theirs, again = torch.jit.load(mine), io.BytesIO()
        torch.jit.save(theirs, again)
        again.seek(0)
        found += [theirs, rekindle.load(again)]
    return found


# ------------------------------------------------------------------------------------------------- streams and events


def side_stream(x: Tensor):
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        y = torch.tanh(x * 2.0) + 1.0
        is_current = torch.cuda.current_stream().stream_id == s.stream_id
    torch.cuda.current_stream().wait_stream(s)
    return y, is_current, torch.cuda.current_stream().stream_id, s.device_index


def timed(x: Tensor):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    y = x @ x
    end.record()
    end.synchronize()
    return y, start.elapsed_time(end) > 0.0, end.query()


def events_between_streams(x: Tensor):
    s, t = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        y = torch.sigmoid(x * 3.0) - 1.0
    e = s.record_event()
    t.wait_event(e)
    with torch.cuda.stream(t):
        z = torch.tanh(y) * 2.0
    done = t.record_event()
    done.wait()
    torch.cuda.synchronize()
    return y, z, s.query(), t.query()


def devices(x: Tensor):
    with torch.cuda.device(0):
        y = x + 1.0
    with torch.cuda.device("cuda:0"):
        z = torch.zeros(2, device="cuda") + y.sum()
    torch.cuda.set_device(0)
    with torch.cuda.device_of(x):
        w = x.new_ones(3)
    return y, z, w, torch.cuda.current_device(), torch.cuda.device_count(), torch.cuda.is_available()


@pytest.mark.parametrize("program", [side_stream, timed, events_between_streams, devices])
def test_results_are_eagers(program: Callable[[Tensor], Any]) -> None:
    compiled = rekindle.script(program)
    x = torch.randn(64, 64, device="cuda")
    with torch.no_grad():
        expected = program(x)
        for each in (compiled, *_through_archives(compiled)):
            for _ in range(CALLS):
                _same(each(x), expected)


def in_given_stream(x: Tensor, s: torch.cuda.Stream):
    with torch.cuda.stream(s):
        y = torch.tanh(x * 2.0) + 1.0
        z = y.sum(-1)
    return y, z


def test_kernels_run_on_the_stream_of_the_program() -> None:
    compiled = rekindle.script(in_given_stream)
    source = torch.randn(1 << 20, 4, device="cuda")
    s = torch.cuda.Stream()
    with torch.no_grad():
        expected = torch.tanh(source * 2.0) + 1.0
        for call in range(CALLS):
            torch.cuda.synchronize()
            x = torch.full_like(source, float("nan"))
            torch.cuda.synchronize()
            with torch.cuda.stream(s):
                torch.cuda._sleep(200_000_000)  # what another stream reads is not there yet
                x.copy_(source)
            y, z = compiled(x, s)
            assert torch.cuda.current_stream() == torch.cuda.default_stream()
            # Compiling kernels and allocating memory take longer in the first calls.
            assert call < CALLS - 1 or not s.query(), "nothing waited for the stream"
            s.synchronize()
            torch.testing.assert_close(y, expected)
            torch.testing.assert_close(z, expected.sum(-1), rtol=1e-4, atol=1e-4)


def test_streams_of_torch_classes_are_arguments() -> None:
    def waits(x: Tensor, s: torch.classes.cuda.Stream) -> tuple[Tensor, int]:
        s.wait_stream(torch.cuda.current_stream(None))
        with torch.cuda.stream(s):
            y = torch.tanh(x * 2.0)
        s.synchronize()
        return y, s.id()

    compiled = rekindle.script(waits)
    x = torch.randn(100, device="cuda")
    python, theirs = torch.cuda.Stream(), torch.classes.cuda.Stream(torch.device("cuda:0"), 0)
    with torch.no_grad():
        for _ in range(CALLS):
            _same(compiled(x, python), (torch.tanh(x * 2.0), python.stream_id))
            _same(compiled(x, theirs), (torch.tanh(x * 2.0), theirs.id()))


def test_what_torch_jit_scripts_has_the_same_results() -> None:
    def program(x: Tensor):
        device = torch.device("cuda", torch.cuda.current_device())
        s = torch.cuda.Stream(device, 0)
        e = torch.cuda.Event(True, False, False)
        e.record(torch.cuda.current_stream(device))
        s.wait_event(e)
        with torch.cuda.stream(s):
            y = x * 2.0
            inside = torch.cuda.current_stream(s.device_index()).id() == s.id()
        torch.cuda.current_stream(None).wait_stream(s)
        torch.cuda.synchronize()
        return y, inside, s.query(), e.query(), s.device, torch.cuda.default_stream(0).id()

    x = torch.randn(10, device="cuda")
    expected = torch.jit.script(program)(x)
    compiled = rekindle.script(program)
    for each in (compiled, *_through_archives(compiled)):
        for _ in range(CALLS):
            _same(each(x), expected)


def test_an_archive_of_torch_jit() -> None:
    x = torch.ones(2, device="cuda")
    for module in (rekindle.load(ARCHIVE), torch.jit.load(ARCHIVE)):
        for _ in range(CALLS):
            y, inside, elapsed, _, _, event_is_done, device = module(x)
            torch.cuda.synchronize()
            assert y.tolist() == [6.0, 6.0]
            assert (inside, event_is_done, device) == (True, True, torch.device("cuda:0"))
            assert math.isfinite(elapsed)  # the first event is recorded again after the second


def records(x: Tensor, s: torch.cuda.Stream):
    y = x * 2.0
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        z = y + 1.0
        y.record_stream(s)
    torch.cuda.current_stream().wait_stream(s)
    return z


def test_tensors_record_streams() -> None:
    compiled = rekindle.script(records)
    x, s = torch.randn(10, device="cuda"), torch.cuda.Stream()
    for _ in range(CALLS):
        _same(compiled(x, s), x * 2.0 + 1.0)


# ------------------------------------------------------------------------------------------------------------- queries


def queries():
    found = torch.cuda.get_device_properties(0)
    major, minor = torch.cuda.get_device_capability()
    return (
        found.total_memory,
        found.multi_processor_count,
        found.name,
        (found.major, found.minor) == (major, minor),
        torch.cuda.get_device_name("cuda:0"),
        torch.cuda.is_initialized(),
        torch.cuda.is_bf16_supported(),
        torch.cuda.is_current_stream_capturing(),
        torch.cuda.memory_allocated() > 0,
        torch.cuda.max_memory_allocated(0) > 0,
        torch.cuda.mem_get_info()[1],
    )


def test_queries() -> None:
    held = torch.zeros(1000, device="cuda")
    compiled = rekindle.script(queries)
    for _ in range(CALLS):
        assert compiled() == queries()
    assert held.sum() == 0


def random_numbers(x: Tensor):
    torch.cuda.manual_seed(3)
    state = torch.cuda.get_rng_state()
    first = torch.rand(5, device="cuda") + x
    torch.cuda.set_rng_state(state)
    second = torch.rand(5, device="cuda") + x
    torch.cuda.manual_seed_all(4)
    generator = torch.Generator("cuda")
    generator.manual_seed(3)
    return first, second, torch.rand(5, device="cuda"), torch.rand(5, device="cuda", generator=generator)


def test_random_numbers() -> None:
    compiled = rekindle.script(random_numbers)
    x = torch.ones(5, device="cuda")
    for _ in range(CALLS):
        found, expected = compiled(x), random_numbers(x)
        _same(found, expected)
        _same(found[0], found[1])


def ranges(x: Tensor):
    torch.cuda.nvtx.range_push("outer")
    with torch.cuda.nvtx.range("inner"):
        y = torch.tanh(x * 2.0)
    torch.cuda.nvtx.mark("here")
    torch.cuda.nvtx.range_pop()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return y


def test_ranges() -> None:
    compiled = rekindle.script(ranges)
    x = torch.ones(5, device="cuda")
    for _ in range(CALLS):
        _same(compiled(x), ranges(x))


# ------------------------------------------------------------------------------------------------- movement and dtypes


def moves(x: Tensor):
    return (
        x.cuda(),
        x.cuda(0),
        x.cuda(device="cuda:0", non_blocking=True),
        x.cuda(torch.device("cuda", 0)),
        x.to(0),
        x.to("cuda", non_blocking=True),
        x.to(device=torch.device("cuda:0"), dtype=torch.float16),
        x.cpu(),
    )


def pins(x: Tensor):
    y = x.pin_memory()
    return y, y.is_pinned(), x.is_pinned(), y.to("cuda", non_blocking=True)


def asks(x: Tensor):
    return x.device.index, x.device.type == "cuda", x.is_cuda, x.get_device(), x.device == torch.device("cuda:0")


@pytest.mark.parametrize("program", [moves, pins, asks])
def test_movement(program: Callable[[Tensor], Any]) -> None:
    compiled = rekindle.script(program)
    for _ in range(CALLS):
        for x in (torch.randn(5), torch.randn(5, device="cuda")):
            if program is pins and x.is_cuda:
                continue
            _same(compiled(x), program(x))


def autocasts(x: Tensor):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = x @ x
        with torch.cuda.amp.autocast(enabled=False):
            z = x @ x
        inside = torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled("cpu")
    with torch.autocast(device_type=x.device.type, dtype=torch.float16):
        w = torch.nn.functional.linear(x, x)
    return y, z, w, inside, torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")


@pytest.mark.filterwarnings("ignore:.*torch.cuda.amp.autocast:FutureWarning")
def test_autocast() -> None:
    compiled = rekindle.script(autocasts)
    x = torch.randn(64, 64, device="cuda")
    expected = autocasts(x)
    for _ in range(CALLS):
        found = compiled(x)
        assert [each.dtype for each in found[:3]] == [torch.bfloat16, torch.float32, torch.float16]
        for mine, theirs in zip(found[:3], expected[:3], strict=True):
            torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)
        assert found[3:] == expected[3:]


def flags(x: Tensor, w: Tensor):
    with torch.backends.cudnn.flags(enabled=False):
        y = torch.nn.functional.conv2d(x, w)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        z = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    return y, z


def test_flags() -> None:
    compiled = rekindle.script(flags)
    x, w = torch.randn(2, 4, 16, 16, device="cuda"), torch.randn(8, 4, 3, 3, device="cuda")
    for _ in range(CALLS):
        found, expected = compiled(x, w), flags(x, w)
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)


# -------------------------------------------------------------------------------------------------------------- traces


class Moving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.linear(x.cuda(non_blocking=True)) + torch.zeros(4, device="cuda")
        z = torch.tanh(y.to("cuda:0") * 2.0) + 1.0
        return z, z.cpu()


def test_traces_name_devices() -> None:
    module = Moving().cuda()
    x = torch.randn(3, 4)
    with torch.no_grad():
        expected = module(x)
        traced, theirs = rekindle.trace(module, (x,)), torch.jit.trace(module, (x,))
        saved, again = io.BytesIO(), io.BytesIO()
        torch.jit.save(theirs, saved)
        saved.seek(0)
        rekindle.save(traced, again)
        again.seek(0)
        for each in (traced, theirs, rekindle.load(saved), torch.jit.load(again)):
            for _ in range(CALLS):
                _same(each(x), expected)


def test_the_report_of_a_gpu() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.sort(torch.tanh(x * 2.0) + 1.0)[0]

    compiled = rekindle.script(program)
    with torch.no_grad():
        for _ in range(CALLS):
            compiled(torch.randn(1000, device="cuda"))
    text = str(rekindle.report(compiled))
    assert "kernel 1, " in text
    assert "aten::sort" in text

"""Programs written for CUDA compile, are saved and loaded without a GPU, and call what eager calls.

Where PyTorch has no GPU they raise what eager raises. What they call is compared with a stand-in for ``torch.cuda``.
With a GPU, tests/codegen/cuda/test_programs.py runs them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import Source
from rekindle.ir.types import FunctionType
from rekindle.program.calling import call as call_record
from rekindle.program.sources.source_importer import SourceImporter
from rekindle.runtime.cuda_graphs.capturable import refusal_of
from tests.scripting.fake_cuda import fake_cuda

NO_GPU = not torch.cuda.is_available()


def through_archive(function: Any) -> Any:
    file = io.BytesIO()
    rekindle.save(function, file)
    file.seek(0)
    return rekindle.load(file)


# ------------------------------------------------------------------------------------------------- what programs call


def side_stream(x: Tensor):
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        y = x + 1
        inside = torch.cuda.current_stream().stream_id
    torch.cuda.current_stream().wait_stream(s)
    return y, inside, torch.cuda.current_stream().stream_id


def stream_of_another_device(x: Tensor):
    s = torch.cuda.Stream(device=1, priority=-1)
    with torch.cuda.stream(s):
        inside = torch.cuda.current_device()
        y = x * 2
    return y, inside, torch.cuda.current_device(), s.device_index, s.device, s.query()


def no_stream(x: Tensor):
    with torch.cuda.stream(None):
        y = x + 1
    return y


def streams_of_names(x: Tensor):
    first = torch.cuda.Stream("cuda:1")
    second = torch.cuda.Stream(device=torch.device("cuda:1"))
    third = torch.cuda.current_stream("cuda:1")
    fourth = torch.cuda.default_stream(torch.device("cuda", 1))
    return first.device_index + second.device_index + third.device_index + fourth.device_index


def timed(x: Tensor):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    y = x @ x
    end.record(torch.cuda.current_stream())
    end.synchronize()
    torch.cuda.synchronize()
    torch.cuda.synchronize(1)
    torch.cuda.synchronize("cuda:1")
    torch.cuda.synchronize(device=torch.device("cuda"))
    return y, start.elapsed_time(end), end.query()


def events_between_streams(x: Tensor):
    s, t = torch.cuda.Stream(), torch.cuda.Stream()
    e = s.record_event()
    t.wait_event(e)
    e.wait()
    e.wait(t)
    f = torch.cuda.Event(False, blocking=True)
    s.record_event(f)
    s.synchronize()
    return x


def devices(x: Tensor):
    with torch.cuda.device(1):
        first = torch.cuda.current_device()
    with torch.cuda.device("cuda:1"):
        second = torch.cuda.current_device()
    with torch.cuda.device(torch.device("cuda", 1)):
        third = torch.cuda.current_device()
    with torch.cuda.device(None):
        fourth = torch.cuda.current_device()
    torch.cuda.set_device(1)
    torch.cuda.set_device("cuda:0")
    torch.cuda.set_device(torch.device("cuda:1"))
    return first, second, third, fourth, torch.cuda.current_device(), torch.cuda.device_count()


def left_by_an_error(x: Tensor):
    try:
        with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(1):
            if x.numel() > 0:
                raise ValueError("no")
    except ValueError:
        x = x + 1
    return x, torch.cuda.current_device(), torch.cuda.current_stream().stream_id


def set_stream(x: Tensor):
    before = torch.cuda.current_stream()
    torch.cuda.set_stream(torch.cuda.Stream(1))
    y = x + 1
    torch.cuda.set_stream(before)
    return y


PROGRAMS = (
    side_stream,
    stream_of_another_device,
    no_stream,
    streams_of_names,
    timed,
    events_between_streams,
    devices,
    set_stream,
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_call_what_eager_calls(program: Callable[[Tensor], Any]) -> None:
    compiled = rekindle.script(program)
    loaded = through_archive(compiled)
    x = torch.ones(2, 2)
    with fake_cuda() as cuda:
        expected, calls = program(x), cuda.calls
    for each in (compiled, loaded):
        for _ in range(4):  # profiled, then optimized
            with fake_cuda() as cuda:
                assert _plain(each(x)) == _plain(expected)
                assert _changes(cuda.calls) == _changes(calls)


def _plain(result: Any) -> Any:
    """Return a result with lists for tensors, which can be compared."""
    if isinstance(result, tuple):
        return tuple(map(_plain, result))
    return result.tolist() if isinstance(result, Tensor) else result


def test_an_error_leaves_the_stream_and_the_device() -> None:
    compiled = rekindle.script(left_by_an_error)
    with fake_cuda():
        expected = _plain(left_by_an_error(torch.ones(1)))
    for _ in range(4):
        with fake_cuda():
            assert _plain(compiled(torch.ones(1))) == expected == ([2.0], 0, 0)


def _changes(calls: list[str]) -> list[tuple[str, str]]:
    """Return each call with the device that was current. Python selects devices more often than it must."""
    found: list[tuple[str, str]] = []
    device = "0"
    for call in calls:
        what, _, argument = call.partition(" ")
        if what in ("device", "set_device"):
            device = argument
            continue
        if what == "set_stream":
            device = argument.partition(".")[0]
        found.append((device, call))
    return found


def works_in_two_streams(x: Tensor, s: torch.cuda.Stream):
    with torch.cuda.stream(s):
        y = torch.tanh(x * 2) + 1
    return torch.tanh(x * 2) + 1 + y


def test_operators_stay_between_changes_of_streams() -> None:
    compiled = rekindle.script(works_in_two_streams)
    seen: list[int] = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "tanh" in func.name():
                seen.append(torch.cuda.current_stream().stream_id)
            return func(*args, **(kwargs or {}))

    x = torch.ones(3)
    for _ in range(4):
        with fake_cuda() as cuda:
            seen.clear()
            stream = cuda.Stream()
            with Watch():
                compiled(x, stream)
            assert seen == [1, 0]


@pytest.mark.skipif(not NO_GPU, reason="these are the errors without a GPU")
@pytest.mark.parametrize(
    "program", [each for each in PROGRAMS if each not in (no_stream,)], ids=lambda program: program.__name__
)
def test_without_a_gpu_programs_raise_what_eager_raises(program: Callable[[Tensor], Any]) -> None:
    x = torch.ones(2, 2)
    with pytest.raises((RuntimeError, AssertionError, AttributeError)) as expected:
        program(x)
    for each in (rekindle.script(program), through_archive(rekindle.script(program))):
        with pytest.raises(type(expected.value)) as raised:
            each(x)
        assert str(expected.value) in str(raised.value)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_with_streams_are_not_replayed(program: Callable[[Tensor], Any]) -> None:
    assert refusal_of(rekindle.script(program).graph) is not None


def test_a_stream_may_be_left_out() -> None:
    x = torch.ones(2)
    compiled = rekindle.script(no_stream)
    assert torch.equal(compiled(x), x + 1)
    assert torch.equal(through_archive(compiled)(x), x + 1)


# ------------------------------------------------------------------------------------------------------------- queries


def chooses_a_device(x: Tensor):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return x.to(device), torch.cuda.device_count()


def test_availability_is_asked_when_the_program_runs() -> None:
    compiled = rekindle.script(chooses_a_device)
    graph = str(compiled.graph)
    assert graph.count("cuda::device_count") == 2
    loaded = through_archive(compiled)
    for each in (compiled, loaded):
        for _ in range(3):
            assert each(torch.ones(1))[1] == torch.cuda.device_count()
        with fake_cuda():
            with pytest.raises((AssertionError, NotImplementedError)) if NO_GPU else pytest.MonkeyPatch.context():
                each(torch.ones(1))


def queries(x: Tensor):
    torch.cuda.empty_cache()
    torch.cuda.manual_seed(3)
    torch.cuda.manual_seed_all(seed=3)
    return (
        torch.cuda.memory_allocated(),
        torch.cuda.max_memory_allocated(),
        torch.cuda.memory_reserved(),
        torch.cuda.is_bf16_supported(),
    )


@pytest.mark.skipif(not NO_GPU, reason="memory is in use with a GPU")
def test_queries() -> None:
    assert rekindle.script(queries)(torch.ones(1)) == queries(torch.ones(1))


def initialized():
    return torch.cuda.is_initialized()


def test_whether_cuda_is_initialized_is_not_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = rekindle.script(initialized)
    assert compiled() == torch.cuda.is_initialized()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: "asked")
    assert compiled() == "asked"


@pytest.mark.skipif(not NO_GPU, reason="these are the errors without a GPU")
@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.cuda.get_device_properties(0).total_memory,
        lambda: torch.cuda.get_device_name(),
        lambda: torch.cuda.get_device_capability("cuda:0")[0] >= 8,
        lambda: torch.cuda.mem_get_info(),
        lambda: torch.cuda.reset_peak_memory_stats(),
        lambda: torch.cuda.is_current_stream_capturing(),
        lambda: torch.cuda.get_rng_state(),
        lambda: torch.cuda.set_rng_state(torch.zeros(16, dtype=torch.uint8)),
        lambda: torch.cuda.nvtx.range_push("a"),
        lambda: torch.cuda.nvtx.range_pop(),
        lambda: torch.cuda.nvtx.mark("a"),
        lambda: torch.ones(1).cuda(),
        lambda: torch.ones(1).cuda(torch.device("cuda:0")),
        lambda: torch.ones(1).cuda("cuda:0", non_blocking=True),
        lambda: torch.ones(1).to("cuda", non_blocking=True),
        lambda: torch.ones(1).to(0),
        lambda: torch.ones(1).to(device=torch.device("cuda", 0), dtype=torch.float16),
        lambda: torch.ones(1).pin_memory(),
        lambda: torch.zeros(2, device="cuda:0"),
    ],
)
def test_without_a_gpu_queries_raise_what_eager_raises(program: Callable[[], Any]) -> None:
    expected, found = _outcome(program), _outcome(rekindle.script(program))
    assert (expected[0], str(expected[1]) in str(found[1])) == (found[0], True)


def _outcome(function: Callable[[], Any]) -> tuple[type, object]:
    """Return the class of the error that a function raises, and the error; else that of its result, and the result."""
    try:
        found = function()
    except Exception as error:
        return type(error), error
    return type(found), found


def test_an_int_is_a_device_and_not_the_number_of_a_dtype() -> None:
    def moved(x: Tensor):
        return x.to(0)

    compiled = rekindle.script(moved)
    if NO_GPU:
        # The messages of builds of PyTorch without CUDA and with it.
        with pytest.raises(RuntimeError, match=r"accelerator device|NVIDIA driver"):
            compiled(torch.ones(1))
    else:
        assert compiled(torch.ones(1)).device == torch.device("cuda:0")

    def cast(x: Tensor, dtype: torch.dtype):
        return x.to(dtype), x.to(torch.float16), x.to(x.dtype)

    def cast_as_torchscript_has_it(x: Tensor, dtype: int):
        n = 3
        return x.to(dtype), x.int(), x.to(torch.int32), x + n

    found = rekindle.script(cast_as_torchscript_has_it)(torch.ones(1), torch.int32)
    assert [each.dtype for each in found] == [torch.int32, torch.int32, torch.int32, torch.float32]
    assert [each.dtype for each in rekindle.script(cast)(torch.ones(1), torch.int32)] == [
        torch.int32,
        torch.float16,
        torch.float32,
    ]


def unused():
    torch.cuda.current_stream()
    return 1


def caught():
    try:
        torch.cuda.current_device()
    except (AssertionError, RuntimeError):  # of builds without CUDA, and with it
        return False
    return True


@pytest.mark.skipif(not NO_GPU, reason="these are the errors without a GPU")
def test_errors_of_unused_queries() -> None:
    compiled = rekindle.script(unused)
    expected, error = _outcome(unused)
    assert expected is (RuntimeError if torch.backends.cuda.is_built() else AssertionError)
    for _ in range(4):
        with pytest.raises(expected, match=re.escape(str(error))):
            compiled()
    assert not any(rekindle.script(caught)() for _ in range(4))


# --------------------------------------------------------------------------------------------------------------- modes


def autocast_state():
    before = torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled(device_type="cuda")
    return before, inside, torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled()


def autocast_dtypes(x: Tensor):
    return torch.get_autocast_gpu_dtype(), torch.get_autocast_dtype("cpu"), x.to(torch.get_autocast_dtype("cpu")).dtype


def with_cudnn_flags(x: Tensor, benchmark: bool):
    with torch.backends.cudnn.flags(enabled=True, benchmark=benchmark):
        y = x + 1
    return y


def with_sdpa_kernel(q: Tensor):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q)


def with_own_random_numbers(x: Tensor):
    with torch.random.fork_rng():
        y = x + torch.rand(3)
    return y, torch.rand(3)


@pytest.mark.filterwarnings("ignore:torch.get_autocast_gpu_dtype:DeprecationWarning")
def test_modes_of_autocast() -> None:
    assert rekindle.script(autocast_state)() == autocast_state() == (False, (True, False), False, False)
    x = torch.ones(1)
    expected = (torch.float16, torch.bfloat16, torch.bfloat16)
    assert rekindle.script(autocast_dtypes)(x) == autocast_dtypes(x) == expected


def test_context_managers_that_are_generators() -> None:
    compiled = rekindle.script(with_cudnn_flags)
    cudnn = torch.backends.cudnn
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(cudnn.benchmark)
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    for benchmark in (True, False) * 3:
        seen.clear()
        with Watch():
            y = compiled(x, benchmark)
        assert torch.equal(y, x + 1)
        assert (seen, cudnn.benchmark) == ([benchmark], False)
    with pytest.raises(rekindle.errors.SaveError, match="the program calls the Python function 'flags'"):
        rekindle.save(compiled, io.BytesIO())


def test_context_managers_with_python_objects() -> None:
    compiled = rekindle.script(with_sdpa_kernel)
    q = torch.randn(1, 2, 4, 8)
    for _ in range(3):
        torch.testing.assert_close(compiled(q), with_sdpa_kernel(q))
    graph = rekindle.script(with_own_random_numbers)
    for _ in range(3):
        torch.manual_seed(0)
        expected = with_own_random_numbers(torch.ones(3))
        torch.manual_seed(0)
        torch.testing.assert_close(graph(torch.ones(3)), expected)


def on_the_cpu(device: str):
    generator = torch.Generator(device)
    generator.manual_seed(3)
    return torch.rand(2, generator=generator)


def test_generators_of_devices() -> None:
    for each in (rekindle.script(on_the_cpu), through_archive(rekindle.script(on_the_cpu))):
        assert torch.equal(each("cpu"), on_the_cpu("cpu"))
        if NO_GPU:
            with pytest.raises(RuntimeError, match=r"Cannot get CUDA generator|CUDA driver version"):
                each("cuda")


# --------------------------------------------------------------------------------------------------------- annotations


def waits(x: Tensor, s: torch.classes.cuda.Stream | None, e: torch.classes.cuda.Event | None):
    if s is not None and e is not None:
        e.record(s)
        e.wait(s)
        return x + s.device_index()
    return x


def waits_in_python(x: Tensor, s: torch.cuda.Stream | None, e: torch.cuda.Event | None):
    if s is not None and e is not None:
        e.record(s)
        e.wait(s)
        return x + s.device_index
    return x


@pytest.mark.parametrize("program", [waits, waits_in_python])
def test_streams_and_events_are_arguments(program: Callable[..., Tensor]) -> None:
    compiled = rekindle.script(program)
    x = torch.ones(1)
    for each in (compiled, through_archive(compiled)):
        assert torch.equal(each(x, None, None), x)
        with fake_cuda() as cuda:
            assert torch.equal(each(x, cuda.Stream(1), cuda.Event()), x + 1)
            assert cuda.calls[1:] == ["record 1.1", "wait 1.1"]
        with pytest.raises(TypeError):
            each(x, 3, None)


def makes(device: int):
    return torch.cuda.Stream(device), torch.cuda.Event(), torch.cuda.current_stream(device)


def test_streams_and_events_are_results() -> None:
    compiled = rekindle.script(makes)
    with fake_cuda():
        stream, event, current = compiled(1)
    assert isinstance(stream, torch.cuda.Stream)
    assert isinstance(event, torch.cuda.Event)
    assert (stream.device_index, current.stream_id) == (1, 0)


def compares(s: torch.cuda.Stream):
    current = torch.cuda.current_stream()
    return current == s, current != s, s == s


def test_streams_are_compared() -> None:
    compiled = rekindle.script(compares)
    with fake_cuda() as cuda:
        for stream in (cuda.Stream(), cuda.current_stream()):
            assert compiled(stream) == compares(stream)


class Holder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stream: torch.cuda.Stream | None = None

    def forward(self, x: Tensor) -> Tensor:
        with torch.cuda.stream(self.stream):
            return x + 1


def test_a_module_may_hold_a_stream() -> None:
    module = Holder()
    compiled = rekindle.script(module)
    assert torch.equal(compiled(torch.ones(1)), torch.ones(1) + 1)
    with fake_cuda() as cuda:
        compiled.stream = cuda.Stream()
        compiled(torch.ones(1))
        assert cuda.calls == ["set_stream 0.1", "set_stream 0.0"]
        with pytest.raises(rekindle.errors.SaveError, match="archives cannot hold"):
            rekindle.save(compiled, io.BytesIO())
    compiled.stream = None
    assert torch.equal(through_archive(compiled)(torch.ones(1)), torch.ones(1) + 1)


# ------------------------------------------------------------------------------------------------------------ archives


def priority(s: torch.cuda.Stream):
    return s.priority


@pytest.mark.parametrize(
    ("program", "what"),
    [(queries, "cuda_empty_cache"), (initialized, "cuda_is_initialized"), (priority, "priority")],
)
def test_what_torchscript_lacks_is_not_saved(program: Callable[..., Any], what: str) -> None:
    with pytest.raises(rekindle.errors.SaveError, match=f"'{what}' cannot be saved: TorchScript has nothing to say"):
        rekindle.save(rekindle.script(program), io.BytesIO())


def test_archives_name_torchscripts_operators(tmp_path: Path) -> None:
    """The file was written by torch.jit.save of PyTorch 2.13, with a stand-in for the classes of C++."""
    module = rekindle.load(Path(__file__).parents[1] / "archive" / "cuda" / "streams.pt")
    module.save(tmp_path / "again.pt")
    again = rekindle.load(tmp_path / "again.pt")
    assert again.code == module.code
    x = torch.ones(2)
    for each in (module, again):
        for _ in range(3):
            with fake_cuda() as cuda:
                y, inside, elapsed, count, stream_is_done, event_is_done, device = each(x)
                assert y.tolist() == [6.0, 6.0]
                assert (inside, elapsed, count) == (True, 1.5, 2)
                assert (stream_is_done, event_is_done, device) == (False, True, torch.device("cuda:0"))
                assert cuda.calls == CALLS
    if NO_GPU:
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            module(x)


OLD = """
def forward(x: Tensor) -> Tuple[Tensor, int]:
  s = __torch__.torch.classes.cuda.Stream.__new__(__torch__.torch.classes.cuda.Stream)
  _0 = (s).__init__(1, 0, )
  ops.cuda.set_stream(s)
  return (torch.add(x, 1), (s).device_index())
"""


def test_archives_of_earlier_releases_give_the_index_of_a_device() -> None:
    text = Source(OLD, "code/__torch__.py")
    importer = SourceImporter(lambda qualifier: text if qualifier == "__torch__" else None)
    function = importer.load_type("__torch__.forward")
    assert isinstance(function, FunctionType)
    with fake_cuda() as cuda:
        found = call_record(function.function, (torch.ones(1),), {})
        assert (found[1], cuda.calls) == (1, ["set_stream 1.1"])


CALLS = [
    *("event True False False", "event True False False", "record 0.0", "set_stream 0.1", "record 0.1"),
    *("set_stream 0.0", "wait_event 0.1", "wait_stream 0.0 0.1", "wait 0.1", "record 0.1", "synchronize event"),
    *("device 0", "device 0", "device 0", "device 0", "set_device 0", "synchronize 0", "synchronize 0"),
    *("synchronize 0", "synchronize 0.1"),
]

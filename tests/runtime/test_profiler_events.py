"""Kernels, fused groups and stages of compilation are events of ``torch.profiler``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import profile

import rekindle
from rekindle.codegen.compiled_kernels import kernel_name
from rekindle.codegen.llvm import recording_ir
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.settings import SETTINGS

FUSED = "rekindle::fused_mul_add_relu_sub"


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    before = rekindle.set_execution_strategy("native")
    yield
    rekindle.set_execution_strategy(before)


def chain(x):
    return (x * 2.0 + 1.0).relu() - x


def scalars(n: int):
    total = 0
    while n > 0:  # compiled on the first call: the number of iterations has no bound
        total += n % 7
        n -= 1
    return total


def events(run: Callable[[], Any]) -> dict[str, int]:
    """Return how often each event of this package is recorded while ``run`` runs."""
    with profile(acc_events=True) as recorded:  # without, PyTorch 2.11 warns
        run()
    return {each.key: each.count for each in recorded.key_averages() if each.key.startswith("rekindle::")}


def repeat(function: Callable[..., Any], *arguments: Any, times: int = 5) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            function(*arguments)

    return run


def test_kernels_of_native_plans_are_events() -> None:
    function, x = rekindle.script(chain), torch.randn(64)
    repeat(function, x)()
    assert events(repeat(function, x)) == {FUSED: 5}
    expected = chain(x)
    torch.testing.assert_close(function(x), expected)


def test_kernels_of_plans_in_python_are_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "native_plans", False)
    function, x = rekindle.script(chain), torch.randn(64)
    repeat(function, x)()
    assert events(repeat(function, x)) == {FUSED: 5}


def test_kernels_that_run_without_the_gil_are_events() -> None:
    function, x = rekindle.script(chain), torch.randn(1 << 16)
    repeat(function, x)()
    assert events(repeat(function, x)) == {FUSED: 5}


def test_kernels_of_backward_graphs_are_events() -> None:
    def step(x, y):
        return ((x * y + 1.0).tanh() * x.sigmoid()).sum()

    function, x = rekindle.script(step), torch.randn(64, requires_grad=True)
    y = torch.randn(64)

    def run() -> None:
        for _ in range(5):
            function(x, y).backward()

    run()
    counts = events(run)
    assert len(counts) == 2, counts
    assert set(counts.values()) == {5}


def test_kernels_with_packed_weights_are_events() -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    compiled, x = rekindle.optimize_for_inference(rekindle.script(net)), torch.randn(1, 3, 16, 16)
    repeat(compiled, x)()
    assert events(repeat(compiled, x)) == {"rekindle::packed_convolution": 5}


def test_loops_as_machine_code_are_events() -> None:
    function = rekindle.script(scalars)
    assert function(100) == scalars(100)
    assert events(repeat(function, 100)) == {"rekindle::native_region": 5}


def test_stages_are_events() -> None:
    def staged(x):
        return (x * 3.25 + 1.75).relu() - x

    counts = events(lambda: repeat(rekindle.script(staged), torch.randn(64))())
    names = {name.removeprefix("rekindle::").replace("<locals>.", "") for name in counts}
    assert {"pass inlining", "pass fuse_graph", "plan staged"} <= names
    assert [name.rpartition(".")[2] for name in names if name.startswith("emit ")] == ["staged"]
    assert [name.rpartition(".")[2] for name in names if name.startswith("optimize ")] == ["staged"]


def test_kernels_and_stages_are_on_a_track_of_the_trace(tmp_path: Path) -> None:
    """In a process of its own, and without the cache on disk: this one may have the kernel."""
    path = tmp_path / "program.py"
    path.write_text(
        "import torch, rekindle\n"
        "from torch.profiler import profile\n"
        "def chain(x):\n"
        "    return (x * 2.0 + 1.0).relu() - x\n"
        "with profile() as recorded:\n"
        "    function = rekindle.script(chain)\n"
        "    for _ in range(5):\n"
        "        function(torch.ones(64))\n"
        "recorded.export_chrome_trace('trace.json')\n",
        encoding="utf-8",
    )
    environment = {"REKINDLE_CACHE": "off", "PYTHONPATH": str(Path(rekindle.__file__).parents[1])}
    command = [sys.executable, str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    spans: dict[str, list[dict[str, Any]]] = {}
    for each in events:
        if each.get("ph") == "X":
            spans.setdefault(each["name"].removeprefix("rekindle::"), []).append(each)
    # Perfetto shows a track for each thread, on which an event is below the one that it is nested in.
    of_chain = ["emit chain", "optimize chain", "pass inlining", "pass fuse_graph", "plan chain", FUSED[10:]]
    of_chain += [f"compile {FUSED[10:]}", "LLVM", "aten::mul"]
    [track] = {(each["pid"], each["tid"]) for name in of_chain for each in spans[name]}
    of_track = [each for each in events if (each.get("pid"), each.get("tid")) == track]
    assert [each["args"]["name"] for each in of_track if each["name"] == "thread_name"]
    for inner, outer in {
        "pass inlining": "optimize chain",
        "pass fuse_graph": "optimize chain",
        "LLVM": f"compile {FUSED[10:]}",
    }.items():
        assert any(_is_within(a, b) for a in spans[inner] for b in spans[outer]), (inner, outer)
    [compiled], kernels = spans[f"compile {FUSED[10:]}"], spans[FUSED[10:]]
    assert all(compiled["ts"] + compiled["dur"] <= kernel["ts"] + 1 for kernel in kernels)


def _is_within(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    """Return whether an event is within another. Times are rounded, to a microsecond in older releases."""
    end_of_inner, end_of_outer = inner["ts"] + inner["dur"], outer["ts"] + outer["dur"]
    return bool(outer["ts"] <= inner["ts"] + 1 and end_of_inner <= end_of_outer + 1)


def test_names_are_those_of_operators() -> None:
    operators = "\n".join(f"  %{i + 1} : Tensor = aten::{'relu' if i % 2 else f'log{i}'}(%{i})" for i in range(40))
    graph = parse_graph(f"graph(%0 : Tensor):\n{operators}\n  return (%40)\n")
    assert kernel_name(graph).startswith("fused_log0_relu_log2_log4_")
    assert kernel_name(graph).endswith("_etc")
    assert len(kernel_name(graph)) <= 90


def test_without_the_functions_of_pytorch_kernels_run_unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "aoti_record_function_start" in recording_ir.recording_text()
    monkeypatch.setattr(recording_ir, "find", lambda name: None)
    assert "aoti_record_function_start" not in recording_ir.recording_text()

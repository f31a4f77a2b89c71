"""What is noted of the tensors that flow through a program."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Optional

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import NONE
from rekindle.ir.verifier import verify
from rekindle.ops.tensor.profiling import recorders
from rekindle.passes import Inlining
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.strategies.profiling import ProfilingRecord, TensorProfile, profiled_runs


def recording_of(function: object) -> ProfilingRecord:
    graph = rekindle.script(function).graph.copy()
    Inlining().run(graph)
    return ProfilingRecord(graph)


def run(recording: ProfilingRecord, *arguments: object) -> object:
    return InterpreterState(Code(recording.graph, "f")).run(arguments)


def profiles(graph: Graph) -> list[str]:
    """For each profiled value the kind of its user, and the recorded type."""
    verify(graph)
    return [
        f"{node.output.uses[0].user.kind} {node.attributes.get('profiled_type')}"
        for node in graph.find_nodes("prim::profile")
    ]


def layer(x: Tensor, weight: Tensor) -> Tensor:
    return torch.relu(x @ weight)


def test_what_one_run_tells() -> None:
    recording = recording_of(layer)
    run(recording, torch.ones(2, 3), torch.ones(3, 4, requires_grad=True))
    assert profiles(recording.finish()) == [
        "aten::matmul Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
        "aten::matmul Float(3, 4, strides=[4, 1], requires_grad=1, device=cpu)",
        "aten::relu Float(2, 4, strides=[4, 1], requires_grad=1, device=cpu)",
    ]


def test_several_runs_tell_what_is_true_of_all() -> None:
    recording = recording_of(layer)
    for rows, dtype in ((2, torch.float32), (5, torch.float32), (7, torch.float64)):
        run(recording, torch.ones(rows, 3, dtype=dtype), torch.ones(3, 4, dtype=dtype))
    assert profiles(recording.finish()) == [
        "aten::matmul Tensor(*, 3, strides=[3, 1], requires_grad=0, device=cpu)",
        "aten::matmul Tensor(3, 4, strides=[4, 1], requires_grad=0, device=cpu)",
        "aten::relu Tensor(*, 4, strides=[4, 1], requires_grad=0, device=cpu)",
    ]


def grows(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.cat([x, x.neg()])
    if n > 5:
        x = x.exp()
    return x


def test_loops_and_branches() -> None:
    """A dimension that changes from iteration to iteration is unknown; of code that never ran nothing is recorded."""
    recording = recording_of(grows)
    assert run(recording, torch.ones(1, 2), 3).shape == (8, 2)  # type: ignore[attr-defined]
    assert profiles(recording.finish()) == [
        "aten::neg Float(*, 2, strides=[2, 1], requires_grad=0, device=cpu)",
        "aten::exp None",
    ]


def biased(x: Tensor, bias: Optional[Tensor]) -> Tensor:
    return x if bias is None else x + bias


@pytest.mark.parametrize(
    ("biases", "told"),
    [
        ([None, None], "NoneType"),
        ([torch.ones(2), torch.ones(3)], "Float(*, strides=[1], requires_grad=0, device=cpu)"),
        ([torch.ones(2), None], "None"),
    ],
)
def test_what_may_be_none(biases: list[Optional[Tensor]], told: str) -> None:
    recording = recording_of(biased)
    for bias in biases:
        run(recording, torch.ones(1), bias)
    assert profiles(recording.finish())[0] == f"aten::__is__ {told}"


class Tagged(Tensor):
    pass


def test_strangers_tell_nothing() -> None:
    """Tensors of subclasses may answer as they please, and sparse ones have no strides."""
    for stranger in (torch.ones(2, 2).as_subclass(Tagged), torch.ones(2, 2).to_sparse()):
        record = TensorProfile()
        record.note(torch.ones(2, 2))
        assert record.merged_type is not None
        record.note(stranger)
        assert (record.merged_type, record.seen, record.opaque_tensors) == (None, 2, 1)


def test_contiguity() -> None:
    record = TensorProfile()
    record.note(torch.ones(2, 3))
    record.note(torch.ones(3, 2).t())
    record.note(torch.nn.Parameter(torch.ones(2, 3)))
    assert str(record.merged_type) == "Float(2, 3, device=cpu)"
    assert (record.seen, record.contiguous, record.nones) == (3, 2, 0)
    record = TensorProfile()
    record.note(None)
    assert (record.merged_type, record.nones) == (NONE, 1)


def test_threads_note_side_by_side() -> None:
    recording = recording_of(layer)
    code = Code(recording.graph, "layer")
    weight = torch.ones(3, 4)

    def call(rows: int) -> None:
        InterpreterState(code).run((torch.ones(rows, 3), weight))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(200)))
    assert [record.seen for record in recording.records.values()] == [200, 200, 200]
    assert profiles(recording.finish())[0] == ("aten::matmul Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu)")


def test_nobody_watches_a_graph_that_was_read() -> None:
    graph = parse_graph("graph(%x : Tensor):\n  %y : Tensor = prim::profile(%x)\n  return (%y)\n")
    x = torch.ones(2)
    assert InterpreterState(Code(graph, "f")).run((x,)) is x


def test_recordings_die_with_what_runs_them() -> None:
    recording = recording_of(layer)
    run(recording, torch.ones(2, 3), torch.ones(3, 4))
    graph = weakref.ref(recording.finish())
    assert graph() in recorders
    del recording
    gc.collect()
    assert graph() is None


def test_how_many_runs_are_watched() -> None:
    assert profiled_runs() == 1
    assert rekindle.set_profiled_runs(3) == 1
    assert profiled_runs() == 3
    assert rekindle.set_profiled_runs(1) == 3
    with pytest.raises(ValueError, match=r"^at least one call has to be watched, not 0$"):
        rekindle.set_profiled_runs(0)

"""What the benchmarks time: every workload gives eager's answer here, and so does its version by hand."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import torch

from benchmarks.execution import geometric_mean, interleaved, peak_memory
from benchmarks.peers import eager, ours
from benchmarks.plots import lines
from benchmarks.workloads import WORKLOADS, Workload

SMALL = [workload for workload in WORKLOADS if "million" not in workload.name]


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name)
def test_workloads_give_the_answers_of_eager(workload: Workload) -> None:
    torch.manual_seed(0)
    case = workload.make()
    with torch.no_grad():
        expected = eager(case)(*case.arguments)
        compiled = ours(case)
        for _ in range(3):
            torch.testing.assert_close(compiled(*case.arguments), expected)
        if case.by_hand is not None:
            torch.testing.assert_close(case.by_hand(*case.arguments), expected)


def test_the_names_of_workloads_are_their_own() -> None:
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)


def test_calls_are_timed_in_turns() -> None:
    order: list[str] = []
    times = interleaved([lambda: order.append("a"), lambda: order.append("b")], rounds=2, slice=0.0)

    assert order[-4:] == ["a", "b", "a", "b"]
    assert [len(found) for found in times] == [2, 2]


def test_memory_is_what_tensors_take_at_most() -> None:
    x = torch.zeros(1000)

    assert peak_memory(lambda: x + x) == 4000
    assert peak_memory(lambda: (x + x) + (x + x)) == 12000
    assert peak_memory(lambda: ((x + x) + x) + x) == 8000


def test_means_of_ratios_are_geometric() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_pictures_are_well_formed() -> None:
    text = lines("Time", "nodes", "seconds", {"a": [(1, 0.5), (1900, 3.1)], "b": [(10, 1.0), (1900, 3.0)]})
    picture = ElementTree.fromstring(text)

    words = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert words[:1] == ["Time"]
    assert "2,000" in words
    assert "4" in words
    assert words[-2:] == ["a", "b"]
    heights = [
        float(element.get("y", "nan")) for element in list(picture.iter("{http://www.w3.org/2000/svg}text"))[-2:]
    ]
    assert abs(heights[0] - heights[1]) >= 15

"""What the benchmarks time: every workload gives eager's answer here, and so does its version by hand."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import rekindle
from benchmarks import baseline, kernels, numeric_loops, page
from benchmarks.__main__ import main
from benchmarks.execution import Row, Timed, geometric_mean, interleaved, peak_memory
from benchmarks.peers import PEERS, Unavailable, eager, ours
from benchmarks.plots import lines, ratios
from benchmarks.workloads import KERNELS, WORKLOADS, Case, Workload

KNOWN = {workload.name for workload in WORKLOADS}
SMALL = [
    *(workload for workload in WORKLOADS if "million" not in workload.name),
    *(workload for workload in KERNELS if "million" not in workload.name and workload.name not in KNOWN),
]


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


@pytest.mark.parametrize("name", numeric_loops.PROGRAMS)
def test_numeric_loops_give_the_answers_of_python(name: str) -> None:
    program, arguments = numeric_loops.PROGRAMS[name]
    compiled = rekindle.script(program)
    for _ in range(2):
        assert compiled(*arguments) == program(*arguments)
    assert rekindle.report(compiled).versions[0].regions, "the loops are machine code"


def test_the_names_of_workloads_are_their_own() -> None:
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)
    assert len({workload.name for workload in KERNELS}) == len(KERNELS)


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


def row(what: str, **ours_of_it: float) -> Row:
    peers = {name: Timed(ours_of_it=ratio) for name, ratio in ours_of_it.items()}
    return Row(what, {"rekindle": Timed(ours_of_it=1.0), **peers})


def test_what_grew_beyond_the_baseline_is_a_regression(tmp_path: Path) -> None:
    path = tmp_path / "results" / "kernels.json"
    baseline.save([row("a", eager=0.5, inductor=0.8), row("b", eager=1.0)], {"torch": "2"}, path)
    baseline.save([row("a", eager=0.4)], {"torch": "2"}, path)
    assert baseline.load(path) == {"a": {"eager": 0.4, "inductor": 0.8}, "b": {"eager": 1.0}}

    now = baseline.ratios_of([row("a", eager=0.49, inductor=1.01), row("b", eager=math.nan), row("new", eager=9.0)])
    assert [str(each) for each in baseline.regressions(now, baseline.load(path))] == [
        "a: 1.01 times inductor's time, and it was 0.80 times"
    ]


def test_there_is_nothing_to_check_without_a_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(baseline, "PATH", tmp_path / "none.json")
    with pytest.raises(SystemExit):
        main(["--only", "kernels", "--check"])
    assert "error: there is no baseline to compare with; --save makes one: " in capsys.readouterr().err


def test_aims_are_told_for_what_ran() -> None:
    rows = [row(kernels.CELL.name, eager=0.25, inductor=0.3)]
    assert kernels.aims_table(rows)[1:] == [
        ["LSTM cell, 1×32", "eager", "0.33", "0.25", "met"],
        ["LSTM cell, 1×32", "inductor", "0.25", "0.30", "missed: 1.20 times as long"],
    ]


def test_every_aim_is_of_a_workload_and_a_peer_that_there_are() -> None:
    assert {aim.workload for aim in kernels.AIMS} <= set(KERNELS)
    assert {aim.peer for aim in kernels.AIMS} <= set(PEERS)


def test_inductor_is_for_programs_with_tensors() -> None:
    with pytest.raises(Unavailable, match="compiles operators on tensors, and there are none here"):
        PEERS["inductor"](Case(abs, (1,)))


def test_a_picture_by_decades() -> None:
    text = lines("Speed", "elements", "GB/s", {"a": [(100, 1.0), (1e8, 3.0)]}, by_decades=True)
    words = [element.text for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert [word for word in words if word and word.startswith("1") and "," in word] == [
        *("1,000", "10,000", "100,000", "1,000,000", "10,000,000", "100,000,000")
    ]


def test_a_picture_of_ratios() -> None:
    text = ratios("Ratios", "time", {"a < b": {"eager": 0.1, "torch.jit": 2.0}, "c": {"eager": 1.0}})
    picture = ElementTree.fromstring(text)
    places = {
        title.text: float(circle.attrib["cx"])
        for circle in picture.iter()
        for title in circle
        if circle.tag.endswith("circle")
    }
    assert list(places) == ["a < b, eager: 0.10", "a < b, torch.jit: 2.00", "c, eager: 1.00"]
    (line,) = [each for each in picture.iter() if each.attrib.get("stroke") == "#666666"]
    assert places["a < b, eager: 0.10"] < places["c, eager: 1.00"] == float(line.attrib["x1"])
    assert places["a < b, torch.jit: 2.00"] > places["c, eager: 1.00"]


def test_the_page_of_benchmarks_has_the_results() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.render(), "make pages"
    for name, svg in page.plots():
        assert (page.PLOTS / name).read_text(encoding="utf-8") == svg, "make pages"

"""``rekindle.measure``: the times of nodes. Nothing here asks how long anything took."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import ArgumentError


@pytest.fixture(autouse=True)
def _simple() -> Iterator[None]:
    before = rekindle.set_execution_strategy("simple")
    yield
    rekindle.set_execution_strategy(before)


def halved(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x.mul_(0.5)
    return x.exp()


def test_each_node_with_its_runs_and_its_line() -> None:
    x = torch.ones(3)
    measured = rekindle.measure(halved, x, 3)
    assert x.tolist() == [1.0, 1.0, 1.0]  # calls have copies
    runs = {each.operator.kind: each.runs for each in measured.nodes}
    assert runs["aten::mul_"] == 3
    assert runs["aten::exp"] == 1
    first = halved.__code__.co_firstlineno
    lines = {each.operator.kind: each.operator.line for each in measured.nodes}
    assert (lines["aten::mul_"], lines["aten::exp"]) == (first + 2, first + 3)
    seconds = [each.seconds for each in measured.nodes]
    assert seconds == sorted(seconds, reverse=True)
    assert measured.seconds == sum(seconds)
    assert min(seconds) >= 0


def test_the_text() -> None:
    lines = str(rekindle.measure(halved, torch.ones(3), 3)).splitlines()
    assert re.fullmatch(r"halved: [0-9.]+ (µs|ms) in \d+ nodes, medians of 20 calls", lines[0])
    line = halved.__code__.co_firstlineno + 2
    pattern = rf" +[0-9.]+ (µs|ms) +\d+ %  aten::mul_, 3 runs  test_measure.py:{line}"
    assert any(re.fullmatch(pattern, each) for each in lines), lines


def test_the_page_has_the_times() -> None:
    page = rekindle.measure(halved, torch.ones(3), 3).show()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.html, re.DOTALL)
    assert found is not None
    first, *_, last = json.loads(found[1])["stages"]
    assert last["name"] == "version 1: what calls run"
    assert any("u" in box for box in last["root"]["c"])
    assert not any("u" in box for box in first["root"]["c"])


def test_calls_count_as_one_node() -> None:
    def caller(x: Tensor) -> Tensor:
        return recursive(x, 3)

    measured = rekindle.measure(caller, torch.ones(2))
    assert [each.runs for each in measured.nodes if each.operator.kind == "prim::CallFunction"] == [1]


def recursive(x: Tensor, n: int) -> Tensor:
    if n == 0:
        return x
    return recursive(x * 2, n - 1)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError):
        rekindle.measure(halved, torch.ones(3))


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Showing(nn.Module):
    @rekindle.export
    def show(self, x: Tensor) -> Tensor:
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        return self.show(x)


def test_programs_show_and_measure_themselves() -> None:
    function, module = rekindle.script(halved), rekindle.script(Scaled())
    x = torch.ones(2)
    assert function.show(x, 2).html == rekindle.show(function, x, 2).html
    assert module.show(x).html == rekindle.show(module, x).html
    assert module.measure(x).nodes[0].operator.kind == "aten::mul"
    assert function._repr_html_().startswith('<iframe title="graph"')
    torch.testing.assert_close(rekindle.script(Showing()).show(x), x + 1)  # a method of its own comes first

"""Estimates of the number of nodes that a call executes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.analysis.work_estimate import WorkEstimate
from rekindle.ir.control_flow import LoopView


class Loops(nn.Module):
    """Each loop is named by the number of its iterations for the arguments of the test."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 6
        self.items = [1, 2, 3]

    def forward(self, x: Tensor, n: int, xs: list[int]) -> int:
        rows, columns = x.shape
        total = 0
        for i in range(n):  # 11
            total += i
        for i in range(x.shape[1]):  # 5
            total += i
        for i in range(1, rows, 2):  # 1
            total += i
        for i in range(columns * 2 - 1):  # 9
            total += i
        for i in range(self.count):  # 6
            total += i
        for item in xs:  # 4
            total += item
        for item, other in zip(xs, self.items):  # 3
            total += item * other
        for i in range(len(xs) // 2):  # 2
            total += i
        for i in range(n):  # 11
            if total > 100:
                break
        for i in range(int(x.sum())):  # unknown
            total += i
        for value in [0] * n:  # unknown
            total += value
        while total > 5:  # unknown
            total -= 3
        return total


def estimated(arguments: tuple[Any, ...]) -> list[int | str]:
    module = rekindle.script(Loops())
    graph = module.graph
    estimate = WorkEstimate.of_call(graph, (module, *arguments), assumed_trips=1000)
    found: list[int | str] = []
    for node in graph.nodes:
        if node.kind == "prim::Loop":
            trips, rest = divmod(estimate.node(node) - 1, estimate.iteration(LoopView(node)))
            assert rest == 0
            found.append("unknown" if trips == 1000 else trips)
    return found


def test_trip_counts_follow_from_the_arguments() -> None:
    found = estimated((torch.ones(3, 5), 11, [1, 2, 3, 4]))
    assert found == [11, 5, 1, 9, 6, 4, 3, 2, 11, "unknown", "unknown", "unknown"]


class Listed(list[int]):
    """A list that may do anything when it is read."""

    def __len__(self) -> int:
        raise AssertionError("it was read")


def test_values_of_other_classes_are_not_read() -> None:
    found = estimated((torch.ones(3, 5), 11, Listed([1])))
    assert found == [11, 5, 1, 9, 6, "unknown", "unknown", "unknown", 11, "unknown", "unknown", "unknown"]


def test_under_a_function_mode_nothing_is_read() -> None:
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            pytest.fail("it was read")

    module = rekindle.script(Loops())
    arguments = module, torch.ones(3, 5), 11, [1]
    with Mode():
        estimate = WorkEstimate.of_call(module.graph, arguments, assumed_trips=1000)
        assert estimate.nodes(module.graph.nodes) > 12_000


def test_the_larger_branch_and_called_functions_count() -> None:
    def callee(x: Tensor) -> Tensor:
        return x + 1 + 2 + 3

    def caller(x: Tensor, flag: bool) -> Tensor:
        return callee(x) if flag else x + 1

    def straight(x: Tensor) -> Tensor:
        return callee(x)

    counts = []
    for function in (callee, straight, caller):
        graph = rekindle.script(function).graph
        counts.append(WorkEstimate(1).nodes(graph.nodes))
    assert counts == [3, 4, 5]

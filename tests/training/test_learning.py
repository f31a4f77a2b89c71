"""The three models of ``python -m benchmarks --only learning``, for a few steps: the same losses as eager's."""

from __future__ import annotations

import pytest
import torch

from benchmarks.learning import LESSONS, Lesson, Row, curves, lesson_row, table


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name.replace(" ", "_"))
def test_same_losses(lesson: Lesson) -> None:
    row = lesson_row(lesson, steps=6, dtype=torch.float64)
    torch.testing.assert_close(row.ours, row.eager, rtol=1e-9, atol=1e-9)


def test_losses_are_drawn_as_means_of_a_few_steps() -> None:
    row = Row("model", [2.0, 1.0, 0.5, 0.5], [2.0, 1.0, 0.5, 0.4])
    assert row.difference == pytest.approx(0.05)
    assert curves([row], every=2) == {
        "model, eager": [(1.0, 0.75), (3.0, 0.25)],
        "model, rekindle": [(1.0, 0.75), (3.0, pytest.approx(0.225))],
    }
    assert table([row])[1] == ["model", "2.0000", "0.500000", "0.400000", "5.0e-02"]

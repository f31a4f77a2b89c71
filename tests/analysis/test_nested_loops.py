"""Analyses that repeat a loop until what they know of it is stable: a loop in a loop continues from what was known in
the iteration before, so that the work is polynomial in the depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rekindle
from rekindle.analysis.type_propagation import _Propagation
from rekindle.autodiff.reverse_mode.control_flow import _LoopBackward
from rekindle.frontend.ssa.assignedness import _Flow


def _indented(levels: list[list[str]]) -> str:
    return "".join("    " * (depth + 1) + line + "\n" for depth, lines in enumerate(levels) for line in lines)


def gradients_that_feed_each_other(depth: int) -> str:
    loops = [[f"for i{d} in range(n):", f"    a{d} = a{(d + 1) % depth} * 0.5"] for d in range(depth)]
    starts = _indented([[f"a{d} = x + {d}" for d in range(depth)]])
    return starts + _indented(loops) + _indented([["return " + " + ".join(f"a{d}" for d in range(depth))]])


def ranks_that_change(depth: int) -> str:
    loops = [[f"a{d} = x.sum(0)", f"for i{d} in range(n):", f"    a{d} = a{d}.unsqueeze(0)"] for d in range(depth)]
    inmost = [
        "q = q + " + " + ".join(f"a{d}" for d in range(depth)),
        "if a0.dim() == 2 and q.dim() == 3:",
        "    q = q * 2",
    ]
    return _indented([["q = x"]]) + _indented([*loops, inmost]) + _indented([["return q"]])


def variables_that_are_deleted(depth: int) -> str:
    loops = [
        [f"a{d} = x", f"for i{d} in range(n):", f"    if n > 3 + i{d}:", f"        del a{d}"] for d in range(depth)
    ]
    return _indented([*loops, ["x = x * 0.9 + i0"]]) + _indented([["return x"]])


@pytest.mark.parametrize(
    ("program", "owner", "method"),
    [
        (gradients_that_feed_each_other, _LoopBackward, "_build"),
        (ranks_that_change, _Propagation, "visit_loop"),
        (variables_that_are_deleted, _Flow, "_loop"),
    ],
)
def test_the_work_is_polynomial_in_the_depth(
    program: Callable[[int], str], owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = 0
    visit = getattr(owner, method)

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal visits
        visits += 1
        return visit(self, *arguments)

    monkeypatch.setattr(owner, method, counted)
    counts = []
    for depth in (5, 10):
        source = f"def f(x: Tensor, n: int):\n{program(depth)}"
        names: dict[str, Any] = {"Tensor": torch.Tensor}
        exec(source, names)
        visits = 0
        compiled = rekindle.CompilationUnit(source).f
        x = torch.rand(4, requires_grad=owner is _LoopBackward)
        expected = names["f"](x, 1)
        for _ in range(3):
            found = compiled(x, 1)
            torch.testing.assert_close(found, expected)
            if x.requires_grad:
                ours, eager = (torch.autograd.grad(each.sum(), x, retain_graph=True) for each in (found, expected))
                torch.testing.assert_close(ours, eager)
        counts.append(visits)
    assert 0 < counts[1] <= 8 * counts[0], counts

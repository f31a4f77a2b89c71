"""Programs that write through views and containers: every way of executing them is eager's, gradients too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings, strategies as st
from torch import Tensor

import rekindle
from tests.differential.arguments import Arguments
from tests.differential.calls import Effects, assert_same_effects, call
from tests.differential.ways import REFERENCE, WAYS, Way, forget_plans
from tests.property.test_programs import load, unload
from tests.property.view_programs import view_programs
from tests.support.shares import portion


def _arguments(choice: int, requires_grad: bool, shares: bool) -> Arguments:
    """What a call takes, the same for the same choice; with ``shares``, some of the tensors are one memory."""
    generator = torch.Generator().manual_seed(choice)
    behind: list[Tensor] = []

    def tensor(*shape: int) -> Tensor:
        leaf = torch.randn(shape, generator=generator).requires_grad_(requires_grad)
        behind.append(leaf)
        return leaf.clone() if requires_grad else leaf

    m0, t0, t1 = tensor(4, 4), tensor(4), tensor(4)
    m1, w0, d0 = tensor(4, 4), [tensor(4), tensor(4)], {"a": tensor(4), "b": tensor(4)}
    if shares:
        t0, m1, w0[1], d0["a"] = m0[2], m0.t(), w0[0], t1
    return Arguments((choice % 5, choice * 0.25 - 1, choice % 2 == 0, t0, t1, m0, m1, [choice, 2], w0, d0), {}, behind)


CALLS = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), min_size=2, max_size=4)


@pytest.mark.parametrize("way", [REFERENCE, *WAYS], ids=str)
@settings(max_examples=portion(25), suppress_health_check=list(HealthCheck))
@given(text=view_programs(), calls=CALLS)
def test_scripted_is_eager(
    tmp_path_factory: pytest.TempPathFactory, way: Way, text: str, calls: list[tuple[int, bool, bool]]
) -> None:
    note(text)
    module = load(text, tmp_path_factory.getbasetemp())
    try:
        eager, compiled = module.Program(), rekindle.script(module.Program())
        forget_plans(compiled)
        with way.entered():
            for choice, requires_grad, shares in calls:
                note(f"forward(*_arguments({choice}, {requires_grad}, {shares}))")
                found = _effects(compiled, _arguments(choice, requires_grad, shares))
                expected = _effects(eager, _arguments(choice, requires_grad, shares))
                for ours, theirs in zip(found, expected, strict=True):
                    assert_same_effects(ours, theirs, "forward")
                _cut(eager)
                _cut(compiled)
    finally:
        unload(module)


def _effects(module: Any, arguments: Arguments) -> tuple[Effects, Effects]:
    """Of a call, and of a query of what the module keeps, which shows whose memory that is."""
    called = call(module, arguments)
    kept = call(module.kept, Arguments((), {}, [*arguments.behind, *_tensors(arguments)]))
    return called, kept


def _tensors(arguments: Arguments) -> list[Tensor]:
    return [value for value in arguments.positional if isinstance(value, Tensor)]


def _cut(module: Any) -> None:
    """What the module keeps from the last call has a history that was released: the next call starts a new one."""
    module.t, module.m = module.t.detach(), module.m.detach()
    module.w = [tensor.detach() for tensor in module.w]

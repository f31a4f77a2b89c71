"""``torch.compile(model, backend="rekindle")`` beside eager: results, gradients, statistics, other sizes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import rekindle
from tests.importing.models import MODELS


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def check(name: str, sizes: tuple[int, ...], inference: bool = False) -> None:
    """Hold a compiled model to the same one as Python runs it. From the second size on, the first dimension is
    dynamic."""
    subject = MODELS[name]
    eager = subject.make()
    ours = copy.deepcopy(eager)
    compiled = torch.compile(ours, backend=rekindle.backend)
    for size in sizes:
        inputs = subject.inputs(size)
        torch.testing.assert_close(step(compiled, inputs), step(eager, inputs), rtol=1e-4, atol=1e-5)
    for own, other in zip(ours.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(own, other)
    if inference:
        with torch.no_grad():
            inputs = subject.inputs(4)
            torch.manual_seed(7)
            wanted = eager.eval()(*inputs)
            torch.manual_seed(7)
            torch.testing.assert_close(compiled.eval()(*inputs), wanted, rtol=1e-4, atol=1e-5)


def step(model: Any, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """The results of a call and the gradients of all that takes part."""
    given = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    torch.manual_seed(7)
    results = tree_leaves(model(*given))
    torch.stack([result.square().mean() for result in results]).sum().backward()
    gradients = [x.grad for x in (*given, *model.parameters()) if x.grad is not None]
    model.zero_grad()
    return [result.detach() for result in results] + gradients


@pytest.mark.parametrize("name", MODELS)
def test_training_steps_are_those_of_eager(name: str) -> None:
    check(name, sizes=(3,))


@pytest.mark.parametrize("name", MODELS)
def test_other_sizes_and_inference(name: str) -> None:
    check(name, sizes=(3, 5), inference=True)

"""Models of ``transformers`` at full size, traced: their answers for other sizes, and what their archives hold.

Run by `make test-models` in an environment with the versions of `requirements-models.txt`; not by `make test`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.tracing.recording.recorder import TracerWarning
from tests.packages.architectures import ARCHITECTURES, Architecture

# PyTorch's own loader warns that it is deprecated, and so do libraries of what they use.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TRAINED = ("BERT base", "GPT-2", "ResNet 50", "ViT base")


def made(architecture: Architecture) -> torch.nn.Module:
    torch.manual_seed(0)
    model = architecture.make().eval()
    model.config.return_dict = False
    return model


def traced(model: torch.nn.Module, architecture: Architecture, *, check: bool = False) -> rekindle.ScriptModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)  # their texts are in the report
        program = rekindle.trace(model, architecture.example(), check_trace=check)
    assert isinstance(program, rekindle.ScriptModule)
    return program


def tensors(result: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples; transformers gives None for what was not asked for."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for item in result:
            yield from tensors(item)


def assert_same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(list(tensors(found)), list(tensors(expected)), rtol=1e-4, atol=1e-5)


def test_there_are_enough() -> None:
    assert len(ARCHITECTURES) >= 12
    assert len({architecture.name for architecture in ARCHITECTURES}) == len(ARCHITECTURES)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda architecture: architecture.name)
def test_trace_holds_for_other_sizes_and_in_archives(architecture: Architecture, tmp_path: Path) -> None:
    model = made(architecture)
    path = tmp_path / "model.pt"
    with torch.no_grad():
        program = traced(model, architecture)
        for inputs in (architecture.example(), *architecture.others()):
            assert_same(program(*inputs), model(*inputs))

        program.save(path)
        loaded, loaded_by_torch = rekindle.load(path), torch.jit.load(path)
        path.unlink()
        for inputs in (architecture.example(), architecture.others()[0]):
            expected = model(*inputs)
            assert_same(loaded(*inputs), expected)
            assert_same(loaded_by_torch(*inputs), expected)


@pytest.mark.parametrize("name", TRAINED)
def test_trace_in_training_mode_drops_the_same_and_gives_the_same_gradients(name: str) -> None:
    architecture = next(architecture for architecture in ARCHITECTURES if architecture.name == name)
    model = made(architecture).train()
    program = traced(model, architecture)
    assert dict(program.named_parameters()).keys() == dict(model.named_parameters()).keys()
    inputs = architecture.others()[0]
    start = {key: value.clone() for key, value in model.state_dict().items()}
    expected = step(model, model, inputs)
    model.load_state_dict(start)
    found = step(program, model, inputs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def step(run: torch.nn.Module, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
    """The gradients of all parameters of ``model``, and its buffers, after a step forward and one back."""
    model.zero_grad()
    torch.manual_seed(1)
    torch.stack([part.square().mean() for part in tensors(run(*inputs))]).sum().backward()
    gradients = {key: value.grad.clone() for key, value in model.named_parameters() if value.grad is not None}
    assert gradients
    return gradients | {key: value.clone() for key, value in model.named_buffers()}


def test_check_finds_nothing() -> None:
    """With the check, which records a second time and compares answers, nothing is warned of in BERT."""
    architecture = ARCHITECTURES[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", TracerWarning)
        program = rekindle.trace(made(architecture), architecture.example(), check_inputs=architecture.others())
    # A mask is made with dtype=torch.bool.
    assert [(fact.kind.value, fact.value) for fact in program.report] == [("dtype", "torch.bool")]

"""What people do around a step: clipping, scaling, accumulating, checkpoints, hooks, averages, frozen parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.utils.checkpoint import checkpoint

from tests.training.models import WAYS, Words, assert_trains_alike, batches

Train = Callable[[Any], list[float]]


def _plain(model: Any) -> list[float]:
    steps = torch.optim.AdamW([value for value in model.parameters() if value.requires_grad], lr=0.02)
    losses = []
    for x, target in batches(4):
        steps.zero_grad()
        loss = model(x, target)
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def _clipped_norm(model: Any) -> list[float]:
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    seen = []
    for x, target in batches(4):
        steps.zero_grad(set_to_none=False)
        model(x, target).backward()
        seen.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())
        steps.step()
    return seen


def _clipped_values(model: Any) -> list[float]:
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    seen = []
    for x, target in batches(4):
        steps.zero_grad()
        model(x, target).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        seen.append(nn.utils.get_total_norm([value.grad for value in model.parameters()]).item())
        steps.step()
    return seen


def _scaled(model: Any) -> list[float]:
    """Among the steps is one that the scaler leaves out, for a gradient of it is infinite."""
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    seen = []
    for index, (x, target) in enumerate(batches(6)):
        steps.zero_grad()
        loss = model(x, target) * (math.inf if index == 3 else 1.0)
        scaler.scale(loss).backward()
        scaler.unscale_(steps)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(steps)
        scaler.update()
        seen += [loss.item(), scaler.get_scale()]
    assert seen[7] < seen[5]
    return seen


def _accumulated(model: Any) -> list[float]:
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for index, (x, target) in enumerate(batches(6)):
        loss = model(x, target) / 3
        loss.backward()
        losses.append(loss.item())
        if index % 3 == 2:
            steps.step()
            steps.zero_grad()
    return losses


def _checkpointed(model: Any) -> list[float]:
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for x, target in batches(4):
        steps.zero_grad()
        loss = checkpoint(model, x, target, use_reentrant=False)
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def _stepping_in_backward(model: Any) -> list[float]:
    """Each parameter makes its step as soon as its gradient is there."""
    steps = {value: torch.optim.Adam([value], lr=0.02) for value in model.parameters()}

    def hook(value: Tensor) -> None:
        steps[value].step()
        steps[value].zero_grad()

    for value in model.parameters():
        value.register_post_accumulate_grad_hook(hook)
    losses = []
    for x, target in batches(4):
        loss = model(x, target)
        loss.backward()
        losses.append(loss.item())
    return losses


def _penalised(model: Any) -> list[float]:
    """Large gradients are a part of the loss: gradients of gradients."""
    steps = torch.optim.SGD(model.parameters(), lr=0.01)
    seen = []
    for x, target in batches(4):
        steps.zero_grad()
        loss = model(x, target)
        gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        penalty = torch.stack([gradient.square().sum() for gradient in gradients]).sum()
        (loss + penalty).backward()
        steps.step()
        seen += [loss.item(), penalty.item()]
    return seen


def _averaged(model: Any) -> list[float]:
    steps = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(steps, 0.5, total_steps=4)
    average = torch.optim.swa_utils.AveragedModel(model)
    seen = []
    for x, target in batches(4):
        steps.zero_grad()
        loss = model(x, target)
        loss.backward()
        steps.step()
        schedule.step()
        average.update_parameters(model)
        seen += [loss.item(), average(x, target).item()]
    return seen


def _frozen_and_thawed(model: Any) -> list[float]:
    losses = _plain(model)
    model.words.requires_grad_(False)
    losses += _plain(model)
    model.words.requires_grad_(True)
    model.last.weight.requires_grad_(False)
    return losses + _plain(model)


def _evaluated_between(model: Any) -> list[float]:
    losses = []
    for _ in range(2):
        model.train()
        losses += _plain(model)
        model.eval()
        with torch.no_grad():
            losses += [model(x, target).item() for x, target in batches(2)]
    return losses


def _restored(model: Any) -> list[float]:
    losses = _plain(model)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    losses += _plain(model)
    model.load_state_dict(state)
    return losses + _plain(model)


def _parameters_from_outside(model: Any) -> list[float]:
    parameters = {name: value.detach().requires_grad_() for name, value in model.named_parameters()}
    losses = []
    for x, target in batches(4):
        loss = functional_call(model, parameters, (x, target))
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        parameters = {
            name: (value - 0.1 * gradient).detach().requires_grad_()
            for (name, value), gradient in zip(parameters.items(), gradients, strict=True)
        }
        losses.append(loss.item())
    return losses


def _gradient_by_functorch(model: Any) -> list[float]:
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    seen = []
    for x, target in batches(4):
        gradients = grad(lambda own, x=x, target=target: functional_call(model, own, (x, target)))(parameters)
        parameters = {name: value - 0.1 * gradients[name] for name, value in parameters.items()}
        seen += [value.sum().item() for value in parameters.values()]
    return seen


def _saved_elsewhere(model: Any) -> list[float]:
    with torch.autograd.graph.save_on_cpu():
        return _plain(model)


HABITS: tuple[Train, ...] = (
    *(_clipped_norm, _clipped_values, _scaled, _accumulated, _checkpointed, _stepping_in_backward, _penalised),
    *(_averaged, _frozen_and_thawed, _evaluated_between, _restored, _parameters_from_outside),
    *(_gradient_by_functorch, _saved_elsewhere),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("train", HABITS, ids=lambda each: each.__name__.strip("_"))
def test_same_as_eager(train: Train, way: str) -> None:
    torch.manual_seed(12)
    # A trace keeps no dropout that can be turned off.
    assert_trains_alike(Words(dropout=0.3 if way == "script" else 0.0).double(), way, train)


def _autocast(model: Any) -> list[float]:
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    losses = []
    for x, target in batches(4):
        steps.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x, target)
        scaler.scale(loss).backward()
        scaler.step(steps)
        scaler.update()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("way", WAYS)
def test_autocast(way: str) -> None:
    torch.manual_seed(12)
    assert_trains_alike(Words(dropout=0.3 if way == "script" else 0.0), way, _autocast, rtol=1.6e-2, atol=1e-5)

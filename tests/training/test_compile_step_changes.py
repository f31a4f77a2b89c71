"""``compile_step`` beside PyTorch's own loop, where programs replace tensors and functions between steps, and where
steps fail."""

from __future__ import annotations

import copy
import pickle
import re
import types
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import rekindle
from rekindle.training.gradients import Clipping
from rekindle.training.optimizer_update import OptimizerUpdate
from tests.training.test_compile_step import Loop, assert_same, batches, net, state_of

# ---------------------------------------------------------------------------------------------------------- the model


def test_buffers_that_the_original_replaces() -> None:
    """``double()`` keeps parameters, and replaces buffers."""
    model, theirs = net(torch.float32), net(torch.float32)
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.1))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    for dtype in (torch.float32, torch.float64):
        model.to(dtype), theirs.to(dtype)
        for x, y in batches(2, dtype):
            assert_same(step(x, y), loop(x, y), 1e-5)
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer), 1e-5)


class Counting(nn.Module):
    """Replaces a buffer in each call."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(2, 3).double()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return self.out(x.mean((2, 3))) * self.calls


def test_buffers_that_the_program_replaces() -> None:
    model = Counting()
    theirs = copy.deepcopy(model)
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.1))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    for x, y in batches(3):
        assert_same(step(x, y), loop(x, y))
    assert model.calls == 3


def test_parameters_that_the_original_replaces() -> None:
    """As in eager, the model computes with the new ones, which the optimizer does not have."""
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.1))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    for index, (x, y) in enumerate(batches(4)):
        if index == 2:
            for each in (model, theirs):
                each.load_state_dict(copy.deepcopy(each.state_dict()), assign=True)
        assert_same(step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))


def test_hooks_of_the_compiled_model_and_of_the_loss() -> None:
    """They may be registered between steps."""
    model, loss, calls = nn.Linear(3, 1), nn.MSELoss(), []
    step = rekindle.compile_step(model, loss, torch.optim.SGD(model.parameters(), 0.1))
    x, y = torch.randn(4, 3).requires_grad_(), torch.randn(4, 1)
    step(x, y)
    forward = step.model.register_forward_hook(lambda *_: calls.append("forward"))
    step(x, y)
    forward.remove()
    backward = step.model.register_full_backward_hook(lambda *_: calls.append("backward"))
    step(x, y)
    backward.remove()
    step(x, y)
    assert calls == ["forward", "backward"]

    def doubled(module: nn.Module, inputs: tuple[Tensor, Tensor], result: Tensor) -> Tensor:
        return result * 2

    loss.register_forward_hook(doubled)
    again = rekindle.compile_step(model, loss, torch.optim.SGD(model.parameters(), 0.1))
    expected = F.mse_loss(model(x), y) * 2
    assert_same(again(x, y), expected.detach(), 1e-6)


def test_models_of_torch_compile_are_called() -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.Adam(theirs.parameters(), 0.01))
    compiled: Any = torch.compile(model, backend="eager")
    step = rekindle.compile_step(compiled, F.cross_entropy, torch.optim.Adam(model.parameters(), 0.01))
    for x, y in batches(3):
        assert_same(step(x, y), loop(x, y))
    assert step.model is compiled
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))


class Batch(NamedTuple):
    x: Tensor
    mask: Tensor


class OfBatches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 1)

    def forward(self, batch: Batch) -> Tensor:
        return self.out(batch.x) * batch.mask


def test_named_tuples_are_one_argument() -> None:
    model = OfBatches()
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    batch, y = Batch(torch.randn(4, 3), torch.ones(4, 1)), torch.randn(4, 1)
    expected = F.mse_loss(model(batch), y)
    assert_same(step(batch, y), expected.detach(), 1e-6)


# ------------------------------------------------------------------------------------------------------- the optimizer


def _signed_step(self: torch.optim.Optimizer, closure: Any = None) -> None:
    with torch.no_grad():
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad.sign(), alpha=group["lr"])


def test_a_replaced_method_step_under_a_schedule() -> None:
    """Schedulers wrap the method that they find."""
    model, theirs = net(), net()
    optimizers = [torch.optim.SGD(each.parameters(), 0.01) for each in (model, theirs)]
    for each in optimizers:
        vars(each)["step"] = types.MethodType(_signed_step, each)
        torch.optim.lr_scheduler.StepLR(each, 10)
    step, loop = rekindle.compile_step(model, F.cross_entropy, optimizers[0]), Loop(theirs, optimizers[1])
    for x, y in batches(3):
        assert_same(step(x, y), loop(x, y))
    assert step.fallbacks == {"the method step of the optimizer was replaced": 3}


def test_gradients_that_are_lazily_negated() -> None:
    first, second = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    first.grad = torch._neg_view(torch.tensor([1.0, 2.0, 3.0]))
    second.grad = -torch.tensor([1.0, 2.0, 3.0])
    OptimizerUpdate(torch.optim.SGD([first], 0.1), Clipping(max_value=2.0), None).step()
    nn.utils.clip_grad_value_([second], 2.0)
    torch.optim.SGD([second], 0.1).step()
    assert_same(first, second, 1e-6)


def test_norms_do_not_depend_on_the_default_device() -> None:
    parameter = nn.Parameter(torch.ones(4))
    update = OptimizerUpdate(torch.optim.SGD([parameter], 0.1), Clipping(max_norm=1.0), None)
    parameter.grad = torch.ones(4)
    with torch.device("meta"):
        update.step()
    assert update.gradient_norm == 2.0


def test_an_update_that_raises() -> None:
    """The gradients of the call that failed do not enter the next update."""
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.1))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))

    def fail(*arguments: Any) -> None:
        raise RuntimeError("stop")

    for index, (x, y) in enumerate(batches(4)):
        if index == 2:
            handles = [each.optimizer.register_step_pre_hook(fail) for each in (step, loop)]
            for run in (step, loop):
                with pytest.raises(RuntimeError, match=r"^stop$"):
                    run(x, y)
            for each in handles:
                each.remove()
        else:
            assert_same(step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))


@pytest.mark.parametrize("scaled", [False, True])
def test_an_epoch_that_leaves_no_gradients(scaled: bool) -> None:
    model = net(torch.float32)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    step = rekindle.compile_step(
        model,
        F.cross_entropy,
        torch.optim.Adam(model.parameters(), 0.01),
        accumulate=2,
        average=average,
        scaler=torch.amp.GradScaler("cpu") if scaled else None,
    )
    for x, y in batches(4, torch.float32):
        step(x, y)
    before = copy.deepcopy(average.state_dict())
    step.update()
    assert_same(dict(average.state_dict()), dict(before), 0.0)


# -------------------------------------------------------------------------------------------------------- the averages


class Frozen(nn.Module):
    """Parameters of two dtypes that are not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(2, 3).double()
        self.shift = nn.Parameter(torch.arange(3), requires_grad=False)
        self.scale = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x.mean((2, 3))) * self.scale + self.shift


def test_averages_of_frozen_parameters() -> None:
    model = Frozen()
    theirs = copy.deepcopy(model)
    loop = Loop(theirs, torch.optim.SGD(theirs.out.parameters(), 0.1))
    mine_average, their_average = (
        AveragedModel(each, multi_avg_fn=get_ema_multi_avg_fn(0.5)) for each in (model, theirs)
    )
    optimizer = torch.optim.SGD(model.out.parameters(), 0.1)
    step = rekindle.compile_step(model, F.cross_entropy, optimizer, average=mine_average)
    for x, y in batches(4):
        for each in (model, theirs):
            each.shift.data, each.scale.data = each.shift.data + 4, each.scale.data * 2
        assert_same(step(x, y), loop(x, y))
        their_average.update_parameters(theirs)
        assert_same(dict(mine_average.state_dict()), dict(their_average.state_dict()))


class Lazy(AveragedModel):
    """Averages every second update."""

    def update_parameters(self, model: nn.Module) -> None:
        if self.n_averaged % 2 == 0:
            super().update_parameters(model)
        else:
            self.n_averaged += 1


@pytest.mark.parametrize("kind", [AveragedModel, Lazy])
def test_averages_whose_decay_changes_and_of_derived_classes(kind: type[AveragedModel]) -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.1))
    averages = [kind(each, multi_avg_fn=get_ema_multi_avg_fn(0.5)) for each in (model, theirs)]
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), average=averages[0])
    for index, (x, y) in enumerate(batches(5)):
        for each in averages:
            each.multi_avg_fn = get_ema_multi_avg_fn(0.5 + index / 10)
        assert_same(step(x, y), loop(x, y))
        averages[1].update_parameters(theirs)
        assert_same(dict(averages[0].state_dict()), dict(averages[1].state_dict()))


def test_averages_of_other_models() -> None:
    model = net()
    text = "average has other parameters than the model: create it by AveragedModel(model)"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        rekindle.compile_step(
            model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), average=AveragedModel(nn.Linear(3, 1))
        )


# ------------------------------------------------------------------------------------------------------------- copies


def test_steps_are_not_copied() -> None:
    model = nn.Linear(3, 1)
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    text = (
        "a training step cannot be copied or pickled: save the state dicts of its model and optimizer, or compile a "
        "step for copies of them"
    )
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
            copied(step)


def test_the_mode_of_the_compiled_model_follows_changes_of_the_original_alone() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    step = rekindle.compile_step(net, torch.nn.functional.mse_loss, torch.optim.SGD(net.parameters(), lr=0.0))
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    step(x, y)
    net.eval()
    torch.testing.assert_close(step.model(x), net(x))
    net.train()
    assert [part.training for part in step.model] == [True] * 3
    step.model.eval()
    mean = net[1].running_mean.clone()
    assert step(x, y) == step(x, y)
    assert torch.equal(net[1].running_mean, mean)

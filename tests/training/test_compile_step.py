"""``compile_step`` beside PyTorch's own loop: losses, parameters, buffers, and the states of optimizers."""

from __future__ import annotations

import copy
import functools
import math
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import rekindle
from rekindle.training.gradients import Clipping
from rekindle.training.optimizer_update import OptimizerUpdate

CREATES_STATE = "the optimizer has no state yet"


class Net(nn.Module):
    """A convolution, a batch norm, and a linear layer, with a parameter of one element and one that is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 5, 3, bias=False)  # the gradient of a bias here is rounding errors
        self.norm = nn.BatchNorm2d(5)
        self.out = nn.Linear(5, 3)
        self.scale = nn.Parameter(torch.ones(()))
        self.unused = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)))
        return self.out(x.mean((2, 3))) * self.scale


def batches(count: int, dtype: torch.dtype = torch.float64) -> Iterator[tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    for _ in range(count):
        yield torch.randn(6, 2, 6, 6, dtype=dtype), torch.randint(0, 3, (6,))


def net(dtype: torch.dtype = torch.float64) -> Net:
    torch.manual_seed(0)
    return Net().to(dtype)


Optimizers = Callable[[Any], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Optimizers] = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "SGD, decay": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.1, maximize=True),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "SGD, Nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.01),
    "Adam, decay": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1, betas=(0.8, 0.95), eps=1e-4, maximize=True),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, weight_decay=0.1),
    "Adam, decoupled": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
    "AdamW, no decay": lambda p: torch.optim.AdamW(p, torch.tensor(0.01), weight_decay=0.0, foreach=False),
    "AdamW, amsgrad": lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True, fused=False),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "RAdam": lambda p: torch.optim.RAdam(p, 0.01, weight_decay=0.1),
    "RAdam, decoupled": lambda p: torch.optim.RAdam(p, 0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam, rectified": lambda p: torch.optim.RAdam(p, 0.01, betas=(0.9, 0.9)),
    "Adamax": lambda p: torch.optim.Adamax(p, 0.01),
    "Adamax, decay": lambda p: torch.optim.Adamax(p, 0.01, weight_decay=0.1, maximize=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.01),
    "RMSprop, centered": lambda p: torch.optim.RMSprop(p, 0.01, centered=True, weight_decay=0.1),
    "RMSprop, momentum": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5),
    "RMSprop, all": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True, maximize=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.05),
    "Adagrad, decay": lambda p: torch.optim.Adagrad(p, 0.05, lr_decay=0.1, weight_decay=0.1),
    "Adadelta": lambda p: torch.optim.Adadelta(p, 0.5),
    "Adadelta, decay": lambda p: torch.optim.Adadelta(p, 0.5, weight_decay=0.1, maximize=True),
    "Rprop": lambda p: torch.optim.Rprop(p, 0.01),
    "groups": lambda p: _in_groups(list(p)),
}


def _in_groups(parameters: list[Tensor]) -> torch.optim.Optimizer:
    first = {"params": parameters[:3], "lr": 0.02, "weight_decay": 0.0}
    return torch.optim.AdamW([first, {"params": parameters[3:], "betas": (0.5, 0.6)}], lr=0.01)


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {"model": dict(model.state_dict()), "optimizer": optimizer.state_dict()["state"]}


def assert_same(mine: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)


class Loop:
    """PyTorch's own loop."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.norm: float | None = None

    def __call__(
        self,
        x: Tensor,
        y: Tensor,
        *,
        max_norm: float | None = None,
        max_value: float | None = None,
        norm_type: float = 2.0,
    ) -> Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        if max_norm is not None:
            self.norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), max_norm, norm_type))
        if max_value is not None:
            nn.utils.clip_grad_value_(self.model.parameters(), max_value)
        self.optimizer.step()
        return loss.detach()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, OPTIMIZERS[name](theirs.parameters()))
    step = rekindle.compile_step(model, F.cross_entropy, OPTIMIZERS[name](model.parameters()))
    for x, y in batches(8):
        assert_same(step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))
    assert set(step.fallbacks) <= {CREATES_STATE}
    assert sum(step.fallbacks.values()) <= 1
    assert all(each.grad is None for each in model.parameters())


# -------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "options",
    [
        {"max_norm": 0.05},
        {"max_norm": 0.02, "norm_type": math.inf},
        {"max_norm": 0.1, "norm_type": 1.0},
        {"max_value": 0.01},
    ],
    ids=str,
)
def test_clipped_gradients(options: dict[str, float]) -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.5))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.5), **options)
    for x, y in batches(4):
        assert_same(step(x, y), loop(x, y, **options))
        assert_same(step.gradient_norm, loop.norm)
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))
    assert step.fallbacks == (
        {} if options.get("norm_type") != 1.0 else {"there is no kernel for norms of order 1.0": 4}
    )


def test_norm_that_is_not_finite() -> None:
    """As in PyTorch, an infinite gradient makes the others zero, and itself NaN."""
    model, theirs = nn.Linear(3, 1).double(), nn.Linear(3, 1).double()
    theirs.load_state_dict(model.state_dict())
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1), max_norm=1.0)
    x, y = torch.tensor([[1e300, 1.0, 0.0]], dtype=torch.float64), torch.full((1, 1), 1e20, dtype=torch.float64)
    step(x, y)
    F.mse_loss(theirs(x), y).backward()
    norm = nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
    torch.optim.SGD(theirs.parameters(), 0.1).step()
    assert step.gradient_norm == float(norm) == math.inf
    torch.testing.assert_close(model.weight, theirs.weight, equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(model.bias, theirs.bias, equal_nan=True, rtol=0, atol=0)


def test_accumulated_gradients_and_the_rest_of_an_epoch() -> None:
    model, theirs = net(), net()
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.AdamW(model.parameters(), 0.01), accumulate=3)
    optimizer = torch.optim.AdamW(theirs.parameters(), 0.01)
    for index, (x, y) in enumerate(batches(8)):
        loss = F.cross_entropy(theirs(x), y)
        (loss / 3).backward()
        assert_same(step(x, y), loss.detach())
        assert step.accumulated == (index + 1) % 3
        if index % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    optimizer.step()
    step.update()
    assert step.accumulated == 0
    assert_same(state_of(model, step.optimizer), state_of(theirs, optimizer))


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("decay", [0.9, None])
def test_weight_averages(use_buffers: bool, decay: float | None) -> None:
    model, theirs = net(), net()
    average = None if decay is None else get_ema_multi_avg_fn(decay)
    mine_average, their_average = (
        AveragedModel(each, multi_avg_fn=average, use_buffers=use_buffers) for each in (model, theirs)
    )
    loop = Loop(theirs, torch.optim.Adam(theirs.parameters(), 0.01))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    step = rekindle.compile_step(model, F.cross_entropy, optimizer, average=mine_average)
    for x, y in batches(5):
        assert_same(step(x, y), loop(x, y))
        their_average.update_parameters(theirs)
        assert_same(dict(mine_average.state_dict()), dict(their_average.state_dict()))


class Exploding(nn.Module):
    """A linear layer whose gradient is infinite for the third batch."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x.mean((2, 3)))


def test_scaled_losses() -> None:
    torch.manual_seed(0)
    model = Exploding()
    theirs = copy.deepcopy(model)
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2) for _ in range(2)]
    step = rekindle.compile_step(
        model, F.cross_entropy, torch.optim.Adam(model.parameters(), 0.01), scaler=scalers[0], max_norm=0.1
    )
    optimizer = torch.optim.Adam(theirs.parameters(), 0.01)
    for index, (x, y) in enumerate(batches(6, torch.float32)):
        x = x * 1e37 if index == 3 else x
        optimizer.zero_grad()
        loss = F.cross_entropy(theirs(x), y)
        scalers[1].scale(loss).backward()
        scalers[1].unscale_(optimizer)
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        scalers[1].step(optimizer)
        scalers[1].update()
        assert_same(step(x, y), loss.detach(), 1e-5)
        assert scalers[0].get_scale() == scalers[1].get_scale()
    assert_same(state_of(model, step.optimizer), state_of(theirs, optimizer), 1e-5)
    assert step.optimizer.state[model.out.weight]["step"] == 5


def test_autocast() -> None:
    model, theirs = net(torch.float32), net(torch.float32)
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    step = rekindle.compile_step(
        model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), autocast=torch.bfloat16
    )
    for x, y in batches(3, torch.float32):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(theirs(x), y)
        loss.backward()
        optimizer.step()
        assert_same(step(x, y), loss.detach(), 1e-2)
    assert_same(state_of(model, step.optimizer), state_of(theirs, optimizer), 1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Linear(40, 7).to(dtype)
    theirs = copy.deepcopy(model)
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.AdamW(model.parameters(), 0.01), max_norm=0.5)
    optimizer = torch.optim.AdamW(theirs.parameters(), 0.01)
    for _ in range(5):
        x, y = torch.randn(4, 40, dtype=dtype), torch.randn(4, 7, dtype=dtype)
        optimizer.zero_grad()
        loss = F.mse_loss(theirs(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        optimizer.step()
        assert_same(step(x, y), loss.detach(), 0.05 if dtype is torch.bfloat16 else 1e-5)
    assert_same(dict(model.state_dict()), dict(theirs.state_dict()), 0.02 if dtype is torch.bfloat16 else 1e-5)
    assert step.fallbacks == {CREATES_STATE: 1}


# --------------------------------------------------------------------------------------------------- state and training


def test_compiled_and_plain_steps_alternate() -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.AdamW(theirs.parameters(), 0.01))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.AdamW(model.parameters(), 0.01))
    plain = Loop(model, step.optimizer)
    for index, (x, y) in enumerate(batches(9)):
        assert_same(plain(x, y) if index % 3 == 1 else step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))


def test_gradients_are_freed_in_the_next_call() -> None:
    """Not at once: the allocator would return their memory to the system."""
    model = net()
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    gradients: list[weakref.ref[Tensor]] = []
    first = next(model.parameters())
    first.register_post_accumulate_grad_hook(lambda parameter: gradients.append(weakref.ref(parameter.grad)))
    for x, y in batches(3):
        step(x, y)
        assert first.grad is None
        assert gradients[-1]() is not None
    assert [each() is not None for each in gradients] == [False, False, True]


def test_updates_by_hand_hold_one_set_of_gradients() -> None:
    model = net()
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    gradients: list[weakref.ref[Tensor]] = []
    for x, y in batches(3):
        F.cross_entropy(model(x), y).backward()
        gradients += [weakref.ref(each.grad) for each in model.parameters() if each.grad is not None]
        step.update()
    count = len(gradients) // 3
    assert [each() is not None for each in gradients] == [False] * 2 * count + [True] * count


def test_weight_decay_is_decoupled_where_pytorch_decouples_it() -> None:
    """The other optimizers ignore the option, which a group may have."""
    model, theirs = net(), net()

    def optimizer(parameters: Any) -> torch.optim.Optimizer:
        group = {"params": list(parameters), "decoupled_weight_decay": True}
        return torch.optim.SGD([group], 0.1, momentum=0.9, weight_decay=0.5)

    loop = Loop(theirs, optimizer(theirs.parameters()))
    step = rekindle.compile_step(model, F.cross_entropy, optimizer(model.parameters()))
    for x, y in batches(4):
        assert_same(step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))
    assert step.fallbacks == {CREATES_STATE: 1}


def test_a_negated_parameter_is_updated_by_pytorch() -> None:
    weight = torch.tensor([1 + 2j]).conj().imag
    assert weight.is_neg()
    model = nn.Module()
    model.weight = nn.Parameter(weight)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    model.weight.grad = torch.ones(1)
    clipping = Clipping()
    update = OptimizerUpdate(optimizer, clipping, None)
    update.step()
    assert model.weight.tolist() == [-2.5]
    assert update.fallbacks == {"parameters, state or averages are negated lazily": 1}


def test_checkpoints_round_trip(tmp_path: Any) -> None:
    """A run that is saved after four steps, and continues in PyTorch's loop, ends like one of PyTorch's alone."""
    theirs, first = net(), net()
    loop = Loop(theirs, torch.optim.NAdam(theirs.parameters(), 0.01))
    loop.optimizer = torch.optim.Adam(theirs.parameters(), 0.01, amsgrad=True)
    adam: Optimizers = lambda p: torch.optim.Adam(p, 0.01, amsgrad=True)  # noqa: E731 - a table in miniature
    step = rekindle.compile_step(first, F.cross_entropy, adam(first.parameters()))
    data = list(batches(8))
    for x, y in data[:4]:
        step(x, y), loop(x, y)
    torch.save({"model": step.model.state_dict(), "optimizer": step.optimizer.state_dict()}, tmp_path / "run.pt")

    saved = torch.load(tmp_path / "run.pt")
    for resume_compiled in (False, True):
        model = net()
        model.load_state_dict(saved["model"])
        optimizer = adam(model.parameters())
        optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
        again: Any = Loop(model, optimizer)
        if resume_compiled:
            again = rekindle.compile_step(model, F.cross_entropy, optimizer)
        end = copy.deepcopy((theirs, loop.optimizer.state_dict()))
        reference = Loop(end[0], adam(end[0].parameters()))
        reference.optimizer.load_state_dict(end[1])
        for x, y in data[4:]:
            assert_same(again(x, y), reference(x, y))
        assert_same(state_of(model, optimizer), state_of(end[0], reference.optimizer))
        if resume_compiled:
            assert again.fallbacks == {}


def test_state_that_is_loaded_between_steps() -> None:
    """Loading replaces the tensors of the state. The first steps run operators, the later ones kernels, which round in
    another way."""
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    step = rekindle.compile_step(model, F.cross_entropy, optimizer)
    data = list(batches(4))
    for x, y in data[:2]:
        step(x, y)
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    losses = [float(step(x, y)) for x, y in data[2:]]
    model.load_state_dict(before[0])
    optimizer.load_state_dict(before[1])
    assert_same([float(step(x, y)) for x, y in data[2:]], losses)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_learning_rate_schedules(momentum: float) -> None:
    """Without momentum there is no state that PyTorch has to create: no step calls ``optimizer.step``."""
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.SGD(theirs.parameters(), 0.5, momentum=momentum))
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=momentum)
    step = rekindle.compile_step(model, F.cross_entropy, optimizer)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(each, 6) for each in (optimizer, loop.optimizer)]
    for x, y in batches(6):
        assert_same(step(x, y), loop(x, y))
        for each in schedules:
            each.step()
    assert_same(state_of(model, optimizer), state_of(theirs, loop.optimizer))
    assert step.fallbacks == ({CREATES_STATE: 1} if momentum else {})


def test_training_mode_of_the_original_is_followed() -> None:
    model = net()
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    (x, y), *_ = batches(1)
    step(x, y)
    model.norm.eval()
    before = model.norm.running_mean.clone()
    step(x, y)
    assert torch.equal(model.norm.running_mean, before)
    model.norm.train()
    step(x, y)
    assert not torch.equal(model.norm.running_mean, before)


def test_a_backward_after_an_update_raises() -> None:
    """Kernels write to memory that autograd does not see. Its check of versions has to see the writes."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    x, y = torch.randn(4, 3), torch.randn(4, 1)
    step(x, y)
    loss = model(x).sum()
    step(x, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_parameters_without_gradients_and_frozen_ones() -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.Adam(theirs.parameters(), 0.01))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.Adam(model.parameters(), 0.01))
    for index, (x, y) in enumerate(batches(8)):
        for each in (model, theirs):
            each.out.requires_grad_(index not in (2, 3))
        assert_same(step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))


def test_channels_last_and_other_strides() -> None:
    model, theirs = net(), net()
    for each in (model, theirs):
        each.to(memory_format=torch.channels_last)
        each.out.weight = nn.Parameter(each.out.weight.detach().t().contiguous().t())
    loop = Loop(theirs, torch.optim.Adam(theirs.parameters(), 0.01))
    step = rekindle.compile_step(model, F.cross_entropy, torch.optim.Adam(model.parameters(), 0.01))
    for x, y in batches(4):
        assert_same(step(x, y), loop(x, y))
    assert_same(state_of(model, step.optimizer), state_of(theirs, loop.optimizer))


# ---------------------------------------------------------------------------------------------------- models and losses


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3))

    def forward(self, x: Tensor, h: Tensor, scale: float = 2.0) -> tuple[Tensor, Tensor]:
        return torch.tanh(x @ self.w + h), h * scale


def two_losses(results: tuple[Tensor, Tensor], y: Tensor, weight: float = 0.5) -> Tensor:
    return (results[0] - y).square().mean() + weight * results[1].mean()


def test_several_inputs_targets_and_results() -> None:
    torch.manual_seed(0)
    model = TwoInputs()
    theirs = copy.deepcopy(model)
    step = rekindle.compile_step(model, two_losses, torch.optim.SGD(model.parameters(), 0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    for arguments, targets in (((), ()), ((3.0,), (0.25,)), ((), (2.0,))):
        x, h, y = torch.randn(3, 5, 3)
        optimizer.zero_grad()
        loss = two_losses(theirs(x, h, *arguments), y, *targets)
        loss.backward()
        optimizer.step()
        assert_same(step((x, h, *arguments), y, *targets), loss.detach(), 1e-5)
    assert_same(model.w, theirs.w, 1e-5)


@pytest.mark.parametrize("hooked", [False, True])
def test_losses_with_keywords(hooked: bool) -> None:
    model, theirs = net(torch.float32), net(torch.float32)
    loss = functools.partial(F.cross_entropy, label_smoothing=0.2, weight=torch.tensor([1.0, 2.0, 3.0]))
    step = rekindle.compile_step(model, loss, torch.optim.SGD(model.parameters(), 0.1))
    if hooked:
        step.model.register_forward_hook(lambda module, inputs, result: None)
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    for x, y in batches(3, torch.float32):
        optimizer.zero_grad()
        found = loss(theirs(x), y)
        found.backward()
        optimizer.step()
        assert_same(step(x, y), found.detach(), 1e-5)
    assert_same(dict(model.state_dict()), dict(theirs.state_dict()), 1e-5)


class TakesModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, model: Tensor, target: Tensor) -> Tensor:
        return model * self.w + target


def test_arguments_whose_names_are_taken() -> None:
    model = TakesModel()
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    x, y, z = torch.randn(3, 3)
    assert_same(step((x, y), z), F.mse_loss(x + y, z), 1e-5)


class WithLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.net(x) - y).square().mean()


@pytest.mark.parametrize("loss", [None, nn.L1Loss()])
def test_models_with_their_loss_and_modules_as_losses(loss: nn.Module | None) -> None:
    torch.manual_seed(0)
    model = WithLoss() if loss is None else nn.Linear(3, 1)
    theirs = copy.deepcopy(model)
    step = rekindle.compile_step(model, loss, torch.optim.SGD(model.parameters(), 0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(3):
        x, y = torch.randn(5, 3), torch.randn(5, 1)
        optimizer.zero_grad()
        found = theirs(x, y) if loss is None else loss(theirs(x), y)
        found.backward()
        optimizer.step()
        assert_same(step((x, y)) if loss is None else step(x, y), found.detach(), 1e-5)
    assert_same(dict(model.state_dict()), dict(theirs.state_dict()), 1e-5)


def test_compiled_models_and_those_with_hooks() -> None:
    torch.manual_seed(0)
    seen: list[Tensor] = []
    plain = nn.Linear(3, 1)
    model = rekindle.script(plain)
    model.register_forward_hook(lambda module, inputs, result: seen.append(result))
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    before = plain.weight.detach().clone()
    step(torch.randn(5, 3), torch.randn(5, 1))
    assert step.model is model
    assert len(seen) == 1
    assert not torch.equal(plain.weight, before)


class Wrapper(nn.Module):
    """Calls a compiled module, as ``DistributedDataParallel`` does."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *arguments: Any) -> Any:
        return self.inner(*arguments)


def test_modules_around_compiled_ones_are_called() -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, torch.optim.Adam(theirs.parameters(), 0.01))
    wrapper = Wrapper(rekindle.script(model))
    step = rekindle.compile_step(wrapper, F.cross_entropy, torch.optim.Adam(wrapper.parameters(), 0.01))
    for x, y in batches(3):
        assert_same(step(x, y), loop(x, y))
    assert step.model is wrapper


# ------------------------------------------------------------------------------------------------------------ fallbacks


class Custom(torch.optim.SGD):
    """An optimizer of its own, although it derives from one with a rule."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad.sign(), alpha=group["lr"])


def _hooked(optimizer: torch.optim.Optimizer, calls: list[str]) -> torch.optim.Optimizer:
    optimizer.register_step_post_hook(lambda *_: calls.append("hook"))
    return optimizer


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda p: torch.optim.NAdam(p, 0.01), "NAdam has no update rule"),
        (lambda p: torch.optim.ASGD(p, 0.01), "ASGD has no update rule"),
        (lambda p: Custom(p, 0.01), "Custom has no update rule"),
        (lambda p: _hooked(torch.optim.SGD(p, 0.01), []), "the optimizer has hooks"),
        (lambda p: torch.optim.SGD(p, 1e39), "a hyperparameter is out of the range of float32"),
    ],
    ids=["NAdam", "ASGD", "custom", "hooks", "large rate"],
)
def test_what_pytorch_updates(make: Optimizers, reason: str) -> None:
    model, theirs = net(), net()
    loop = Loop(theirs, make(theirs.parameters()))
    step = rekindle.compile_step(model, F.cross_entropy, make(model.parameters()), max_norm=1.0)
    for x, y in batches(3):
        torch.testing.assert_close(step(x, y), loop(x, y, max_norm=1.0), equal_nan=True)
    torch.testing.assert_close(dict(model.state_dict()), dict(theirs.state_dict()), equal_nan=True)
    assert step.fallbacks == {reason: 3}


def test_hooks_run() -> None:
    model, calls = nn.Linear(3, 1), []
    step = rekindle.compile_step(model, F.mse_loss, _hooked(torch.optim.SGD(model.parameters(), 0.1), calls))
    step(torch.randn(4, 3), torch.randn(4, 1))
    assert calls == ["hook"]


def test_sparse_gradients() -> None:
    model = nn.Sequential(nn.Embedding(7, 3, sparse=True), nn.Linear(3, 1))
    theirs = copy.deepcopy(model)
    loss = nn.MSELoss()
    step = rekindle.compile_step(model, loss, torch.optim.SGD(model.parameters(), 0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    x, y = torch.tensor([1, 1, 5]), torch.randn(3, 1)
    for _ in range(2):
        optimizer.zero_grad()
        found = loss(theirs(x), y)
        found.backward()
        optimizer.step()
        assert_same(step(x, y), found.detach(), 1e-5)
    assert_same(dict(model.state_dict()), dict(theirs.state_dict()), 1e-5)
    assert step.fallbacks == {"a tensor is a subclass of Tensor, on another device than the CPU, or not dense": 2}


# --------------------------------------------------------------------------------------------------------------- errors


def test_optimizers_that_evaluate_the_loss() -> None:
    model = nn.Linear(3, 1)
    text = (
        "LBFGS evaluates the loss several times in a step: compile the model with script, and call "
        "optimizer.step(closure)"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
        rekindle.compile_step(model, F.mse_loss, torch.optim.LBFGS(model.parameters()))


def test_optimizers_of_other_models() -> None:
    text = "the optimizer has no parameter of the model: create it from model.parameters()"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        rekindle.compile_step(nn.Linear(3, 1), F.mse_loss, torch.optim.SGD(nn.Linear(3, 1).parameters(), 0.1))


def test_options_that_contradict_each_other() -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ValueError, match=r"^gradients are clipped by max_norm or by max_value, not by both$"):
        rekindle.compile_step(model, F.mse_loss, optimizer, max_norm=1.0, max_value=1.0)
    with pytest.raises(ValueError, match=r"^accumulate is the number of calls for an update, at least 1, not 0$"):
        rekindle.compile_step(model, F.mse_loss, optimizer, accumulate=0)


def test_losses_that_do_not_take_the_result() -> None:
    model = nn.Linear(3, 1)
    step = rekindle.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(rekindle.errors.SchemaError, match="target"):
        step(torch.randn(4, 3))

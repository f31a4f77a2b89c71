"""Quantized modules, and the modules that prepare them: schemes are constants, packed weights are parts of traces."""

from __future__ import annotations

import collections
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.ao.quantization as quantization
from torch import Tensor, nn

import rekindle
from rekindle.errors import NotScriptableError, TracingError
from tests.support.oracle import script_with_torch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def _exchanged(module: Any) -> tuple[Any, Any]:
    """What ``torch.jit`` and this package load of an archive."""
    file = io.BytesIO()
    rekindle.save(module, file)
    return torch.jit.load(io.BytesIO(file.getvalue())), rekindle.load(io.BytesIO(file.getvalue()))


OBSERVERS: list[Callable[[], Any]] = [
    quantization.MinMaxObserver,
    lambda: quantization.MinMaxObserver(qscheme=torch.per_tensor_symmetric, dtype=torch.qint8),
    lambda: quantization.MovingAverageMinMaxObserver(qscheme=torch.per_tensor_symmetric),
    lambda: quantization.PerChannelMinMaxObserver(ch_axis=1, qscheme=torch.per_channel_symmetric, dtype=torch.qint8),
    quantization.HistogramObserver,
]


@pytest.mark.parametrize("make", OBSERVERS)
def test_observers(make: Callable[[], Any]) -> None:
    """As published ones are scripted, by PyTorch's own tests among others."""
    x = torch.arange(12.0).view(3, 4) - 3
    eager, ours = make(), rekindle.script(make())
    for module in (eager, ours):
        module(x)
        module(x * 2)
    for found, expected in zip(ours.calculate_qparams(), eager.calculate_qparams(), strict=True):
        assert torch.equal(found, expected)
    for loaded in _exchanged(ours):
        for found, expected in zip(loaded.calculate_qparams(), eager.calculate_qparams(), strict=True):
            assert torch.equal(found, expected)


@pytest.mark.parametrize("make", [quantization.FakeQuantize, quantization.FusedMovingAvgObsFakeQuantize])
def test_fake_quantization(make: Callable[[], Any]) -> None:
    x = torch.arange(12.0).view(3, 4) / 7
    eager, ours = make(), rekindle.script(make())
    for _ in range(3):
        assert torch.equal(ours(x), eager(x))
    theirs, again = _exchanged(ours)
    assert torch.equal(theirs(x), again(x))
    archive = io.BytesIO()
    torch.jit.save(script_with_torch(make()), archive)
    archive.seek(0)
    assert torch.equal(rekindle.load(archive)(x), make()(x))


class Schemes(nn.Module):
    def __init__(self, scheme: torch.qscheme) -> None:
        super().__init__()
        self.scheme = scheme

    def forward(self, x: Tensor, other: torch.qscheme) -> tuple[Tensor, bool, torch.qscheme, str]:
        if self.scheme in (torch.per_channel_affine, torch.per_channel_symmetric):
            return x + 1, self.scheme == other, other, str(self.scheme)
        return x, self.scheme != other, self.scheme, str(other)


@pytest.mark.parametrize(
    "scheme",
    [
        *(torch.per_tensor_affine, torch.per_channel_affine, torch.per_tensor_symmetric, torch.per_channel_symmetric),
        torch.per_channel_affine_float_qparams,
    ],
)
def test_schemes_are_constants_attributes_and_arguments(scheme: torch.qscheme) -> None:
    eager = Schemes(scheme)
    ours = rekindle.script(eager)
    for other in (scheme, torch.per_tensor_affine):
        found, expected = ours(torch.ones(2), other), eager(torch.ones(2), other)
        assert torch.equal(found[0], expected[0])
        assert found[1:] == expected[1:]


def quantized(*layers: nn.Module, example: Tensor) -> nn.Module:
    net = nn.Sequential(quantization.QuantStub(), *layers, quantization.DeQuantStub()).eval()
    net.qconfig = quantization.get_default_qconfig("x86")  # type: ignore[assignment]
    prepared = quantization.prepare(net)
    prepared(example)
    result: nn.Module = quantization.convert(prepared)
    return result


IMAGES = torch.linspace(-1, 1, 128).view(2, 1, 8, 8)
ROWS = torch.linspace(-1, 1, 6).view(3, 1, 2)


@pytest.mark.parametrize(
    ("make", "example"),
    [
        (lambda: quantized(nn.Linear(2, 3), nn.ReLU(), example=ROWS), ROWS),
        (lambda: quantized(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 4), example=IMAGES), IMAGES),
        (lambda: quantization.quantize_dynamic(nn.Sequential(nn.Linear(2, 3)), {nn.Linear}), ROWS),
        (lambda: quantization.quantize_dynamic(nn.Sequential(nn.LSTM(2, 3)), {nn.LSTM}), ROWS),
    ],
)
def test_traces_of_quantized_modules(make: Callable[[], nn.Module], example: Tensor) -> None:
    """The packed weights, objects in C++, are attributes of the trace."""
    torch.manual_seed(0)
    eager = make()
    ours = rekindle.trace(eager, example)
    expected = _first(eager(example))
    for module in (ours, *_exchanged(ours)):
        assert torch.equal(_first(module(example)), expected)
    assert torch.equal(_first(ours(example / 2)), _first(eager(example / 2)))


def _first(answer: Any) -> Tensor:
    found: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return found


def test_an_object_in_cpp_from_outside_of_a_trace() -> None:
    net = quantized(nn.Linear(2, 3), example=ROWS)
    with pytest.raises(TracingError, match="that is not an attribute of the traced module"):
        rekindle.trace(lambda x: net(x), ROWS)


def test_an_object_in_cpp_that_nothing_computes_with() -> None:
    def marked(x: Tensor) -> Tensor:
        handle = torch.ops.profiler._record_function_enter_new("a part", None)
        y = x * 2
        torch.ops.profiler._record_function_exit(handle)
        return y

    assert torch.equal(rekindle.trace(marked, ROWS)(ROWS + 1), marked(ROWS + 1))


Config = collections.namedtuple("Config", ["make", "factor"])


class Configured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.config = Config(list, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Reading(Configured):
    def forward(self, x: Tensor) -> Tensor:
        return x * self.config.factor


def test_a_named_tuple_that_holds_other_than_tensors_matters_where_it_is_used() -> None:
    """The modules of ``prepare`` hold their ``qconfig``, a named tuple of classes."""
    assert torch.equal(rekindle.script(Configured())(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(NotScriptableError, match="the field 'make' of the named tuple 'Config' is declared a Tensor"):
        rekindle.script(Reading())

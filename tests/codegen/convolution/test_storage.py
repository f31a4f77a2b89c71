"""Weights in fewer bits: rounded when a module is optimized, and packed in as many bits as they need."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.codegen.convolution.activations import ACTIVATIONS
from rekindle.codegen.convolution.direct import DirectConvolution
from rekindle.codegen.convolution.packed_operators import _linear_candidates
from rekindle.codegen.convolution.storage import BFLOAT16, FLOAT32, INT8, NARROW, WeightStorage
from rekindle.codegen.llvm.target import named_target
from rekindle.errors import RekindleError
from rekindle.passes.frozen_modules.round_weights import DTYPES, rounded_weights
from tests.codegen.convolution.test_direct import tolerance
from tests.codegen.test_bounds import Guarded

STORAGES = [FLOAT32, BFLOAT16, INT8]
ROWS = [1, 2, 3, 5, 8, 17]


def _rounded(weight: Tensor, storage: WeightStorage) -> Tensor:
    return weight if storage is FLOAT32 else rounded_weights(weight, storage.dtype)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("storage", STORAGES, ids=lambda each: each.name)
def test_kernels_read_each_storage(level: str, storage: WeightStorage) -> None:
    """Whole blocks and rests of outputs; inputs that chains divide and others; short sums and long ones."""
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    torch.manual_seed(0)
    for outputs, inputs in ((1, 1), (7, 3), (33, 64), (16, 300), (70, 768), (32, 1021)):
        weight, bias = _rounded(torch.randn(outputs, inputs), storage), torch.randn(outputs)
        own = DirectConvolution(
            weight[:, :, None, None], bias, activation=ACTIVATIONS["relu"], target=target, storage=storage
        )
        for rows in ROWS:
            x = torch.randn(rows, inputs)
            found = own.run(x.view(1, rows, 1, inputs).permute(0, 3, 1, 2))
            assert found is not None
            expected = F.linear(x.double(), weight.double(), bias.double()).relu()
            error = (found.permute(0, 2, 3, 1).view(rows, outputs) - expected).abs().max()
            assert error <= tolerance(x, weight), (outputs, inputs, rows)


@pytest.mark.parametrize("storage", [BFLOAT16, INT8], ids=lambda each: each.name)
def test_kernels_read_no_more_than_the_weights(storage: WeightStorage) -> None:
    torch.manual_seed(0)
    for outputs, inputs in ((5, 9), (33, 260), (64, 64)):
        weight = _rounded(torch.randn(outputs, inputs), storage)
        own = DirectConvolution(weight[:, :, None, None], None, storage=storage)
        ((packed, beside),) = own._packed_weights()
        guarded = Guarded(packed.numel() * packed.element_size(), at_end=True)
        own._packed["weights"] = [(guarded.tensor(packed), beside)]
        for rows in ROWS:
            x = torch.randn(rows, inputs)
            found = own.run(x.view(1, rows, 1, inputs).permute(0, 3, 1, 2))
            assert found is not None
            error = (found.permute(0, 2, 3, 1).view(rows, outputs) - F.linear(x, weight)).abs().max()
            assert error <= 2 * tolerance(x, weight)


def test_numbers_that_are_not_finite() -> None:
    weight = rounded_weights(torch.randn(20, 64), torch.int8)
    x = torch.randn(3, 64)
    x[0, 5], x[1, 7] = float("nan"), float("inf")
    for storage in STORAGES:
        own = DirectConvolution(_rounded(weight, storage)[:, :, None, None], None, storage=storage)
        found = own.run(x.view(1, 3, 1, 64).permute(0, 3, 1, 2))
        assert found is not None
        expected = F.linear(x, weight)
        assert torch.equal(found.isnan().view(20, 3).t(), expected.isnan())
        assert torch.equal(found.isinf().view(20, 3).t(), expected.isinf())


def test_what_a_storage_holds() -> None:
    torch.manual_seed(0)
    weight = torch.randn(30, 400)
    weight[3] = 0
    weight[4] *= 1e-30
    weight[5] *= 1e30
    held = {storage: rounded_weights(weight, storage.dtype) for storage in NARROW}
    assert [storage.holds(weight) for storage in NARROW] == [False, False]
    assert [storage.holds(each) for storage, each in held.items()] == [True, True]
    assert not INT8.holds(held[BFLOAT16])
    assert BFLOAT16.holds(torch.zeros(0, 4))
    one_differs = held[BFLOAT16].clone()
    one_differs[29, 399] = 0.1
    assert not BFLOAT16.holds(one_differs)
    limits = weight.abs().amax(1, keepdim=True) / 127 / 2 * 1.0001
    assert ((held[INT8] - weight).abs() <= limits).all(), "no more than half a step"
    assert ((held[BFLOAT16] - weight).abs() <= weight.abs() * 2**-8).all()


def test_small_weights_beside_large_ones_are_not_zero() -> None:
    weight = torch.eye(16) + torch.full((16, 16), 5e-8)
    assert not INT8.holds(weight)
    assert "int8" not in _linear_candidates(weight, None, ACTIVATIONS["none"])
    assert INT8.holds(torch.eye(16))


def test_candidates() -> None:
    weight = torch.randn(8, 16)
    own = [list(_linear_candidates(each, None, ACTIVATIONS["none"]))[0] for each in (weight, weight.bfloat16().float())]
    assert own == ["direct", "bfloat16"]
    assert next(iter(_linear_candidates(rounded_weights(weight, torch.int8), None, ACTIVATIONS["none"]))) == "int8"


class Net(nn.Module):
    """Two maps with the same weight, one that is too small to be packed, and one without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(256, 256), nn.Linear(256, 256)
        self.second.weight = self.first.weight
        self.third, self.small = nn.Linear(256, 300, bias=False), nn.Linear(300, 10)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.small(torch.relu(self.third(self.second(torch.relu(self.first(x))))))
        return result


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
def test_weights_are_rounded_on_request(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    net, rounded = Net().eval(), Net().eval()
    rounded.load_state_dict(net.state_dict())
    with torch.no_grad():
        for each in (rounded.first, rounded.third):
            each.weight.copy_(rounded_weights(each.weight, dtype))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    fast = rekindle.optimize_for_inference(rekindle.script(net), weights=dtype)
    saved = io.BytesIO()
    rekindle.save(fast, saved)
    saved.seek(0)
    loaded = rekindle.load(saved)
    again = rekindle.optimize_for_inference(loaded)
    for rows in ROWS:
        x = torch.randn(rows, 256)
        with torch.no_grad():
            for each in (fast, loaded, again):
                for _ in range(3):
                    torch.testing.assert_close(each(x), rounded(x), rtol=1e-4, atol=1e-5)
        x.requires_grad_()
        torch.testing.assert_close(
            torch.autograd.grad(fast(x).sum(), x), torch.autograd.grad(rounded(x).sum(), x), rtol=1e-4, atol=1e-5
        )
    torch.testing.assert_close(dict(net.state_dict()), before, rtol=0, atol=0)


def test_weights_that_cannot_be_rounded_stay_as_they_are() -> None:
    net = nn.Linear(256, 256).eval()
    with torch.no_grad():
        net.weight[3, 4] = float("inf")
    x = torch.rand(1, 256)
    with torch.no_grad():
        for dtype in DTYPES:
            fast = rekindle.optimize_for_inference(rekindle.script(net), weights=dtype)
            torch.testing.assert_close(fast(x), net(x), rtol=1e-4, atol=1e-4)


def test_other_dtypes_are_rejected() -> None:
    with pytest.raises(
        ValueError, match=r"^weights are rounded to torch\.bfloat16 or torch\.int8, not to torch\.float16$"
    ):
        rekindle.optimize_for_inference(rekindle.script(nn.Linear(3, 3)), weights=torch.float16)

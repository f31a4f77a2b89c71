"""Which operator a Python callable stands for."""

import cmath
import collections
import math
import warnings

import pytest
import torch
import torch.nn.functional as F

from rekindle.scripting.builtin_table import builtin_kind


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (torch.add, "aten::add"),
        (torch.relu, "aten::relu"),
        (torch.tensor, "aten::tensor"),
        (torch.einsum, "aten::einsum"),
        (F.linear, "aten::linear"),
        (F.conv2d, "aten::conv2d"),
        (F.gelu, "aten::gelu"),
        (torch._VF.lstm, "aten::lstm"),
        (torch._C._VariableFunctions.gru, "aten::gru"),
        (torch.fft.rfft, "aten::fft_rfft"),
        (torch.linalg.norm, "aten::linalg_norm"),
        (torch.special.expit, "aten::special_expit"),
        (torch.Tensor.neg, "aten::neg"),
        (torch.device, "aten::device"),
        (torch._assert, "aten::_assert"),
        (math.ceil, "aten::ceil"),
        (math.remainder, "aten::mathremainder"),
        (cmath.phase, "aten::angle"),
        (cmath.rect, "aten::polar"),
        (warnings.warn, "aten::warn"),
        (collections.OrderedDict, "aten::dict"),
        (torch.nn.modules.utils._pair, "aten::_pair"),
    ],
)
def test_operators(function, kind):
    assert builtin_kind(function) == kind


@pytest.mark.parametrize(
    "function", [F.relu, torch.norm, torch.stft, F.interpolate, torch.nn.Linear, len, print, 3, torch.no_grad]
)
def test_what_is_no_operator(function):
    assert builtin_kind(function) is None


def test_torch_compile_hides_nothing():
    """It wraps this function when it is loaded, whenever that is."""
    before = torch.manual_seed
    wrapped = torch._disable_dynamo(torch.random.manual_seed)
    assert wrapped is not torch.random.manual_seed
    assert builtin_kind(before) == builtin_kind(wrapped) == "aten::manual_seed"

"""Which operator a Python callable stands for."""

import cmath
import collections
import inspect
import math
import warnings

import pytest
import torch
import torch.nn.functional as F

from rekindle.scripting.library_values import builtin_table
from rekindle.scripting.library_values.builtin_table import builtin_kind
from tests.versions.differences import RELEASE


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


def test_torch_compile_hides_nothing(monkeypatch):
    """It wraps this function when it is loaded, before or after this package is."""
    before = torch.manual_seed
    wrapped = torch._disable_dynamo(torch.random.manual_seed)
    assert wrapped is not torch.random.manual_seed
    assert builtin_kind(before) == builtin_kind(wrapped) == "aten::manual_seed"
    monkeypatch.setattr(torch, "manual_seed", wrapped)
    monkeypatch.setattr(builtin_table, "_TABLE", builtin_table._table())
    assert builtin_kind(before) == builtin_kind(wrapped) == "aten::manual_seed"


# What torch.jit's own table has and this one has not, with the reason.
NOT_HERE = {
    "aten::get_gradients": "distributed autograd",
    "aten::dist_backward": "distributed autograd",
    "aten::has_torch_function": "a constant in programs, which the special names know",
}


def test_torch_jit_knows_no_other_builtins():
    """Every function that torch.jit compiles to an operator of its own is known here as the same operator."""
    from torch.jit import _builtins

    homes = [
        torch,
        torch.functional,
        F,
        torch.autograd,
        torch.nn.init,
        math,
        cmath,
        *_builtins._modules_containing_builtins,
    ]
    functions = {id(found): found for found, _ in _builtins._builtin_ops}
    functions |= {id(found): found for home in homes for found in map(home.__dict__.get, dir(home)) if callable(found)}
    kinds = {schema.name for schema in torch._C._jit_get_all_schemas()}
    known = {
        kind: builtin_kind(functions[key])
        for key, kind in list(_builtins._get_builtin_table().items())
        if key in functions and kind in kinds and not inspect.isclass(functions[key])
    }
    assert len(known) > 1000
    assert {kind for kind, ours in known.items() if ours != kind} == {
        *NOT_HERE,
        *({"aten::_is_tracing"} if RELEASE >= (2, 15) else ()),  # compiled where the program is: it is constant
    }

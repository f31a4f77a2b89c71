"""Whatever a trace puts in the place of others' functions is gone when it ends, however it ends."""

import builtins
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import rekindle
from rekindle.tracing.recording.active import active_recorder
from rekindle.tracing.recording.patches import replacements


def held() -> dict[tuple[int, str], Any]:
    """The objects under all names that a trace replaces; None where the name is inherited."""
    return {(id(owner), name): vars(owner).get(name) for owner, name, _ in replacements()}


def fails_inside(x):
    with torch.no_grad(), torch.autocast("cpu"):
        raise KeyError("inside")


class FailsBelow(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.vmap(self.linear)(x)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (fails_inside, KeyError),
        (FailsBelow(), RuntimeError),
        (lambda x: x.view(7), RuntimeError),
        (lambda x: rekindle.trace(lambda y: y, (x,)), rekindle.errors.TracingError),
        (lambda x: None, rekindle.errors.TracingError),
        (lambda x: exec("raise SystemExit"), SystemExit),
    ],
)
@pytest.mark.filterwarnings("ignore::rekindle.tracing.recording.recorder.TracerWarning")
def test_errors_leave_nothing_behind(function, error):
    before = held()
    cache = torch.is_autocast_cache_enabled()
    with pytest.raises(error):
        rekindle.trace(function, (torch.ones(2, 3),))
    after = held()
    assert {key: value for key, value in after.items() if value is not before[key]} == {}
    assert active_recorder() is None
    assert torch.overrides._get_current_function_mode() is None
    assert torch._C._len_torch_dispatch_stack() == 0
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.is_autocast_cache_enabled() == cache
    # And the next trace is none the worse.
    assert len(list(rekindle.trace(lambda x: x + 1, (torch.ones(1),)).graph.nodes)) == 2


def test_names_are_replaced_while_a_trace_lasts():
    before = len, range, max

    def function(x):
        assert builtins.len is not before[0]
        assert (len([1, 2]), list(range(2)), max(1, 2)) == (2, [0, 1], 2)
        return x

    rekindle.trace(function, (torch.ones(1),), check_trace=False)
    assert (len, range, max) == before


class TanhForRelu(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return torch.tanh(*args) if function is torch.relu else function(*args, **(kwargs or {}))


def test_modes_of_the_code_itself():
    def function(x):
        with TanhForRelu(), torch.device("meta"):
            return torch.relu(x), torch.zeros(x.size(0))

    traced = rekindle.trace(function, (torch.ones(2),))
    assert [node.kind for node in traced.graph.nodes if node.kind.startswith("aten::")] == [
        "aten::tanh",
        "aten::size",
        "aten::zeros",
    ]
    assert traced(torch.ones(3))[1].is_meta

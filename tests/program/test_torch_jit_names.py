"""The public names of torch.jit's modules, functions and methods: each is here, or there is a reason."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import ArgumentError
from tests.support.messages import message_of


class Net(nn.Module):
    __constants__ = ["width"]

    def __init__(self) -> None:
        super().__init__()
        self.width = 3
        self.linear = nn.Linear(2, 3)
        self.register_buffer("scale", torch.full((3,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale + self.width


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def compiled() -> dict[str, tuple[object, object]]:
    """What torch.jit makes, and what is made here."""
    theirs, ours = torch.jit.script(Net()), rekindle.script(Net())
    return {
        "module": (theirs, ours),
        "function": (torch.jit.script(doubled), rekindle.script(doubled)),
        "method": (theirs.forward, ours.forward),
    }


NOT_APPLICABLE = {
    "module.forward_magic_method": "how torch.jit's wrapper finds __len__ and the like; here they are Python's own",
    "method.raw_owner": "the C++ object of the module; `owner` is the module",
}

# nn.Module has these, and torch.jit refuses to do them for a compiled module. Here they do what they always do.
REFUSED_BY_TORCH_JIT = """
    bfloat16 compile get_buffer get_parameter get_submodule ipu mtia register_backward_hook register_forward_hook
    register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_state_dict_post_hook
    register_state_dict_pre_hook requires_grad_ set_submodule to_empty xpu
""".split()


def public_names(obj: object) -> set[str]:
    of_class = {name for cls in type(obj).__mro__ for name in vars(cls)}
    return {name for name in of_class if not name.startswith("_")}


@pytest.mark.parametrize("what", ["module", "function", "method"])
def test_every_public_name_is_here_or_has_a_reason(what: str) -> None:
    theirs, ours = compiled()[what]
    missing = {f"{what}.{name}" for name in public_names(theirs) if not hasattr(ours, name)}
    assert missing == {name for name in NOT_APPLICABLE if name.startswith(f"{what}.")}


def test_what_torch_jit_refuses() -> None:
    refused = [
        name
        for name in dir(nn.Module)
        if getattr(inspect.getattr_static(torch.jit.RecursiveScriptModule, name), "__name__", "") == "fail"
        and not name.startswith("_")
    ]
    assert refused == REFUSED_BY_TORCH_JIT
    ours = rekindle.script(Net())
    assert ours.get_submodule("linear") is ours.linear
    assert ours.get_parameter("linear.weight") is ours.linear.weight
    assert ours.get_buffer("scale") is ours.scale
    assert not any(parameter.requires_grad for parameter in ours.requires_grad_(False).parameters())
    assert ours.bfloat16()(torch.ones(1, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    calls: list[str] = []
    ours.register_forward_hook(lambda module, args, result: calls.append("hook"))
    ours(torch.ones(1, 2, dtype=torch.bfloat16))
    assert calls == ["hook"]


def test_what_they_say_of_themselves() -> None:
    for theirs, ours in compiled().values():
        for name in ("original_name", "name"):
            assert getattr(theirs, name, None) == getattr(ours, name, None)
    theirs, ours = compiled()["module"]
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert ours.state_dict().keys() == theirs.state_dict().keys()


def test_states_can_be_looked_at() -> None:
    class Fresh(Net):
        """Modules of one class share what was made for them."""

    ours = rekindle.script(Fresh())
    assert ours.get_debug_state().execution_plans == ()
    assert ours.get_debug_state().graph is ours.graph
    ours(torch.ones(1, 2))
    (plan,) = ours.get_debug_state().execution_plans
    assert plan.graph is ours.graph_for(torch.ones(1, 2))
    assert "= Load" in str(plan)


def test_the_graph_that_ran_last() -> None:
    ours, function = rekindle.script(Net()), rekindle.script(doubled)
    ours(torch.ones(1, 2))
    assert rekindle.last_executed_graph() is ours.graph_for(torch.ones(1, 2))
    function(torch.ones(1))
    assert rekindle.last_executed_graph() is function.graph_for(torch.ones(1))
    ours.graph_for(torch.ones(1, 2))  # runs nothing
    assert rekindle.last_executed_graph() is function.graph_for(torch.ones(1))
    with rekindle.optimized_execution(False):
        ours(torch.ones(1, 2))
    assert rekindle.last_executed_graph() is ours.graph


def test_the_graph_for_arguments() -> None:
    ours = rekindle.script(Net())
    assert ours.graph.find_nodes("prim::CallMethod")
    assert not ours.graph_for(torch.ones(1, 2)).find_nodes("prim::CallMethod")
    with rekindle.optimized_execution(False):
        assert ours.graph_for(torch.ones(1, 2)) is ours.graph
    function = rekindle.script(doubled)
    assert [node.kind for node in function.graph_for(x=torch.ones(1)).nodes] == ["prim::FusionGroup"]
    assert message_of(ArgumentError, lambda: function.graph_for()) == message_of(ArgumentError, lambda: function())


def test_new_buffers_while_the_drop_in_is_installed() -> None:
    ours = rekindle.script(Net())
    with rekindle.installed():
        ours.register_buffer("scratch", torch.zeros(1), persistent=False)
        ours.register_buffer("kept", torch.zeros(1))
    assert "scratch" not in ours.state_dict()
    assert "kept" in ours.state_dict()


@pytest.mark.parametrize("name", ["_c", "_save_for_lite_interpreter"])
def test_what_needs_an_object_in_cpp(name: str) -> None:
    """As the optimizer and the format for mobile devices do."""
    net = rekindle.script(torch.nn.ReLU())
    assert not hasattr(net, name)
    with pytest.raises(AttributeError, match=r"load it with PyTorch's torch\.jit\.load"):
        getattr(net, name)

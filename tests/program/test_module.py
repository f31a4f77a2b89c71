"""Compiled modules are nn.Modules on the outside, typed objects within."""

import copy
from typing import Dict, List, Optional

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import ArgumentError, CompileError
from tests.support.messages import message_of
from tests.support.pickles import pickled


class Net(nn.Module):
    __constants__ = ["width"]

    names: List[str]
    limit: Optional[int]

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(3, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)
        self.calls = 0
        self.names = []
        self.limit = None

    def forward(self, x):
        self.calls += 1
        self.steps += 1
        y = self.norm(self.linear(x))
        return torch.relu(y) if self.training else y

    @torch.jit.export
    def limited(self, n: int) -> int:
        limit = self.limit
        return n if limit is None else min(n, limit)


@pytest.fixture
def pair():
    module = Net()
    return module, rekindle.script(module)


def test_parts_are_where_they_always_are(pair):
    module, scripted = pair
    assert isinstance(scripted, nn.Module)
    assert isinstance(scripted, rekindle.ScriptModule)
    assert [name for name, _ in scripted.named_parameters()] == [name for name, _ in module.named_parameters()]
    assert [name for name, _ in scripted.named_buffers()] == [name for name, _ in module.named_buffers()]
    assert [name for name, _ in scripted.named_modules()] == [name for name, _ in module.named_modules()]
    assert all(a is b for a, b in zip(scripted.parameters(), module.parameters()))
    assert scripted.original_name == "Net"
    assert scripted.linear.original_name == "Linear"
    assert {"limited", "linear", "width"} <= set(dir(scripted))


def test_repr_tells_the_original_names(pair):
    _, scripted = pair
    assert repr(scripted) == (
        "ScriptModule(\n"
        "  original_name=Net\n"
        "  (linear): ScriptModule(original_name=Linear)\n"
        "  (norm): ScriptModule(original_name=BatchNorm1d)\n"
        ")"
    )


def test_training_is_live(pair):
    module, scripted = pair
    module, x = copy.deepcopy(module), torch.randn(5, 3)
    for training in (True, False, True):
        scripted.train(training)
        module.train(training)
        torch.testing.assert_close(scripted(x), module(x))


def test_state_dict_round_trip(pair):
    module, scripted = pair
    assert list(scripted.state_dict()) == list(module.state_dict())
    assert "scratch" not in scripted.state_dict()
    other = rekindle.script(Net())
    other.load_state_dict(scripted.state_dict())
    x = torch.randn(2, 3)
    torch.testing.assert_close(other.eval()(x), scripted.eval()(x))


def test_replaced_parameters_are_seen(pair):
    _, scripted = pair
    scripted.eval()
    x = torch.randn(2, 3)
    before = scripted(x)
    scripted.linear.weight = nn.Parameter(torch.zeros(4, 3))
    scripted.linear.bias = nn.Parameter(torch.zeros(4))
    after = scripted(x)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, torch.zeros(2, 4))


def test_moves_between_dtypes(pair):
    _, scripted = pair
    scripted.eval().to(torch.float64)
    assert scripted(torch.randn(2, 3, dtype=torch.float64)).dtype == torch.float64
    scripted.half()
    assert scripted.linear.weight.dtype == torch.float16
    assert scripted.steps.dtype == torch.long


def test_an_optimizer_trains_it():
    torch.manual_seed(0)
    scripted = rekindle.script(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(scripted.parameters(), lr=0.1)
    x, y = torch.randn(16, 2), torch.randn(16, 1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(scripted(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_attributes_have_types(pair):
    _, scripted = pair
    scripted.eval()(torch.randn(2, 3))
    assert scripted.calls == 1
    scripted.calls = 10
    scripted(torch.randn(2, 3))
    assert scripted.calls == 11
    assert scripted.limited(7) == 7
    scripted.limit = 5
    assert scripted.limited(7) == 5
    scripted.names = ["a"]
    assert scripted.names == ["a"]
    assert message_of(TypeError, lambda: setattr(scripted, "calls", "many")) == (
        "attribute 'calls' of 'Net' takes int, but got a str: 'many'"
    )
    assert message_of(TypeError, lambda: setattr(scripted, "names", ["a", 3])) == (
        "attribute 'names' of 'Net' takes List[str], but got a list: ['a', 3], in which [1] is an int: 3 instead of str"
    )
    assert message_of(TypeError, lambda: setattr(scripted, "steps", None)) == (
        "attribute 'steps' of 'Net' is a Tensor, got None: code was compiled for a Tensor"
    )
    assert message_of(TypeError, lambda: setattr(scripted.linear, "weight", 3)) == (
        "attribute 'weight' of 'Linear' is a parameter and takes a Tensor, got an int: 3"
    )


def test_constants_cannot_be_assigned(pair):
    _, scripted = pair
    assert scripted.width == 4
    assert message_of(AttributeError, lambda: setattr(scripted, "width", 5)) == (
        "'width' is a constant of the compiled module 'Net': it was compiled into the program"
    )


def test_parts_are_replaced_by_compiled_ones_of_the_same_type(pair):
    _, scripted = pair
    assert message_of(TypeError, lambda: setattr(scripted, "linear", nn.Linear(3, 4))) == (
        "attribute 'linear' of 'Net' is a compiled module, got the module Linear; compile it with rekindle.script first"
    )
    other = rekindle.script(nn.Linear(3, 4))
    scripted.linear = other
    assert scripted.linear is other
    with pytest.raises(TypeError, match="code was compiled for the first"):
        scripted.linear = rekindle.script(nn.ReLU())


def test_typed_attributes_cannot_be_deleted(pair):
    _, scripted = pair
    assert message_of(AttributeError, lambda: delattr(scripted, "calls")) == (
        "attribute 'calls' of 'Net' belongs to its type and cannot be deleted"
    )


def test_unknown_attributes(pair):
    _, scripted = pair
    assert message_of(AttributeError, lambda: scripted.missing) == "the module 'Net' has no attribute 'missing'"
    assert not hasattr(scripted, "missing")
    scripted.note = object()  # what programs do not see is Python's affair
    assert scripted.note is not None


def test_deepcopy_is_independent_and_shares_the_code(pair):
    _, scripted = pair
    scripted.names.append("a")
    twin = copy.deepcopy(scripted)
    assert twin.script_type is scripted.script_type
    x = torch.randn(2, 3)
    torch.testing.assert_close(twin.eval()(x), scripted.eval()(x))
    with torch.no_grad():
        twin.linear.weight.zero_()
    twin.names.append("b")
    assert scripted.names == ["a"]
    assert scripted.linear.weight.abs().sum() > 0


def test_copy_shares_the_tensors(pair):
    _, scripted = pair
    twin = copy.copy(scripted)
    assert twin.linear is scripted.linear
    twin.calls = 99
    assert scripted.calls != 99


def test_pickles_are_archives(pair):
    _, scripted = pair
    twin = pickled({"net": scripted})["net"]
    assert type(twin) is rekindle.ScriptModule
    x = torch.ones(2, 3)
    torch.testing.assert_close(twin.linear(x), scripted.linear(x))
    assert set(twin.state_dict()) >= set(scripted.state_dict())  # in archives all buffers are persistent
    method = pickled(scripted.linear.forward)
    torch.testing.assert_close(method(x), scripted.linear(x))


def test_hooks_run_from_python(pair):
    _, scripted = pair
    scripted.eval()
    seen: Dict[str, torch.Tensor] = {}
    scripted.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    handle = scripted.register_forward_hook(lambda module, args, result: seen.update(args=args[0], result=result))
    scripted(torch.ones(2, 3))
    assert torch.equal(seen["args"], torch.zeros(2, 3))
    handle.remove()
    seen.clear()
    scripted(torch.ones(2, 3))
    assert not seen


def test_graph_and_schema_are_those_of_forward(pair):
    _, scripted = pair
    assert scripted.graph is scripted.forward.graph
    assert scripted.schema is scripted.forward.schema
    assert "prim::CallMethod" not in {node.kind for node in scripted.inlined_graph.all_nodes()}


def test_wrong_arguments(pair):
    _, scripted = pair
    assert message_of(ArgumentError, lambda: scripted(1)) == (
        "forward() argument 'x' (position 1) takes Tensor, but got an int: 1\n"
        "Signature: forward(self, x: Tensor) -> Tensor\n"
        "Hint: a parameter without an annotation takes a Tensor; annotate it to take another type"
    )


def test_define_adds_methods(pair):
    _, scripted = pair
    scripted = rekindle.script(Net(5))
    scripted.define("def tripled(self, n: int) -> int:\n    return self.limited(n) * 3 + self.width\n")
    assert scripted.tripled(2) == 11
    assert message_of(CompileError, lambda: scripted.define("def limited(self, n: int):\n    return n\n")) == (
        "the module 'Net' has a method 'limited' already\n    def limited(self, n: int):\n        ^^^^^^^"
    )


def test_call_of_a_module_without_forward():
    class Holder(nn.Module):
        @torch.jit.export
        def size(self) -> int:
            return 3

    scripted = rekindle.script(Holder())
    assert scripted.size() == 3
    assert message_of(AttributeError, lambda: scripted(1)) == "the module 'Holder' has no attribute 'forward'"
    assert message_of(AttributeError, lambda: scripted.code) == (
        "the module 'Holder' has no attribute 'code'\n"
        "Hint: the module has no method 'forward'; take 'code' from one of its methods: size"
    )
    assert "return 3" in scripted.size.code


# ------------------------------------------------------------------------------------- tensors in two places


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.ones(2))
        self.rows = [self.w, self.b]
        self.by_name = {"w": self.w}
        self.pairs = [(self.w, self.b)]

    def forward(self):
        first, second = self.pairs[0]
        return self.rows[0] + self.rows[1] + self.by_name["w"] + first + second


def test_a_replaced_tensor_is_replaced_in_the_lists_and_dicts_that_hold_it():
    module = Weights()
    scripted = rekindle.script(module)
    assert torch.equal(scripted(), torch.full((2,), 5.0))
    scripted.w = nn.Parameter(torch.full((2,), 10.0))
    assert torch.equal(scripted(), torch.full((2,), 32.0))
    scripted.b = torch.full((2,), 100.0)
    assert torch.equal(scripted(), torch.full((2,), 230.0))
    assert scripted.rows[0] is scripted.by_name["w"] is scripted.pairs[0][0] is scripted.w
    assert module.rows[0] is module.w is not scripted.w


def test_moved_tensors_are_moved_in_the_lists_and_dicts_that_hold_them():
    scripted = rekindle.script(Weights()).to(torch.float64)  # which makes new buffers
    assert scripted().dtype == torch.float64
    assert scripted.rows[1] is scripted.pairs[0][1] is scripted.b
    scripted.to("meta")  # which makes new parameters, too
    assert scripted().device.type == "meta"
    assert scripted.rows[0] is scripted.by_name["w"] is scripted.pairs[0][0] is scripted.w


def test_an_lstm_computes_with_the_weights_that_it_was_given_last():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 2)
    module, scripted = nn.LSTM(2, 3), rekindle.script(nn.LSTM(2, 3))
    scripted.load_state_dict({name: value.clone() for name, value in module.state_dict().items()}, assign=True)
    torch.testing.assert_close(scripted(x), module(x))
    scripted.weight_ih_l0 = nn.Parameter(torch.zeros(12, 2))
    module.weight_ih_l0 = nn.Parameter(torch.zeros(12, 2))
    torch.testing.assert_close(scripted(x), module(x))
    assert scripted._flat_weights[0] is scripted.weight_ih_l0


# --------------------------------------------------------------------------------------------- what cannot be changed


def test_registering_goes_through_the_checks_of_assignment(pair):
    _, scripted = pair
    not_compiled = (
        "attribute 'linear' of 'Net' is a compiled module, got the module ReLU; compile it with rekindle.script first"
    )
    assert message_of(TypeError, lambda: scripted.add_module("linear", nn.ReLU())) == not_compiled
    assert message_of(TypeError, lambda: scripted.register_module("linear", nn.ReLU())) == not_compiled
    assert message_of(TypeError, lambda: scripted.add_module("calls", nn.ReLU())) == (
        "attribute 'calls' of 'Net' takes int, but got the module ReLU"
    )
    assert message_of(TypeError, lambda: scripted.register_buffer("steps", None)) == (
        "attribute 'steps' of 'Net' is a Tensor, got None: code was compiled for a Tensor"
    )
    assert message_of(TypeError, lambda: scripted.register_buffer("calls", torch.zeros(1))) == (
        "attribute 'calls' of 'Net' is not a buffer and cannot become one: code was compiled for what it was"
    )
    assert message_of(TypeError, lambda: scripted.linear.register_buffer("weight", torch.zeros(4, 3))) == (
        "attribute 'weight' of 'Linear' is not a buffer and cannot become one: code was compiled for what it was"
    )
    assert message_of(TypeError, lambda: scripted.linear.register_parameter("weight", None)) == (
        "attribute 'weight' of 'Linear' is a Tensor, got None: code was compiled for a Tensor"
    )


def test_what_fits_can_be_registered_in_place_of_what_was_there(pair):
    _, scripted = pair
    scripted.eval()
    linear = rekindle.script(nn.Linear(3, 4))
    scripted.add_module("linear", linear)
    assert scripted.linear is linear
    linear.register_parameter("weight", nn.Parameter(torch.zeros(4, 3)))
    linear.register_parameter("bias", nn.Parameter(torch.zeros(4)))
    assert torch.equal(scripted(torch.ones(2, 3)), torch.zeros(2, 4))
    scripted.register_buffer("steps", torch.tensor(7), persistent=False)
    scripted(torch.ones(2, 3))
    assert scripted.steps == 8
    assert "steps" not in scripted.state_dict()
    scripted.register_buffer("scratch", torch.zeros(2))
    assert "scratch" in scripted.state_dict()


def test_new_names_are_registered_for_python(pair):
    _, scripted = pair
    scripted.add_module("extra", nn.ReLU())
    scripted.register_buffer("more", torch.zeros(1))
    scripted.register_parameter("another", nn.Parameter(torch.zeros(1)))
    assert {"more", "another"} <= set(scripted.state_dict())
    assert isinstance(scripted.extra, nn.ReLU)


def test_methods_cannot_be_replaced(pair):
    _, scripted = pair
    for name in ("forward", "limited"):
        assert message_of(AttributeError, lambda name=name: setattr(scripted, name, len)) == (
            f"'{name}' is a method of the compiled module 'Net' and cannot be replaced; "
            "replace it in the Python module and compile it again"
        )


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.chain = nn.Sequential(nn.ReLU())
        self.table = nn.ModuleDict({"a": nn.ReLU()})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(1))])
        self.named = nn.ParameterDict({"k": nn.Parameter(torch.ones(1))})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.chain(x)


def unchangeable(how: str) -> str:
    return (
        f"a compiled container cannot be changed ({how}): its loops are unrolled; "
        "change the Python module and compile it again"
    )


@pytest.mark.parametrize(
    ("container", "kind", "methods"),
    [
        ("layers", "ModuleList", ["append", "extend", "insert", "pop"]),
        ("chain", "Sequential", ["append", "extend", "insert", "pop"]),
        ("table", "ModuleDict", ["pop", "clear", "update"]),
        ("weights", "ParameterList", ["append", "extend"]),
        ("named", "ParameterDict", ["pop", "popitem", "clear", "update", "setdefault"]),
    ],
)
def test_compiled_containers_have_no_methods_that_change_them(container, kind, methods):
    found = getattr(rekindle.script(Containers()), container)
    for name in methods:
        expected = unchangeable(f"'{name}' of '{kind}'")
        assert message_of(AttributeError, lambda name=name: getattr(found, name)) == expected
        assert not hasattr(found, name)


def test_compiled_containers_keep_their_items():
    scripted = rekindle.script(Containers())
    layers, linear = scripted.layers, rekindle.script(nn.Linear(2, 2))

    def add_in_place() -> None:
        scripted.layers += [linear]

    for how, change in {
        "assignment to an item of 'ModuleList'": lambda: layers.__setitem__(0, linear),
        "deletion of an item of 'ModuleList'": lambda: layers.__delitem__(0),
        "'+=' of 'ModuleList'": add_in_place,
        "new item '1' of 'ModuleList'": lambda: layers.add_module("1", linear),
        "new item '2' of 'ModuleList'": lambda: layers.register_module("2", linear),
        "new item '3' of 'ModuleList'": lambda: setattr(layers, "3", linear),
    }.items():
        assert message_of(TypeError, change) == unchangeable(how)
    assert len(layers) == 1
    layers.add_module("0", linear)  # of the same type: it takes the place of the other
    assert layers[0] is linear
    x = torch.randn(1, 2)
    assert torch.equal(scripted(x), torch.relu(linear(x)))


class OwnList(nn.ModuleList):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))


class OwnDict(nn.ParameterDict):
    def __init__(self) -> None:
        super().__init__({"a": torch.ones(1)})
        self.part = nn.Linear(1, 1)


class OfContainers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = OwnList()
        self.weights = OwnDict()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.layers.scale + self.weights["a"] + len(self.layers)


def test_the_items_of_a_container_are_those_of_its_class() -> None:
    eager = OfContainers()
    compiled = rekindle.script(eager)
    loaded = pickled(compiled)
    for module in (eager, compiled):
        assert list(module.layers) == []
        assert list(module.weights) == ["a"]
    assert list(loaded.layers) == []
    assert torch.equal(loaded(torch.ones(2)), eager(torch.ones(2)))

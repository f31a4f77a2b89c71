"""Classes whose objects are compiled modules, beside ``torch.jit``'s."""

from __future__ import annotations

import copy
import io
from typing import Any, List

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import NotScriptableError, UndefinedNameError
from tests.support.messages import message_of


def net_of(jit: Any) -> Any:
    """The same classes for one compiler or the other."""

    class Base(jit.ScriptModule):
        def __init__(self, factor: int) -> None:
            super().__init__()
            self.factor = jit.Attribute(factor, int)
            self.seen = jit.Attribute([], List[float])

        @jit.script_method
        def scaled(self, x: Tensor) -> Tensor:
            return x * self.factor

        def described(self) -> str:
            return f"{type(self).__name__} of {len(self.state_dict())} tensors"

    class Net(Base):
        __constants__ = ["steps"]

        def __init__(self, steps: int, factor: int = 3) -> None:
            super().__init__(factor)
            self.steps = steps
            self.linear = nn.Linear(4, 4)
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("offset", torch.full((4,), 0.5))
            self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.define("def shifted(self, x):\n    return self.scaled(x) + self.offset\n")

        @jit.script_method
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(self.steps):
                x = self.linear(x) * self.weight
            self.seen.append(float(x.sum()))
            return self.layers(self.shifted(self.halved(x)))

        def halved(self, x: Tensor) -> Tensor:
            return x / 2

    return Net


class Ours:
    """The names of ``torch.jit`` that the classes use."""

    ScriptModule = rekindle.ScriptModule
    Attribute = rekindle.Attribute
    script_method = staticmethod(rekindle.script_method)


@pytest.fixture
def nets() -> tuple[Any, Any]:
    made = []
    for jit in (Ours, torch.jit):
        torch.manual_seed(0)
        made.append(net_of(jit)(2))
    return made[0], made[1]


X = torch.linspace(-1, 1, 8).reshape(2, 4)


def test_objects_are_compiled_modules(nets: tuple[Any, Any]) -> None:
    ours, theirs = nets
    assert isinstance(ours, rekindle.ScriptModule)
    torch.testing.assert_close(ours(X), theirs(X))
    torch.testing.assert_close(ours.shifted(X), theirs.shifted(X))
    torch.testing.assert_close(ours.scaled(X), theirs.scaled(X))
    assert ours.seen == theirs.seen
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.described() == theirs.described() == "Net of 6 tensors"
    assert ours.graph.inputs[1].type.is_subtype_of(ours.scaled.graph.inputs[1].type)


def test_parts_are_compiled(nets: tuple[Any, Any]) -> None:
    ours, _ = nets
    assert [type(part).__name__ for part in (ours.linear, ours.layers)] == ["ScriptModule", "ScriptContainer"]
    assert [name for name, _ in ours.named_modules()] == ["", "linear", "layers", "layers.0", "layers.1"]


def test_what_python_assigns_is_what_methods_read(nets: tuple[Any, Any]) -> None:
    for net in nets:
        before = net.scaled(X)
        net.factor = 6
        torch.testing.assert_close(net.scaled(X), before * 2)
        net.weight = nn.Parameter(torch.zeros(4))
        assert net(X).requires_grad
    torch.testing.assert_close(nets[0](X), nets[1](X))
    with pytest.raises(TypeError):
        nets[0].factor = "three"


def test_gradients_and_conversions(nets: tuple[Any, Any]) -> None:
    for net in nets:
        net(X).sum().backward()
    for ours, theirs in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    assert nets[0].double()(X.double()).dtype is torch.float64


def test_copies_are_of_the_class(nets: tuple[Any, Any]) -> None:
    ours, _ = nets
    other = copy.deepcopy(ours)
    torch.testing.assert_close(other(X), ours(X))
    assert type(other) is type(ours)
    with torch.no_grad():
        other.weight.zero_()
    assert not torch.equal(other(X), ours(X))


def test_files_hold_what_was_compiled(nets: tuple[Any, Any]) -> None:
    ours, theirs = nets
    for net, load in ((ours, torch.jit.load), (theirs, rekindle.load), (ours, rekindle.load)):
        file = io.BytesIO()
        net.save(file) if isinstance(net, rekindle.ScriptModule) else torch.jit.save(net, file)
        file.seek(0)
        loaded = load(file)
        torch.testing.assert_close(loaded(X), theirs(X))


def test_objects_of_a_class_share_what_was_compiled() -> None:
    class Plain(rekindle.ScriptModule):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        @rekindle.script_method
        def forward(self, x: Tensor) -> Tensor:
            return x + self.weight

    one, other = Plain(2), Plain(3)
    assert one.script_type is other.script_type
    assert other(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_methods_of_one_object_are_its_own() -> None:
    class Defined(rekindle.ScriptModule):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.define(f"def forward(self, x: int) -> int:\n    return x + {number}")

    assert [Defined(1)(1), Defined(10)(1)] == [2, 11]


def test_a_forward_that_is_not_marked_is_pythons() -> None:
    class Mixed(rekindle.ScriptModule):
        @rekindle.script_method
        def doubled(self, x: Tensor) -> Tensor:
            return x * 2

        def forward(self, x: Tensor) -> Any:
            return {"doubled": self.doubled(x), "of": type(self)}

    net = Mixed()
    assert net(torch.ones(1))["doubled"].item() == 2.0
    assert "forward" not in net.script_type.methods


def test_super_and_parts_that_are_classes() -> None:
    class Inner(rekindle.ScriptModule):
        @rekindle.script_method
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    class Outer(Inner):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        @rekindle.script_method
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(self.inner(x)) * 10

    class User(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.outer = Outer()

        def forward(self, x: Tensor) -> Tensor:
            return self.outer(x) - 1

    assert Outer()(torch.zeros(1)).item() == 20.0
    assert rekindle.script(User())(torch.zeros(1)).item() == 19.0


def test_a_module_with_nothing_in_it() -> None:
    net = rekindle.ScriptModule()
    net.define("def forward(self, n: int) -> int:\n    return n + 1")
    assert net(2) == 3
    assert net.original_name == "ScriptModule"


def test_errors() -> None:
    class Early(rekindle.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.forward(torch.ones(1))

        @rekindle.script_method
        def forward(self, x: Tensor) -> Tensor:
            return x

    class Missing(rekindle.ScriptModule):
        @rekindle.script_method
        def forward(self, x: Tensor) -> Tensor:
            return x + self.weight

    assert message_of(RuntimeError, Early) == (
        "the method 'forward' is compiled when __init__ ends, and cannot be called before"
    )
    assert message_of(UndefinedNameError, Missing).splitlines()[0] == "the module 'Missing' has no attribute 'weight'"
    assert message_of(NotScriptableError, lambda: rekindle.script_method(3)) == (
        "script_method marks functions, but got 3\nHint: write it above the def of a method"
    )
    net = rekindle.ScriptModule()
    assert message_of(AttributeError, lambda: net.missing) == "the module 'ScriptModule' has no attribute 'missing'"


class Counter(rekindle.ScriptModule):
    """Methods that are marked, and methods that are Python's, in a class that others derive from."""

    scale = 1

    def __init__(self) -> None:
        super().__init__()
        self.__hidden = 4

    @rekindle.script_method
    def forward(self, x: int) -> int:
        return x + 2

    @rekindle.script_method
    def step(self, x: int) -> int:
        return self.forward(x) * 10 + self.scale

    @rekindle.script_method
    def __private(self, x: int) -> int:
        return x + self.__hidden

    def public(self, x: int) -> int:
        return self.__private(x)


class PlainForward(Counter):
    def forward(self, x: int) -> int:
        return super().forward(x) + 5000


class Overriding(Counter):
    @rekindle.script_method
    def step(self, x: int) -> int:
        return super().step(x) + 1000

    def step_of_base(self, x: int) -> int:
        return super().step(x)

    def unbound(self, x: int) -> int:
        return Counter.step(self, x)


class PlainStep(Counter):
    def step(self, x: int) -> int:
        return super().step(x) * 2

    @rekindle.script_method
    def use(self, x: int) -> int:
        return self.step(x)


def test_which_method_a_call_means() -> None:
    """As in Python: overrides count, compiled or not, and ``super()`` is the base's."""
    assert (Counter()(1), Counter().step(1)) == (3, 31)
    net = PlainForward()
    assert (net(1), net.forward(1), net.step(1)) == (5003, 5003, 50031)
    assert [Overriding().step(1), Overriding().step_of_base(1), Overriding().unbound(1)] == [1031, 31, 31]
    assert [PlainStep().step(1), PlainStep().use(1)] == [62, 62]
    assert Counter().public(1) == 5


def test_the_class_of_a_part() -> None:
    class User(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Overriding()

        def forward(self) -> List[bool]:
            part = self.part
            return [isinstance(part, Overriding), isinstance(part, Counter), isinstance(part, PlainStep)]

    assert rekindle.script(User())() == User()() == [True, True, False]


def test_classes_that_change() -> None:
    class Changing(Counter):
        scale = 1

    assert Changing().step(1) == 31
    Changing.scale = 7
    assert Changing().step(1) == 37


def test_classes_of_unusual_kinds() -> None:
    class Virtual(Counter):
        __slots__ = ("room",)

        def __init_subclass__(cls, tag: str = "", **options: Any) -> None:
            super().__init_subclass__(**options)
            cls.tag = tag

        def __getattr__(self, name: str) -> Any:
            return 3 if name == "virtual" else super().__getattr__(name)

    class Tagged(Virtual, tag="x"):
        pass

    net = Tagged()
    assert (net(1), net.virtual, net.tag) == (3, 3, "x")
    with pytest.raises(AttributeError):
        net.missing


def test_copies_of_methods_are_of_the_copies() -> None:
    net = rekindle.script(nn.Linear(1, 1))
    other, method = copy.deepcopy((net, net.forward))
    assert method.owner is other


def test_the_drop_in_has_the_names() -> None:
    with rekindle.installed():
        net = net_of(torch.jit)(1)
        assert isinstance(net, rekindle.ScriptModule)
        assert isinstance(net, torch.jit.ScriptModule)
    assert net(X).shape == (2, 4)

"""Modules of all shapes, scripted and compared with eager."""

import enum
import functools
import io
import math
import re
import types
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rekindle
from rekindle.errors import ArgumentError, NotScriptableError
from rekindle.ir.types import FLOAT, INT, STRING, DictType, ListType, optional
from tests.support.equality import assert_same
from tests.support.messages import message_of


def same(module: nn.Module, *args):
    """The compiled module, after it has given eager's answer."""
    scripted = rekindle.script(module)
    torch.manual_seed(0)
    expected = module(*args)
    torch.manual_seed(0)
    torch.testing.assert_close(scripted(*args), expected)
    return scripted


# ---------------------------------------------------------------------------------------------------------- attributes


class Attributes(nn.Module):
    table: Dict[str, int]
    items: List[int]
    maybe: Optional[float]

    def __init__(self) -> None:
        super().__init__()
        self.table = {}
        self.items = []
        self.maybe = None
        self.pair = (1, "a")
        self.names = ["x", "y"]
        self.rate = 0.5
        self.word = "word"
        self.flag = True
        self.nothing = None
        self.kind = torch.float32
        self.place = torch.device("cpu")

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, int, str]:
        self.table["n"] = len(self.items)
        self.items.append(x.size(0))
        if self.maybe is None:
            self.maybe = self.rate
        number, letter = self.pair
        y = x.to(self.kind).to(self.place) * self.rate
        if self.nothing is not None:
            y = y + missing  # noqa: F821  (never compiled)
        return y, number + self.table["n"], letter + self.word + "".join(self.names)


def test_attributes_of_every_type():
    scripted = rekindle.script(Attributes())
    types = scripted.script_type
    assert types.attribute_type("table") == DictType(STRING, INT)
    assert types.attribute_type("items") == ListType(INT)
    assert types.attribute_type("maybe") == optional(FLOAT)
    module = Attributes()
    for _ in range(2):
        assert_same(scripted(torch.ones(2)), module(torch.ones(2)))
    assert (scripted.table, scripted.items, scripted.maybe) == (module.table, module.items, module.maybe)


def test_the_original_is_left_as_it_was():
    module = Attributes()
    rekindle.script(module)(torch.ones(2))
    assert module.items == []
    assert module.table == {}


class SharedList(nn.Module):
    seen: List[int]
    groups: Dict[str, List[int]]

    def __init__(self, seen, part=None) -> None:
        super().__init__()
        self.seen = seen
        self.again = seen
        self.groups = {"all": seen}
        self.part = part

    def forward(self, n: int) -> int:
        self.seen.append(n)
        if self.part is not None:
            self.part(n)
        return len(self.again) + len(self.groups["all"])


def test_a_list_that_is_two_attributes_stays_one_list():
    seen = [0]
    module = SharedList(seen, SharedList(seen))
    scripted = rekindle.script(module)
    assert scripted(1) == 6
    assert scripted.seen is scripted.again is scripted.groups["all"] is scripted.part.seen
    assert scripted.seen == [0, 1, 1]
    assert seen == [0]
    assert module(1) == 6
    assert rekindle.script(module).seen is not scripted.seen


class DeclaredByValue(nn.Module):
    def __init__(self, attribute) -> None:
        super().__init__()
        self.seen = attribute([], List[int])

    def forward(self, n: int) -> List[int]:
        self.seen.append(n)
        return self.seen


@pytest.mark.parametrize("attribute", [rekindle.Attribute, torch.jit.Attribute])
def test_attribute_with_its_type(attribute):
    scripted = rekindle.script(DeclaredByValue(attribute))
    assert scripted(3) == [3]


class DeclaredInInit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: Dict[str, List[int]] = {}
        self.last: Optional[int] = None
        self.tool: inspect.Signature | None = None  # noqa: F821  (for other tools)

    def forward(self, n: int) -> Optional[int]:
        self.seen["n"] = [n]
        before = self.last
        self.last = n
        return before


def test_types_declared_in_init():
    scripted = rekindle.script(DeclaredInInit())
    assert (scripted(3), scripted(4)) == (None, 3)
    assert scripted.seen == {"n": [4]}


class Pinned(tuple):
    """A tuple that refuses to be measured and walked over, as e3nn's irreps do."""

    def __len__(self):
        raise NotImplementedError

    def __iter__(self):
        raise NotImplementedError


class DeclaredWider(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.how: Optional[Union[str, List[str]]] = "sum"
        self.pinned = Pinned((2, 3.5))

    def forward(self, x) -> str:
        return self.how + str(self.pinned[0])


def test_the_value_counts_where_init_declares_more():
    assert rekindle.script(DeclaredWider())(torch.ones(1)) == "sum2"


@torch.jit.script
def compiled_by_torch(x):
    return x + 1


class CallsTorchs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.function = compiled_by_torch

    def forward(self, x):
        return self.function(x) + compiled_by_torch(x)


def test_functions_that_torch_jit_compiled_are_compiled_from_their_source():
    x = torch.ones(2)
    assert torch.equal(rekindle.script(CallsTorchs())(x), torch.full((2,), 4.0))
    assert torch.equal(rekindle.script(compiled_by_torch)(x), x + 1)
    assert rekindle.script(compiled_by_torch).graph.find_nodes("aten::add")


def test_modules_that_torch_jit_compiled_are_refused():
    assert message_of(NotScriptableError, lambda: rekindle.script(torch.jit.script(nn.ReLU()))) == (
        "the module was compiled by torch.jit, which does not keep what it was made from\n"
        "Hint: compile the Python module instead"
    )


def test_modules_in_plain_containers():
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.ReLU()]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    text = message_of(NotScriptableError, lambda: rekindle.script(Hidden()))
    assert text.startswith(
        "attribute 'layers' of the module 'Hidden' cannot be used: among the elements of the list: "
        "the module 'ReLU' is in a plain Python container, so that it is not part of the module; "
        "use nn.ModuleList or nn.ModuleDict"
    )


class Constants(nn.Module):
    __constants__ = ["sizes", "mode", "summed"]
    scale: Final[float]
    unset: Final[int]

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.sizes = [2, 3]
        self.mode = mode
        self.summed = mode == "sum"
        self.scale = 2.0

    def forward(self, x):
        for size in self.sizes:
            x = x * size
        if self.summed:
            return x.sum() * self.scale if self.mode == "sum" else x
        return x.this_does_not_exist()


def test_constants_are_known_while_compiling():
    scripted = same(Constants("sum"), torch.ones(2))
    assert scripted.sizes == (2, 3)
    assert scripted.script_type.constants == {"sizes": (2, 3), "mode": "sum", "summed": True, "scale": 2.0}
    assert scripted.graph.find_nodes("prim::GetAttr") == []


class Color(Enum):
    RED = 1
    GREEN = 2


class Point(NamedTuple):
    x: torch.Tensor
    weight: float = 1.0


class Typed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.color = Color.GREEN
        self.point = Point(torch.ones(2))

    def forward(self, x: torch.Tensor, color: Color) -> Tuple[Point, int, str, bool]:
        p = Point(x=self.point.x + x)
        return p, color.value, self.color.name, self.color == Color.GREEN


def test_enums_and_named_tuples():
    scripted = rekindle.script(Typed())
    point, value, name, same_color = scripted(torch.ones(2), Color.RED)
    assert isinstance(point, Point)
    assert torch.equal(point.x, torch.full((2,), 2.0))
    assert point.weight == 1.0
    assert (value, name, same_color) == (1, "GREEN", True)


class Functions(nn.Module):
    def __init__(self, activation) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x):
        return self.activation(x)


def swish(x):
    return x * torch.sigmoid(x)


@pytest.mark.parametrize(
    "activation", [F.relu, swish, torch.tanh, torch.relu, F.gelu, nn.ReLU(), rekindle.script(swish), math.fabs]
)
def test_functions_as_attributes(activation):
    if activation is math.fabs:
        assert rekindle.script(FunctionOfFloat(activation))(-2.0) == 2.0
    else:
        same(Functions(activation), torch.randn(4))


class FunctionOfFloat(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: float) -> float:
        return self.function(x)


# ------------------------------------------------------------------------------------------------------------- methods


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self._gain = 3

    def forward(self, x):
        return self.linear(x)

    def twice(self, x, times: int = 2):
        return x * times

    @staticmethod
    def shifted(x, by: int = 1):
        return x + by

    @property
    def gain(self) -> int:
        return self._gain

    @gain.setter
    def gain(self, value: int) -> None:
        self._gain = value * 10


class Derived(Base):
    def forward(self, x):
        self.gain = self.gain + 1
        return self.shifted(self.twice(super().forward(x))) * self.gain

    def twice(self, x, times: int = 2):
        return super().twice(x, times + 1)


def test_methods_static_methods_properties_and_super():
    x = torch.randn(3, 2)
    scripted = same(Derived(), x)
    assert scripted.gain == 40
    scripted.gain = 2
    assert scripted._gain == 20
    assert torch.equal(scripted.twice(x, times=1), x * 2)


class Unread(nn.Module):
    """A property that compiled code does not use."""

    def __init__(self) -> None:
        super().__init__()
        self._rate = 1.0

    @property
    def rate(self) -> float:
        return self._rate * 2

    @rate.setter
    def rate(self, value: float) -> None:
        self._rate = value

    def forward(self, x):
        return x * self._rate


def test_properties_from_python():
    scripted = rekindle.script(Unread())
    assert scripted.rate == 2.0
    scripted.rate = 3
    assert scripted._rate == 3.0
    assert scripted(torch.ones(1)).item() == 3.0
    assert "rate" not in vars(scripted)


class ClassName(nn.Module):
    kind = "plain"
    depth = 3

    def forward(self, x: int) -> str:
        return self.__class__.__name__ + self.kind + str(x + self.depth)


def test_what_the_class_holds():
    scripted = rekindle.script(ClassName())
    assert scripted(1) == "ClassNameplain4"
    assert scripted.kind == "plain"


class LeftToPython(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log = []

    @rekindle.ignore
    def note(self, x: torch.Tensor, name: str = "x") -> torch.Tensor:
        self.__dict__.setdefault("seen", []).append(name)
        return x * 2

    @rekindle.unused
    def never(self, x: torch.Tensor) -> torch.Tensor:
        return [y for y in (yield x)]

    @torch.jit.ignore
    def python_only(self, *things):
        return len(things)

    @torch.jit.export
    def fails(self, x):
        return self.never(x)

    def forward(self, x):
        if torch.jit.is_scripting():
            return self.note(x, "y")
        return self.python_only(x)


def test_marked_methods():
    scripted = rekindle.script(LeftToPython())
    assert torch.equal(scripted(torch.ones(2)), torch.full((2,), 2.0))
    assert scripted.seen == ["y"]
    assert scripted.python_only(1, 2) == 2
    with pytest.raises(NotImplementedError, match="the function 'never' is marked as unused, but was called"):
        scripted.fails(torch.ones(2))


class OnInstance(nn.Module):
    def __init__(self, deep: bool) -> None:
        super().__init__()
        self.step = self.deep_step if deep else self.shallow_step

    def deep_step(self, x):
        return x * 2

    def shallow_step(self, x):
        return x + 1

    def forward(self, x):
        return self.step(x)


def test_methods_chosen_in_init():
    assert same(OnInstance(True), torch.ones(2)).script_type is not same(OnInstance(False), torch.ones(2)).script_type


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.inner.register_forward_pre_hook(double_input)
        self.inner.register_forward_hook(add_input)

    def forward(self, x):
        return self.inner(x)


def double_input(self, inputs: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
    return (inputs[0] * 2,)


def add_input(self, inputs: Tuple[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
    return result + inputs[0]


def test_hooks_of_parts_are_compiled():
    same(Hooked(), torch.randn(3, 2))


# --------------------------------------------------------------------------------------------------------------- parts


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])
        self.heads = nn.ModuleDict({"mean": nn.Linear(2, 1), "scale": nn.Linear(2, 1)})
        self.stack = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        self.weights = nn.ParameterList([nn.Parameter(torch.full((2,), float(i + 1))) for i in range(3)])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": nn.Parameter(torch.ones(2) * 3)})

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) * (i + 1)
        for layer in self.layers[1:]:
            x = layer(x)
        for layer in reversed(self.layers):
            x = layer(x)
        x = self.layers[0](x) + self.layers[-1](x)
        found: Dict[str, torch.Tensor] = {}
        for name, head in self.heads.items():
            found[name] = head(x)
        x = x + self.heads["mean"](x) * len(self.heads)
        for weight in self.weights:
            x = x * weight
        for key, weight in self.named.items():
            x = x + weight if key == "a" else x - weight
        x = x + self.weights[1] + self.named["b"]
        for layer, weight in zip(self.layers, self.weights):
            x = layer(x) + weight
        if "mean" in self.heads and "missing" not in self.heads:
            x = x + len(self.layers)
        return self.stack(x), found["scale"]


def test_containers_are_unrolled():
    scripted = same(Containers(), torch.randn(3, 2))
    assert scripted.graph.find_nodes("prim::Loop") == []


def test_containers_from_python():
    module = Containers()
    scripted = rekindle.script(module)
    assert len(scripted.layers) == 3
    assert len(scripted.heads) == 2
    assert len(scripted.weights) == 3
    assert [part.original_name for part in scripted.layers] == ["Linear", "ReLU", "Linear"]
    assert scripted.layers[-1] is scripted.layers[2]
    assert [part.original_name for part in scripted.layers[:2]] == ["Linear", "ReLU"]
    assert list(scripted.heads) == ["mean", "scale"]
    assert "mean" in scripted.heads
    assert "x" not in scripted.heads
    assert scripted.heads["scale"] is scripted.heads.scale
    assert [name for name, _ in scripted.heads.items()] == list(scripted.heads.keys())
    assert scripted.weights[0] is module.weights[0]
    assert scripted.named["b"] is module.named["b"]
    assert bool(scripted)
    assert bool(scripted.stack)
    with pytest.raises(IndexError, match="index 3 is out of range for 3 items"):
        scripted.layers[3]
    with pytest.raises(KeyError, match="missing"):
        scripted.heads["missing"]
    with pytest.raises(TypeError):
        len(scripted)


class Indexed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])

    def forward(self, x):
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        return x


def test_equal_parts_are_indexed_at_run_time():
    same(Indexed(), torch.randn(3, 2))


class Custom(nn.ModuleList):
    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class CustomSequential(nn.Sequential):
    def forward(self, x, scale: float):
        for layer in self:
            x = layer(x) * scale
        return x


def test_classes_derived_from_containers():
    same(Custom([nn.Linear(2, 2), nn.ReLU()]), torch.randn(2, 2))
    same(CustomSequential(nn.Linear(2, 2), nn.ReLU()), torch.randn(2, 2), 2.0)


class Walking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.b = nn.Sequential(nn.Linear(3, 1), nn.ReLU())

    def forward(self) -> Tuple[List[str], List[str], int, torch.Tensor]:
        modules = [name for name, _ in self.named_modules()]
        children = [name for name, _ in self.named_children()]
        total = torch.zeros(())
        for p in self.parameters():
            total = total + p.sum()
        return modules, children, len([b for b in self.buffers()]), total


def test_walks_over_the_parts():
    module = Walking()
    modules, children, buffers, total = rekindle.script(module)()
    assert modules == [name for name, _ in module.named_modules()]
    assert children == [name for name, _ in module.named_children()]
    assert buffers == 0
    torch.testing.assert_close(total, sum(p.sum() for p in module.parameters()))


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = self.first
        self.maybe: Optional[nn.Module] = None

    def forward(self, x):
        y = self.second(self.first(x))
        if self.maybe is not None:
            y = self.maybe(y)
        return y


def test_a_part_in_two_places_is_one_part():
    scripted = same(Shared(), torch.randn(2, 2))
    assert scripted.first is scripted.second
    assert len(list(scripted.parameters())) == 2
    assert scripted.maybe is None


def test_compiled_parts_stay_what_they_are():
    inner = rekindle.script(nn.Linear(2, 2))
    scripted = same(nn.Sequential(inner, nn.ReLU()), torch.randn(2, 2))
    assert scripted[0] is inner


# ------------------------------------------------------------------------------------------------------------- sharing


def test_equal_modules_share_their_code():
    a, b = rekindle.script(nn.Linear(2, 3)), rekindle.script(nn.Linear(5, 7))
    # in_features and out_features are constants of Linear.
    assert a.script_type is not b.script_type
    c, d = rekindle.script(nn.ReLU()), rekindle.script(nn.ReLU())
    assert c.script_type is d.script_type
    assert c.forward.graph is d.forward.graph


def test_modules_that_differ_in_what_code_depends_on_do_not():
    types = {
        rekindle.script(module).script_type
        for module in (Constants("sum"), Functions(F.relu), Functions(swish), Functions(nn.ReLU()), Shared())
    }
    assert len(types) == 5


def test_names_are_qualified_and_kept_apart():
    first, second = rekindle.script(nn.Linear(11, 3)), rekindle.script(nn.Linear(11, 4))
    names = {first.script_type.name, second.script_type.name}
    assert len(names) == 2
    for name in names:
        assert name.startswith("__torch__.torch.nn.modules.linear.")
        assert name.endswith(".Linear")
    mangled = second.script_type.name.split(".")[-2]
    assert mangled.startswith("___torch_mangle_")
    assert mangled.removeprefix("___torch_mangle_").isdigit()
    frozen = rekindle.freeze(second.eval()).script_type.name
    assert frozen not in names
    assert frozen.count("___torch_mangle_") == 1


# --------------------------------------------------------------------------------------- what classes say of themselves


class Hints(nn.Module):
    __jit_ignored_attributes__ = ["session"]
    __jit_unused_properties__ = ["report"]

    def __init__(self) -> None:
        super().__init__()
        self.session = object()
        self.n = 2

    @property
    def report(self):
        return f"{self.n} of {[n for n in (yield)]}"

    def forward(self, x):
        return x * self.n


def test_ignored_attributes_and_unused_properties():
    module = Hints()
    scripted = same(module, torch.ones(1))
    assert scripted.session is module.session
    assert "session" not in scripted.script_type.attributes


class UsesUnused(Hints):
    def forward(self, x):
        return x * self.report


def test_a_property_that_is_not_to_be_compiled_is_refused_where_it_is_used():
    text = message_of(NotScriptableError, lambda: rekindle.script(UsesUnused()))
    assert text.startswith(
        "the property 'report' of the module 'UsesUnused' is marked as not to be compiled, but is used here\n"
    )


class Prepared(nn.Module):
    def __prepare_scriptable__(self):
        return nn.ReLU()

    def forward(self, *things):
        return None


def test_a_module_may_prepare_another_to_be_compiled():
    assert rekindle.script(Prepared()).original_name == "ReLU"
    assert same(Around(Prepared()), torch.randn(2)).part.original_name == "ReLU"


class Around(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting():
            return self.part(x)
        return torch.relu(x)


# ------------------------------------------------------------------------------------------- classes that are changed


def changing_class():
    class Base(nn.Module):
        SIZES = [1, 2]

        def helper(self, x):
            return x + 1

    class Changing(Base):
        N = 2

        def forward(self, x):
            return self.helper(x) * self.N + len(self.SIZES)

    return Base, Changing


def test_modules_of_an_unchanged_class_share_their_type():
    _, changing = changing_class()
    assert rekindle.script(changing()).script_type is rekindle.script(changing()).script_type


def test_what_a_class_holds_is_looked_at_anew():
    base, changing = changing_class()
    x = torch.ones(2)
    first = rekindle.script(changing())

    def less(self, x):
        return x - 1

    def unchanged(self, x):
        return x

    def check(value: float) -> None:
        scripted = rekindle.script(changing())
        assert torch.equal(scripted(x), torch.full((2,), value))
        assert torch.equal(scripted(x), changing()(x))
        assert scripted.script_type is not first.script_type

    assert torch.equal(first(x), torch.full((2,), 6.0))
    changing.N = 5
    check(12.0)
    changing.N = 5.5
    check(13.0)
    base.SIZES.append(3)
    check(14.0)
    base.helper = less
    check(3.0)
    changing.forward = unchanged
    check(1.0)
    assert torch.equal(first(x), torch.full((2,), 6.0))


def test_a_changed_class_of_a_part_is_seen():
    _, changing = changing_class()
    before = rekindle.script(nn.Sequential(changing()))
    changing.N = 0
    after = rekindle.script(nn.Sequential(changing()))
    x = torch.ones(2)
    assert torch.equal(before(x), torch.full((2,), 6.0))
    assert torch.equal(after(x), torch.full((2,), 2.0))


def test_methods_left_to_python_that_a_module_has_of_its_own():
    class Named(nn.Module):
        @torch.jit.ignore
        def label(self) -> str:
            return "of the class"

        def forward(self) -> str:
            return self.label()

    @torch.jit.ignore
    def label(self) -> str:
        return "of the module"

    changed = Named()
    changed.label = types.MethodType(label, changed)
    ours, plain = rekindle.script(changed), rekindle.script(Named())
    assert ours() == ours.label() == changed() == "of the module"
    assert plain() == plain.label() == "of the class"


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = torch.nn.GRU(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rnn.flatten_parameters()
        return self.rnn(x)[0]


def test_flatten_parameters_does_nothing_in_a_program():
    net = Recurrent()
    compiled = rekindle.script(net)
    x = torch.ones(4, 1, 2)
    assert compiled.rnn.flatten_parameters() is None
    torch.testing.assert_close(compiled(x), net(x))
    buffer = io.BytesIO()
    rekindle.save(compiled, buffer)
    buffer.seek(0)
    torch.testing.assert_close(torch.jit.load(buffer)(x), net(x))


def _with_default(a: torch.Tensor, eps=torch.tensor(3.5e-4)) -> torch.Tensor:  # noqa: B008
    return a / (a.norm() + eps)


def test_a_tensor_is_the_default_of_a_function_that_a_program_calls():
    def caller(a: torch.Tensor) -> torch.Tensor:
        return _with_default(a) + _with_default(a, torch.tensor(1.0))

    x = torch.ones(3)
    assert torch.equal(rekindle.script(caller)(x), caller(x))


class Doubling(torch.nn.Module):
    def factor(self) -> float:
        return 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor()


class CallsDoubling(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Doubling()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x) + 1


def _tenfold(self: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * 10


def _three(self: torch.nn.Module) -> float:
    return 3.0


def test_methods_that_are_assigned_as_partials():
    """As many libraries patch the modules of others."""
    for name, function in {"forward": _tenfold, "factor": _three}.items():
        net, top = CallsDoubling(), Doubling()
        for module in (net.part, top):
            setattr(module, name, functools.partial(function, module))
        for module in (net, top):
            x = torch.ones(2)
            assert torch.equal(rekindle.script(module)(x), module(x))


@pytest.mark.parametrize(
    "assigned",
    [
        lambda module: lambda x: x * 9,
        lambda module: torch.no_grad()(module.forward),
        lambda module: torch.nn.Linear(2, 2).forward,
        lambda module: functools.partial(_tenfold, torch.nn.ReLU()),
    ],
)
def test_a_forward_that_is_no_method_of_the_module(assigned: Any):
    module = Doubling()
    module.forward = assigned(module)
    with pytest.raises(NotScriptableError) as caught:
        rekindle.script(module)
    assert str(caught.value) == (
        "'forward' was assigned to the module 'Doubling', and is not a method of it: calls of the compiled module would"
        " run the 'forward' of the class\nHint: assign a method, types.MethodType(function, module), or compile a"
        " module that calls this one"
    )


def test_a_part_whose_forward_is_the_method_of_another():
    net = CallsDoubling()
    net.part.forward = Doubling().forward
    with pytest.raises(NotScriptableError, match="attribute 'forward' of the module 'Doubling' cannot be used"):
        rekindle.script(net)


class Level(enum.Enum):
    LOW = 1
    HIGH = 2
    ALSO_HIGH = 2


def test_the_number_of_members_of_an_enum():
    def counted() -> int:
        return len(Level)

    assert rekindle.script(counted)() == counted() == 2


class Shape:
    def __init__(self) -> None:
        self.sides = 1

    def count(self) -> int:
        return self.sides


class Square(Shape):
    def __init__(self) -> None:
        self.sides = 4

    def count(self) -> int:
        return self.sides * 10


class OfShapes(nn.Module):
    one: Shape
    more: List[Shape]
    maybe: Optional[Shape]

    def __init__(self, *shapes) -> None:
        super().__init__()
        self.one, *self.more = shapes
        self.maybe = self.one

    def forward(self) -> Tuple[int, int, int]:
        maybe = self.maybe
        return self.one.count(), sum([each.count() for each in self.more]), 0 if maybe is None else maybe.count()


@pytest.mark.parametrize("classes", [(Shape, Shape), (Square, Square), (Square, Shape, Shape)])
def test_attributes_hold_objects_of_derived_classes(classes):
    """The methods are those of the objects, not of the class that the attribute declares."""
    module = OfShapes(*(cls() for cls in classes))
    assert rekindle.script(module)() == module()


def test_lists_hold_objects_of_one_class():
    with pytest.raises(NotScriptableError) as caught:
        rekindle.script(OfShapes(Shape(), Shape(), Square()))
    assert re.sub(r"___torch_mangle_\d+\.", "", str(caught.value)) == (
        "attribute 'more' of 'OfShapes' takes List[__torch__.tests.scripting.test_modules.Shape], but got a list, in "
        "which [1] is a Square instead of __torch__.tests.scripting.test_modules.Shape\n"
        "Hint: correct the declaration of its type"
    )


def test_hasattr_of_a_class():
    def asked() -> Tuple[bool, bool]:
        return hasattr(Shape, "count"), hasattr(Shape, "area")

    assert rekindle.script(asked)() == asked() == (True, False)


class Counted(nn.ModuleList):
    def __len__(self) -> int:
        return 2


def test_a_list_of_modules_has_its_own_length():
    class HasList(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.items = Counted([nn.ReLU()])

        def forward(self) -> int:
            return len(self.items)

    assert rekindle.script(HasList())() == HasList()() == 2


def test_an_empty_dict_from_an_empty_list():
    def made() -> Tuple[Dict[str, int], Dict[str, torch.Tensor]]:
        numbers: Dict[str, int] = dict([])
        numbers["a"] = 1
        return numbers, dict([])

    assert rekindle.script(made)() == made() == ({"a": 1}, {})


class KeepsItsState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.saved: bool = False
        self.loaded: bool = False

    def forward(self, x):
        return x * self.scale

    @torch.jit.export
    def _save_to_state_dict(self, destination: Dict[str, torch.Tensor], prefix: str, keep_vars: bool) -> None:
        self.saved = True
        destination[prefix + "mine"] = torch.full((1,), 3.0)

    @torch.jit.export
    def _load_from_state_dict(
        self,
        state_dict: Dict[str, torch.Tensor],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: List[str],
        unexpected_keys: List[str],
        error_msgs: List[str],
    ) -> None:
        self.loaded = bool(state_dict[prefix + "mine"] == 3)


def test_exported_methods_keep_the_state():
    for module in (nn.Sequential(KeepsItsState()), rekindle.script(nn.Sequential(KeepsItsState()))):
        part = module[0]
        assert not part.saved
        state = module.state_dict()
        assert part.saved
        assert [*state] == ["0.mine"]
        module.load_state_dict(state, strict=False)
        assert part.loaded


class Rank(enum.IntEnum):
    FIRST = 1


class Text(str, enum.Enum):
    A = "a"


def chosen(x: torch.Tensor, level: Level = Level.HIGH, rank: Optional[Rank] = Rank.FIRST):
    if rank is None:
        return x
    return (x + 1 if level == Level.HIGH else x - 1) * rank.value


def chooses(x: torch.Tensor):
    return chosen(x), chosen(x, rank=None), chosen(x, Level.LOW)


def test_defaults_that_are_members_of_enums() -> None:
    program = rekindle.script(chooses)
    x = torch.ones(2)
    for each in (program, rekindle.load(program.save_to_buffer())):
        for found, expected in zip(each(x), chooses(x), strict=True):
            assert torch.equal(found, expected)


def test_members_of_enums_that_are_ints_or_strings():
    def asked():
        ints = isinstance(Rank.FIRST, int), isinstance(Text.A, int), isinstance(Level.LOW, int)
        return *ints, isinstance(Rank.FIRST, str), isinstance(Text.A, str), isinstance(Text.A, (int, str))

    assert rekindle.script(asked)() == asked() == (True, False, False, False, True, True)


def test_a_member_of_an_enum_among_others():
    def asked(level: Level) -> Tuple[bool, bool, bool]:
        return level in (Level.LOW, Level.HIGH), level in (Level.HIGH,), level not in (Level.LOW,)

    for level in Level:
        assert rekindle.script(asked)(level) == asked(level)


class TakesMore(nn.Module):
    def forward(self, x, *extra, **kw):
        return x + (len(extra) + len(kw))


class Named(nn.Module):
    def forward(self, x, y: int = 1, *, z: int = 3, **kw):
        return x + y + z + len(kw)


def test_arguments_past_the_parameters_are_an_error_with_the_place() -> None:
    module, x = TakesMore(), torch.ones(1)
    with pytest.raises(Exception, match="variable number of arguments"):
        torch.jit.script(module)
    compiled = rekindle.script(module)
    for called in (compiled, rekindle.freeze(compiled.eval())):
        assert torch.equal(called(x), module(x))
        place = rf"\({re.escape(__file__)}:{TakesMore.forward.__code__.co_firstlineno}\)"
        with pytest.raises(ArgumentError, match=rf"takes 1 positional argument, but 2[^$]*'\*extra' {place} is empty"):
            called(x, 2)
        with pytest.raises(ArgumentError, match=rf"has no parameter 'a'[^$]*'\*\*kw' {place} is empty"):
            called(x, a=2)
    named = rekindle.script(Named())
    assert torch.equal(named(x, z=4), Named()(x, z=4))
    with pytest.raises(ArgumentError, match=r"'\*\*kw' .* is empty in a compiled method: declare a parameter instead$"):
        named(x, q=4)
    with pytest.raises(ArgumentError) as error:
        named(x, 1, 2)
    assert "Hint" not in str(error.value)


def test_names_of_parts_that_values_cannot_have() -> None:
    layers = nn.Sequential()
    for name in ("a:b", "c=d", "(e)", " f", "1 2", "9"):
        layers.add_module(name, nn.Linear(2, 2))
    compiled = rekindle.script(layers.eval())
    x = torch.ones(3, 2)
    assert torch.equal(rekindle.freeze(compiled)(x), layers(x))
    assert [node.output.name for node in compiled.graph.find_nodes("prim::GetAttr")] == (
        ["a_b", "c_d", "_e_", "_f", "_1 2", "_9"]
    )

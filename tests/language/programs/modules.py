"""Modules: attributes, parts, containers, hooks, interfaces."""

from typing import Dict, Final, List, Optional, Tuple

import torch
from torch import Tensor, nn

from rekindle.errors import NotScriptableError, UndefinedNameError
from tests.language.corpus import program, refused


def linear(n: int, m: int) -> nn.Linear:
    return nn.Linear(n, m)


@program("module.parameters", (torch.ones(2, 3),), (torch.zeros(1, 3),))
class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(3.0))
        self.register_buffer("seen", torch.zeros(3))
        self.register_parameter("bias", None)

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.sum(0)
        if self.bias is not None:
            x = x + self.bias
        return x * self.weight + self.seen


@program("module.submodules", (torch.ones(2, 3),), (torch.zeros(1, 3),))
class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = linear(3, 4)
        self.second = nn.Sequential(nn.ReLU(), linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


@program("module.attributes", (torch.ones(2),), (torch.zeros(1),))
class PlainAttributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.rate = 0.5
        self.name = "plain"
        self.sizes = [1, 2]
        self.table = {"a": 1}
        self.pair = (1, 2.0)

    def forward(self, x: Tensor) -> Tuple[Tensor, str, int]:
        self.count += 1
        self.sizes.append(self.count)
        self.table["b"] = self.count
        return x * self.rate + self.pair[0], self.name, len(self.sizes)


@program("module.constants", (torch.ones(2),), (torch.zeros(1),))
class Constants(nn.Module):
    __constants__ = ["flag"]
    limit: Final[int]

    def __init__(self):
        super().__init__()
        self.flag = True
        self.limit = 3

    def forward(self, x: Tensor) -> Tensor:
        if self.flag:
            x = x + self.limit
        for i in range(self.limit):
            x = x * 2
        return x


@program("module.annotations", (torch.ones(2),), (torch.zeros(1),))
class AnnotatedAttributes(nn.Module):
    kept: Optional[Tensor]
    names: List[str]
    sizes: Dict[str, List[int]]

    def __init__(self):
        super().__init__()
        self.kept = None
        self.names = []
        self.sizes = {}

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        kept = self.kept
        if kept is not None and kept.shape == x.shape:
            x = x + kept
        self.kept = x
        self.names.append("x")
        self.sizes["x"] = [len(self.names)]
        return x, len(self.names)


@program("module.methods", (torch.ones(2),), (torch.zeros(1),))
class Methods(nn.Module):
    def scaled(self, x: Tensor, k: float = 2.0) -> Tensor:
        return x * k

    @staticmethod
    def shifted(x: Tensor) -> Tensor:
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        return self.shifted(self.scaled(x)) + self.scaled(x, k=0.5)


@program("module.property", (torch.ones(2),), (torch.zeros(1),))
class Property(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = 2

    @property
    def factor(self) -> int:
        return self.base * 3

    @factor.setter
    def factor(self, value: int) -> None:
        self.base = value

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.factor
        self.factor = 5
        return y + self.factor


@program("module.list", (torch.ones(2, 3),), (torch.zeros(1, 3),))
class ModuleLists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([linear(3, 3) for _ in range(3)])

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        return self.layers[0](x) + self.layers[-1](x), len(self.layers)


@program("module.list", (torch.ones(2, 3),), (torch.zeros(1, 3),), torch="refuses")
class ModuleListSlice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([linear(3, 3), nn.ReLU(), nn.Tanh()])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[1:]:
            x = layer(x)
        return x


@program("module.dict", (torch.ones(2, 3),), (torch.zeros(1, 3),))
class ModuleDicts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": linear(3, 3), "b": nn.ReLU()})

    def forward(self, x: Tensor) -> Tuple[Tensor, List[str]]:
        names: List[str] = []
        for name, layer in self.layers.items():
            x = layer(x)
            names.append(name)
        return self.layers["a"](x), names


@program("module.dict", (torch.ones(2, 3),), (torch.zeros(1, 3),))
class ModuleDictContains(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.ReLU()})

    def forward(self, x: Tensor) -> Tensor:
        if "a" in self.layers:
            x = x + 1
        for layer in self.layers.values():
            x = layer(x)
        return x + len(self.layers)


@program("module.sequential", (torch.ones(2, 3),), (torch.zeros(1, 3),))
class Sequentials(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(linear(3, 3), nn.ReLU(), nn.Sequential(linear(3, 2)))

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        y = self.body[0](x)
        for part in self.body:
            x = part(x)
        return x.sum() + y.sum(), len(self.body)


@program("module.parameter_list", (torch.ones(3),), (torch.zeros(3),))
class ParameterLists(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for w in self.weights:
            x = x + w
        return x * self.weights[1]


@program("module.parameter_dict", (torch.ones(3),), (torch.zeros(3),))
class ParameterDicts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weights["a"]


@program("module.shared", (torch.ones(1, 3),), (torch.zeros(1, 3),))
class SharedParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = linear(3, 3)
        self.b = self.a

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x) + self.b(x)


@program("module.training", (torch.ones(3),), (torch.zeros(3),))
class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = self.dropout(x)
        return x + 1


@program("module.state", (torch.ones(2, 3),), (torch.zeros(4, 3),))
class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(torch.cat([x, x + 1]))


@program("module.function_attribute", (torch.ones(2),), (torch.zeros(1),))
class FunctionAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.activation = torch.relu
        self.other = nn.functional.gelu

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(x - 0.5) + self.other(x)


@program("module.forward_hook module.forward_pre_hook", (torch.ones(2),), (torch.zeros(1),))
class HooksOfParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Plus()
        self.part.register_forward_pre_hook(pre_hook)
        self.part.register_forward_hook(hook)

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


def pre_hook(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] - 1,)


def hook(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output * 3 + input[0]


def own_pre_hook(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] + 10,)


@program("module.forward_pre_hook", (torch.ones(2),), (torch.zeros(1),))
class HookOfTheModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_pre_hook(own_pre_hook)

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


@program("module.isinstance", (torch.ones(2),), (torch.zeros(2),))
class AsksParts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            if isinstance(part, nn.Linear):
                x = part(x) * part.in_features
            else:
                x = part(x)
        return x


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Plus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Times(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


@program("interface.module_attribute", (torch.ones(2),), (torch.zeros(1),))
class InterfaceAttribute(nn.Module):
    layer: Layer

    def __init__(self):
        super().__init__()
        self.layer = Plus()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer.forward(x)


@program("interface.choice", (torch.ones(2), 0), (torch.zeros(1), 1))
class InterfaceChoice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Plus(), Times()])

    def forward(self, x: Tensor, i: int) -> Tensor:
        layer: Layer = self.layers[i]
        return layer.forward(x)


@torch.jit.interface
class Scorer:
    def score(self, n: int) -> int:
        pass


class Squares:
    def __init__(self, k: int):
        self.k = k

    def score(self, n: int) -> int:
        return n * n + self.k


class Doubles:
    def __init__(self, k: int):
        self.k = k

    def score(self, n: int) -> int:
        return n + n - self.k


def scored(scorer: Scorer, n: int) -> int:
    return scorer.score(n) + 1


@program("interface.argument", (3,), (-1,))
def interface_argument(n: int) -> int:
    return scored(Squares(2), n) * scored(Doubles(1), n)


@program("interface.list", (3,), (-1,))
def interface_list(n: int) -> int:
    scorers: List[Scorer] = [Squares(1), Doubles(2)]
    total = 0
    for scorer in scorers:
        total += scorer.score(n)
    return total


@program("interface.variable", (3, True), (-1, False))
def interface_variable(n: int, flag: bool) -> int:
    scorer: Scorer = Squares(1)
    if flag:
        scorer = Doubles(2)
    return scorer.score(n)


@program("module.inheritance", (torch.ones(2),), (torch.zeros(1),), torch="refuses")
class Inherited(Plus):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 2


class SharesMethod(nn.Module):
    def helper(self, x: Tensor) -> Tensor:
        return x - 1


@program("module.inheritance", (torch.ones(2),), (torch.zeros(1),))
class InheritedMethod(SharesMethod):
    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x) * 2


@program("module.call_method", (torch.ones(2),), (torch.zeros(1),))
class CallsMethodsOfParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = SharesMethod()

    def forward(self, x: Tensor) -> Tensor:
        return self.part.helper(x)


@program("module.ignored_attributes", (torch.ones(2),), (torch.zeros(1),))
class IgnoredAttributes(nn.Module):
    __jit_ignored_attributes__ = ["strange"]

    def __init__(self):
        super().__init__()
        self.other = object()

    @property
    def strange(self):
        return object()

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


@program("module.keyword_forward", (torch.ones(2),), (torch.zeros(1), 4))
class DefaultsOfForward(nn.Module):
    def forward(self, x: Tensor, n: int = 2, flag: bool = True) -> Tensor:
        return x * n if flag else x


@refused("module.unknown_attribute", UndefinedNameError, "the module 'UnknownAttribute' has no attribute 'missing'")
class UnknownAttribute(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.missing


@refused(
    "module.untyped_attribute",
    NotScriptableError,
    "attribute 'strange' of the module 'StrangeAttribute' cannot be used",
)
class StrangeAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.strange = {1, 2}

    def forward(self, x: Tensor) -> int:
        return len(self.strange)


@program("tensor.identity", (torch.ones(2),), (torch.zeros(1),))
class RemembersTensors(nn.Module):
    """Two names for a parameter, and an attribute that is what a call has set it to."""

    last: Tensor

    def __init__(self):
        super().__init__()
        self.encoder = linear(2, 2)
        self.decoder = linear(2, 2)
        self.decoder.weight = self.encoder.weight
        self.last = torch.zeros(1)
        self.changes = 0

    def remember(self, x: Tensor) -> None:
        if self.last is not x:
            self.changes += 1
            self.last = x

    def forward(self, x: Tensor) -> Tuple[int, bool, bool, bool]:
        self.remember(x)
        self.remember(x)
        self.remember(x + 1)
        weight = self.encoder.weight
        is_tied = weight is self.decoder.weight
        return self.changes, is_tied, self.encoder.bias is self.decoder.bias, self.last is x

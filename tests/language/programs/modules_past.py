"""Modules whose methods do not say all that they take, and parts that a program picks."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.language.corpus import program

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])


class Options(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x, scale=1.0, *, mask=None, **kwargs):
        y = self.lin(x) * scale
        if mask is not None:
            y = y * mask
        if "shift" in kwargs:
            y = y + kwargs["shift"]
        return y


@program("module.any_arguments function.kwargs", (X, 2), (Y, 0), torch="refuses")
class PartWithOptions(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Options()

    def forward(self, x: Tensor, n: int) -> Tensor:
        return self.inner(x) + self.inner(x, 2, shift=n) + self.inner(x, mask=x > 0)


class Wrapped(nn.Module):
    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs) * 2


@program("module.any_arguments function.varargs", (X,), (Y,), torch="refuses")
class PartThatPassesOn(nn.Module):
    def __init__(self):
        super().__init__()
        self.wrapped = Wrapped(nn.Linear(2, 2))
        self.twice = Wrapped(Wrapped(nn.ReLU()))

    def forward(self, x: Tensor) -> Tensor:
        return self.twice(self.wrapped(x)) + self.wrapped(input=x)


@program("module.methods function.unannotated function.as_value", (X, 2), (Y, 0), torch="refuses")
class HelperWithoutTypes(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = 3

    def repeated(self, x, n, f=None):
        for _ in range(n):
            x = x + self.weight
        if f is not None:
            x = f(x)
        return x

    def forward(self, x: Tensor, n: int) -> Tensor:
        y = self.repeated(x, n) + self.repeated(x, 1, torch.relu)
        return y + self.repeated(y, 2, lambda t: t * self.weight)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x, scale=1.0):
        return self.lin(x) * scale


@program("module.inheritance function.kwargs", (X,), (Y,), torch="refuses")
class SuperWithOptions(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Derived()

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x, scale=3.0) + self.part(x)


class Derived(Base):
    def forward(self, x, **kwargs):
        return super().forward(x, **kwargs) + 1


@program("module.list module.run_time_index", (X, 0), (Y, -1), torch="refuses")
class PickedByNumber(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 2), nn.Tanh())])

    def forward(self, x: Tensor, i: int) -> Tensor:
        return self.layers[i](x)


@program("module.list module.run_time_index", (X, 3), (Y, -4), torch="refuses")
class PickedOutOfRange(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])

    def forward(self, x: Tensor, i: int) -> Tensor:
        return self.layers[i](x)


@program("module.dict module.run_time_index", (X, "relu"), (Y, "gelu"), torch="refuses")
class PickedByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.activations = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})

    def forward(self, x: Tensor, name: str) -> Tensor:
        return self.activations[name](x)


@program("module.run_time_index", (X, [0, 1, 1]), (Y, []), torch="refuses")
class PickedInALoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()])

    def forward(self, x: Tensor, order: List[int]) -> Tensor:
        for i in order:
            x = self.layers[i](x)
        return x


@program("module.submodules function.nested", (X,), (Y,), torch="refuses")
class PartsAsArguments(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        def run(block, y):
            return block(y) + 1

        for layer in (self.a, self.b):
            x = run(layer, x)
        return x


def applied(block, x, times: int):
    for _ in range(times):
        x = block(x)
    return x


@program("module.submodules function.as_value", (X, 2), (Y, 0), torch="refuses")
class PartsPassedToFunctions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.act = nn.Tanh()

    def forward(self, x: Tensor, n: int) -> Tensor:
        return applied(self.act, applied(self.a, x, n), 1)


@program("module.submodules expression.lambda", (X,), (Y,), torch="refuses")
class LambdaOverParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])

    def forward(self, x: Tensor) -> Tensor:
        scores = [(lambda h: h(x) * 2)(head) for head in self.heads]
        return torch.cat(scores, dim=-1)


@program("module.submodules", (X,), (Y,), torch="refuses")
class NamedParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        penalty = torch.zeros(1)
        for name, p in self.a.named_parameters():
            if "bias" in name:
                penalty = penalty + p.abs().sum()
        return self.a(x) + penalty


@program("module.attributes default_arguments", (X,), (Y, 2.0, None), torch="refuses")
class DefaultsWithoutTypes(nn.Module):
    def forward(self, x: Tensor, scale=0.5, mask=None):
        y = x * scale
        if mask is not None:
            y = y * mask
        return y


@program("module.state infer.none", ([X, Y],), ([],), torch="refuses")
class OptionalState(nn.Module):
    def forward(self, xs: List[Tensor]) -> Optional[Tensor]:
        last = None
        for x in xs:
            if last is None:
                last = x.sum()
            else:
                last = last + x.sum()
        return last


@program("module.methods infer.dict", (X,), (Y,), torch="refuses")
class Statistics(nn.Module):
    def summary(self, x):
        out = {}
        for name, value in (("mean", x.mean()), ("max", x.max())):
            out[name] = value.item()
        return out

    def forward(self, x: Tensor) -> Dict[str, float]:
        return {k: float(v) for k, v in self.summary(x).items()}


@program("module.methods", (X,), (Y,), torch="refuses")
class SeveralResults(nn.Module):
    def split(self, x, *sizes):
        return [x[:, :n] for n in sizes]

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        a, b = self.split(x, 1, 2)
        return a, b


@program("module.function_attribute", (X,), (X * 2,), torch="refuses")
class HoldsLambdas(nn.Module):
    def __init__(self, scale: int = 3) -> None:
        super().__init__()
        self.double, self.scaled = (lambda x: x * 2), (lambda x: x * scale)
        self.skip = lambda x, y=1: x - y

    def forward(self, x: Tensor) -> Tensor:
        return self.double(x) + self.scaled(x) * self.skip(x)


@program("module.submodules", (X,), (Y,), torch="refuses")
class NamedChildren(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.ReLU()

    def forward(self, x: Tensor):
        names: List[str] = []
        for name, part in self.named_children():
            x = part(x)
            names.append(name)
        size = sum(p.numel() for p in self.parameters())
        penalty = sum(p.abs().sum() for p in self.parameters())
        return x + penalty, names + [name for name, _ in self.named_parameters()], size

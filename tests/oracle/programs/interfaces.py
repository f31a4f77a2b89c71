"""Interfaces: objects and modules of which only the methods are known."""

import warnings
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.oracle.corpus import program, ramp
from tests.support import deprecation


def interface(cls: Any) -> Any:
    """``torch.jit.interface``, without its word that it is deprecated."""
    with warnings.catch_warnings():
        deprecation.silence()
        return torch.jit.interface(cls)


@interface
class Step:
    """What changes a tensor."""

    def apply(self, x: Tensor) -> Tensor:
        """The tensor, changed."""
        pass

    def cost(self, factor: int) -> int:
        pass


class Scale:
    def __init__(self, by: float):
        self.by = by

    def apply(self, x: Tensor) -> Tensor:
        return x * self.by

    def cost(self, factor: int) -> int:
        return 2 * factor


class Shift:
    def __init__(self, by: int):
        self.by = by
        self.calls = 0

    def apply(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + self.by + self.calls

    def cost(self, factor: int) -> int:
        return factor + self.calls


def run_step(step: Step, x: Tensor) -> Tensor:
    return step.apply(x) - step.cost(2)


def same_step(step: Step) -> Step:
    return step


@program((ramp(3),))
def interface_arguments(x: Tensor):
    shift = Shift(4)
    y = run_step(Scale(2.0), x) + run_step(shift, x)
    return y + run_step(shift, x)


@program((ramp(3),))
def interface_results(x: Tensor):
    shift = Shift(1)
    return same_step(same_step(shift)).apply(x), shift.calls


@program((ramp(3), 0), (ramp(3), 2))
def interface_list(x: Tensor, more: int):
    steps: List[Step] = [Scale(0.5), Shift(3)]
    for i in range(more):
        steps.append(Shift(i))
    total = 0
    for step in steps:
        x = step.apply(x)
        total += step.cost(3)
    return x, total, len(steps), steps[0].cost(1)


@program((ramp(3), "a"), (ramp(3), "b"))
def interface_dict(x: Tensor, key: str):
    steps: Dict[str, Step] = {"a": Scale(3.0)}
    steps["b"] = Shift(2)
    return steps[key].apply(x), steps[key].cost(2)


@program((ramp(3), True), (ramp(3), False))
def interface_optional(x: Tensor, has: bool):
    step: Optional[Step] = None
    if has:
        step = Shift(2)
    if step is not None:
        x = step.apply(x)
    return x


@program((ramp(3), True), (ramp(3), False))
def interface_branch(x: Tensor, shift: bool):
    if shift:
        step: Step = Shift(3)
    else:
        step: Step = Scale(3.0)
    return step.apply(x), step.cost(1)


@program((ramp(3), True), (ramp(3), False))
def interface_reassigned(x: Tensor, shift: bool):
    step: Step = Scale(1.5)
    if shift:
        step = Shift(3)
    return step.apply(x)


@program((ramp(3),))
def interface_tuple(x: Tensor):
    pair: Tuple[Step, int] = (Shift(2), 3)
    return pair[0].apply(x) + pair[1]


@program((ramp(3),))
def interface_identity(x: Tensor):
    a: Step = Shift(1)
    b: Step = same_step(a)
    return a is b, b is same_step(Shift(1))


class Pipeline:
    """Holds steps."""

    first: Step

    def __init__(self, first: Step, rest: List[Step]):
        self.first = first
        self.rest: List[Step] = rest

    def run(self, x: Tensor) -> Tensor:
        x = self.first.apply(x)
        for step in self.rest:
            x = step.apply(x)
        return x


@program((ramp(3),))
def interface_attributes(x: Tensor):
    rest: List[Step] = []
    pipeline = Pipeline(Shift(1), rest)
    x = pipeline.run(x)
    pipeline.first = Scale(2.0)
    rest.append(Shift(5))
    return pipeline.run(x), pipeline.first.cost(4)


@interface
class Visitor:
    def visit_number(self, value: int) -> int:
        pass


class Number:
    def __init__(self, value: int):
        self.value = value

    def accept(self, visitor: Visitor) -> int:
        return visitor.visit_number(self.value)


class Doubler:
    def __init__(self):
        self.seen = 0

    def visit_number(self, value: int) -> int:
        self.seen += 1
        return value * 2


@program((3,))
def visitor(n: int):
    doubler = Doubler()
    numbers = [Number(n), Number(n + 1)]
    found = [number.accept(doubler) for number in numbers]
    return found, doubler.seen


# -------------------------------------------------------------------------------------------------------------- modules


@interface
class Layer(nn.Module):
    """A module with one input."""

    def forward(self, x: Tensor) -> Tensor:
        pass


class AddOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(ramp(3))
        self.inner = AddOne()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * self.weight


def call_layer(layer: Layer, x: Tensor) -> Tensor:
    return layer.forward(x)


@program((ramp(3),))
class InterfacePart(nn.Module):
    impl: Layer

    def __init__(self):
        super().__init__()
        self.impl = Affine()

    def forward(self, x: Tensor) -> Tensor:
        return self.impl.forward(x) + self.impl(x)


@program((ramp(3),))
class PassesLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = AddOne()
        self.b = Affine()

    def forward(self, x: Tensor) -> Tensor:
        return call_layer(self.a, x) + call_layer(self.b, x)


@program((ramp(3),))
class ListsLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = AddOne()
        self.b = Affine()

    def forward(self, x: Tensor) -> Tensor:
        layers: List[Layer] = [self.a, self.b, self.a]
        for layer in layers:
            x = layer.forward(x)
        return x


@program((ramp(3), 0), (ramp(3), 1), (ramp(3), -1))
class IndexesLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([AddOne(), Affine()])

    def forward(self, x: Tensor, i: int) -> Tensor:
        layer: Layer = self.layers[i]
        return layer.forward(x)


@program((ramp(3), "one"), (ramp(3), "affine"))
class NamesLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"one": AddOne(), "affine": Affine()})

    def forward(self, x: Tensor, name: str) -> Tensor:
        layer: Layer = self.layers[name]
        return layer.forward(x)


@interface
class Scorer:
    """Of modules and other objects alike."""

    def score(self, x: Tensor, bias: int) -> Tensor:
        pass


class ScoringModule(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return self.score(x, 1)

    def score(self, x: Tensor, bias: int) -> Tensor:
        return x.sum() + bias


def score_with(scorer: Scorer, x: Tensor) -> Tensor:
    return scorer.score(x, 2)


@program((ramp(3),))
class ModuleOfPlainInterface(nn.Module):
    def __init__(self):
        super().__init__()
        self.scoring = ScoringModule()

    def forward(self, x: Tensor) -> Tensor:
        return score_with(self.scoring, x)

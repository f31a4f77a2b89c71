"""Members of classes besides plain methods, and questions about the classes of modules."""

from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import ArgumentError, RekindleError, SchemaError, UnsupportedError
from tests.support.messages import message_of
from tests.support.oracle import normalize, script_with_torch

# ------------------------------------------------------------------------------------------------------- left to Python


class Marked:
    def __init__(self, n: int):
        self.n = n
        self.m = self.in_python(1)

    @torch.jit.ignore
    def in_python(self, k: int) -> int:
        return sum([self.n, k])

    @staticmethod
    @rekindle.ignore
    def static_in_python(k: int) -> int:
        return max(range(k + 1))

    @rekindle.unused
    def never(self, k: int) -> int:
        return sum([self.n, k])

    @torch.jit.export
    def exported(self) -> int:
        return self.in_python(self.m) + self.static_in_python(4)


class MarkedForBoth:
    def __init__(self, n: int):
        self.n = n

    @torch.jit.ignore
    def in_python(self, k: int) -> int:
        return sum([self.n, k])

    def twice(self) -> int:
        return 2 * self.in_python(3)


def calls_python(n: int):
    marked = Marked(n)
    return marked.in_python(5), marked.exported(), marked.m, Marked.static_in_python(3)


def calls_python_as_torch_does(n: int):
    return MarkedForBoth(n).twice()


def calls_unused(n: int):
    return Marked(n).never(3)


def test_methods_left_to_python():
    assert rekindle.script(calls_python)(3) == calls_python(3) == (8, 11, 4, 3)
    assert rekindle.script(calls_python_as_torch_does)(3) == calls_python_as_torch_does(3) == 12
    theirs = script_with_torch(calls_python_as_torch_does)
    assert theirs(3) == 12
    assert normalize(str(rekindle.script(calls_python_as_torch_does).graph)) == normalize(str(theirs.graph))
    assert message_of(NotImplementedError, lambda: rekindle.script(calls_unused)(3)).partition("\n")[0] == (
        "the function 'never' is marked as unused, but was called"
    )


def wrong_for_python(n: int) -> int:
    return MarkedForBoth(n).in_python("a")


def test_arguments_of_methods_left_to_python_are_checked():
    assert (
        message_of(SchemaError, lambda: rekindle.script(wrong_for_python))
        .partition("\n")[0]
        .endswith("argument 'k': expected int, got str.")
    )


# -------------------------------------------------------------------------------------------------------- magic methods


class Table:
    def __init__(self, n: int):
        super().__init__()
        self.n = n
        self.held: Dict[int, int] = {}

    def __setitem__(self, key: int, value: int) -> None:
        self.held[key] = value

    def __getitem__(self, key: int) -> int:
        return self.held[key]

    def __delitem__(self, key: int) -> None:
        self.held.pop(key)

    def __contains__(self, key: int) -> bool:
        return key in self.held

    def __call__(self, k: int) -> int:
        return k * self.n

    def __bool__(self) -> bool:
        return self.n > 2

    def __hash__(self) -> int:
        return 77 + self.n

    def __eq__(self, other: "Table") -> bool:  # type: ignore[override]
        return self.n == other.n

    def __lt__(self, other: "Table") -> bool:
        return self.n < other.n

    def __pos__(self) -> int:
        return self.n + 1

    def __invert__(self) -> int:
        return ~self.n

    def __radd__(self, k: int) -> int:
        return 100 + k


def uses_table(n: int):
    table = Table(n)
    table[1] = 5
    table[1] += 2
    before = 1 in table
    found = table[1]
    del table[1]
    flags = [before, 1 in table, bool(table), table == Table(3), table != Table(3), table < Table(9), not table]
    return found, flags, table(4), +table, ~table, 3 + table, hash(table)


def test_magic_methods():
    for n in (2, 3):
        assert rekindle.script(uses_table)(n) == uses_table(n)


class Base:
    def __init__(self, n: int):
        super().__init__(n)  # type: ignore[call-arg]
        self.n = n


def makes_base(n: int) -> int:
    return Base(n).n


def test_super_of_a_class_without_bases_takes_nothing():
    assert message_of(rekindle.errors.TypeMismatchError, lambda: rekindle.script(makes_base)).partition("\n")[0] == (
        "super() of a class that inherits from nothing takes no arguments"
    )


# ------------------------------------------------------------------------------------------------------ with statements


class Swallows:
    def __init__(self, yes: bool):
        self.yes = yes
        self.left = 0

    def __enter__(self) -> int:
        return self.left

    def __exit__(self, type: Any, value: Any, traceback: Any) -> bool:
        self.left += 1
        return self.yes


def raises_within(manager: Swallows, fails: bool) -> int:
    with manager:
        if fails:
            raise ValueError("within")
    return manager.left


def test_an_answer_of_exit_that_cannot_be_heeded_is_told():
    f = rekindle.script(raises_within)
    for yes in (True, False):
        assert f(Swallows(yes), False) == raises_within(Swallows(yes), False) == 1
    manager = Swallows(False)
    with pytest.raises(ValueError, match="within"):
        f(manager, True)
    assert manager.left == 1
    assert message_of(RekindleError, lambda: f(Swallows(True), True)) == (
        "__exit__ of 'Swallows' swallows a ValueError: within\n"
        "A compiled program cannot continue after a with statement that an error has left.\n"
        "Hint: let __exit__ return None, and leave the with statement to Python, in a function marked with @ignore"
    )


# --------------------------------------------------------------------------------------------------- classes of modules


class OwnLinear(nn.Linear):
    """torch.jit knows a class by its name, and gives one that it compiled before, for another test, another name."""


class OwnReLU(nn.ReLU):
    """As above."""


class AsksParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = OwnLinear(2, 2)
        self.second = OwnReLU()
        self.parts = nn.ModuleList([OwnLinear(2, 2), OwnReLU()])

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.first, OwnLinear):
            x = x + 1
        if isinstance(self.second, OwnLinear):
            x = self.second.in_features + x
        if not isinstance(self.second, OwnReLU):
            x = self.second.nothing(x)
        for part in self.parts:
            if isinstance(part, OwnLinear):
                x = part(x) * part.in_features
            else:
                x = part(x)
        return x


class AsksTuples(nn.Module):
    def __init__(self, part: nn.Module):
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.part, (nn.Conv2d, nn.Sequential)):
            return x + 10
        if isinstance(self.part, nn.Module) and not isinstance(self.part, Tensor):
            return self.part(x)
        return x


def test_the_class_of_a_part_is_known_while_compiling():
    x = torch.ones(2)
    torch.manual_seed(0)
    module = AsksParts()
    scripted = rekindle.script(module)
    assert torch.equal(scripted(x), module(x))
    theirs = script_with_torch(AsksParts())
    assert normalize(str(scripted.graph)) == normalize(str(theirs.graph))
    for part in (nn.Sequential(nn.ReLU()), nn.Tanh()):
        asks = AsksTuples(part)
        assert torch.equal(rekindle.script(asks)(x), asks(x))


# --------------------------------------------------------------------------------------------------------- program text

TEXT = """
class Circle:
    def __init__(self, radius: float):
        self.radius = radius

    @property
    def diameter(self) -> float:
        return self.radius * 2

    @diameter.setter
    def diameter(self, value: float):
        self.radius = value / 2

    @staticmethod
    def unit(scale: float) -> Circle:
        return Circle(scale)

    @torch.jit.export
    def area(self) -> float:
        return 3.0 * self.radius * self.radius

def f(x: float):
    circle = Circle.unit(x)
    circle.diameter = 8.0
    circle.diameter += 2.0
    return circle.radius, circle.unit(2.0).diameter, circle.area()
"""


def test_decorators_in_program_text():
    unit = rekindle.CompilationUnit(TEXT)
    assert unit.f(1.0) == (5.0, 4.0, 75.0)
    circle = unit.Circle.unit(3.0)
    assert circle.diameter == 6.0
    circle.diameter = 4.0
    assert (circle.radius, circle.area()) == (2.0, 12.0)
    with pytest.raises(ArgumentError):
        circle.diameter = "a"
    wrong = "class A:\n    @cached\n    def f(self) -> int:\n        return 1\n"
    assert message_of(UnsupportedError, lambda: rekindle.CompilationUnit(wrong)) == (
        "the method 'f' has a decorator that a program text cannot have: cached\n"
        "    class A:\n"
        "        @cached\n"
        "         ^^^^^^\n"
        "Hint: methods may be decorated with @staticmethod, @property and @name.setter"
    )


# ----------------------------------------------------------------------------------------------------------- references


class Link:
    def __init__(self, value: int):
        self.value = value
        self.next: Optional[Link] = None


class Parent:
    rate = 3

    def __init__(self, value: int):
        self.value = value
        self.children: List[Child] = []

    def add(self, name: str, *, twice: bool = False) -> "Child":
        child = Child(self, name + name if twice else name)
        self.children.append(child)
        return child


class Child:
    def __init__(self, parent: Parent, name: str = "none"):
        self.parent = parent
        self.name = name


def walks(n: int):
    head = Link(0)
    last = head
    for i in range(n):
        made = Link(i + 1)
        last.next = made
        last = made
    total = 0
    link: Optional[Link] = head
    while link is not None:
        total += link.value
        link = link.next
    return total


def families(n: int) -> Tuple[bool, List[str], int]:
    parent = Parent(n)
    parent.add("a")
    child = parent.add("b", twice=True)
    child.parent.value += 1
    return parent.children[0].parent is parent, [item.name for item in parent.children], parent.value * Parent.rate


def test_classes_that_refer_to_themselves_and_each_other():
    assert rekindle.script(walks)(4) == walks(4) == 10
    assert rekindle.script(families)(4) == families(4) == (True, ["a", "bb"], 15)

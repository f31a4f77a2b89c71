"""Interfaces from Python: who implements one, how objects cross the boundary, what is refused."""

from typing import Dict, List, Optional, Protocol

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import (
    ArgumentError,
    NotScriptableError,
    SchemaError,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from tests.support.messages import message_of


@rekindle.interface
class Shape(Protocol):
    """What has an area."""

    def area(self) -> float: ...

    def scaled(self, by: float = 2.0) -> "Shape":
        raise NotImplementedError


class Square(Shape):
    def __init__(self, side: float):
        self.side = side

    def area(self) -> float:
        return self.side * self.side

    def scaled(self, by: float = 2.0) -> Shape:
        return Square(self.side * by)


class Circle:
    def __init__(self, radius: float):
        self.radius = radius

    def area(self) -> float:
        return 3.0 * self.radius**2

    def scaled(self, by: float = 2.0) -> Shape:
        return Circle(self.radius * by)


class Blob:
    def __init__(self):
        self.size = 3.0

    def area(self, exact: bool) -> float:
        return self.size


def areas(shapes: List[Shape], one: Optional[Shape] = None):
    total = 0.0
    for shape in shapes:
        total += shape.area() + shape.scaled().area() + shape.scaled(by=0.5).area()
    if one is not None:
        total += one.area()
    return total


def test_objects_of_python_are_what_they_implement():
    f = rekindle.script(areas)
    shapes = [Square(2.0), Circle(1.0)]
    assert f(shapes) == areas(shapes)
    assert f(shapes, Square(4.0)) == areas(shapes, Square(4.0))
    assert message_of(ArgumentError, lambda: f([Square(2.0), Blob()])) == (
        f"areas() argument 'shapes' (position 1) takes List[__torch__.{__name__}.Shape], but got a list, "
        f"in which shapes[1] is a Blob instead of __torch__.{__name__}.Shape\n"
        "the method 'area' of 'Blob' does not fit the interface 'Shape'\n"
        "  it is    area(bool exact) -> float\n"
        "  wanted   area() -> float\n"
        "'Blob' does not have the method 'scaled' of the interface 'Shape': "
        "scaled(float by=2.) -> InterfaceType<Shape>\n"
        f"Signature: areas(shapes: List[__torch__.{__name__}.Shape], one: Optional[__torch__.{__name__}.Shape] = None) "
        "-> float"
    )
    assert message_of(ArgumentError, lambda: f([], 3)).partition("\n")[0] == (
        f"areas() argument 'one' (position 2) takes Optional[__torch__.{__name__}.Shape], but got an int: 3"
    )


def asks(shape: Shape) -> int:
    if isinstance(shape, Square):
        return int(shape.side)
    return -1


def chooses(first: bool):
    shape: Shape = Square(3.0) if first else Circle(1.0)
    return shape.area()


def changes(n: int):
    shape: Shape = Square(1.0)
    for _ in range(n):
        shape = shape.scaled()
    by_name: Dict[str, Shape] = {"it": shape}
    return by_name["it"].area()


def test_values_of_interfaces_keep_their_class():
    for shape in (Square(4.0), Circle(1.0)):
        assert rekindle.script(asks)(shape) == asks(shape)
    for first in (True, False):
        assert rekindle.script(chooses)(first) == chooses(first)
    assert rekindle.script(changes)(3) == changes(3) == 64.0


def test_results_are_the_objects_themselves():
    def same(shape: Shape) -> Shape:
        return shape

    circle = Circle(2.0)
    assert rekindle.script(same)(circle) is circle


class Itself:
    """Is given away while its method is being compiled."""

    def area(self) -> float:
        return areas([self]) if self.nested() else 1.0

    def nested(self) -> bool:
        return False

    def scaled(self, by: float = 2.0) -> Shape:
        return self


class Tree:
    def __init__(self, shape: Shape):
        self.shape = shape

    def area(self) -> float:
        return self.shape.area()

    def scaled(self, by: float = 2.0) -> Shape:
        return measured(Tree(self.shape.scaled(by)))


def measured(shape: Shape) -> Shape:
    return shape if shape.area() > 0 else Square(0.0)


def grows(side: float) -> float:
    return Tree(Square(side)).scaled(3.0).area()


def test_a_method_may_give_its_class_away_while_it_is_compiled():
    assert rekindle.script(grows)(2.0) == grows(2.0) == 36.0


# ------------------------------------------------------------------------------------------------------------- refusals


def takes(shape: Shape) -> float:
    return shape.area()


def passes_blob() -> float:
    return takes(Blob())


def assigns_blob() -> float:
    shape: Shape = Blob()
    return shape.area()


def lists_blob() -> float:
    shapes: List[Shape] = [Square(1.0), Blob()]
    return shapes[0].area()


def lists_squares() -> float:
    squares = [Square(1.0)]
    return areas(squares)


def asks_for_more(shape: Shape) -> float:
    return shape.perimeter()


def makes_one() -> float:
    return Shape().area()


WHY_NOT = (
    "the method 'area' of 'Blob' does not fit the interface 'Shape'\n"
    "  it is    area(bool exact) -> float\n"
    "  wanted   area() -> float\n"
    "'Blob' does not have the method 'scaled' of the interface 'Shape': scaled(float by=2.) -> InterfaceType<Shape>"
)


def error_of(error, program):
    return message_of(error, lambda: rekindle.script(program))


def test_what_an_object_lacks_is_said():
    assert error_of(TypeMismatchError, assigns_blob) == (
        f"'shape' is annotated as __torch__.{__name__}.Shape, but the value is __torch__.{__name__}.Blob\n"
        f"{WHY_NOT}\n"
        '  File "FILE", line N\n'
        "    def assigns_blob() -> float:\n"
        "        shape: Shape = Blob()\n"
        "        ^^^^^"
    )
    assert error_of(TypeMismatchError, lists_blob).startswith(
        f"expected __torch__.{__name__}.Shape here, got __torch__.{__name__}.Blob\n{WHY_NOT}\n"
    )
    assert error_of(SchemaError, passes_blob) == (
        f"'takes' cannot be called with (__torch__.{__name__}.Blob): argument 'shape': expected "
        f"__torch__.{__name__}.Shape, got __torch__.{__name__}.Blob\n{WHY_NOT}.\n"
        "It is declared as\n"
        "  takes(InterfaceType<Shape> shape) -> float\n"
        '  File "FILE", line N\n'
        "    def passes_blob() -> float:\n"
        "        return takes(Blob())\n"
        "               ^^^^^"
    )
    assert error_of(SchemaError, lists_squares).partition("\nIt is declared")[0].partition("\n")[2] == (
        f"a List[__torch__.{__name__}.Square] may hold nothing else, and other objects may be put into a "
        f"List[__torch__.{__name__}.Shape]; declare the list as the latter where it is made."
    )
    assert error_of(UndefinedNameError, asks_for_more) == (
        "the interface 'Shape' has no method 'perimeter'\n"
        '  File "FILE", line N\n'
        "    def asks_for_more(shape: Shape) -> float:\n"
        "        return shape.perimeter()\n"
        "               ^^^^^^^^^^^^^^^\n"
        "Hint: its methods are area, scaled"
    )
    assert error_of(UnsupportedError, makes_one).partition("\n")[0] == "the interface 'Shape' cannot be called"


class Half(Shape):
    def area(self) -> float:
        return 1.0


def test_a_class_is_held_to_the_interfaces_that_it_derives_from():
    assert error_of(UnsupportedError, Half) == (
        "'Half' does not have the method 'scaled' of the interface 'Shape': scaled(float by=2.) -> InterfaceType<Shape>"
    )


def test_what_an_interface_cannot_have():
    @rekindle.interface
    class WithBody:
        def f(self) -> int:
            return 3

    @rekindle.interface
    class Untyped:
        def f(self):
            pass

    @rekindle.interface
    class WithAttribute:
        n: int

    @rekindle.interface
    class WithProperty:
        @property
        def n(self) -> int:
            pass

    def uses(cls):
        def f(x: cls) -> int:
            return 1

        return f

    assert error_of(UnsupportedError, uses(WithBody)).startswith(
        "the method 'f' of the interface 'WithBody' has a body, which nothing would run\n"
        '  File "FILE", line N\n'
        "            def f(self) -> int:\n"
        "                return 3\n"
        "                ^^^^^^^^\n"
    )
    assert error_of(UnsupportedError, uses(Untyped)).startswith(
        "the method 'f' of the interface 'Untyped' does not say what it returns\n"
    )
    assert error_of(NotScriptableError, uses(WithAttribute)).partition("\n")[0] == (
        "the interface 'WithAttribute' declares the attribute 'n'; an interface has methods only"
    )
    assert error_of(NotScriptableError, uses(WithProperty)).partition("\n")[0] == (
        "the interface 'WithProperty' declares the property 'n'; an interface has methods only"
    )
    with pytest.raises(TypeError, match="the interface 'Bad' derives from 'Circle', which is not an interface"):

        @rekindle.interface
        class Bad(Circle):
            pass

    with pytest.raises(TypeError, match="interface is a decorator of classes"):
        rekindle.interface(3)


# -------------------------------------------------------------------------------------------------------------- modules


@rekindle.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


@rekindle.interface
class Measured(Layer):
    """An interface with all of another one."""

    def size(self, factor: int) -> int:
        pass


class Add(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.n = n

    def forward(self, x: Tensor) -> Tensor:
        return x + self.n

    def size(self, factor: int) -> int:
        return self.n * factor


class Linear(Layer):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Net(nn.Module):
    impl: Layer

    def __init__(self, impl: nn.Module):
        super().__init__()
        self.impl = impl

    def forward(self, x: Tensor) -> Tensor:
        return self.impl(x) * 2


def test_parts_behind_an_interface_can_be_swapped():
    torch.manual_seed(0)
    x = torch.randn(2, 3)
    first, second = Net(Add(3)), Net(Linear())
    scripted, other = rekindle.script(first), rekindle.script(second)
    assert scripted.script_type is other.script_type
    assert torch.equal(scripted(x), first(x))
    assert torch.equal(other(x), second(x))
    scripted.impl = other.impl
    assert torch.equal(scripted(x), second(x))
    scripted.impl = rekindle.script(Add(7))
    assert torch.equal(scripted(x), Net(Add(7))(x))
    assert message_of(TypeError, lambda: setattr(scripted, "impl", rekindle.script(TwoInputs()))) == (
        f"attribute 'impl' of 'Net' is a __torch__.{__name__}.Layer, got a __torch__.{__name__}.TwoInputs\n"
        "the method 'forward' of 'TwoInputs' does not fit the interface 'Layer'\n"
        "  it is    forward(Tensor x, Tensor y) -> Tensor\n"
        "  wanted   forward(Tensor x) -> Tensor"
    )
    assert message_of(TypeError, lambda: setattr(scripted, "impl", Add(3))) == (
        "attribute 'impl' of 'Net' is a compiled module, got the module Add; compile it with rekindle.script first"
    )


def test_a_part_is_held_to_its_interface():
    assert error_of(TypeMismatchError, Net(TwoInputs())) == (
        f"the part 'impl' of 'Net' is declared __torch__.{__name__}.Layer, but is a TwoInputs\n"
        "the method 'forward' of 'TwoInputs' does not fit the interface 'Layer'\n"
        "  it is    forward(Tensor x, Tensor y) -> Tensor\n"
        "  wanted   forward(Tensor x) -> Tensor"
    )


def test_hooks_do_not_run_behind_an_interface_and_are_refused():
    hooked = Add(2)
    hooked.register_forward_hook(lambda module, args, result: None)
    assert error_of(NotScriptableError, Net(hooked)) == (
        "the module 'Add' has hooks, which calls through an interface do not run\n"
        "'Add' is compiled because it is the part 'impl' of 'Net'\n"
        "Hint: remove them before compiling, or declare no interface for the module"
    )


class Chooses(nn.Module):
    """Modules are values: chosen, put in containers, passed on."""

    def __init__(self):
        super().__init__()
        self.a = Add(1)
        self.b = Linear()
        self.rest = nn.ModuleList([Add(5), Linear(), Add(6)])

    def forward(self, x: Tensor, which: int) -> Tensor:
        layer: Layer = self.a
        if which == 1:
            layer = self.b
        elif which > 1:
            layer = self.pick(which)
        found: Layer = self.a if which == 0 else self.b
        return layer(x) + found(x)

    def pick(self, which: int) -> Layer:
        layer: Layer = self.rest[which - 2]
        return layer


def test_modules_are_values_of_interfaces():
    torch.manual_seed(0)
    module = Chooses()
    scripted = rekindle.script(module)
    x = torch.randn(2, 3)
    for which in range(5):
        for _ in range(2):
            assert torch.equal(scripted(x, which), module(x, which))
    assert torch.equal(scripted.pick(2)(x), module.pick(2)(x))


def total_size(parts: List[Measured]) -> int:
    total = 0
    for part in parts:
        total += part.size(3)
    return total


def test_compiled_modules_are_arguments():
    f = rekindle.script(total_size)
    assert f([rekindle.script(Add(3)), rekindle.script(Add(4))]) == 21
    assert message_of(ArgumentError, lambda: f([rekindle.script(Linear())])).splitlines()[1] == (
        "'Linear' does not have the method 'size' of the interface 'Measured': size(int factor) -> int"
    )
    assert message_of(ArgumentError, lambda: f([Circle(1.0)])).splitlines()[1] == (
        "'Measured' is an interface of modules, and 'Circle' is not a module"
    )


class Items(nn.Module):
    def __init__(self, *items: nn.Module):
        super().__init__()
        self.items = nn.ModuleList(items)

    def forward(self, i: int) -> int:
        item: Measured = self.items[i]
        return item.size(2)


def test_items_are_held_to_the_interface():
    assert rekindle.script(Items(Add(1), Add(4)))(-1) == 8
    assert error_of(TypeMismatchError, Items(Add(1), Linear())) == (
        f"item '1' of the module 'ModuleList' is not a __torch__.{__name__}.Measured\n"
        "'Linear' does not have the method 'size' of the interface 'Measured': size(int factor) -> int\n"
        '  File "FILE", line N\n'
        "        def forward(self, i: int) -> int:\n"
        "            item: Measured = self.items[i]\n"
        "                             ^^^^^^^^^^^^^"
    )


# --------------------------------------------------------------------------------------------------------- program text

TEXT = """
class Step(Interface):
    "Changes a number."
    def apply(self, x: int) -> int:
        pass

class Layer(ModuleInterface):
    def forward(self, x: Tensor) -> Tensor:
        pass

class Twice:
    def __init__(self, n: int):
        self.n = n

    def apply(self, x: int) -> int:
        return 2 * x + self.n

def run(steps: List[Step], x: int) -> int:
    for step in steps:
        x = step.apply(x)
    return x

def call(layer: Layer, x: Tensor) -> Tensor:
    return layer.forward(x)

def f(x: int) -> int:
    steps: List[Step] = [Twice(3), Twice(4)]
    return run(steps, x)
"""


def test_interfaces_of_program_text():
    unit = rekindle.CompilationUnit(TEXT)
    assert unit.f(1) == unit.run([unit.Twice(3), unit.Twice(4)], 1) == 14
    assert torch.equal(unit.call(rekindle.script(Add(3)), torch.ones(2)), torch.full((2,), 4.0))

    def g(step: unit.Step, x: int) -> int:
        return step.apply(x)

    assert rekindle.script(g)(unit.Twice(5), 1) == 7
    wrong = TEXT + "\ndef g() -> int:\n    return run([3], 1)\n"
    assert message_of(SchemaError, lambda: rekindle.CompilationUnit(wrong)).startswith(
        "'run' cannot be called with (List[int], int): argument 'steps': expected List[__torch__."
    )
    with pytest.raises(UnsupportedError, match="an interface has methods only"):
        rekindle.CompilationUnit("class A(Interface):\n    n: int\n")


def test_script_gives_an_interface_back():
    assert rekindle.script(Shape) is Shape

"""Python classes within programs: what they are typed by, how their objects cross the boundary, what is refused."""

from __future__ import annotations

import copy
import dataclasses
import io
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Dict, Final, List, Optional

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import (
    ArgumentError,
    NotScriptableError,
    SchemaError,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from tests.oracle.corpus import Program, corpus
from tests.support.messages import message_of
from tests.support.oracle import normalize, script_with_torch

PROGRAMS = [item for item in corpus() if item.name.startswith("classes.") and not isinstance(item.source, type)]


OTHER_GRAPHS = {
    "classes.augmented": "the loop may go over the list that it appends to: each iteration asks for its length",
}
"""Programs whose graphs are not those of torch.jit."""


@pytest.mark.parametrize("program", PROGRAMS, ids=[item.name for item in PROGRAMS])
def test_methods_have_the_graphs_of_torch_jit(program: Program) -> None:
    """With all calls inlined, so that the graphs of the methods are looked at too."""
    ours = normalize(str(rekindle.script(program.source).inlined_graph))
    same = ours == normalize(str(script_with_torch(program.source).inlined_graph))
    assert same != (program.name in OTHER_GRAPHS)


# ----------------------------------------------------------------------------------------------------------- attributes


class Node:
    limit = 10
    rate: Final[float] = 0.5
    made: ClassVar[int] = 3
    weight: float = 1.5
    label: str

    def __init__(self, value: float, name: Optional[str] = None):
        self.value = value
        self.next: Optional[Node] = None
        self.children: List[Node] = []
        if name is None:
            self.label = "none"
        else:
            self.label = name

    def add(self, child: Node) -> Node:
        self.children.append(child)
        return child

    def total(self) -> float:
        found = self.value
        for child in self.children:
            found += child.value
        return found


def uses_declared(value: float):
    node = Node(value, "x")
    node.next = Node(value + 1)
    node.add(Node(3.0)).add(Node(4.0))
    node.weight += 1
    return node.total(), node.label, node.limit, Node.limit, node.rate, Node.made, node.weight


def test_declarations_type_attributes():
    assert rekindle.script(uses_declared)(2.0) == uses_declared(2.0) == (5.0, "x", 10, 10, 0.5, 3, 2.5)
    rekindle.script(Node)
    attributes = Node.__dict__["__rekindle_type__"].attributes
    assert {name: slot.type.annotation.rpartition(".")[2] for name, slot in attributes.items()} == {
        "weight": "float",
        "value": "float",
        "next": "Node]",
        "children": "Node]",
        "label": "str",
    }


def test_a_class_is_compiled_as_a_decorator_too():
    @rekindle.script
    class Local:
        def __init__(self, n: int):
            self.n = n

        def other(self) -> Local:
            return Local(self.n + 1)

    def f(n: int) -> int:
        return Local(n).other().n

    assert isinstance(Local, type)
    assert Local(3).other().n == rekindle.script(f)(3) == 4


class Magnitude:
    def __init__(self, n: int):
        self.n = n

    def __abs__(self) -> int:
        return abs(self.n)

    def __iadd__(self, n: int) -> Magnitude:
        self.n += n
        return self

    def __getitem__(self, i: int) -> int:
        return self.n * i

    def __setitem__(self, i: int, value: int) -> None:
        self.n = i * value


def in_place(n: int):
    m = Magnitude(n)
    m += 3
    m[2] += 1
    return abs(m), m[1]


def test_magic_methods_that_torchscript_does_not_know():
    assert rekindle.script(in_place)(-9) == in_place(-9)


class Length:
    def __init__(self, metres: int):
        self.metres = metres

    def __rmul__(self, factor: int) -> int:
        return factor * self.metres

    def __eq__(self, other: Length) -> bool:  # type: ignore[override]
        return self.metres == other.metres

    def __lt__(self, other: int) -> bool:
        return self.metres < other

    def __repr__(self) -> str:
        return str(self.metres) + " m"

    def __len__(self) -> int:
        return self.metres


def answers_of_python(n: int):
    length, plain = Length(n), Empty()
    truths = [
        bool(length),
        bool(plain),
        length != Length(3),
        plain == Empty(),
        plain == plain,
        plain != plain,
        3 > length,
    ]
    return 2 * length, str(length), f"{length}", truths


def test_methods_that_an_object_does_not_have_are_what_python_makes_of_them():
    for n in (0, 2, 3):
        assert rekindle.script(answers_of_python)(n) == answers_of_python(n)


class Empty:
    pass


def without_init(flag: bool) -> bool:
    first = Empty()
    other = first if flag else Empty()
    return first is other


def test_a_class_without_init():
    compiled = rekindle.script(without_init)
    assert compiled(True) is True
    assert compiled(False) is False


# -------------------------------------------------------------------------------------------------- across the boundary


def double(node: Node) -> Node:
    node.value *= 2
    return node


def total_of_chain(node: Node) -> float:
    total = 0.0
    current: Optional[Node] = node
    while current is not None:
        total += current.value
        current = current.next
    return total


def make(value: float) -> Node:
    return Node(value)


def test_objects_are_pythons_own():
    node = Node(1.5)
    assert rekindle.script(double)(node) is node
    assert node.value == 3.0
    made = rekindle.script(make)(2.0)
    assert type(made) is Node
    assert made.add(node) is node
    assert rekindle.script(double)(made).total() == 7.0


def test_long_chains_and_circles():
    first = last = Node(1.0)
    for _ in range(5000):
        last.next = Node(1.0)
        last = last.next
    assert rekindle.script(total_of_chain)(first) == 5001.0
    last.children.append(first)
    assert rekindle.script(total_of_chain)(first) == 5001.0


def test_numbers_become_what_the_attribute_is():
    node = Node(2)
    assert rekindle.script(total_of_chain)(node) == 2.0
    assert type(node.value) is float


def wrong_argument(change: Any) -> str:
    node = Node(1.0)
    node.next = Node(2.0)
    change(node)
    return message_of(ArgumentError, lambda: rekindle.script(total_of_chain)(node)).partition("\nSignature")[0]


NODE = f"__torch__.{__name__}.Node"
EXPECTED = f"total_of_chain() argument 'node' (position 1) takes {NODE}, but got a Node, in which node"


def test_attributes_of_arguments_are_looked_at():
    def spoil(node: Any) -> None:
        node.next.children = [Node(1.0), 3]

    assert wrong_argument(spoil) == f"{EXPECTED}.next.children[1] is an int: 3 instead of {NODE}"
    assert wrong_argument(lambda node: delattr(node.next, "value")) == (
        f"{EXPECTED}.next.value is not assigned instead of float"
    )
    assert wrong_argument(lambda node: setattr(node, "label", None)) == f"{EXPECTED}.label is None instead of str"


class Heavier(Node):
    def total(self) -> float:
        return 100.0


def test_objects_of_derived_classes_are_refused():
    with pytest.raises(ArgumentError, match=r"takes __torch__.*Node, but got a Heavier"):
        rekindle.script(total_of_chain)(Heavier(1.0))


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.node = Node(1.0)
        self.nodes = [Node(2.0), Node(3.0)]
        self.named: Dict[str, Node] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.node.value += 1
        self.named["first"] = self.nodes[0]
        for node in self.nodes:
            x = x + node.value
        return x * self.node.value


def test_objects_as_attributes_of_modules():
    eager, original = Holder(), Holder()
    compiled = rekindle.script(original)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), eager(torch.ones(2)))
    assert compiled.node is original.node
    assert original.node.value == 4.0
    assert compiled.named["first"] is original.nodes[0]


class Opaque:
    def __init__(self, *args: Any) -> None:
        self.args = args


class HoldsOpaque(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.opaque = Opaque(1)

    def forward(self, x: torch.Tensor, use: bool = False) -> torch.Tensor:
        return x


def test_objects_that_a_program_does_not_use_may_be_of_any_class():
    assert torch.equal(rekindle.script(HoldsOpaque())(torch.ones(1)), torch.ones(1))


# ------------------------------------------------------------------------------------------------------------- refusals


def error_of(error: type[Exception], obj: object) -> str:
    return message_of(error, lambda: rekindle.script(obj))


class Numbers(dict):
    def first(self) -> int:
        return 1


class Counted(Numbers):
    pass


def makes_derived() -> int:
    return Counted().first()


def test_classes_that_inherit_from_what_is_not_python():
    assert error_of(NotScriptableError, makes_derived) == (
        "objects of the class 'Counted' cannot be made in a program: not all of it is written in Python\n"
        '  File "FILE", line N\n'
        "    def makes_derived() -> int:\n"
        "        return Counted().first()\n"
        "               ^^^^^^^\n"
        "Hint: use a NamedTuple, a Dict or a Tuple, or make the object outside and pass what it holds"
    )


@dataclasses.dataclass
class Fields:
    n: int


class PlainFields(Fields):
    pass


def makes_plain_fields() -> int:
    return PlainFields(1).n


def test_plain_classes_that_inherit_from_dataclasses():
    assert error_of(NotScriptableError, makes_plain_fields) == (
        "the class 'PlainFields' inherits from a dataclass and is none\n"
        '  File "FILE", line N\n'
        "    def makes_plain_fields() -> int:\n"
        "        return PlainFields(1).n\n"
        "               ^^^^^^^^^^^\n"
        "Hint: decorate it with @dataclass, too"
    )


class Lazy:
    def __init__(self, n):
        self.n = n

    def later(self) -> None:
        self.m = 3

    def missing(self) -> int:
        return self.k


def of_both_kinds(x: torch.Tensor):
    return Lazy("a"), Lazy(x)


def wrong_type(x: torch.Tensor):
    lazy = Lazy(x)
    lazy.n = "a"
    return lazy


def test_missing_annotations():
    assert error_of(SchemaError, of_both_kinds) == (
        "'__init__' cannot be called with (Tensor): argument 'n': expected str, got Tensor.\n"
        "It is declared as\n"
        "  __init__(str n) -> NoneType\n"
        '  File "FILE", line N\n'
        "    def of_both_kinds(x: torch.Tensor):\n"
        '        return Lazy("a"), Lazy(x)\n'
        "                          ^^^^"
    )
    assert error_of(TypeMismatchError, wrong_type) == (
        "attribute 'n' of 'Lazy' is Tensor, got str\n"
        '  File "FILE", line N\n'
        "    def wrong_type(x: torch.Tensor):\n"
        "        lazy = Lazy(x)\n"
        '        lazy.n = "a"\n'
        "        ^^^^^^\n"
        "Hint: parameter 'n' of __init__ was assumed to be a Tensor because it has no annotation"
    )


def assigns_later(x):
    Lazy(x).later()


def reads_missing(x):
    return Lazy(x).missing()


def test_attributes_that_init_does_not_assign():
    assert error_of(UndefinedNameError, assigns_later) == (
        "'Lazy' has no attribute 'm' to assign\n"
        '  File "FILE", line N\n'
        "        def later(self) -> None:\n"
        "            self.m = 3\n"
        "            ^^^^^^\n"
        "'later' is compiled because it is used here:\n"
        '  File "FILE", line N\n'
        "    def assigns_later(x):\n"
        "        Lazy(x).later()\n"
        "        ^^^^^^^^^^^^^\n"
        "Hint: give it a value in __init__: self.m = …"
    )
    assert error_of(UndefinedNameError, reads_missing).partition("\n")[0] == "'Lazy' has no attribute or method 'k'"
    assert error_of(UndefinedNameError, reads_missing).rpartition("\n")[2] == (
        "Hint: give it a value in __init__: self.k = …"
    )


class Sometimes:
    def __init__(self, n: int):
        if n > 2:
            self.n = n


def test_first_assignment_within_a_branch():
    assert error_of(UnsupportedError, Sometimes) == (
        "attribute 'n' of 'Sometimes' is first assigned within an if or a loop, so that it may not exist afterwards\n"
        '  File "FILE", line N\n'
        "        def __init__(self, n: int):\n"
        "            if n > 2:\n"
        "                self.n = n\n"
        "                ^^^^^^\n"
        "Hint: assign it before, or declare its type in the body of the class: n: int"
    )
    # A failure leaves nothing.
    assert error_of(UnsupportedError, Sometimes).startswith("attribute 'n' of 'Sometimes' is first assigned")


class Nothing:
    def __init__(self) -> None:
        self.x = None


def adds():
    return Nothing() + 1


def test_hints():
    assert error_of(UndefinedNameError, adds).rpartition("\n")[2] == "Hint: define the method: def __add__(self, …)"


class Magic:
    def __getattr__(self, name: str) -> int:
        return 1


class Early:
    def __init__(self, n: int):
        self.a = self.b
        self.b = n


class Leaves:
    def __enter__(self) -> int:
        return 1

    def __exit__(self) -> None:  # noqa: PLE0302
        pass


def leaves():
    with Leaves():
        pass


def gives_arguments():
    return Empty(1)


def test_what_classes_cannot_do():
    assert error_of(NotScriptableError, Magic) == (
        "the class 'Magic' defines __getattr__, which no program calls\n"
        "Hint: leave calls that need it to Python, in a function marked with @ignore"
    )
    assert error_of(UndefinedNameError, Early).partition("\n")[0] == (
        "attribute 'b' of 'Early' is used before __init__ has assigned it"
    )
    assert error_of(TypeMismatchError, leaves) == (
        f"__exit__ of '__torch__.{__name__}.Leaves' takes 0 arguments besides self; a with statement gives it three: "
        "the class of an exception, the exception and its traceback\n"
        '  File "FILE", line N\n'
        "    def leaves():\n"
        "        with Leaves():\n"
        "             ^^^^^^^^\n"
        "Hint: def __exit__(self, type: Any, value: Any, traceback: Any) -> None"
    )
    assert error_of(TypeMismatchError, gives_arguments).partition("\n")[0] == (
        "'Empty' takes no arguments: it has no __init__"
    )


# ---------------------------------------------------------------------------------------------------------- dataclasses


@dataclass
class Point:
    x: int
    y: float = 2.0
    name: str = "point"

    def __post_init__(self) -> None:
        self.x += 1

    def norm(self) -> float:
        return self.x + self.y


def makes_points(n: int):
    a, b, c = Point(n), Point(n, 2.0), Point(n, name="other", y=3.0)
    return a.norm(), a == b, a == c, a != c, c.name, a.x


def moves(point: Point) -> Point:
    point.x += 1
    return point


def test_dataclasses():
    assert rekindle.script(makes_points)(3) == makes_points(3)
    point = Point(3)
    assert rekindle.script(moves)(point) is point
    assert point == Point(4)
    rekindle.script(Point)


def made_by_function() -> List[int]:
    return [7]


@dataclass
class Weighted:
    index: torch.Tensor
    weight: Optional[torch.Tensor] = None
    scale: Optional[float] = None


def equal(a: Weighted, b: Weighted) -> bool:
    return a == b


def test_fields_that_may_be_none_are_compared():
    one, two = torch.ones(1), torch.full((1,), 2.0)
    compiled = rekindle.script(equal)
    samples = [Weighted(one), Weighted(two), Weighted(one, one), Weighted(one, two), Weighted(one, None, 1.0)]
    samples += [Weighted(one, one, 1.0), Weighted(one, one, 2.0)]
    answers = [(compiled(a, copy.deepcopy(b)), a == copy.deepcopy(b)) for a in samples for b in samples]
    assert {ours for ours, _ in answers} == {True, False}
    assert all(ours == pythons for ours, pythons in answers)


@dataclass
class Checked:
    n: int = 4


@dataclass
class Filled:
    items: List[int] = field(default_factory=list)
    counts: Dict[str, int] = field(default_factory=dict, compare=False)
    start: List[int] = field(default_factory=made_by_function)
    made: Checked = field(default_factory=Checked)
    last: List[int] = field(default_factory=list, init=False)


def fills(n: int):
    a, b = Filled(), Filled([n], start=[n, n])
    a.items.append(n)
    a.counts["n"] = n
    b.last.append(4)
    return a.items, b.items, a.counts, a.start, b.start, a.made.n, b.last, a.last, Filled().items, a.made is b.made


def test_defaults_are_made_anew():
    assert rekindle.script(fills)(3) == fills(3)
    filled = Filled([1])
    assert rekindle.script(takes_filled)(filled) == takes_filled(Filled([1]))


def takes_filled(filled: Filled) -> int:
    filled.items.append(5)
    return len(filled.items)


@dataclass(frozen=True)
class Frozen:
    n: int
    rate: float = 1.0

    def doubled(self) -> Frozen:
        return Frozen(self.n * 2, self.rate)

    def changes(self) -> None:
        self.n = 3  # type: ignore[misc]


def freezes(n: int, given: Frozen):
    frozen = Frozen(n)
    return frozen.doubled().n, frozen == Frozen(n), given == frozen.doubled(), given.rate


def changes_frozen(n: int) -> None:
    Frozen(n).changes()


def test_frozen_dataclasses():
    f = rekindle.script(freezes)
    for given in (Frozen(6), Frozen(6, 2)):
        assert f(3, given) == freezes(3, given)
    assert error_of(UnsupportedError, changes_frozen).partition("\n")[0] == (
        "attribute 'n' of 'Frozen' cannot be assigned: the dataclass is frozen"
    )


@dataclass
class WithVariables:
    a: InitVar[int]
    b: int = 2
    c: InitVar[float] = 0.5
    made: float = field(init=False)
    kept: int = field(init=False, default=9)

    def __post_init__(self, a: int, c: float) -> None:
        self.made = self.b + a * c


def uses_variables(n: int):
    x, y = WithVariables(n), WithVariables(n, 3, c=2.0)
    return x.made, y.made, y.b, x.kept, x == y


def test_variables_of_init():
    assert rekindle.script(uses_variables)(3) == uses_variables(3)


@dataclass
class OwnEquality:
    key: int
    note: int

    def __eq__(self, other: OwnEquality) -> bool:  # type: ignore[override]
        return self.key == other.key


@dataclass
class OwnInit:
    size: int

    def __init__(self, size: int):
        self.size = size + 10


def test_methods_that_a_dataclass_writes_itself():
    def same(a: int, b: int) -> tuple[bool, int]:
        return OwnEquality(a, 1) == OwnEquality(b, 2), OwnInit(a).size

    assert rekindle.script(same)(3, 3) == same(3, 3) == (True, 13)
    assert rekindle.script(same)(3, 4) == same(3, 4)


@dataclass(order=True)
class Measured:
    x: float
    norm: Optional[torch.Tensor]
    y: torch.Tensor


def test_dataclasses_of_tensors_are_compared():
    """The comparisons are bools, as those of tuples are; Python gives the Tensor that decides."""

    def compare(a: torch.Tensor, b: torch.Tensor):
        p, q = Measured(1.0, a, b), Measured(1.0, a, b + 1)
        none = Measured(1.0, None, b)
        return p < q, p <= q, p > q, p >= q, p == q, p == p, none == none, none == p

    def of_numbers(x: float):
        p, q = Measured(x, None, torch.ones(1)), Measured(x, None, torch.ones(1))
        return p == p, p <= p, p < p, p == q

    assert rekindle.script(of_numbers)(float("nan")) == (True, True, False, False)
    nan = torch.tensor([float("nan"), 1.0])
    for a in (torch.ones(()), nan):  # a Tensor is equal to itself, without a comparison
        assert rekindle.script(compare)(a, torch.ones(1)) == (True, True, False, False, False, True, True, False)
        assert [bool(item) for item in compare(a, torch.ones(1))] == [*rekindle.script(compare)(a, torch.ones(1))]


@dataclass
class Maybe:
    items: Optional[List[int]] = field(default_factory=list)


@dataclass
class FinalFields:
    factor: Final[int] = 3
    others: Final[List[int]] = field(default_factory=list)


def of_final_fields():
    return FinalFields().factor, FinalFields(4, [5]).factor, FinalFields(4, [5]).others


def test_final_fields_of_dataclasses():
    assert rekindle.script(of_final_fields)() == of_final_fields() == (3, 4, [5])


@dataclass
class MaybeInNewSpelling:
    items: list[int] | None = field(default_factory=list)


def test_dataclasses_that_are_refused():
    assert error_of(NotScriptableError, Maybe) == (
        "the field 'items' of the dataclass 'Maybe' may be None and has a default_factory\n"
        "Hint: None stands for the default in a program: leave Optional or the default_factory away"
    )
    assert "the field 'items' of the dataclass" in error_of(NotScriptableError, MaybeInNewSpelling)


# ------------------------------------------------------------------------------------- values in the body of a class


class Meter:
    total: float = 0.0
    count: int = 0
    unit: Optional[str] = None

    def update(self, value: float) -> None:
        self.total += value
        self.count += 1


class NamedMeter(Meter):
    count: int = 10

    def __init__(self, unit: str):
        self.unit = unit


def metered(values: List[float]):
    meter, named = Meter(), NamedMeter("kg")
    for value in values:
        meter.update(value)
        named.update(value)
    return meter.total, meter.count, meter.unit, named.total, named.count, named.unit


def test_values_in_the_body_of_a_class_are_saved() -> None:
    compiled = rekindle.script(metered)
    file = io.BytesIO()
    rekindle.save(compiled, file)
    for load in (rekindle.load, torch.jit.load):
        file.seek(0)
        loaded = load(file)
        for values in ([1.5, 2.0], []):
            assert repr(compiled(values)) == repr(loaded(values)) == repr(metered(values))


def test_a_local_class_is_known_to_its_static_methods_while_it_is_decorated():
    @rekindle.script
    class Pair:
        def __init__(self, a: int, b: int):
            self.a = a
            self.b = b

        @staticmethod
        def first_of(pairs: List[Pair]) -> Pair:
            return Pair(pairs[0].a, pairs[0].b)

        @staticmethod
        def of(a: int, b: int) -> Pair:
            return Pair.first_of([Pair(a, b)])

    def made(a: int, b: int) -> tuple[int, int]:
        pair = Pair.of(a, b)
        return pair.a, pair.b

    assert rekindle.script(made)(1, 2) == made(1, 2)


def test_a_type_comment_names_a_class_beside_its_own() -> None:
    """A comment closes over nothing, so that the function that holds both classes is asked."""

    @rekindle.script
    class First:
        def __init__(self) -> None:
            self.number = 99

        def __eq__(self, other):  # type: ignore[no-untyped-def]
            # type: (First) -> bool
            return self.number == other.number

        def __iadd__(self, x):  # type: ignore[no-untyped-def]
            # type: (int)
            self.number += x
            return self

    @rekindle.script
    class Second:
        def __init__(self) -> None:
            self.number = 119

        def __eq__(self, other):  # type: ignore[no-untyped-def]
            # type: (First) -> bool
            return self.number == other.number

    def uses() -> tuple[int, bool]:
        first = First()
        same = first
        first += 20
        return same.number, Second() == first

    assert rekindle.script(uses)() == uses() == (119, True)


class SharesItsList:
    """A class with a list that its objects share until they assign it."""

    items: List[int] = []

    def __init__(self, n: int):
        self.n = n

    def add(self) -> List[int]:
        self.items.append(self.n)
        return self.items


def adds_to_the_shared_list(n: int) -> List[int]:
    first, second = SharesItsList(n), SharesItsList(n + 1)
    first.add()
    return second.add()


def test_objects_share_the_list_of_their_class():
    for call in (rekindle.script(adds_to_the_shared_list), adds_to_the_shared_list):
        SharesItsList.items.clear()
        assert [list(call(1)), list(call(5))] == [[1, 2], [1, 2, 5, 6]]

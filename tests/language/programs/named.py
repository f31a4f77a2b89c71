"""Enums, NamedTuples and dataclasses."""

from dataclasses import InitVar, dataclass, field
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from rekindle.errors import UnsupportedError
from tests.language.corpus import known_to_torch, program, refused


class Color(Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"


class Rate(Enum):
    LOW = 0.5
    HIGH = 2.0


class Point(NamedTuple):
    x: int
    y: float


class Weighted(NamedTuple):
    value: Tensor
    weight: float = 1.0
    names: Optional[List[str]] = None


@program("enum.compare", (Color.RED, Color.BLUE), (Color.GREEN, Color.GREEN))
def enum_compared(a: Color, b: Color) -> Tuple[bool, bool, bool]:
    return a == b, a != b, a == Color.GREEN


@program("enum.identity", (Color.RED, Color.BLUE), (Color.GREEN, Color.GREEN), torch="differs")
def enum_identity(a: Color, b: Color) -> Tuple[bool, bool]:
    return a is Color.RED, a is not b


@program("enum.value", (Color.RED, Mode.FAST, Rate.LOW), (Color.BLUE, Mode.SLOW, Rate.HIGH))
def enum_values(color: Color, mode: Mode, rate: Rate) -> Tuple[int, str, float]:
    return color.value, mode.value, rate.value


@program("enum.name", (Color.RED,), (Color.BLUE,))
def enum_names(color: Color) -> str:
    return color.name + Mode.FAST.name


@program("enum.argument", (Mode.FAST,), (Mode.SLOW,))
def enum_returned(mode: Mode) -> Tuple[Mode, Mode]:
    return mode, Mode.SLOW


@program("enum.iteration", (2,), (0,))
def enum_iterated(n: int) -> List[int]:
    found: List[int] = []
    for color in Color:
        if color.value >= n:
            found.append(color.value)
    return found


@program("enum.argument", ([Color.RED, Color.BLUE],), ([],))
def enum_list(colors: List[Color]) -> int:
    total = 0
    for color in colors:
        if color == Color.RED:
            total += 10
        total += color.value
    return total


@program("enum.lookup", ("fast", "RED", 0.5), ("slow", "BLUE", 2.0), torch="refuses")
def members_looked_up(mode: str, name: str, rate: float) -> Tuple[Mode, str, bool, Rate, int]:
    found = Mode(mode)
    return found, Mode(found).name, Color[name] is Color.RED, Rate(rate), Color(3).value


@program("enum.lookup", ("fast", "NONE"), ("none", "RED"), torch="refuses")
def members_that_do_not_exist(mode: str, name: str) -> Tuple[Mode, Color]:
    return Mode(mode), Color[name]


@program("enum.module_attribute", (torch.ones(2),), (torch.zeros(1),))
class EnumInModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = Mode.SLOW

    def forward(self, x: Tensor) -> Tensor:
        if self.mode == Mode.FAST:
            return x
        return x + 1


class Layout(str, Enum):
    ROWS = "rows"
    COLUMNS = "columns"


@program("enum.module_attribute", (torch.ones(2),), (torch.zeros(1),))
class EnumOfStringsInModule(torch.nn.Module):
    layout: Layout

    def __init__(self):
        super().__init__()
        self.layout = Layout.COLUMNS

    def forward(self, x: Tensor) -> Tensor:
        if self.layout != Layout.ROWS:
            x = x + 1
        return x


@program("enum.argument", (torch.ones(2),), (torch.ones(2), Layout.COLUMNS, "rows"))
def enum_defaults(x: Tensor, layout: Layout = Layout.ROWS, name: str = Layout.COLUMNS) -> Tuple[Tensor, bool]:
    """The same member is a member for one parameter, and the string that it is for another."""
    return (x if layout == Layout.ROWS else x + 1), name == "columns"


@program("enum.dict_key", (Color.RED,), (Color.BLUE,), torch="refuses")
def enum_keys(color: Color) -> Tuple[int, bool, int, int]:
    sizes: Dict[Color, int] = {Color.RED: 1}
    there = color in sizes
    sizes[Color.BLUE] = 2
    return sizes[color], there, sizes.get(color, 7), len(sizes)


@program("enum.dict_key exception.of_python", (Color.RED,), (Color.BLUE,), torch="refuses")
def enum_keys_in_a_loop(color: Color) -> Dict[Color, str]:
    names: Dict[Color, str] = {}
    for member in Color:
        names[member] = member.name
    del names[color]
    removed = [member for member in names if member != color]
    return {member: names[member] + "!" for member in removed}


@program("namedtuple.fields", (Point(1, 2.0),), (Point(-1, 0.5),))
def namedtuple_fields(p: Point) -> Tuple[int, float, int, float]:
    return p.x, p.y, p[0], p[-1]


@program("namedtuple.construct", (1, 2.0), (3, -1.0))
def namedtuple_made(x: int, y: float) -> Tuple[Point, Point]:
    return Point(x, y), Point(y=y, x=x)


@program("namedtuple.defaults", (torch.ones(2),), (torch.zeros(1),))
def namedtuple_defaults(x: Tensor) -> Tuple[Tensor, float, bool]:
    w = Weighted(x)
    named = Weighted(x, 2.0, ["a"])
    return w.value * named.weight, w.weight, w.names is None


@program("namedtuple.unpack", (Point(1, 2.0),), (Point(-1, 0.5),))
def namedtuple_unpacked(p: Point) -> float:
    x, y = p
    return x + y


@program("namedtuple.fields", ([Point(1, 2.0), Point(3, 4.0)],), ([],))
def namedtuples_in_list(points: List[Point]) -> Tuple[List[int], int]:
    return [p.x for p in points], len(points)


@program("namedtuple.construct", (1, 2.0), (3, -1.0))
def namedtuple_returned(x: int, y: float) -> Point:
    p = Point(x, y)
    return Point(p.x + 1, p.y)


@program(
    "namedtuple.fields tuple.compare", (Point(1, 2.0), Point(1, 2.0)), (Point(1, 2.0), Point(1, 3.0)), torch="refuses"
)
def namedtuple_equality(a: Point, b: Point) -> bool:
    return a == b


@known_to_torch
@dataclass
class Box:
    width: int
    height: int = 2

    def area(self) -> int:
        return self.width * self.height


@known_to_torch
@dataclass
class Options:
    names: List[str]
    rate: float = 0.5
    limit: Optional[int] = None


@known_to_torch
@dataclass(order=True)
class Version:
    major: int
    minor: int


@known_to_torch
@dataclass
class Checked:
    value: int

    def __post_init__(self):
        if self.value < 0:
            raise ValueError("negative")
        self.value += 1


@program("dataclass.construct", (3,), (0,))
def dataclass_made(n: int) -> Tuple[int, int, int]:
    box, other = Box(n), Box(height=n, width=4)
    return box.area(), other.area(), box.height


@program("dataclass.equality", (3, 3), (3, 4), torch="refuses")
def dataclass_equality(a: int, b: int) -> Tuple[bool, bool]:
    return Box(a) == Box(b), Box(a) != Box(b)


@program("dataclass.mutation", (3,), (1,))
def dataclass_mutation(n: int) -> Tuple[int, int]:
    box = Box(n)
    same = box
    same.height += 5
    return box.height, box.area()


@program("dataclass.construct", (["a"], 1.0), ([], 2.0))
def dataclass_containers(names: List[str], rate: float) -> Tuple[List[str], float, bool]:
    options = Options(names, rate)
    options.names.append("z")
    return options.names, options.rate, options.limit is None


@program("dataclass.order", (1, 2, 1, 3), (2, 0, 1, 9))
def dataclass_order(a: int, b: int, c: int, d: int) -> Tuple[bool, bool, bool, bool]:
    first, second = Version(a, b), Version(c, d)
    return first < second, first <= second, first > second, first >= second


@program("dataclass.post_init statement.raise", (1,), (-1,))
def dataclass_post_init(n: int) -> int:
    return Checked(n).value


@program("dataclass.argument", (Box(1, 2), 3), (Box(4), 0))
def dataclass_argument(box: Box, n: int) -> int:
    box.width = n
    return box.area()


@program("dataclass.argument", (1, 3), (4, 0))
def dataclass_returned(a: int, b: int) -> Box:
    return Box(a, b)


@known_to_torch
@dataclass
class Listed:
    items: List[int] = field(default_factory=list)


@program("dataclass.default_factory", (3,), (0,), torch="refuses")
def dataclass_default_factory(n: int) -> Tuple[List[int], int]:
    a, b = Listed(), Listed()
    a.items.append(n)
    return a.items, len(b.items)


@known_to_torch
@dataclass(frozen=True)
class Fixed:
    width: int
    height: float = 1.5

    def area(self) -> float:
        return self.width * self.height


@program("dataclass.frozen", (3,), (0,), torch="refuses")
def dataclass_frozen(n: int) -> Tuple[float, bool, bool]:
    fixed = Fixed(n, height=2.0)
    return fixed.area(), fixed == Fixed(n, 2.0), fixed == Fixed(n)


@refused(
    "dataclass.frozen", UnsupportedError, "attribute 'width' of 'Fixed' cannot be assigned: the dataclass is frozen"
)
def dataclass_frozen_assigned(n: int) -> float:
    fixed = Fixed(n)
    fixed.width = 4
    return fixed.area()


@known_to_torch
@dataclass
class Scaled:
    size: int
    factor: InitVar[int] = 2
    area: int = field(init=False)

    def __post_init__(self, factor: int):
        self.area = self.size * factor


@program("dataclass.init_var dataclass.post_init", (3,), (0,), torch="refuses")
def dataclass_init_var(n: int) -> Tuple[int, int, bool]:
    scaled = Scaled(n, 5)
    return scaled.area, Scaled(n, factor=n).area, scaled == Scaled(n)


@program("dataclass.repr", (2,), (-3,), torch="refuses")
def dataclass_repr(n: int) -> str:
    return str(Box(n))

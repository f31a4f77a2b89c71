"""Script classes: attributes, methods, properties, magic methods, identity."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.corpus import program


class Counter:
    """Attributes typed by __init__."""

    def __init__(self, start: int, step: int):
        self.count = start
        self.step = step

    def advance(self) -> int:
        self.count += self.step
        return self.count

    def ahead(self, times: int = 1, extra: int = 0) -> int:
        return self.count + times * self.step + extra


class Annotated:
    """Attributes typed by annotation."""

    names: List[str]
    sizes: Dict[str, int]
    best: Optional[int]

    def __init__(self):
        self.names = []
        self.sizes = {}
        self.best = None

    def add(self, name: str, size: int):
        self.names.append(name)
        self.sizes[name] = size
        best = self.best
        if best is None or best < size:
            self.best = size


class Inline:
    def __init__(self, x: Tensor):
        self.x = x
        self.history: List[Tensor] = []
        self.limit: Optional[float] = None

    def push(self, y: Tensor):
        self.history.append(self.x)
        self.x = y


class Celsius:
    def __init__(self, degrees: float):
        self._degrees = degrees

    @property
    def degrees(self) -> float:
        return self._degrees

    @degrees.setter
    def degrees(self, value: float):
        if value < -273.15:
            raise ValueError("colder than cold")
        self._degrees = value

    @property
    def fahrenheit(self) -> float:
        return self._degrees * 1.8 + 32.0

    @staticmethod
    def boiling() -> float:
        return 100.0

    @staticmethod
    def clamped(value: float, low: float = 0.0) -> float:
        return max(value, low)


class Vector:
    def __init__(self, x: int, y: int):
        self.x = x
        self.y = y

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: "Vector") -> "Vector":
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, k: int) -> "Vector":
        return Vector(self.x * k, self.y * k)

    def __truediv__(self, k: int) -> float:
        return self.x / k

    def __floordiv__(self, k: int) -> int:
        return self.x // k

    def __mod__(self, k: int) -> int:
        return self.x % k

    def __pow__(self, k: int) -> int:
        return self.x * k + self.y

    def __and__(self, k: int) -> int:
        return self.x & k

    def __or__(self, k: int) -> int:
        return self.x | k

    def __xor__(self, k: int) -> int:
        return self.x ^ k

    def __lshift__(self, k: int) -> int:
        return self.x << k

    def __rshift__(self, k: int) -> int:
        return self.x >> k

    def __neg__(self) -> "Vector":
        return Vector(-self.x, -self.y)

    def __invert__(self) -> int:
        return -self.x - 1

    def __eq__(self, other: "Vector") -> bool:  # type: ignore[override]
        return self.x == other.x and self.y == other.y

    def __ne__(self, other: "Vector") -> bool:  # type: ignore[override]
        return not (self.x == other.x and self.y == other.y)

    def __lt__(self, other: "Vector") -> bool:
        return self.x < other.x

    def __le__(self, other: "Vector") -> bool:
        return self.x <= other.x

    def __gt__(self, other: "Vector") -> bool:
        return self.x > other.x

    def __ge__(self, other: "Vector") -> bool:
        return self.x >= other.x

    def __bool__(self) -> bool:
        return self.x != 0 or self.y != 0

    def __int__(self) -> int:
        return self.x

    def __float__(self) -> float:
        return float(self.y)

    def __str__(self) -> str:
        return "<" + str(self.x) + "," + str(self.y) + ">"

    def __abs__(self) -> int:
        return abs(self.x) + abs(self.y)


class Bag:
    def __init__(self, items: List[int]):
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> int:
        return self.items[index]

    def __setitem__(self, index: int, value: int) -> None:
        self.items[index] = value

    def __delitem__(self, index: int) -> None:
        del self.items[index]

    def __contains__(self, item: int) -> bool:
        return item in self.items

    def __call__(self, index: int, factor: int = 2) -> int:
        return self.items[index] * factor

    def __iadd__(self, more: List[int]) -> "Bag":
        self.items.extend(more)
        return self


class Node:
    """Refers to its own class."""

    def __init__(self, value: int):
        self.value = value
        self.next: Optional[Node] = None


class Holder:
    def __init__(self, counter: Counter):
        self.counter = counter
        self.all: List[Counter] = [counter]

    def tick(self) -> int:
        return self.counter.advance()


@program("class.init_attributes", (1, 2), (10, -3))
def typed_by_init(start: int, step: int) -> Tuple[int, int]:
    counter = Counter(start, step)
    counter.advance()
    counter.step = 5
    return counter.advance(), counter.count


@program("class.annotated_attributes", ("a", 3), ("", -1), torch="refuses")
def typed_by_annotation(name: str, size: int) -> Tuple[List[str], Dict[str, int], Optional[int]]:
    names = Annotated()
    names.add(name, size)
    names.add(name + "b", size - 1)
    return names.names, names.sizes, names.best


@program("class.annotated_attributes", (torch.ones(2), 1.0), (torch.zeros(1), 2.0))
def typed_where_assigned(x: Tensor, k: float) -> Tuple[List[Tensor], Tensor, bool]:
    kept = Inline(x)
    kept.push(x * k)
    kept.push(x + k)
    return kept.history, kept.x, kept.limit is None


@program("class.methods default_arguments", (1, 2), (0, 7))
def methods_with_defaults(start: int, step: int) -> Tuple[int, int, int]:
    counter = Counter(step=step, start=start)
    return counter.ahead(), counter.ahead(3), counter.ahead(times=2, extra=start)


@program("class.staticmethod", (1.5,), (-2.0,))
def static_methods(x: float) -> Tuple[float, float]:
    return Celsius.boiling(), Celsius.clamped(x, low=-1.0)


@program("class.staticmethod", (1.5,), (-2.0,), torch="refuses")
def static_method_of_an_object(x: float) -> float:
    celsius = Celsius(x)
    return celsius.clamped(x)


@program("class.property", (20.0, 30.0), (0.0, -5.5))
def properties(a: float, b: float) -> Tuple[float, float, float]:
    celsius = Celsius(a)
    first = celsius.degrees
    celsius.degrees = b
    return first, celsius.degrees, celsius.fahrenheit


@program("class.property statement.raise", (-300.0,), (10.0,))
def setter_that_raises(x: float) -> float:
    celsius = Celsius(0.0)
    celsius.degrees = x
    return celsius.degrees


@program("class.magic_arithmetic", (3, 4), (-1, 2))
def magic_arithmetic(x: int, y: int) -> Tuple[int, int, int, int]:
    a, b = Vector(x, y), Vector(y, x)
    s, d, m, n = a + b, a - b, a * 3, -a
    return s.x, d.y, m.x, n.y


@program("class.magic_arithmetic", (7, 2), (-9, 4), torch="refuses")
def magic_division(x: int, k: int) -> Tuple[float, int, int, int]:
    a = Vector(x, 1)
    return a / k, a // k, a % k, a**k


@program("class.magic_bits", (12, 2), (-7, 1))
def magic_bits(x: int, k: int) -> Tuple[int, int, int, int, int, int]:
    a = Vector(x, 0)
    return a & k, a | k, a ^ k, a << k, a >> k, ~a


@program("class.magic_comparison", (1, 2), (2, 2))
def magic_comparison(x: int, y: int) -> Tuple[bool, bool, bool, bool, bool, bool]:
    a, b = Vector(x, 0), Vector(y, 0)
    return a == b, a != b, a < b, a <= b, a > b, a >= b


@program("class.magic_conversion", (1, 2), (0, 0), torch="refuses")
def magic_conversions(x: int, y: int) -> Tuple[bool, int, float, str, int]:
    a = Vector(x, y)
    return bool(a), int(a), float(a), str(a), abs(a)


@program("class.magic_conversion", (1, 2), (0, 0))
def magic_truth(x: int, y: int) -> int:
    if Vector(x, y):
        return 1
    return 2


@program("class.magic_container", ([1, 2, 3], 1), ([5, 6], 0))
def magic_items(items: List[int], i: int) -> Tuple[int, int, bool, List[int]]:
    bag = Bag(items)
    first = bag[i]
    bag[i] = 40
    return len(bag), first, 40 in bag, items


@program("class.magic_container statement.del", ([1, 2, 3], 1), ([5, 6], 0))
def magic_delitem(items: List[int], i: int) -> int:
    bag = Bag(items)
    del bag[i]
    return len(bag)


@program("class.magic_call", ([1, 2, 3], 1), ([5, 6], -1))
def magic_call(items: List[int], i: int) -> Tuple[int, int]:
    bag = Bag(items)
    return bag(i), bag(i, factor=10)


@program("class.magic_inplace", ([1], [2, 3]), ([], []))
def magic_iadd(items: List[int], more: List[int]) -> Tuple[int, List[int]]:
    bag = Bag(items)
    bag += more
    return len(bag), items


@program("class.identity", (1,), (2,))
def identity(x: int) -> Tuple[bool, bool, bool]:
    a = Counter(x, 1)
    b = a
    c = Counter(x, 1)
    return a is b, a is c, a is not c


@program("class.identity", (1,), (5,))
def aliases_see_writes(x: int) -> Tuple[int, int]:
    a = Counter(x, 1)
    b = a
    b.advance()
    both = [a, b]
    both[0].count += 10
    return a.count, b.count


class Marked:
    def __init__(self, n: int):
        self.n = n

    @torch.jit.ignore
    def in_python(self, k: int) -> int:
        return sum([self.n, k])

    def twice(self) -> int:
        return 2 * self.in_python(3)


@program("class.ignore", (1,), (5,))
def ignored_method(n: int) -> int:
    return Marked(n).twice()


class Parent:
    def __init__(self, name: str):
        self.name = name
        self.children: List[Child] = []

    def add(self, age: int) -> "Child":
        child = Child(self, age)
        self.children.append(child)
        return child


class Child:
    def __init__(self, parent: Parent, age: int):
        self.parent = parent
        self.age = age


@program("class.mutual_reference", (1,), (5,), torch="refuses")
def parents_and_children(n: int) -> Tuple[bool, List[int]]:
    parent = Parent("p")
    child = parent.add(n)
    child.parent.add(n + 1)
    return child.parent is parent, [item.age for item in parent.children]


@program("class.identity class.self_reference", (3,), (0,), torch="refuses")
def linked_list(n: int) -> Tuple[int, int]:
    head = Node(0)
    last = head
    for i in range(n):
        node = Node(i + 1)
        last.next = node
        last = node
    total, length = 0, 0
    at: Optional[Node] = head
    while at is not None:
        total += at.value
        length += 1
        at = at.next
    return total, length


@program("class.nested", (1, 2), (0, -1))
def objects_in_objects(start: int, step: int) -> Tuple[int, int, int]:
    counter = Counter(start, step)
    holder = Holder(counter)
    holder.tick()
    holder.counter.step = 7
    holder.all[0].advance()
    return counter.count, holder.counter.count, len(holder.all)


@program("class.containers", (2,), (4,))
def objects_in_containers(n: int) -> Tuple[int, int]:
    by_name: Dict[str, Counter] = {}
    all: List[Counter] = []
    for i in range(n):
        counter = Counter(i, 1)
        all.append(counter)
        by_name[str(i)] = counter
    by_name["0"].advance()
    return all[0].count, sum([c.count for c in all])


def bump(counter: Counter, times: int) -> Counter:
    for _ in range(times):
        counter.advance()
    return counter


@program("class.arguments", (1, 3), (5, 0))
def objects_passed_to_functions(x: int, n: int) -> Tuple[int, bool]:
    counter = Counter(x, 2)
    same = bump(counter, n)
    return counter.count, same is counter


@program("class.arguments", (Counter(1, 2), 2), (Counter(0, -1), 1))
def object_of_the_caller(counter: Counter, n: int) -> int:
    """The caller's object: what is written here, the caller sees."""
    for _ in range(n):
        counter.advance()
    return counter.count


@program("class.augmented_attribute", ([1, 2], 3), ([], 0))
def augmented_attributes(items: List[int], n: int) -> Tuple[int, List[int]]:
    bag = Bag(items)
    bag.items += [n]
    bag.items[0] += 100
    counter = Counter(n, 1)
    counter.count *= 3
    counter.count -= 1
    return counter.count, bag.items


class Greeter:
    """Exported with the module that holds one."""

    def __init__(self, greeting: str):
        self.greeting = greeting

    def greet(self, name: str) -> str:
        return self.greeting + ", " + name


@program("class.module_attribute", ("you",), ("",))
class ObjectInModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def forward(self, name: str) -> str:
        return Greeter("Hello").greet(name) * self.scale if False else Greeter("Hello").greet(name)


@program("class.isinstance expression.isinstance", (1,), (2,))
def isinstance_of_class(x: int) -> bool:
    counter = Counter(x, 1)
    return isinstance(counter, Counter)


class Returns:
    def __init__(self, x: Tensor, flag: bool):
        self.y = x if flag else x + 1
        for i in range(2):
            self.y = self.y * 2


@program("class.init_attributes", (torch.ones(1), True), (torch.ones(2), False))
def init_with_control_flow(x: Tensor, flag: bool) -> Tensor:
    return Returns(x, flag).y

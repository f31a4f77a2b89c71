"""Script classes: objects, their attributes and methods, with statements over them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from torch import Tensor, nn

from tests.oracle.corpus import program, ramp


class Counter:
    """Counts."""

    def __init__(self, start: int, step: int):
        self.count = start
        self.step = step

    def advance(self) -> int:
        self.count += self.step
        return self.count

    def peek(self, ahead: int = 1):
        return self.count + ahead * self.step

    def reset(self):
        self.count = 0


class Pair:
    def __init__(self, a: Tensor, b: Tensor):
        self.a = a
        self.b = b

    def swap(self):
        self.a, self.b = self.b, self.a

    def total(self) -> Tensor:
        return self.a + self.b


class Vector:
    """Has the operators."""

    def __init__(self, x: int, y: int):
        self.x = x
        self.y = y

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, factor: int) -> Vector:
        return Vector(self.x * factor, self.y * factor)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y)

    def __eq__(self, other: Vector) -> bool:  # type: ignore[override]
        return self.x == other.x and self.y == other.y

    def __ne__(self, other: Vector) -> bool:  # type: ignore[override]
        return not self == other

    def __lt__(self, other: Vector) -> bool:
        return self.x < other.x

    def __ge__(self, other: Vector) -> bool:
        return self.x >= other.x

    def __bool__(self) -> bool:
        return self.x != 0 or self.y != 0

    def __str__(self) -> str:
        return "<" + str(self.x) + ", " + str(self.y) + ">"

    def __int__(self) -> int:
        return self.x

    def __float__(self) -> float:
        return float(self.y)

    def __abs__(self) -> int:
        return abs(self.x) + abs(self.y)


class Bag:
    """Looks like a container."""

    def __init__(self, items: List[int]):
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> int:
        return self.items[index]

    def __setitem__(self, index: int, value: int) -> None:
        self.items[index] = value

    def __contains__(self, item: int) -> bool:
        return item in self.items

    def __iadd__(self, more: List[int]) -> Bag:
        for item in more:
            self.items.append(item)
        return self

    def __call__(self, index: int, factor: int = 2) -> int:
        return self.items[index] * factor


class Temperature:
    def __init__(self, celsius: float):
        self._celsius = celsius

    @property
    def celsius(self) -> float:
        return self._celsius

    @celsius.setter
    def celsius(self, value: float):
        if value < -273.15:
            raise ValueError("too cold")
        self._celsius = value

    @property
    def fahrenheit(self) -> float:
        return self._celsius * 9.0 / 5.0 + 32.0

    @staticmethod
    def of_fahrenheit(value: float) -> Temperature:
        return Temperature((value - 32.0) * 5.0 / 9.0)

    @staticmethod
    def zero() -> float:
        return -273.15


class Scope:
    """Writes down when it is entered and left."""

    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self) -> str:
        self.log.append("enter " + self.name)
        return self.name

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.log.append("exit " + self.name)


class Scaled:
    def __init__(self, factor: int):
        self.factor = factor

    def __enter__(self) -> int:
        return self.factor

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.factor = -self.factor


class Machine:
    """Holds other objects."""

    def __init__(self, size: int):
        self.counters: List[Counter] = []
        for i in range(size):
            self.counters.append(Counter(i, i + 1))
        self.named: Dict[str, Counter] = {}
        self.first = Counter(100, 1)

    def add(self, name: str, counter: Counter):
        self.named[name] = counter

    def run(self) -> int:
        total = self.first.advance()
        for counter in self.counters:
            total += counter.advance()
        return total


def _advance_twice(counter: Counter) -> int:
    counter.advance()
    return counter.advance()


# ----------------------------------------------------------------------------------------------- attributes and methods


@program((3,), (-1,))
def makes_an_object(n: int):
    counter = Counter(n, 2)
    return counter.count, counter.step


@program((3,))
def calls_methods(n: int):
    counter = Counter(n, 2)
    first = counter.advance()
    counter.advance()
    return first, counter.count, counter.peek(), counter.peek(3), counter.peek(ahead=0)


@program((3,))
def keyword_arguments(n: int):
    return Counter(step=n, start=1).advance()


@program((3,))
def assigns_attributes(n: int):
    counter = Counter(0, 1)
    counter.count = n
    counter.step += 4
    counter.count *= 2
    return counter.advance()


@program((3,))
def aliases(n: int):
    one = Counter(n, 1)
    other = one
    other.advance()
    return one.count, one is other, one is not other


@program((True,), (False,))
def identity(same: bool):
    one = Counter(1, 1)
    other = one if same else Counter(1, 1)
    return one is other


@program((ramp(2), ramp(2, start=3.0)))
def tensor_attributes(x, y):
    pair = Pair(x, y)
    pair.swap()
    pair.a += 1
    return pair.a, pair.b, pair.total()


@program((2,))
def passes_objects_to_functions(n: int):
    counter = Counter(n, 3)
    result = _advance_twice(counter)
    return result, counter.count


@program((4, 2), (0, 2))
def objects_in_loops(n: int, step: int):
    counter = Counter(0, step)
    while counter.count < n:
        counter.advance()
    for _ in range(3):
        counter = Counter(counter.count, counter.step + 1)
        counter.advance()
    return counter.count


@program((True,), (False,))
def objects_in_branches(flag: bool):
    if flag:
        counter = Counter(1, 2)
    else:
        counter = Counter(3, 4)
        counter.reset()
    return counter.advance()


@program((2,), (0,))
def returns_early(n: int):
    counter = Counter(n, 2)
    if counter.advance() > 3:
        return counter.count
    counter.reset()
    return counter.peek()


# -------------------------------------------------------------------------------------------------------- magic methods


@program((1, 2), (0, 0))
def arithmetic(a: int, b: int):
    v = Vector(a, b) + Vector(b, a) * 3 - -Vector(1, 1)
    return v.x, v.y


@program((1, 2), (2, 1), (2, 2))
def comparisons(a: int, b: int):
    v, w = Vector(a, b), Vector(b, a)
    return v == w, v != w, v < w, v >= w


@program((1, 2), (0, 0))
def conversions(a: int, b: int):
    v = Vector(a, b)
    return str(v), int(v), float(v), bool(v)


@program((1, 2), (0, 0))
def objects_as_conditions(a: int, b: int):
    if Vector(a, b):
        return 1
    return 0 if Vector(b, b) else 2


@program(([1, 2, 3], 1), ([4], -1), ([4], 2))
def container_protocol(items: List[int], i: int):
    bag = Bag(items)
    first = bag[i]
    bag[i] = 10
    return len(bag), first, bag[i], 10 in bag, 11 in bag, 11 not in bag


@program(([1, 2, 3],))
def augmented(items: List[int]):
    bag = Bag(items)
    bag += [7, 8]
    return len(bag), bag[0], bag.items


@program(([1, 2, 3],))
def callable_objects(items: List[int]):
    bag = Bag(items)
    return bag(0), bag(1, 5), bag(2, factor=3)


# ------------------------------------------------------------------------------------------- properties, static methods


@program((10.0,), (-300.0,))
def properties(value: float):
    t = Temperature(0.0)
    t.celsius = value
    return t.celsius, t.fahrenheit


@program((50.0,))
def static_methods(value: float):
    return Temperature.of_fahrenheit(value).celsius + Temperature.zero()


# ----------------------------------------------------------------------------------------------------------- containers


@program((3,), (0,))
def lists_of_objects(n: int):
    counters = [Counter(10, 1)]
    for i in range(n):
        counters.append(Counter(i, i))
    total = 0
    for counter in counters:
        total += counter.advance()
    counters[0].count = 5
    return total, counters[0].peek(), len(counters)


@program(("a",), ("c",))
def dicts_of_objects(key: str):
    counters = {"a": Counter(1, 1), "b": Counter(2, 2)}
    if key in counters:
        counters[key].advance()
    return counters["a"].count, counters["b"].count


@program((3,))
def tuples_of_objects(n: int):
    pair = (Counter(n, 1), Counter(n, 2))
    one, other = pair
    one.advance()
    return pair[0].count, other.count


@program((True,), (False,))
def optional_objects(flag: bool):
    counter: Optional[Counter] = None
    if flag:
        counter = Counter(1, 1)
    if counter is not None:
        return counter.advance()
    return -1


@program((3,), (0,))
def objects_of_objects(n: int):
    machine = Machine(n)
    machine.add("x", Counter(7, 7))
    machine.add("first", machine.first)
    machine.named["x"].advance()
    machine.first.count = 50
    return machine.run(), machine.named["x"].count, machine.named["first"] is machine.first


@program((3,))
def isinstance_of_classes(n: int):
    counter = Counter(n, 1)
    result = 0
    if isinstance(counter, Counter):
        result += 1
    if isinstance(n, Counter):
        result += 2
    return result


# ------------------------------------------------------------------------------------------------------ with statements


@program((3,))
def with_statement(n: int):
    scaled = Scaled(n)
    with scaled as factor:
        result = factor + 1
    return result, scaled.factor


@program(([], "a"), (["x"], "b"))
def nested_with(log: List[str], name: str):
    with Scope(log, name) as outer, Scope(log, outer + outer) as inner:
        with Scope(log, "third"):
            log.append(inner)
    return log


@program(([], 1), ([], 5))
def with_and_return(log: List[str], n: int):
    with Scope(log, "a"):
        if n > 3:
            return n
        log.append("body")
    log.append("behind")
    return -n


@program(([], 4))
def with_in_loop(log: List[str], n: int):
    for i in range(n):
        with Scope(log, str(i)):
            if i == 1:
                continue
            if i == 2:
                break
            log.append("body")
    return log


# -------------------------------------------------------------------------------------------------------------- modules


@program((ramp(2),))
class ModuleMakesObjects(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        pair = Pair(x, x + 1)
        counter = Counter(1, 2)
        for _ in range(3):
            counter.advance()
        return pair.total(), counter.count


@program((ramp(2),))
class ModuleHoldsObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.counter.advance()


# -------------------------------------------------------------------------------------------------- across the boundary


@program((Counter(1, 2),), (Counter(-1, 5),))
def takes_an_object(counter: Counter):
    return counter.advance() + counter.count


@program(([Vector(1, 2), Vector(3, 4)],))
def takes_objects(vectors: List[Vector]):
    total = Vector(0, 0)
    for vector in vectors:
        total = total + vector
    vectors[0].x = 7
    return str(total), str(vectors[0])


@program((1, 2))
def returns_an_object(a: int, b: int):
    return Vector(a, b)

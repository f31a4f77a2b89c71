"""Programs that use the language: control flow, classes, interfaces, enums, named tuples, text, constants."""

from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from registry import Made, program
from torch import Tensor, nn

ROWS = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])


class Control(nn.Module):
    def forward(self, x: Tensor, n: int):
        total = 0
        for i in range(n):
            if i % 3 == 0:
                x = x + i
            elif i == 7:
                x = x * 2
            total += i
        while total > 4 and bool(x.sum() > -1000):
            total -= 4
            x = x - 1
        return x, total

    @torch.jit.export
    def leave(self, values: List[int], limit: int) -> int:
        found = -1
        for value in values:
            if value < 0:
                continue
            if value > limit:
                break
            found = value
        return found

    @torch.jit.export
    def early(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            if bool(x.sum() > 10):
                return x
            x = x * 2
        return -x

    @torch.jit.export
    def nested(self, rows: List[List[int]]):
        out: List[int] = []
        for i, row in enumerate(rows):
            for a, b in zip(row, row[1:]):  # noqa: RUF007
                out.append(a * b + i)
        return out, len(out)


@program()
def control_flow():
    calls = [("forward", [ROWS, 9]), ("leave", [[3, -1, 5, 9, 2], 6]), ("early", [ROWS.abs(), 5]), ("early", [ROWS, 2])]
    return Made(torch.jit.script(Control()), calls + [("nested", [[[1, 2, 3], [4, 5]]])])


class Optionals(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias: Optional[Tensor] = None
        self.register_parameter("missing", None)

    def forward(self, x: Tensor, y: Optional[Tensor] = None, n: Optional[int] = None):
        if y is not None:
            x = x + y
        if n is None:
            n = 2
        bias = self.bias
        if bias is not None:
            x = x * bias
        return x * n

    @torch.jit.export
    def pick(self, values: Dict[str, Optional[int]], key: str) -> Optional[int]:
        if key in values:
            return values[key]
        return None

    @torch.jit.export
    def unwrap(self, x: Optional[int]) -> int:
        assert x is not None, "nothing given"
        return x + 1


@program(since="1.4")
def optionals():
    calls = [("forward", [ROWS]), ("forward", [ROWS, ROWS, 3]), ("pick", [{"a": 1, "b": None}, "a"])]
    calls += [("pick", [{"a": 1, "b": None}, "b"]), ("unwrap", [2]), ("unwrap", [None])]
    return Made(torch.jit.script(Optionals()), calls)


@torch.jit.script
class Pair:
    def __init__(self, x: int, y: Tensor):
        self.x = x
        self.y = y

    def total(self, factor: int):
        return self.y * self.x * factor

    def grow(self):
        self.x = self.x + 1
        return self


class ScriptClasses(nn.Module):
    def forward(self, x: Tensor):
        pair = Pair(2, x)
        pairs = [pair, Pair(3, x + 1)]
        pair.grow()
        return pair.total(2), pairs[0].x, pairs[1].total(1)


@program()
def script_classes():
    return Made(torch.jit.script(ScriptClasses()), [("forward", [ROWS])])


class Point(NamedTuple):
    x: int
    y: Tensor


class NamedTuples(nn.Module):
    def forward(self, x: Tensor):
        p = Point(2, x)
        q = Point(y=x * 2, x=p.x + 1)
        return p.x + q.x, p.y + q.y, self.of(q)

    def of(self, p: Point) -> Tensor:
        return p.y * p.x

    @torch.jit.export
    def give(self, n: int) -> Point:
        return Point(n, torch.ones([n]))


@program()
def named_tuples():
    return Made(torch.jit.script(NamedTuples()), [("forward", [ROWS]), ("give", [2])])


class Colour(Enum):
    RED = 1
    GREEN = 2


class Enums(nn.Module):
    def __init__(self):
        super().__init__()
        self.colour = Colour.GREEN

    def forward(self, x: Tensor, n: int):
        colour = Colour.RED if n == 1 else self.colour
        if colour == Colour.RED:
            return x, colour.value, colour.name
        return x * 2, colour.value, colour.name


@program(since="1.8")
def enums():
    return Made(torch.jit.script(Enums()), [("forward", [ROWS, 1]), ("forward", [ROWS, 2])])


if hasattr(torch.jit, "interface") and not torch.__version__.startswith("1.3"):

    @torch.jit.interface
    class Step(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            pass

else:
    Step = nn.Module


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias


class Interfaces(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = Twice()
        self.other = Biased()

    def forward(self, x: Tensor) -> Tensor:
        return self.step.forward(self.other(x))


@program(since="1.6")
def interfaces():
    return Made(torch.jit.script(Interfaces()), [("forward", [ROWS])])


class Attributes(nn.Module):
    names: Dict[str, int]
    sizes: List[int]
    pair: Tuple[float, str]
    table: Dict[str, Tensor]
    deep: Dict[int, List[Tuple[int, str]]]

    def __init__(self):
        super().__init__()
        self.names = {"a": 1, "b": 2}
        self.sizes = [3, 4, 5]
        self.pair = (1.5, "two")
        self.table = {"w": torch.ones(2)}
        self.deep = {1: [(2, "x")], 3: []}
        self.flag = True
        self.rate = 0.1
        self.count = 0

    def forward(self, x: Tensor, key: str):
        self.count = self.count + 1
        self.sizes.append(self.count)
        self.names[key] = self.count
        return x * self.names[key] * self.rate, self.sizes, self.names, self.pair[1], self.deep[1][0][1], self.flag

    @torch.jit.export
    def tables(self):
        return self.table["w"] + 1, len(self.table), list(self.names.keys()), list(self.names.values())


@program(since="1.4")
def attributes():
    calls = [("forward", [ROWS, "a"]), ("forward", [ROWS, "c"]), ("tables", [])]
    return Made(torch.jit.script(Attributes()), calls)


class Constants(nn.Module):
    __constants__ = ["steps", "names", "scale"]

    def __init__(self):
        super().__init__()
        self.steps = 3
        self.scale = 0.5
        self.names = ("x", "y")

    def forward(self, x: Tensor):
        for i in range(self.steps):
            x = x * self.scale
        big = torch.tensor([1e-7, 1e20, 3.0]) * 123456789.0
        return x + big, self.names[0] + self.names[1], 1e-10, 1e100, float("inf"), 9007199254740993, "q'\"\n\t\\"


@program()
def constants():
    return Made(torch.jit.script(Constants()), [("forward", [ROWS])])


class Unicode(nn.Module):
    def forward(self, s: str):
        return "é and 漢字" + s, s == "é"


@program("1.8 2.0")
def constants_unicode():
    return Made(torch.jit.script(Unicode()), [("forward", ["é"])])


def helper(x: Tensor, factor: float = 2.0, shift: int = 1) -> Tensor:
    return x * factor + shift


def loops(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = helper(x, 0.5)
    return x


class Functions(nn.Module):
    def forward(self, x: Tensor, n: int):
        return loops(x, n) + self.own(x, n=n) + helper(x, shift=3)

    def own(self, x: Tensor, scale: float = 1.5, n: int = 1) -> Tensor:
        return x * scale * n


@program()
def functions():
    return Made(torch.jit.script(Functions()), [("forward", [ROWS, 3])])


class Raising(nn.Module):
    def forward(self, x: Tensor, n: int):
        if n < 0:
            raise ValueError("below zero")
        assert n < 10, "too many"
        return x * n


@program(since="1.4")
def raising():
    return Made(torch.jit.script(Raising()), [("forward", [ROWS, 2]), ("forward", [ROWS, -1]), ("forward", [ROWS, 11])])


class StateOfOwn(nn.Module):
    """Its state is what `__getstate__` gives, and `__setstate__` runs while the archive is loaded."""

    def __init__(self):
        super().__init__()
        self.weight = torch.ones(2, 2)
        self.name = "fresh"

    @torch.jit.export
    def __getstate__(self):
        return self.weight * 2, self.name + "!", self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, str, bool]):
        self.weight = state[0] + 1
        self.name = state[1]
        self.training = state[2]

    def forward(self, x: Tensor):
        return x + self.weight, self.name


@program(since="1.4")
def state_of_own():
    return Made(torch.jit.script(StateOfOwn()), [("forward", [torch.zeros(2)])])


class Text(nn.Module):
    """`str` and `format` of archives write floats as C++ does: 5.0 is `5.`."""

    def forward(self, n: int, f: float, s: str):
        return "{} and {}".format(n, s), "{}|{}".format(f, s), s + "!", s == "a", len(s)

    @torch.jit.export
    def as_text(self, n: int, f: float, b: bool):
        return str(n), str(f), str(b)

    @torch.jit.export
    def of_lists(self, x: List[int], y: List[float], z: List[str]):
        return str(x), str(y), "{}".format(z), str((1, 2.0)), "{}".format(None)

    @torch.jit.export
    def of_tensors(self, x: Tensor):
        return str(x), "{}".format(x)


def _text_calls():
    numbers = [0.0, 1.0, -2.5, 0.1, 1e20, 1e-5, 123456.789, 1e15, 1e16, 1 / 3, float("inf"), float("nan"), 100000.0]
    calls = [("forward", [3, 2.0, "a"]), ("of_lists", [[1, 2], [0.5, 2.0], ["a", "b"]])]
    calls += [("as_text", [-4, number, number > 1]) for number in numbers]
    tensors = [torch.tensor([1.0, 2.5]), torch.tensor([[1, -20], [300, 4]]), torch.tensor(3.0), torch.tensor([True])]
    return calls + [("of_tensors", [tensor]) for tensor in tensors]


@program("1.4 1.5 1.6 1.8 1.11 2.0 2.13")
def text():
    return Made(torch.jit.script(Text()), _text_calls())


class Percent(nn.Module):
    def forward(self, n: int, f: float, s: str):
        return "%d items" % n, "%s=%s" % (s, n), "%f" % f, "%s" % f, "100%% %d" % n

    @torch.jit.export
    def methods(self, s: str):
        return s.upper(), s.split(","), s.replace("a", "o"), s.find("b"), s.strip(), s.startswith("a"), ",".join([s, s])

    @torch.jit.export
    def parts(self, s: str):
        return s[0], s[1:], s[-1], s.lower(), s.endswith("c"), s.count("a"), "a" in s, s.zfill(8), s.isdigit()

    @torch.jit.export
    def braces(self, n: int, f: float):
        return "{:d}".format(n), "{:.2f}".format(f), "{0} {1}".format(n, f), "{{}} {}".format(n)


@program(since="1.8")
def text_formats():
    calls = [("forward", [3, 2.5, "x"]), ("forward", [-3, 2.0, ""]), ("methods", [" a,b,c"]), ("parts", ["abc"])]
    return Made(torch.jit.script(Percent()), calls + [("braces", [3, 2.0])])


class Comprehensions(nn.Module):
    def forward(self, values: List[int]):
        doubled = [value * 2 for value in values]
        table = {value: value * value for value in values}
        return doubled, table, sum(values), max(values), sorted(values), any([value > 3 for value in values])

    @torch.jit.export
    def dicts(self, table: Dict[str, int]):
        copy = table.copy()
        copy.update({"z": 26})
        first = copy.pop("z")
        return copy.get("a", 7), first, list(copy.items()), "a" in copy, len(copy)

    @torch.jit.export
    def lists(self, values: List[int]):
        values = values.copy()
        values.insert(1, 9)
        values.reverse()
        values.remove(9)
        last = values.pop()
        values.extend([last, 5])
        return values, values.index(5), values.count(5), [0] * 3, values + [1], values == [1]


@program("1.9 1.12 2.13")
def comprehensions():
    calls = [("forward", [[1, 5, 3]]), ("dicts", [{"a": 1, "b": 2}]), ("lists", [[1, 2, 3]])]
    return Made(torch.jit.script(Comprehensions()), calls)


class Refined(nn.Module):
    def forward(self, x: Tensor, flag: bool):
        device = torch.device("cpu")
        y = torch.zeros([2], device=device, dtype=torch.float64)
        if flag:
            shape = x.shape
        else:
            shape = y.shape
        (rows, columns) = x.shape
        return y, shape, rows * columns, x.device == device, y.to(x.device).dtype == torch.float64


@program(since="1.4")
def devices():
    return Made(torch.jit.script(Refined()), [("forward", [ROWS, True]), ("forward", [ROWS, False])])

"""Programs with several problems that do not depend on each other. ``f`` is compiled, or an instance of ``M``.

A comment ``#! cause`` is on each line that is to be reported, once for each problem; no other line may be.
"""

from __future__ import annotations

# Name -> text of a module, as in ``wrong_programs``.
LIVE: dict[str, str] = {
    "statements_in_a_row": """
def f(x, n: int, s: str):
    a = n + s  #! type mismatch
    b = torch.sigmod(x)  #! undefined name
    c = n(1)  #! unsupported construct
    return a, b, c, missing  #! undefined name
""",
    "what_needs_what_failed_is_not_told": """
def f(x, n: int):
    a = nowhere  #! undefined name
    b = a + 1
    c = b.foo(a)
    for d in c:
        b = d + "x"
    if b:
        e = c
    else:
        e = 3
    n = e + n
    return n + "x", nothing  #! undefined name
""",
    "arguments_of_one_call": """
def f(x):
    y = torch.cat([x, first, second], dim=third)  #! undefined name; undefined name; undefined name
    return torch.add(fourth, y) + fifth  #! undefined name; undefined name
""",
    "both_branches": """
def f(x, flag: bool):
    if flag:
        y = x.first()  #! undefined name
    else:
        y = x.second()  #! undefined name
    if undefined:  #! undefined name
        z = x.third()  #! undefined name
    else:
        z = x
    return y + z
""",
    "bodies_of_loops": """
def f(x, n: int, v: List[int]):
    for i in range(n):
        v.append("a")  #! type mismatch
    for j in n:  #! type mismatch
        x = x.nope()  #! undefined name
    while unknown:  #! undefined name
        n = n + "a"  #! type mismatch
        break
    return v
""",
    "types_of_variables": """
def f(n: int, flag: bool):
    total = 0
    if flag:
        total = "one"  #! type mismatch
    count = 0
    for i in range(n):
        count = [count]  #! type mismatch
    another = only  #! undefined name
    only = 1
    return total, count, only
""",
    "returns": """
def f(n: int, flag: bool) -> str:
    if flag:
        return n  #! type mismatch
    if n > 3:
        return missing  #! undefined name
    while n > 0:
        return 0.5  #! type mismatch
    return "a"
""",
    "refinements": """
def f(x: Optional[Tensor], n: Optional[int], u: "Union[int, str]"):
    a = x.relu()
    b: List[int] = [1]
    b.append(n)  #! missing refinement
    c = u + 2  #! missing refinement
    if n is None:
        b.append(n + 1)  #! missing refinement
    return a, b, c
""",
    "a_condition_that_failed_refines_nothing": """
def f(n: Optional[int], m: int, k: Optional[int]):
    if n is not None and missing:  #! undefined name
        m = n + 1
    assert k is not None and nothing  #! undefined name
    return n + m + "x", k + 1
""",
    "parameters_without_annotation": """
def f(n, items, text, x):
    for i in range(n):  #! default type assumed
        x = x + i
    items.append(3)  #! default type assumed
    parts = text.strip()  #! default type assumed
    return x + n, parts
""",
    "defaults_without_annotation": """
def f(x, n=object(), mask=None, rate: int = "fast"):  #! default type assumed; type mismatch
    if mask is not None:
        x = x * mask
    for i in range(n):
        x = x + rate
    return missing  #! undefined name
""",
    "a_list_that_was_made_empty": """
def f(n: int):
    names = []
    names.append("a")
    names.append(n)  #! type mismatch
    counts = []
    for i in range(n):
        counts.append(i)
    return len(counts) + "a"  #! type mismatch
""",
    "assumed_in_what_is_called": """
def repeat(x, times):
    return x


def f(x):
    y = repeat(x, 3) + missing  #! undefined name
    return repeat(x, "a") + nope  #! undefined name
""",
    "signature": """
def f(
    x: "NoSuchType",  #! undefined name
    v: list,  #! unsupported construct
    n: 3,  #! unsupported construct
    k: int,
) -> "Nowhere":  #! undefined name
    y = x.foo() + v[0] + n
    return k + "a"  #! type mismatch
""",
    "variadic": """
def f(x, *args, **options):  #! unsupported construct; unsupported construct
    y = args[0] + options["a"]
    return x + missing  #! undefined name
""",
    "statements_that_are_left_out": """
def f(x, n: int):
    import math
    def inner(y):
        return y + nowhere
    class Local:  #! unsupported construct
        size = n
    global counter  #! unsupported construct
    counter = math.floor(n)
    z = inner(Local())
    return x + missing  #! undefined name
""",
    "expressions_that_are_left_out": """
def f(x, n: int):
    g = b"abc"  #! unsupported construct
    h = [{(n, 2)}, {k: b"x" for k in range(n)}]  #! unsupported construct; unsupported construct
    if (m := n + 1) > "a":  #! type mismatch
        n = n + m
    return torch.sum(x, **h), {**g}, missing  #! undefined name
""",
    "within_try": """
def f(x, n: int):
    try:
        y = x + missing  #! undefined name
        z = b"y"  #! unsupported construct
    except ValueError as error:
        print(error)
        y = x.nope()  #! undefined name
        raise
    finally:
        n + "a"  #! type mismatch
    return y + z
""",
    "loops_with_else": """
def f(x, n: int):
    for i in range(n):
        x = x + missing  #! undefined name
    else:
        found = "a".nope()  #! undefined name
    while n > 0:
        n -= "a"  #! type mismatch
    else:
        last = 1
    return found, last
""",
    "generator_with_other_problems": """
def f(n: int, s: str):
    for i in range(n):
        yield i  #! unsupported construct
        yield missing  #! unsupported construct
    s - 1  #! type mismatch
""",
    "what_is_called": """
def inner(x):
    return x + missing  #! undefined name


def middle(x, n: int):
    y = inner(x) + inner(x * 2)
    return y + n + "a".nope()  #! undefined name


def f(x):
    a = middle(x, 1)
    b = middle(a, 2)
    c = inner(b)
    return c + nothing  #! undefined name
""",
    "calls_itself": """
def helper(n: int):
    return f(n) + missing  #! undefined name; unsupported construct


def f(n: int):
    a = helper(n)
    b = helper(a)
    return b + nothing  #! undefined name
""",
    "python_objects": """
TABLE = {1: object()}
tensor = torch.ones(2)


def f(x, i: int, t: Tuple[int, str]):
    a = numpy.sin(x)  #! dynamic behaviour
    b = TABLE[i]  #! dynamic behaviour
    c = tensor + x  #! dynamic behaviour
    d = t[i]  #! dynamic behaviour
    first, *rest = x  #! default type assumed
    return torch.cat([*[x, x]]), getattr(x, "sha" + "pe")  #! dynamic behaviour
""",
    "with_statements": """
def f(x, n: int):
    with nowhere as a, torch.no_grad():  #! undefined name
        y = a + x
        z = x.nope()  #! undefined name
    with n:  #! type mismatch
        z = x
    return z + missing  #! undefined name
""",
    "methods_of_a_module": """
class M(nn.Module):
    limit: Final[int]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.limit = 3
        self.thing = object()

    def forward(self, x):
        self.helper = x  #! undefined name
        self.limit = 4  #! unsupported construct
        y = self.helper(x) * self.wieght  #! undefined name
        return y + self.thing  #! dynamic behaviour

    def helper(self, x):
        return x.nope()  #! undefined name

    @torch.jit.export
    def other(self, x, n: int):
        return self.helper(x) + n + "a".nope()  #! undefined name
""",
    "submodules": """
class First(nn.Module):
    def forward(self, x):
        return x.first()  #! undefined name


class Second(nn.Module):
    def forward(self, x, n: int):
        y = x.second()  #! undefined name
        return y, n + "a"  #! type mismatch


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = First()
        self.again = First()
        self.parts = nn.ModuleList([Second(), Second(), nn.ReLU()])

    def forward(self, x, i: int):
        for part in self.parts:
            x = part(x).missing()
        z = self.parts[i](x)
        return self.one(x) + self.again(x) + self.nowhere(x)  #! undefined name
""",
    "unrolled_loops": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.ReLU(), nn.Sigmoid(), nn.Linear(2, 2)])

    def forward(self, x):
        for part in self.parts:
            x = part(x).nope()  #! undefined name
        for index, part in enumerate(self.parts):
            with torch.no_grad():
                if index == 1:
                    break  #! unsupported construct
            y = part(x, 1)
        return missing  #! undefined name
""",
    "classes": """
class Child(dict):  # reported where it is used
    def __init__(self, n: int):
        self.n = n


class Counter:
    def __init__(self, n: int):
        self.n = n + missing  #! undefined name
        self.text = "a" - 1  #! type mismatch
        self.total = self.n + 1

    def add(self, k: int):
        return self.total + k


def f(n: int):
    a = Child(n)  #! dynamic behaviour
    b = Child(n + 1)  #! dynamic behaviour
    c = Counter(n)
    d = c.add("a")
    return nothing  #! undefined name
""",
}

TEXTS: dict[str, str] = {
    "text_several_functions": """
def first(x):
    return x + missing  #! undefined name

def second(x, n: int):
    y = first(x)
    return n + "a", y  #! type mismatch

def third(x: Wrong):  #! undefined name
    return second(x, 1)
""",
    "text_syntax_in_several_functions": """
def first(x):
    y = = x  #! invalid syntax
    return y

def second(x):
    return first(x) + missing  #! undefined name

def third(x)  #! invalid syntax
    return x

def fourth(n: int):
    await n  #! unsupported construct
    return third(n)

def fifth(n: int):
    return fourth(n), n + "a"  #! type mismatch
""",
    "text_classes": """
class Point:
    x: int
    def __init__(self, x: int):
        self.x = x
        self.y = missing  #! undefined name

    def moved(self, by: int):
        return self.x + self.y + by + "a"

    def other(self):
        return self.z.foo() + nothing  #! undefined name

class Derived(Point):  #! invalid class
    def __init__(self):
        pass

def f(p: Point):
    q = p.moved(1)
    return p.other(), q, p.x + "a"  #! type mismatch
""",
}

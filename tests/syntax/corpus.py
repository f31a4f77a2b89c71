"""Functions as people write them, every construct of the language among them; both parsers read each of them.

They are read, never run.
"""

# fmt: off
# The ways of writing that linters object to are what this file is for.
# ruff: noqa: B002, B006, B008, B020, B026, E101, E713, F541, F821, F842, PGH003, RUF021, RUF034, T201
# ruff: noqa: UP025, UP034, UP037, W191, E701, E702, E703, ISC001

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor


def empty(): pass


def one_line(x): return x + 1


def semicolons(x):
    a = x; b = a; c = b;
    return c


def docstring_only():
    """Nothing else."""


def docstring(x):
    """The first line.

      An indented one, and a \\ backslash.
    """
    return x


def annotations(a: int, b: Tensor, c: Optional[List[int]] = None, d: "Tensor" = torch.zeros(1)) -> Tuple[int, Tensor]:
    return a, b


def defaults(a=1, b=-2.5, c="text", d=None, e=True, f=False, g=(1, 2), h=[], i=...):
    return a


def keyword_only(a, *, b: int, c: float = 1e-5):
    return a + b * c


def positional_only(a, b=2, /, c=3):
    return a


def trailing_comma(
    a: int,
    b: int = (3),
) -> int:
    return a


def numbers():
    return [0, 1, 42, 1_000_000, 0x1F, 0XAB_cd, 0b1010, 0o17, 1.0, 1., .5, 1e5, 1E-5, 1.5e+10, 2j, 1.5J, 0.1e1j, 00]


def strings():
    a = 'single' "double" '''triple "quotes" '''
    b = "escapes: \n\t\\ \' \" \x41 \u00e9 \U0001F600 \101 \0 \a\b\f\v\r"
    c = r"raw \n \' text" R'\d+' u"unicode" """over
two lines"""
    d = ("in "
         "parentheses, "  # with a comment
         'both quotes')
    e = "line \
continued"
    f = "odd escapes \N{GREEK SMALL LETTER ALPHA}"
    return a + b + c + d + e + f + "" + ''''''


def f_strings(x, y, d):
    a = f"plain"
    b = f"{x} and {y.z} and {x + y}"
    c = f"{x!r} {x!s:>10} {y:.3f} {y:>{x}} {y:{x}.{x}}"
    e = f"{{literal}} {{{x}}}" "{not a field}" f'{d["key"]}'
    g = f"{x = } {x=!s} {x=:>5} { y.z  =}"
    h = rf"\n{x}\d" fR'{y}'
    i = f'''{
        x
    } over
    lines {y}'''
    j = f"{x,} {x, y} {(x, y)} {[i for i in d]} {x if y else d} {x != y} {x == y} {x >= y}"
    return f"\x41{x}" f"{f'{x}'}" f"{ {1: 2}[1] }"


def names(x):
    été = x
    ελλάδα_2 = été
    _ = ελλάδα_2; __a__ = _
    return __a__


def arithmetic(a, b, c):
    return a + b - c * a / b // c % a @ b ** c


def precedence(a, b, c):
    x = a + b * c - -a ** -b ** +c
    y = (a + b) * c - (a - (b - c)) / ((a))
    z = a | b ^ c & a << b >> c + a
    w = not a == b and not (b or c) or a and b or not not c
    v = -a.b[0](c) ** 2 + ~b & ~-+c
    return x, y, z, w, v


def comparisons(a, b, c):
    u = a < b, a <= b, a > b, a >= b, a == b, a != b
    v = a is None, a is not None, a in b, a not in b
    w = 1 < a < b <= (c) != a is not b not in c
    x = (a < b) < c, a < (b < c), not a in b
    return u, v, w, x


def ternaries(a, b, c):
    x = a if b else c
    y = a if b else b if c else a if a else c
    z = (a if b else c) if (b) else (c if a else b)
    w = [a if b else c, a or b if b and c else not c]
    return (x if y else z) + w


def calls(f, x, args):
    f()
    f(x)
    f(x, x,)
    f(x, a=x, b = 2, c=[1, 2],)
    f(*args, x, *args, key=x)
    f(a=1, *args)
    f(f(f(x)(x))(x), (x), (x, x), ((x)),)
    f(x).g(x)(x)[x].h()
    (f)(x); (f.g)(x); (f(x))(x)
    return f(
        x,
        y=x,
    )


def chains(x):
    y = x.relu().sum(0).view(-1, 2)[0].t().mm(x).item()
    z = (x
         .relu()
         .sum()
         )
    return x . relu ( ) . a . b.c


def generators(xs):
    a = sum(x for x in xs)
    b = any((x for x in xs), )
    c = (x for x in xs if x)
    return max(x * 2 for x in xs if x > 1 if x < 5), all((x) for (x) in (xs))


def subscripts(x, i, j):
    a = x[0], x[i], x[i, j], x[(i, j)], x[i,], x[(i, j),], x[()], x[-1]
    b = x[:], x[1:], x[:2], x[1:2], x[::], x[::2], x[1::2], x[:2:3], x[1:2:3], x[ : : ]
    c = x[:, 1:, ..., None, i:j + 1, -1], x[(i):(j)], x[i][j][:]
    d = x[[0, 1]], x[[0, 1], [1, 2]], x[x > 0], x[...], x[Ellipsis, 0]
    return x[i:][j]


def lists(a, b):
    return [], [a], [a,], [a, b], [[a], [b, []]], [*a, b, *b], [(a), (a, b)]


def tuples(a, b):
    x = ()
    y = a,
    z = a, b,
    w = (a,)
    v = (a, (b, ()), (a), ((a, b)))
    u = (a), b
    t = *a, b
    return a, *b


def dicts(a, b):
    return {}, {a: b}, {"a": 1, 'b': [2],}, {a: {b: {}}}, {a if b else a: b, (a): (b)}


def sets(a, b):
    return {a}, {a, b,}, {*a, b}


def list_comprehensions(xs, ys):
    a = [x for x in xs]
    b = [x + 1 for x in range(10) if x % 2 == 0 if x > 2]
    c = [(x, y) for x in xs for y in ys if x]
    d = [a + b for a, b in zip(xs, ys)]
    e = [[y for y in x] for x in xs]
    g = [x if x else 1 for x in (xs if ys else ys)]
    h = [i for i, (j, k) in xs]
    return [x for x in xs or ys]


def dict_comprehensions(xs):
    return {k: v for k, v in xs.items()}, {str(i): i * i for i in range(3) if i}


def assignments(x, y):
    a = x
    b = c = x
    d, e = x, y
    (f, g) = x
    [h, i] = y
    j, (k, l), [m, n] = x
    o, *p = x
    *q, r = y
    s = (t) = x
    x.a = y
    x.a.b, x[0] = y
    x[0] = x[1:2] = y
    x[0, 1:], y[...] = a, b
    u, = x
    return a


def annotated_assignments(x):
    a: int = 1
    b: List[Tuple[int, Tensor]] = []
    c: Optional[Tensor]
    x.d: int = 2
    x[0]: int = 3
    e: "Dict[str, int]" = {}
    g: (int) = (4)
    h: Tuple[int, int] = 1, 2
    return a


def augmented_assignments(x, y):
    x += 1; x -= 1; x *= 2; x /= 2; x //= 3; x %= 4; x **= 2; x @= y
    x &= y; x |= y; x ^= y; x <<= 1; x >>= 1
    x.a += y
    x[0] -= y
    x[0, 1:] *= (y)
    x += y, 1
    return x


def returns(x):
    if x:
        return
    if x > 1:
        return None
    if x > 2:
        return (x)
    if x > 3:
        return x, x
    return (x, x),


def branches(x):
    if x: return 1
    if x > 1:
        y = 1
    else:
        y = 2
    if x: y = 1; z = 2
    else: y = 3
    if x > 1:
        pass
    elif x > 2:
        y = 1
    elif (x > 3):
        y = 2
    else:
        if x:
            y = 3
        else:
            y = 4
    if x:
        y = 5
    elif y:
        y = 6
    return y


def loops(xs, n):
    while True:
        break
    while n > 0: n -= 1
    while (n < 10
           and n):
        n += 1
        if n == 5:
            continue
        else:
            break
    for x in xs: pass
    for i in range(n):
        for j in range(i, n):
            if j == i: continue
            n = n + j
    for i, x in enumerate(xs):
        pass
    for (a, b), c in xs:
        pass
    for x in 1, 2, 3:
        pass
    for i, in xs:
        pass
    for x in [1, 2] + xs if n else xs:
        pass
    for n.a in xs:
        pass
    for xs[0] in xs:
        pass
    return n


def with_statements(x, y):
    with x:
        pass
    with x as a: pass
    with x as a, y(1) as b, x:
        pass
    with (x):
        pass
    with (x) as a:
        pass
    with (x, y) as a:
        pass
    with (x).f() as a, (y):
        pass
    with torch.no_grad():
        with torch.autograd.profiler.record_function("name") as r:
            y = x
    with x as (a, b):
        pass
    return y


def parenthesised_with(x, y):
    with (x as a, y as b):
        pass
    with (x, y):
        pass
    with (
        x as a,
        y,
    ):
        pass
    return x


def asserts_and_raises(x):
    assert x
    assert x > 0, "message"
    assert (x)
    assert x, f"{x} is bad"
    if x:
        raise ValueError
    if x:
        raise RuntimeError("text " + str(x))
    if x:
        raise ValueError("a") from None
    raise (NotImplementedError)


def deletes(x, y):
    del x
    del y[0]
    del x, y
    del x[0], y.a
    del (x)
    del (x, y)
    return None


def expression_statements(x):
    x
    x.append(1)
    x + 1
    "text"
    1
    ...
    (x)
    (x + 1).relu_()
    x, x
    [x]
    None
    print("a", x)


def comments(x):  # after the head
    # before the first statement
    y = x  # after a statement
        # indented oddly
    if y:  # after a colon
# at the left margin
        y = 1
        # at the end of the block
    # between
    else:
        # before the block
        y = 2

    # at the end
    return y  # the last


def continued(x, y):
    a = x + \
        y
    b = (x +
         y)
    if x and \
            y:
        a = [1,
             2,

             # a comment

             3]
    assert x, \
        "text"
    return a \
        + b


def blank_lines(x):


    y = x

    if y:

        y = 1


    return y


def tabs(x):
	if x:
		return 1
	else:
	        return 2


def odd_spacing ( x,y = 1,* ,z:int=2 ) ->int :
  if(x):return(y)
  a=-x+-y;b=x if(y)else(z)
  for(i)in(a):print(i)
  return[a,b][0]if not(x)else{1:2}[1]


def non_ascii(x):
    """Élan vital — ∀x."""
    s = "é∀" + x.f("ü", y="ß"); t = (s + "ø") * 2
    é = [s, "—", s]; ü = é[0]
    return f"é{ü!r}—{é}"


def type_comment(a, b):
    # type: (int, Tensor) -> Tensor
    return b + a


def type_comment_below_docstring(a):
    """Text."""
    # type: (int) -> int
    return a


def type_comment_without_arrow(a, b):
    # type: (int, Tensor)
    return b * a


def type_comment_on_the_head(a):  # type: (int) -> int
    return a


def type_comment_without_result(a, *, b=1):
    # type: (List[int], int) -> None
    pass


def type_comment_for_each(a,  # type: int
                          b,  # type: Tuple[Tensor, Optional[int]]
                          c=None,  # type: ignore
                          d=(1, 2),  # type: Tuple[int, int]
                          ):
    # type: (...) -> List[int]
    # type: ignore
    return [a]


def type_comment_of_the_rest(a,  # type: int
                             *args  # type: Tensor
                             ):
    # type: (...) -> int
    return a + len(args)


def type_comments_of_assignments(x):
    a = []  # type: List[int]
    b = {}  # type: Dict[str, Tensor]  # and a comment
    c = x  # type: ignore
    d = x  # type: ignore[assignment]
    e, f = x  # type: int, int
    x.g = x  # type: Optional[Tensor]
    h = x  # type: this is not a type
    i = x  # other
    j = (  # type: int
        1)
    k = [
        1,
    ]  # type: List[int]
    return a


def annotation_and_comment(a: Any, b: Any) -> Any:
    # type: (int, str) -> float
    return a


def torch_calls(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None) -> Tensor:
    if weight is not None and bias is not None:
        x = torch.nn.functional.linear(x, weight, bias)
    elif weight is not None:
        x = torch.matmul(x, weight.t())
    else:
        x = torch.ops.aten.relu(x)
    y = torch.jit.annotate(List[Tensor], [])
    for i in range(x.size(0)):
        y.append(x[i, :].to(dtype=torch.float32, device=x.device))
    return torch.stack(y, dim=0)


def lstm_cell(x: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor):
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    ingate = torch.sigmoid(ingate)
    forgetgate = torch.sigmoid(forgetgate)
    cellgate = torch.tanh(cellgate)
    outgate = torch.sigmoid(outgate)
    cy = (forgetgate * cx) + (ingate * cellgate)
    hy = outgate * torch.tanh(cy)
    return hy, cy


def early_exits(xs: List[int], limit: int) -> int:
    total = 0
    i = 0
    while i < len(xs):
        if xs[i] < 0:
            i += 1
            continue
        for j in range(xs[i]):
            total += j
            if total > limit:
                return total
        if total == limit:
            break
        i += 1
    return -1


def nested_blocks(x: int) -> int:
    if x > 0:
        if x > 1:
            if x > 2:
                for i in range(x):
                    while i < x:
                        if i:
                            x -= 1
                        else:
                            return x
    return 0


def nested_brackets(x):
    return ((((((((x)))))))), [[[[[[x]]]]]], {1: {2: {3: {4: x}}}}, x[x[x[x[0]]]], x(x(x(x(x()))))


def unpacking(x, y):
    a, (b, c), *d = x
    (a), b = y
    (a, b), c = (x, y), x
    [a, [b, c]] = y
    return [a, *b], (*a, b), {*a, *b}


def unary_operators(x):
    return -x, +x, ~x, not x, - - x, -+~x, not not x, -x.y, -x[0], -(x), (-x).abs(), -x ** 2, (-x) ** 2, 2 ** -x


def power_operators(x, y, z):
    return x ** y ** z, (x ** y) ** z, x ** -y ** -z, -x ** y, x ** y * z, x.a ** y[0] ** z()


def long_sum(a, b):
    return (
        a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b
        + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b + a + b
        - a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b * a * b
    )


def soft_keywords(match, case, type):
    match = case
    type(match)
    match.a = type[0]
    print(match, case, type)
    match += 1
    match(case)
    return match


def dunder_names(self, x):
    self.__class__
    self._private = self.__private
    return self.__getitem__(x).__len__()


@torch.no_grad()
@torch.inference_mode(mode=True)
def decorated(x):
    return x


class Klass:
    """A class."""

    count: int
    scale: float = 1.0
    names = ["a", "b"]

    def __init__(self, x: int):
        self.x = x
        self.y: List[int] = []

    def method(self, a: int) -> int:
        """Over
        two lines.
        """
        text = """kept
    as it is"""
        if a:
            return self.x
        return len(text)

    @property
    def prop(self) -> int: return self.x

    @staticmethod
    def static(a, b=1):
        # type: (int, int) -> int
        return a

    def commented(self, a, b):
        # type: (int, Tensor) -> Tensor
        return b

    def commented_with_self(self, a):
        # type: (Any, int) -> int
        return a

    class Inner:
        def deep(self, x):
            y = """
            z
            """
            return x + \
                y


def tries(x, n):
    try:
        y = x // n
    except ZeroDivisionError:
        y = x
    except (KeyError, IndexError) as error:
        raise RuntimeError(str(error)) from error
    except ValueError as error:
        print(error)
        raise
    else:
        y += 1
    finally:
        n += 1
    try:
        return y
    finally:
        print(n)


def functions_within(x, n: int, *rest: int, flag=True, **named: float):
    """The statements within functions, and what calls and literals expand."""
    f = lambda a, b=2, *c, d=3, **e: a + b if a else (b, *c)  # noqa: E731
    def inner(y, *, scale=1.0):
        nonlocal n
        n = 2
        return f(y, **named) * scale
    if (m := n + 1) > 2 and (k := m):
        x = inner(x, scale=k)
    pairs = {"a": 1, **named, **{"b": 2}}
    return [*map(lambda y: y + m, rest)], {y % 2 for y in rest}, lambda: pairs, (lambda: (yes := 1))()


def call_of_both(f, xs, d):
    return f(*xs, 1, a=2, **d), f(**d), f((z := 3), [w := 4, 5][0])


def imports_and_else_of_loops(x, n):
    from math import floor as down, pi

    for y in x:
        if y == n:
            if n: break
            continue
        for z in y:
            break
    else:
        n = 1
    while n: n -= 1
    else: return pi
    return down(n)

"""A strategy of programs on numbers and lists of numbers, as source text.

They are all loops, and nothing in them is sure to go well: ints overflow, divisors are zero, indices are out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Draw = Callable[..., Any]

VARIABLES = {
    "int": ("a", "b", "c"),
    "float": ("x", "y"),
    "bool": ("p", "q"),
    "ints": ("u", "v"),
    "floats": ("w",),
    "rows": ("m",),
}
HEAD = (
    "def f(a: int, b: int, x: float, p: bool, u: List[int], v: List[int], w: List[float], n: int, m: List[List[int]])"
    " -> Tuple[int, int, int, float, float, bool, bool, List[int], List[int], List[float], List[List[int]]]:\n"
    "    c, y, q = 1, 0.5, False\n"
    "    for i in range(n):\n"
)
TAIL = "    return a, b, c, x, y, p, q, u, v, w, m\n"

_OF_INTS = ("+", "-", "*", "//", "%", "&", "|", "^")
_OF_FLOATS = ("+", "-", "*", "/", "//", "%")
_OF_ROWS = (
    *("m[{row}][{item}] = a", "m[{row}].append({item})", "m.append(u)", "m.append([{item}])", "u = m[{row}]"),
    *("m[{row}] = v", "v = m.pop()", "v = list(m[{row}])", "m = [u, u]", "m = [m[{row}]] * 2", "b = m[{row}].pop(0)"),
)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_FUNCTIONS = ("math.sqrt", "math.exp", "math.log", "math.sin", "math.tanh", "abs", "-")


def pick(draw: Draw, options: tuple[str, ...]) -> str:
    return str(draw(st.sampled_from(options)))


def expression(draw: Draw, type: str, depth: int) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return leaf(draw, type)
    return {"int": _int, "float": _float, "bool": _bool}[type](draw, depth - 1)


def leaf(draw: Draw, type: str) -> str:
    if draw(st.booleans()):
        return pick(draw, VARIABLES[type])
    if type == "int":
        return pick(draw, ("0", "1", "-1", "2", "7", "64", "-3", "i", "4611686018427387904", "9007199254740993"))
    if type == "float":
        return pick(draw, ("0.0", "-0.0", "0.5", "-1.25", "3.0", "1e300", "9007199254740993.0"))
    return pick(draw, ("True", "False"))


def _int(draw: Draw, depth: int) -> str:
    a, b = expression(draw, "int", depth), expression(draw, "int", depth)
    match draw(st.integers(0, 9)):
        case 0:
            return f"{pick(draw, ('min', 'max'))}({a}, {b})"
        case 1:
            return f"{pick(draw, (*VARIABLES['ints'], f'm[{b}]'))}[{a}]"
        case 2:
            return f"len({pick(draw, (*VARIABLES['ints'], *VARIABLES['floats'], 'm', f'm[{a}]'))})"
        case 3:
            return f"{pick(draw, ('int', 'math.floor', 'math.ceil'))}({expression(draw, 'float', depth)})"
        case 4:
            return f"({a} if {expression(draw, 'bool', depth)} else {b})"
        case 5:
            return f"({a} {pick(draw, ('<<', '>>'))} ({b} % 70))"
        case 6:
            return f"{pick(draw, ('abs', '-', 'int'))}({a})"
        case _:
            return f"({a} {pick(draw, _OF_INTS)} {b})"


def _float(draw: Draw, depth: int) -> str:
    a, b = expression(draw, "float", depth), expression(draw, "float", depth)
    match draw(st.integers(0, 8)):
        case 0:
            return f"{pick(draw, ('min', 'max'))}({a}, {b})"
        case 1:
            return f"w[{expression(draw, 'int', depth)}]"
        case 2:
            return f"{pick(draw, _FUNCTIONS)}({a})"
        case 3:
            return f"({expression(draw, 'int', depth)} / {expression(draw, 'int', depth)})"
        case 4:
            return f"({a} {pick(draw, _OF_FLOATS)} {expression(draw, 'int', depth)})"
        case 5:
            return f"float({expression(draw, pick(draw, ('int', 'bool', 'float')), depth)})"
        case _:
            return f"({a} {pick(draw, _OF_FLOATS)} {b})"


def _bool(draw: Draw, depth: int) -> str:
    left, right = pick(draw, ("int", "float")), pick(draw, ("int", "float"))
    match draw(st.integers(0, 4)):
        case 0:
            return f"(not {expression(draw, 'bool', depth)})"
        case 1:
            word = pick(draw, ("and", "or", "==", "!="))
            return f"({expression(draw, 'bool', depth)} {word} {expression(draw, 'bool', depth)})"
        case _:
            compared = pick(draw, _COMPARISONS)
            return f"({expression(draw, left, depth)} {compared} {expression(draw, right, depth)})"


def statements(draw: Draw, indent: int, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += _statement(draw, " " * indent, indent, depth)
    return lines


def _statement(draw: Draw, space: str, indent: int, depth: int) -> list[str]:
    kind = draw(st.integers(-2, 9 if depth else 6))
    if kind < 0:
        row, item = expression(draw, "int", 1), expression(draw, "int", 1)
        return [space + pick(draw, _OF_ROWS).format(row=row, item=item)]
    if kind <= 3:
        type = pick(draw, ("int", "float", "bool"))
        return [f"{space}{pick(draw, VARIABLES[type])} = {expression(draw, type, 2)}"]
    if kind == 4:
        return [f"{space}{pick(draw, VARIABLES['ints'])}[{expression(draw, 'int', 1)}] = {expression(draw, 'int', 1)}"]
    if kind == 5:
        list, type = ("w", "float") if draw(st.booleans()) else (pick(draw, VARIABLES["ints"]), "int")
        return [f"{space}{list}.append({expression(draw, type, 1)})"]
    if kind == 6:
        other = pick(draw, ("u = v", "v = u", "u = [a, b, i]", "w = [x] * (a % 5)", "b = u.pop()", "x = w.pop(0)"))
        return [space + other]
    if kind == 7:
        return [
            f"{space}if {expression(draw, 'bool', 2)}:",
            *statements(draw, indent + 4, depth - 1),
            f"{space}else:",
            *statements(draw, indent + 4, depth - 1),
        ]
    if kind == 8:
        return [
            f"{space}for j in range({expression(draw, 'int', 1)} % 4):",
            *statements(draw, indent + 4, depth - 1),
        ]
    jump = pick(draw, ("break", "continue", "raise ValueError(str(a))", "return a, b, c, x, y, p, q, v, u, w, m"))
    return [f"{space}if {expression(draw, 'bool', 1)}:", f"{space}    {jump}"]


@st.composite
def programs(draw: Draw) -> str:
    """The text of a function ``f``, which takes :data:`ARGUMENTS`."""
    return "\n".join([HEAD + "\n".join(statements(draw, 8, 2)), TAIL])


INTS = st.one_of(st.integers(-5, 9), st.sampled_from([2**62, -(2**63), 2**63 - 1, 2**53 + 1]))
FLOATS = st.one_of(
    st.floats(-10, 10), st.sampled_from([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-310, 1e308, 2.0**63])
)
ARGUMENTS = st.tuples(
    INTS,
    INTS,
    FLOATS,
    st.booleans(),
    st.lists(INTS, max_size=5),
    st.lists(INTS, max_size=5),
    st.lists(FLOATS, max_size=5),
    st.integers(0, 6),
    st.lists(st.lists(INTS, max_size=4), max_size=12),
)

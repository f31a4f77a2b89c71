"""A strategy of programs on numbers that are ints or floats, as source text: eager Python says what they return."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.codegen.native.programs import FLOATS, INTS, Draw, pick

_HEAD = (
    "def f(a: int, x: float, u: Union[int, float], n: int):\n    r, s = 0, 1\n    t = -0.0\n    for i in range(n):\n"
)
_VARIABLES = ("r", "s", "t", "u")
_LEAVES = (*_VARIABLES, *_VARIABLES, "a", "x", "i", "0", "1", "-3", "2", "0.5", "-0.0", "9007199254740993", "1e300")
_OPERATORS = ("+", "-", "*", "/", "//", "%")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _expression(draw: Draw, depth: int) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return pick(draw, _LEAVES)
    a, b = _expression(draw, depth - 1), _expression(draw, depth - 1)
    match draw(st.integers(0, 9)):
        case 0:
            return f"{pick(draw, ('max', 'min'))}({a}, {b})"
        case 1:
            return f"({a} if {_condition(draw, depth - 1)} else {b})"
        case 2:
            return f"{pick(draw, ('abs', '-', '-', 'float', 'int', 'round'))}({a})"
        case _:
            return f"({a} {pick(draw, _OPERATORS)} {b})"


def _condition(draw: Draw, depth: int) -> str:
    match draw(st.integers(0, 5)):
        case 0:
            return f"isinstance({pick(draw, _VARIABLES)}, {pick(draw, ('int', 'float', '(int, float)'))})"
        case 1:
            return f"not {pick(draw, _VARIABLES)}"
        case _:
            return f"{_expression(draw, depth)} {pick(draw, _COMPARISONS)} {_expression(draw, depth)}"


def _statements(draw: Draw, indent: int, depth: int, jumps: tuple[str, ...]) -> list[str]:
    space = " " * indent
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.integers(0, 7 if depth else 3)):
            case 4:
                lines += [f"{space}if {_condition(draw, 1)}:", *_statements(draw, indent + 4, depth - 1, jumps)]
                lines += [f"{space}else:", *_statements(draw, indent + 4, depth - 1, jumps)]
            case 5:
                lines += [f"{space}for j in range(3):", *_statements(draw, indent + 4, depth - 1, jumps)]
            case 6:
                lines += [f"{space}while {pick(draw, _VARIABLES)} > {_expression(draw, 1)}:"]
                lines += [*_statements(draw, indent + 4, depth - 1, jumps), f"{space}    break"]
            case 7:
                lines += [f"{space}if {_condition(draw, 1)}:", f"{space}    {pick(draw, jumps)}"]
            case _:
                lines += [f"{space}{pick(draw, _VARIABLES)} = {_expression(draw, 2)}"]
    return lines


@st.composite
def number_programs(draw: Draw) -> str:
    """The text of a function ``f``, which takes :data:`NUMBER_ARGUMENTS`."""
    single = f"return {pick(draw, _VARIABLES)}"
    result, jumps = ("return r, s, t, u", ()) if draw(st.booleans()) else (single, (single, f"{single} * 2"))
    lines = _statements(draw, 8, 2, ("break", "continue", *jumps))
    return "\n".join([_HEAD + "\n".join(lines), f"    {result}", ""])


NUMBER_ARGUMENTS = st.tuples(INTS, FLOATS, st.one_of(INTS, FLOATS), st.integers(0, 6))

"""Functions of ``itertools`` that return tuples: the source of one function for each tuple length."""

import re

_NAME = re.compile(r"(product|combinations|combinations_with_replacement|permutations)(\d+)")


def made_of_several(name: str) -> str | None:
    """Return the source of a function such as ``product2(xs0, xs1)`` or ``combinations3(xs)``, which returns a list of
    tuples of that length; None for other names."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    kind, count = match[1], int(match[2])
    if kind == "product":
        loops = " ".join(f"for x{i} in xs{i}" for i in range(count))
        elements = "".join(f"x{i}, " for i in range(count))
        params = ", ".join(f"xs{i}" for i in range(count))
        return f"def {name}({params}):\n    return [({elements}) {loops}]\n"
    loops = " ".join(_loop(kind, i) for i in range(count))
    elements = "".join(f"xs[i{i}], " for i in range(count))
    return f"def {name}(xs):\n    return [({elements}) {loops}]\n"


def _loop(kind: str, position: int) -> str:
    if kind == "permutations":
        unlike = " and ".join(f"i{position} != i{i}" for i in range(position))
        return f"for i{position} in range(len(xs))" + (f" if {unlike}" if unlike else "")
    if position == 0:
        return "for i0 in range(len(xs))"
    first = f"i{position - 1}" if kind == "combinations_with_replacement" else f"i{position - 1} + 1"
    return f"for i{position} in range({first}, len(xs))"

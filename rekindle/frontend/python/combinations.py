"""Prelude functions with a generated source: ``itertools`` for each tuple length, builtins for each argument count."""

import re

_NAME = re.compile(r"(product|combinations|combinations_with_replacement|permutations)(\d+)")
_BUILTIN = re.compile(r"builtin_([a-z]+)_(\d+)((?:_[a-z]+)*)")


def made_of_several(name: str) -> str | None:
    """Return the source of a function such as ``product2(xs0, xs1)`` or ``combinations3(xs)``, which returns a list of
    tuples of that length, or such as ``builtin_sum_1(x0)``, which calls the builtin; None for other names."""
    builtin = _BUILTIN.fullmatch(name)
    if builtin is not None:
        return _call_of_builtin(name, builtin[1], int(builtin[2]), builtin[3].split("_")[1:])
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


def _call_of_builtin(name: str, builtin: str, count: int, keywords: list[str]) -> str:
    positional = [f"x{i}" for i in range(count)]
    params = ", ".join(positional + keywords)
    arguments = ", ".join(positional + [f"{keyword}={keyword}" for keyword in keywords])
    return f"def {name}({params}):\n    return {builtin}({arguments})\n"


def _loop(kind: str, position: int) -> str:
    if kind == "permutations":
        unlike = " and ".join(f"i{position} != i{i}" for i in range(position))
        return f"for i{position} in range(len(xs))" + (f" if {unlike}" if unlike else "")
    if position == 0:
        return "for i0 in range(len(xs))"
    first = f"i{position - 1}" if kind == "combinations_with_replacement" else f"i{position - 1} + 1"
    return f"for i{position} in range({first}, len(xs))"

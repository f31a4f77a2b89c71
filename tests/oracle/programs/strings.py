"""Strings: operators, methods, formatting."""

from typing import List, Tuple

from torch import Tensor

from tests.oracle.corpus import program, ramp


@program(("ab", "cd"))
def operators(a: str, b: str) -> Tuple[str, bool, bool, bool, str]:
    return a + b, a == b, a != b, a < b, a + a


@program(("Hello, World",))
def methods(s: str) -> Tuple[str, str, str, bool, bool, int]:
    return s.upper(), s.lower(), s.replace("o", "0"), s.startswith("He"), s.endswith("x"), s.find("World")


@program(("  padded  ",))
def strips(s: str) -> Tuple[str, str, str]:
    return s.strip(), s.lstrip(), s.rstrip()


@program(("a,b,c",))
def split_and_join(s: str) -> Tuple[List[str], str]:
    parts = s.split(",")
    return parts, "-".join(parts)


@program(("hello",))
def indexing(s: str) -> Tuple[str, str, str, str, int]:
    return s[0], s[-1], s[1:3], s[::2], len(s)


@program(("x", 3))
def formatted(s: str, n: int) -> str:
    return "{} has {}".format(s, n)


@program(("x", 3))
def f_string(s: str, n: int) -> str:
    return f"{s} has {n} and {n + 1}"


@program((3, "x"))
def percent(n: int, s: str) -> str:
    return "%d of %s" % (n, s)


@program((3, True))
def to_string(n: int, b: bool) -> Tuple[str, str]:
    return str(n), str(b)


@program(("12", "1.5"))
def from_string(a: str, b: str) -> Tuple[int, float]:
    return int(a), float(b)


@program(("abc", "b"), ("abc", "z"))
def contains(s: str, t: str) -> bool:
    return t in s


@program(("abc1",), ("ABC",), ("12",))
def predicates(s: str) -> Tuple[bool, bool, bool, bool]:
    return s.isdigit(), s.isalpha(), s.isupper(), s.isalnum()


@program((ramp(2),))
def escapes(x: Tensor) -> str:
    return "tab\tnew\nline \"quoted\" 'single' \\ back # no comment"


@program((1,))
def implicit_concatenation(n: int) -> str:
    return "one two"


@program(("abc",))
def ordinals(s: str) -> int:
    t = 0
    for c in s:
        t += ord(c)
    return t


@program(("a",), ("zz",))
def string_choice(mode: str) -> int:
    if mode == "a":
        return 1
    elif mode in ["b", "zz"]:
        return 2
    return 3

"""Strings: operators, all methods, formatting, and what str makes of values."""

from typing import Dict, List, Optional, Tuple

import torch

from tests.language.corpus import program


@program("str.operators", ("ab", "b"), ("", "xyz"))
def operators(a: str, b: str) -> Tuple[str, bool, bool, bool, bool]:
    return a + b, a == b, a != b, b in a, a not in b


@program("str.repeat", ("ab", 3), ("x", -1), torch="refuses")
def repeated(s: str, n: int) -> str:
    return s * n


@program("str.comparison", ("ab", "b"), ("b", "b"))
def comparison(a: str, b: str) -> Tuple[bool, bool, bool, bool]:
    return a < b, a <= b, a > b, a >= b


@program("str.index str.slice", ("hello world", 2), ("abcdef", -4))
def slices(s: str, i: int) -> Tuple[str, str, str, str, str, str]:
    return s[i], s[i:], s[:i], s[::-1], s[1:5:2], s[5:1:-2]


@program("str.index", ("abc", 5), ("", 0))
def index_out_of_range(s: str, i: int) -> str:
    return s[i]


@program("str.case", ("Hello wORLD 1",), ("ÀÉ straße",), torch="differs")
def cases(s: str) -> Tuple[str, str, str, str, str]:
    return s.upper(), s.lower(), s.capitalize(), s.title(), s.swapcase()


@program("str.predicates", ("abc",), ("12",))
def predicates(s: str) -> Tuple[bool, bool, bool, bool]:
    return s.isalpha(), s.isdigit(), s.isalnum(), s.isdecimal()


@program("str.predicates", ("Abc De",), (" \t",))
def more_predicates(s: str) -> Tuple[bool, bool, bool, bool, bool, bool, bool]:
    return s.isupper(), s.islower(), s.istitle(), s.isspace(), s.isidentifier(), s.isprintable(), s.isnumeric()


@program("str.predicates", ("ABC",), ("",))
def predicates_of_case(s: str) -> Tuple[bool, bool, bool, bool]:
    return s.isupper(), s.islower(), s.isalpha(), s.isalnum()


@program("str.strip", ("  ab  ",), ("xxabxx",))
def strips(s: str) -> Tuple[str, str, str, str, str, str]:
    return s.strip(), s.lstrip(), s.rstrip(), s.strip("x "), s.lstrip("x"), s.rstrip("x")


@program("str.split", ("a,b,,c", ","), ("one", "-"))
def splits(s: str, sep: str) -> Tuple[List[str], List[str], List[str], List[str]]:
    return s.split(sep), s.split(sep, 1), s.rsplit(sep, 1), s.rsplit(sep)


@program("str.split", ("  a b\tc\n d ",), ("",))
def split_on_whitespace(s: str) -> List[str]:
    return s.split()


@program("str.splitlines", ("a\nb\r\nc\n",), ("",), torch="differs")
def lines(s: str) -> Tuple[List[str], List[str]]:
    return s.splitlines(), s.splitlines(True)


@program("str.partition", ("key=value=x", "="), ("none", "="))
def partitions(s: str, sep: str) -> Tuple[Tuple[str, str, str], Tuple[str, str, str]]:
    return s.partition(sep), s.rpartition(sep)


@program("str.join", (["a", "b"], "-"), ([], ","))
def joins(parts: List[str], sep: str) -> Tuple[str, str]:
    return sep.join(parts), ", ".join(parts)


@program("str.find", ("abcabc", "c"), ("abc", "z"))
def finds(s: str, t: str) -> Tuple[int, int, int, int, int]:
    return s.find(t), s.rfind(t), s.count(t), s.find(t, 3), s.count(t, 0, 3)


@program("str.index_method", ("abcabc", "c"), ("abc", "z"))
def index_of(s: str, t: str) -> Tuple[int, int]:
    return s.index(t), s.rindex(t)


@program("str.startswith", ("hello", "he"), ("hello", "lo"))
def starts_and_ends(s: str, t: str) -> Tuple[bool, bool, bool, bool]:
    return s.startswith(t), s.endswith(t), s.startswith(t, 3), s.endswith(t, 0, 2)


@program("str.replace", ("a-b-c", "-"), ("abc", "b"))
def replaces(s: str, t: str) -> Tuple[str, str]:
    return s.replace(t, "+"), s.replace("b", t)


@program("str.replace", ("a-b-c-d",), ("--",))
def replaces_some(s: str) -> str:
    return s.replace("-", "+", 2)


@program("str.justify", ("ab", 6), ("abcdefgh", 3))
def justified(s: str, n: int) -> Tuple[str, str, str, str]:
    return s.center(n), s.ljust(n), s.rjust(n), s.center(n, "*")


@program("str.zfill", ("42", 5), ("-7", 4), torch="differs")
def zero_filled(s: str, n: int) -> str:
    return s.zfill(n)


@program("str.expandtabs", ("a\tb", 4), ("\t", 2))
def tabs(s: str, n: int) -> Tuple[str, str]:
    return s.expandtabs(), s.expandtabs(n)


@program("str.format", (3, "x", 2.5), (0, "", -1.0), torch="differs")
def formats(n: int, s: str, f: float) -> str:
    return "{} {} {}".format(n, s, f)


@program("str.format_spec", (3, 2.5), (-12, 0.125), torch="differs")
def format_specifications(n: int, f: float) -> Tuple[str, str, str, str]:
    return "{:d}".format(n), "{:5d}|".format(n), "{:.2f}".format(f), "{:>8.3f}".format(f)


@program("str.format_spec", ("ab", 3), ("", 0), torch="differs")
def format_positions(s: str, n: int) -> Tuple[str, str]:
    return "{0} {1} {0}".format(s, n), "{{}}".format()


@program("str.format_keywords", ("ab",), ("",), torch="refuses")
def format_keywords(s: str) -> str:
    return "{name}!".format(name=s)


@program("str.fstring", (3, "x"), (-1, ""))
def f_strings(n: int, s: str) -> str:
    return f"{n} and {s}, {n + 1} {{braces}}"


@program("str.fstring_spec", (3, 2.5), (-1, 1234.5678), torch="refuses")
def f_string_specifications(n: int, f: float) -> str:
    return f"{n:4d}|{f:.1f}|{n!r}"


@program("str.percent", (3, "x", 2.5), (-1, "", 0.0), torch="differs")
def percent_formatting(n: int, s: str, f: float) -> str:
    return "%d %s %.2f %5d %%" % (n, s, f, n)


@program("str.percent", (3,), (-1,))
def percent_of_one(n: int) -> str:
    return "%d items" % n


@program("str.of_float", (5.0,), (0.1,), torch="differs")
def str_of_float(x: float) -> Tuple[str, str]:
    return str(x), str(x * 1e20)


@program("str.of_int", (5, True), (-12345678901, False))
def str_of_int(n: int, b: bool) -> Tuple[str, str]:
    return str(n), str(b)


@program("str.of_container", ([1, 2], (1, "a")), ([], (0, "")), torch="differs")
def str_of_containers(xs: List[int], t: Tuple[int, str]) -> Tuple[str, str]:
    return str(xs), str(t)


@program("str.of_container", ({"a": [1.5]}, None), ({}, 3), torch="differs")
def str_of_dict(d: Dict[str, List[float]], n: Optional[int]) -> Tuple[str, str]:
    return str(d), str(n)


@program("str.of_tensor", (torch.ones(2),), (torch.zeros(1, 2),), torch="differs")
def str_of_tensor(x: torch.Tensor) -> str:
    return str(x)


@program("str.of_complex", (1 + 2j,), (-0.5j,), torch="differs")
def str_of_complex(z: complex) -> str:
    return str(z)


@program("str.to_number", ("12", "1.5"), ("-3", "1e3"))
def parsed(a: str, b: str) -> Tuple[int, float]:
    return int(a), float(b)


@program("str.to_number", ("x",), ("",))
def not_a_number(a: str) -> int:
    return int(a)


@program("str.iteration", ("hello",), ("",))
def iterated(s: str) -> Tuple[List[str], int]:
    letters: List[str] = []
    for c in s:
        letters.append(c + c)
    return letters, len([c for c in s])


@program("str.ord_chr", ("a",), ("é",), torch="differs")
def ord_and_chr(c: str) -> Tuple[int, str]:
    return ord(c), chr(ord(c) + 1)


@program("str.hex", (255,), (-9,))
def hex_oct_bin(n: int) -> Tuple[str, str, str]:
    return hex(n), oct(n), bin(n)


@program("str.literals", (1,), (2,))
def literals(n: int) -> Tuple[str, str, str]:
    return (
        "tab\t \x41 \u00e9",
        r"raw\n",
        """long
text""",
    )


@program("str.compare_in", ("fast",), ("none",))
def in_list(s: str) -> bool:
    return s in ["fast", "slow"] and s not in ("never", "ever")


@program("str.bool", ("a",), ("",))
def truth_of_string(s: str) -> int:
    if s:
        return 1
    return 0


@program("str.len", ("añb",), ("",), torch="differs")
def length(s: str) -> int:
    return len(s)


@program("str.concat_literals", ("a",), ("",))
def implicit_concatenation(s: str) -> str:
    return "one two" + s


@program("str.repr", ("a'b",), ("",), torch="refuses")
def repr_of_string(s: str) -> str:
    return repr(s)

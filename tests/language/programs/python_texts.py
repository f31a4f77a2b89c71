"""Texts of numbers and numbers of texts, exactly as Python has them."""

from typing import Dict, List, Tuple

from tests.language.corpus import program

FLOATS = (3.14159, -2), (0.0, 12345678)


@program("str.fstring_spec", *FLOATS, torch="refuses")
def widths_and_digits(x: float, n: int) -> str:
    return f"{x:8.3f}|{x:<10.1e}|{n:+05d}|{n:>6}|{n:^9}|{x!r:>12}"


@program("str.fstring_spec", *FLOATS, torch="refuses")
def other_presentations(x: float, n: int) -> str:
    return f"{n:x}|{n:,}|{x:%}|{x:g}|{n:#b}|{n:#o}|{x:.0f}|{n:e}"


@program("str.fstring_spec", *FLOATS, torch="refuses")
def shown_with_its_name(x: float, n: int) -> str:
    return f"{n=} {x=:.2f} {n + 1=}"


@program("str.fstring_spec", ("ab", 3), ("", 1), torch="refuses")
def padded_strings(s: str, n: int) -> str:
    return f"[{s:*^9}] [{s:>5}] [{s!r}] [{s:.1}]"


@program("str.percent", *FLOATS, torch="differs")
def percent_of_numbers(x: float, n: int) -> str:
    return "%5.2f %d %x %05d %e %g %% %i" % (x, n, 255, n, x, x, n)


@program("str.percent", ("ab", 3), ("", 1), torch="differs")
def percent_of_strings(s: str, n: int) -> str:
    return "%s|%r|%-5s|%5s|%c" % (s, s, s, s, "z")


@program("str.format_spec", ("ab", 1.25), ("", -1.0), torch="differs")
def format_with_specifications(s: str, x: float) -> str:
    return "{:>10}{:*^9}{:.1f}{!r}{:b}".format(s, s, x, s, 5)


@program("str.to_number", ("12", "1.5"), (" -7 ", "1e-3"), torch="differs")
def numbers_of_texts(a: str, b: str) -> Tuple[int, float]:
    return int(a), float(b)


@program("str.to_number exception.of_python", ("12", "x"), ("1.5", "1"))
def not_a_number(a: str, b: str) -> Tuple[float, int]:
    return float(b), int(a)


@program("str.to_number", ("inf", "1_000"), ("-inf", "0_1"), torch="differs")
def special_numbers(a: str, b: str) -> Tuple[float, int]:
    return float(a), int(b)


@program("str.of_container", ([1, 2], {"a": 1.5}), ([], {}), torch="differs")
def containers_as_texts(a: List[int], b: Dict[str, float]) -> str:
    return str(a) + str(b) + f"{a} {b}"


@program("str.of_container", ("it's", 2.0), ("", 1e20), torch="refuses")
def tuples_as_texts(s: str, x: float) -> str:
    return str((s, x)) + repr((s,)) + str([(s, x)])


@program("str.of_container", (1, True), (-1, False), torch="refuses")
def constants_as_texts(n: int, flag: bool) -> str:
    return str(None) + str(flag) + repr(n) + str([None, None]) + str([flag])


@program("str.of_float", (0.1, 1e16), (1e-5, 123456789.123), torch="refuses")
def floats_as_texts(x: float, y: float) -> str:
    return str(x) + " " + repr(y) + " " + str(-x) + " " + str(x * 3)


@program("str.to_number", ("ff", 16), (" -0x1_F ", 0), torch="refuses")
def ints_to_a_base(text: str, base: int) -> List[int]:
    return [int(text, base), int("101", 2), int("0b11", 0), int("zz", base=36), int("0o17", 8), int("+7_0", 10)]


@program("str.to_number exception.of_python", ("12", 2), ("", 10), torch="refuses")
def no_ints_to_that_base(text: str, base: int) -> int:
    return int(text, base)


@program("str.to_number exception.of_python", ("012", 0), ("1", 37), torch="refuses")
def no_ints_to_any_base(text: str, base: int) -> int:
    return int(text, base)


@program("str.prefixes", ("unhappy",), ("un",), torch="refuses")
def prefixes_removed(text: str) -> Tuple[str, str, str, bool]:
    return text.removeprefix("un"), text.removesuffix("happy"), text.removesuffix(""), text.isascii()


@program("str.predicates str.case", ("Straße",), ("a\tb",), torch="refuses")
def folded_and_printable(text: str) -> Tuple[str, bool, bool]:
    return text.casefold(), text.isprintable(), text.isascii()


@program("str.split", ("a b  c",), ("",), torch="refuses")
def split_by_name(text: str) -> Tuple[List[str], List[str], List[str]]:
    return text.split(sep=" "), text.split(" ", maxsplit=1), text.rsplit(" ", maxsplit=1)


@program("str.split", (" a\tb  c ",), ("",), torch="refuses")
def split_from_the_end_at_white_space(text: str) -> List[List[str]]:
    return [text.rsplit(), text.rsplit(None), text.rsplit(None, 1), text.rsplit(maxsplit=2), text.rsplit(sep=None)]


@program("str.format_builtin", (3, 2.5), (-40, 1e10), torch="refuses")
def formatted_by_a_function(n: int, x: float) -> List[str]:
    return [format(n, "03d"), format(x, ".2f"), format(n), format("a", f">{abs(n)}")]

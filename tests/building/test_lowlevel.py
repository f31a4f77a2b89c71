"""The low-level language: what it computes, and what it refuses."""

import ctypes
import itertools
from typing import cast

import pytest

from rekindle.building.lowlevel import (
    Address,
    Array,
    Byte,
    Float32,
    Int8,
    Int16,
    Int32,
    Struct,
    bits_of,
    c,
    compare_exchange,
    exchange,
    extern,
    float_of,
    native,
    offset,
    size_of,
    stack,
)
from rekindle.building.lowlevel.module import compile_functions
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.texts import is_utf8
from rekindle.codegen.llvm.engine import compile_module
from rekindle.errors import InternalError

NUMBERS = [-7, -3, -1, 1, 2, 3, 8]
LIMIT = 5


class Pair(Struct):
    first: int
    second: float


class Triple(Pair):
    third: "Triple"


@native
def quotient(a: int, b: int) -> int:
    return a // b


@native
def modulo(a: int, b: int) -> int:
    return a % b


@native
def collatz(number: int) -> int:
    steps = 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number + 1
        steps += 1
    return steps


@native
def primes_below(limit: int) -> int:
    found = 0
    for candidate in range(2, limit):
        divides = False
        for divisor in range(2, candidate):
            if divisor * divisor > candidate:
                break
            if candidate % divisor != 0:
                continue
            divides = True
            break
        if not divides and (candidate != 2 or limit > 0):
            found += 1
    return found


@native
def third_of(triple: Triple, wanted: int) -> int:
    return triple.third.first if triple.third is not None and wanted == LIMIT else -1


@native
def sum_of_bytes(data: Array[Byte], count: int) -> int:
    total = 0
    for i in range(count):
        total += data[i]
    return total


@native
def narrow(value: int) -> int:
    memory = stack(32)
    cast("Array[Int8]", memory)[0] = value
    cast("Array[Int16]", memory)[1] = value
    cast("Array[Int32]", memory)[1] = value
    cast("Array[Float32]", memory)[2] = float(value) + 0.5
    found = cast("Array[Int8]", memory)[0] + cast("Array[Int16]", memory)[1] + cast("Array[Int32]", memory)[1]
    return found + int(2.0 * cast("Array[Float32]", offset(memory, 8))[0])


@extern
def strlen(text: Array[Byte]) -> int:
    not_python()


@native
def constants() -> int:
    return strlen(c('a "quoted" \\ text')) + size_of(Triple) + ord("a") + min(3, 4) + max(3, 4)


@native
def bits(number: float) -> int:
    return bits_of(float_of(bits_of(number)))


@native
def swapped(value: int) -> int:
    words = cast("Array[int]", stack(16))
    words[1] = 5
    return exchange(words, 1, value) * 100 + words[1]


@native
def replaced(expected: int, value: int) -> int:
    words = cast("Array[int]", stack(16))
    words[1] = 5
    return compare_exchange(words, 1, expected, value) * 100 + words[1]


FUNCTIONS = (
    is_utf8,
    quotient,
    modulo,
    collatz,
    primes_below,
    third_of,
    sum_of_bytes,
    narrow,
    constants,
    bits,
    swapped,
    replaced,
)


@pytest.fixture(scope="module")
def compiled():
    text = str(compile_functions(FUNCTIONS)).replace("define internal", "define")
    code = compile_module(text, cache=False)

    def call(function, *arguments):
        types = {int: ctypes.c_int64, float: ctypes.c_double}
        signature = [types.get(type(each), ctypes.c_void_p) for each in arguments]
        return ctypes.CFUNCTYPE(ctypes.c_int64, *signature)(code.address(function.__name__))(*arguments)

    return call


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NUMBERS, NUMBERS)))
def test_division_rounds_down(compiled, a, b):
    assert compiled(quotient, a, b) == a // b
    assert compiled(modulo, a, b) == a % b


def test_loops_and_branches(compiled):
    assert [compiled(collatz, n) for n in (1, 6, 27)] == [0, 8, 111]
    assert compiled(primes_below, 50) == 15


def test_fields_of_structures(compiled):
    inner = (ctypes.c_int64 * 3)(42, 0, 0)
    outer = (ctypes.c_int64 * 3)(1, 0, ctypes.addressof(inner))
    assert compiled(third_of, ctypes.addressof(outer), LIMIT) == 42
    assert compiled(third_of, ctypes.addressof(inner), LIMIT) == -1
    assert compiled(third_of, ctypes.addressof(outer), 1) == -1


def test_elements(compiled):
    data = bytes(range(250, 256))
    assert compiled(sum_of_bytes, ctypes.cast(data, ctypes.c_void_p).value, len(data)) == sum(data)
    assert compiled(narrow, -100) == -100 - 100 - 100 + (-199)
    assert compiled(narrow, 300) == 44 + 300 + 300 + 601


def test_constants_and_bits(compiled):
    assert compiled(constants) == 17 + 24 + 97 + 3 + 4
    assert compiled(bits, -2.5) == -4610560118520545280
    assert compiled(swapped, 7) == 507
    assert [compiled(replaced, expected, 7) for expected in (4, 5)] == [505, 507]


def _is_utf8(text):
    try:
        text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def test_utf8(compiled):
    """All pairs of bytes, and all beginnings of longer characters, against Python's decoder."""
    ends = (b"", b"\x80", b"\xbf", b"\x80\x80", b"\x80\x80\x80", b"\xbf\xbfa", b"a", b"\xc2\x80")
    for first, second in itertools.product(range(128, 256), range(0, 256, 5)):
        for end in ends:
            text = bytes([97, first, second]) + end
            found = compiled(is_utf8, ctypes.cast(text, ctypes.c_void_p).value, len(text)) & 1
            assert bool(found) == _is_utf8(text), text


# ----------------------------------------------------------------------------------------------------------- refusals


@native
def adds_a_float(a: int) -> int:
    return a + 0.5  # type: ignore[return-value]


@native
def has_no_field(pair: Pair) -> int:
    return pair.fourth  # type: ignore[attr-defined,no-any-return]


@native
def decides_by_an_int(a: int) -> int:
    if a:
        return 1
    return 0


@native
def makes_a_list(a: int) -> Address:
    return [a]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (adds_a_float, "a + 0.5: no operator of <class 'int'> and <class 'float'>"),
        (has_no_field, "pair.fourth: Pair has no such field"),
        (decides_by_an_int, "a: a condition is a bool"),
        (makes_a_list, "[a]: no expression of the low-level language"),
    ],
)
def test_what_is_not_in_the_language(function, error):
    with pytest.raises(InternalError) as raised:
        compile_functions([function])
    assert str(raised.value).splitlines()[0] == f"{__name__}.{function.__name__}: {error}"


def test_the_functions_do_not_run_as_python():
    with pytest.raises(TypeError, match=r"^a function of the low-level language has to be compiled$"):
        stack(8)

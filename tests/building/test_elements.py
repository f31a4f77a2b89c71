"""Elements of tensors in libraries: numbers of every dtype, conversions between them, and their limits."""

import math
from typing import List, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.building.corpus import same

INFINITY, NAN = math.inf, math.nan
DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
)


def outcome(function, *arguments):
    """Return the result of a call, or the class of the error that it raises."""
    try:
        return function(*arguments)
    except (RuntimeError, ValueError, OverflowError, rekindle.LibraryError) as error:
        return type(error)


def agree(found, expected):
    return found is expected if isinstance(expected, type) else same(found, expected)


def library_of(program, folder, examples=()):
    rekindle.build(program, folder, examples)
    return rekindle.NativeLibrary(folder)


@rekindle.script
def full_of_floats(value: float, dtype: torch.dtype) -> Tensor:
    return torch.full([3], value, dtype=dtype)


@rekindle.script
def full_of_ints(value: int, dtype: torch.dtype) -> Tensor:
    return torch.full([3], value, dtype=dtype)


@pytest.fixture(scope="module")
def of_floats(tmp_path_factory):
    return library_of(full_of_floats, tmp_path_factory.mktemp("floats"))


@pytest.fixture(scope="module")
def of_ints(tmp_path_factory):
    return library_of(full_of_ints, tmp_path_factory.mktemp("ints"))


FLOATS = (
    *(0.0, -0.0, 1.0, 1.7, -1.7, 3.3, 127.4, 128.0, 255.9, 256.0, -129.0, 1e9, 3e9, 1e19, -1e19, 65504.0, 65519.0),
    *(65520.0, 1e38, 3.39e38, 3.5e38, 1e300, INFINITY, -INFINITY, NAN, 6e-8, 5.96e-8, 2.98e-8, 1e-5, 6.1e-5, 1e-40),
    *(1.0009765625, 1.00048828125, 1.00146484375, 0.333333333, 1e-310),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_with_floats(of_floats, dtype):
    for value in FLOATS:
        if dtype in (torch.uint8, torch.int8, torch.int16, torch.int32) and not math.isfinite(value):
            continue  # PyTorch does not define these
        found, expected = (outcome(each, value, dtype) for each in (of_floats, full_of_floats))
        assert agree(found, expected), value
        if isinstance(found, Tensor):
            words = (each.view(torch.uint8) if each.dtype is not torch.bool else each for each in (found, expected))
            assert value != value or torch.equal(*words), value


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_with_ints(of_ints, dtype):
    for value in (0, 1, -1, 127, 128, -128, -129, 255, 256, -255, -256, 32768, 2**31, 2**53 + 1, 2**62, -(2**63)):
        found, expected = (outcome(each, value, dtype) for each in (of_ints, full_of_ints))
        assert agree(found, expected), value


def test_overflow_has_text_and_place(of_ints):
    with pytest.raises(RuntimeError) as raised:
        of_ints(300, torch.uint8)
    first, second = str(raised.value).split("\n")
    assert first == "value cannot be converted to dtype 0 without overflow"
    assert second.endswith("return torch.full([3], value, dtype=dtype)")


def test_one_element_as_a_number(tmp_path):
    @rekindle.script
    def cut(x: Tensor) -> Tuple[int, int]:
        return int(x), int(x.item())

    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        library = library_of(cut, tmp_path / str(dtype), [(torch.ones(1, dtype=dtype),)])
        for number in (2.7, -2.7, 0.0, 1e4, NAN, INFINITY, -INFINITY):
            x = torch.tensor([number], dtype=dtype)
            assert agree(outcome(library, x), outcome(cut, x))
    with pytest.raises(OverflowError, match=r"^a float outside of 64-bit integers cannot be converted to one\n"):
        library_of(cut, tmp_path, [(torch.ones(1),)])(torch.full([1], 1e30))


@rekindle.script
def arange(start: int, end: int, step: int) -> Tensor:
    return torch.arange(start, end, step)


def test_arange(tmp_path):
    library = library_of(arange, tmp_path)
    for arguments in [(0, 5, 2), (5, 0, -2), (3, 3, 1), (3, 3, -1), (4, 3, 5), (3, 4, -5), (0, 5, 0), (-3, 4, 3)]:
        assert agree(outcome(library, *arguments), outcome(arange, *arguments))


@rekindle.script
def every(items: List[int], start: int, step: int) -> List[int]:
    return items[start::step]


def test_long_steps_of_slices(tmp_path):
    library = library_of(every, tmp_path)
    largest = 2**63 - 1
    for start in (-5, -1, 0, 1, 2, 5):
        for step in (1, -1, 2, -2, 3, 4, -4, largest, -largest, largest - 1, -largest - 1):
            assert library([1, 2, 3], start, step) == [1, 2, 3][start::step]


@rekindle.script
def letters(text: str, start: int, step: int) -> str:
    return text[start::step]


def test_long_steps_of_slices_of_texts(tmp_path):
    library = library_of(letters, tmp_path)
    largest = 2**63 - 1
    for start in (-5, -1, 0, 1, 2, 5):
        for step in (1, -1, 2, -2, 3, 4, -4, largest, -largest, largest - 1, -largest - 1):
            assert library("a\u00e4b", start, step) == "a\u00e4b"[start::step]


class Conjugates(nn.Module):
    """Four buffers of one memory, two of which are conjugated or negated when they are read."""

    def __init__(self) -> None:
        super().__init__()
        number = torch.tensor([1 + 2j, 3 - 1j])
        self.register_buffer("number", number)
        self.register_buffer("conjugate", number.conj())
        self.register_buffer("imaginary", number.imag)
        self.register_buffer("negative", number.conj().imag)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.number * x, self.conjugate * x, self.imaginary * x, self.negative * x


def test_buffers_that_conjugate_others(tmp_path):
    module = Conjugates()
    x = torch.ones(2)
    torch.testing.assert_close(library_of(rekindle.script(module), tmp_path, [(x,)])(x), module(x))


def test_complex_tensors(tmp_path):
    @rekindle.script
    def conjugate(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        y = x.conj()
        return y, y.imag, torch.matmul(y, x), torch.ones_like(x)

    x = torch.randn(3, dtype=torch.complex64)
    library = library_of(conjugate, tmp_path, [(x,)])
    torch.testing.assert_close(library(x), conjugate(x))
    with pytest.raises(rekindle.LibraryError, match=r"pass what 'resolve_conj' or 'resolve_neg' returns$"):
        library(x.conj())
    with pytest.raises(rekindle.LibraryError, match=r"^a tensor of zeros has no memory; pass what 'clone' returns$"):
        library(torch._efficientzerotensor(3, dtype=torch.complex64))
    start = "^tensors passed to a library are strided, and on the CPU; this one is "
    with pytest.raises(rekindle.LibraryError, match=f"{start}on the device meta, and of the layout torch.strided$"):
        library(x.to("meta"))
    with pytest.raises(rekindle.LibraryError, match=f"{start}on the device cpu, and of the layout torch.sparse_coo$"):
        library(x.to_sparse())


def test_ints_beyond_64_bits(of_ints):
    with pytest.raises(rekindle.LibraryError, match=r"^18446744073709551616 has more than 64 bits$"):
        of_ints(2**64, torch.int64)

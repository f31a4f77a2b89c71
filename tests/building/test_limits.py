"""Programs at the limits of libraries: a right answer, or an error that names the limit."""

import math
from typing import List, Optional, Tuple, Union

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.building.corpus import same


def library_of(program, folder, examples=(), **options):
    rekindle.build(program, folder, examples, **options)
    return rekindle.NativeLibrary(folder)


@rekindle.script
def caught(a: int, b: int) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return -1.0
    except OverflowError:
        return -2.0


def test_limits_of_ints_are_not_caught(tmp_path):
    library = library_of(caught, tmp_path)
    assert [library(6, 3), library(6, 0)] == [2.0, -1.0]
    with pytest.raises(OverflowError, match=r"^an int of more than 53 bits is divided, or compared with a float\n"):
        library(2**60, 3)


@rekindle.script
def caught_quotients(a: int, b: int) -> Tuple[int, int]:
    try:
        return a // b, a % b
    except ZeroDivisionError:
        return 0, 0


@rekindle.script
def caught_shift(a: int, b: int) -> int:
    try:
        return a << b
    except ValueError:
        return -5


def test_quotients_and_shifts_beyond_64_bits_are_not_caught(tmp_path):
    library = library_of(caught_quotients, tmp_path)
    assert [library(-7, 2), library(7, -1), library(7, 0)] == [(-4, 1), (-7, 0), (0, 0)]
    with pytest.raises(OverflowError, match=r"^a quotient beyond 64 bits\n"):
        library(-(2**63), -1)
    library = library_of(caught_shift, tmp_path / "shift")
    assert [library(3, 2), library(3, -1)] == [12, -5]
    with pytest.raises(OverflowError, match=r"^a shift beyond 64 bits\n"):
        library(1, 64)


@rekindle.script
def sorted_floats(items: List[float]) -> List[float]:
    return sorted(items)


def test_an_order_with_nan_is_refused(tmp_path):
    library = library_of(sorted_floats, tmp_path)
    assert library([3.0, -1.0, 2.0]) == [-1.0, 2.0, 3.0]
    with pytest.raises(rekindle.LibraryError, match=r"^a list that holds NaN is sorted\n"):
        library([3.0, math.nan, 1.0])


class Part(nn.Module):
    def __init__(self, items: List[int]) -> None:
        super().__init__()
        self.items = items

    def forward(self) -> int:
        self.items.append(len(self.items))
        return len(self.items)


class Shares(nn.Module):
    """Two modules hold one list."""

    def __init__(self) -> None:
        super().__init__()
        items = [1]
        self.first, self.second = Part(items), Part(items)

    def forward(self) -> Tuple[int, int]:
        return self.first(), self.second()


def test_shared_state_is_shared(tmp_path):
    module = rekindle.script(Shares())
    library = library_of(module, tmp_path, [()])
    assert [library(), library()] == [(2, 3), (4, 5)]


class Recursive(nn.Module):
    """A method that calls itself writes to its argument."""

    def clear(self, x: Tensor, depth: int) -> Tensor:
        if depth == 0:
            return x.zero_()
        return self.clear(x, depth - 1)

    def forward(self, x: Tensor) -> int:
        self.clear(x, 2)
        return 1


def test_a_call_writes_to_an_argument_with_gaps(tmp_path):
    library = library_of(rekindle.script(Recursive()), tmp_path, [(torch.ones(2, 3),)])
    x = torch.ones(3, 2).t()
    library(x)
    assert same(x, torch.zeros(2, 3))


class Node:
    def __init__(self, value: int) -> None:
        self.value = value
        self.following: Optional["Node"] = None  # noqa: UP037


@rekindle.script
def linked(n: int) -> int:
    head = Node(0)
    for i in range(n):
        node = Node(i)
        node.following = head
        head = node
    return head.value


def test_a_long_linked_list_is_freed(tmp_path):
    assert library_of(linked, tmp_path)(500_000) == 499_999


@rekindle.script
def large(kind: int, n: int) -> int:
    if kind == 0:
        return len([1] * n)
    return torch.zeros([n]).numel()


@pytest.mark.parametrize("kind", [0, 1])
def test_what_no_memory_holds(tmp_path, kind):
    library = library_of(large, tmp_path, [(kind, 2)])
    with pytest.raises((MemoryError, RuntimeError)):
        library(kind, 2**62)


@rekindle.script
def is_int(x: Union[int, str, None]) -> bool:
    return isinstance(x, int)


def test_a_bool_is_an_int(tmp_path):
    library = library_of(is_int, tmp_path)
    assert [library(each) for each in (3, True, "a", None)] == [True, True, False, False]


@rekindle.script
def identity(name: str) -> str:
    return name + " IDENTITY"


def test_a_program_may_use_any_word(tmp_path):
    assert library_of(identity, tmp_path)("an") == "an IDENTITY"


def test_an_example_with_gaps(tmp_path):
    @rekindle.script
    def doubled(x: Tensor) -> Tensor:
        return torch.relu(x) * 2

    x = torch.randn(3, 4).t()
    library = library_of(doubled, tmp_path, [(x,)])
    for each in (x, x.contiguous()):
        assert same(library(each), torch.relu(x) * 2)


@rekindle.script
def written(s: str, i: int, x: float) -> List[str]:
    return [f"{s:05}", f"{x:F}", f"{x:E}", str([s]), f"{i:06d}"]


@pytest.mark.parametrize(("s", "x"), [("ab", 1.5), ("\x01\x7f\x1b", math.nan), ("'", math.inf)])
def test_rare_forms(tmp_path, s, x):
    assert library_of(written, tmp_path)(s, -3, x) == written(s, -3, x)


class Reserved(nn.Module):
    def forward(self) -> int:
        return 1

    @rekindle.export
    def open(self) -> int:
        return 2


def test_names_that_the_header_has(tmp_path):
    with pytest.raises(rekindle.NotBuildable, match=r"^a method cannot be called 'open' in a library"):
        rekindle.build(rekindle.script(Reserved()), tmp_path, {"open": [()]})
    for name in ("int", "\u00e9", "a b"):
        with pytest.raises(rekindle.RekindleError, match=r"must be an identifier of C"):
            rekindle.build(identity, tmp_path, name=name)


def test_what_a_tensor_does_not_tell(tmp_path):
    @rekindle.script
    def offset(x: Tensor) -> Tensor:
        return torch.as_strided(x[1:], [2], [1], 0)

    with pytest.raises(rekindle.NotBuildable, match=r"^'aten::as_strided': a tensor of a library"):
        rekindle.build(offset, tmp_path, [(torch.ones(4),)])


@rekindle.script
def unboxed(x: Optional[int], n: int) -> int:
    found = 0
    for i in range(n):
        try:
            if x is not None:
                found += x
        except ValueError:
            found = -1
    return found


def test_optional_numbers_in_a_try(tmp_path):
    library = library_of(unboxed, tmp_path, [(1, 2), (None, 2)])
    assert [library(2, 10), library(None, 3)] == [20, 0]

"""Lists, dicts and strings: what Python says, of results, of what is written, and of errors."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from rekindle.ir.types import INT, NONE, TENSOR, ListType, TupleType
from tests.ops.calling import call

EXPRESSIONS: list[tuple[str, str, tuple[Any, ...]]] = [
    # lists
    ("aten::__getitem__.t", "a[b]", ([1, 2, 3], -1)),
    ("aten::select.t", "a[b]", ([1, 2, 3], 0)),
    ("aten::len.t", "len(a)", ([1, 2, 3],)),
    ("aten::len.any", "len(a)", ([1, "x", None],)),
    ("aten::__contains__.int_list", "b in a", ([1, 2], 2)),
    ("aten::__contains__.str_list", "b in a", (["x"], "y")),
    ("aten::__contains__.float_list", "b in a", ([1.5], 1.5)),
    ("aten::count.int", "a.count(b)", ([1, 2, 1], 1)),
    ("aten::index.list_str", "a.index(b)", (["x", "y"], "y")),
    ("aten::slice.t", "a[b:c]", ([1, 2, 3, 4], 1, -1, 1)),
    ("aten::slice.t", "a[::-2]", ([1, 2, 3, 4], None, None, -2)),
    ("aten::all.int", "all(a)", ([1, 0],)),
    ("aten::all.bool", "all(a)", ([],)),
    ("aten::any.str", "any(a)", (["", "x"],)),
    ("aten::any.float", "any(a)", ([0.0],)),
    ("aten::sum.int", "sum(a)", ([1, 2, 3],)),
    ("aten::sum.float", "sum(a, 0.0)", ([],)),
    ("aten::sum.complex", "sum(a)", ([1j, 2],)),
    ("aten::sum.bool", "sum(a)", ([True, True],)),
    ("aten::add.t", "a + b", ([1], [2, 3])),
    ("aten::mul.left_t", "a * b", ([1, 2], 2)),
    ("aten::mul.right_", "a * b", (-1, [1, 2])),
    ("aten::list.t", "list(a)", ([1, 2],)),
    ("aten::copy.t", "a.copy()", ([1, 2],)),
    ("aten::sorted.int", "sorted(a)", ([3, 1, 2],)),
    ("aten::sorted.str", "sorted(a)", (["b", "a"],)),
    ("aten::sorted.any", "sorted(a)", ([(2, "x"), (1, "y")],)),
    ("aten::append.t", "(a.append(b), a)[1]", ([1], 2)),
    ("aten::_set_item.t", "(a.__setitem__(b, c), a)[1]", ([1, 2], -1, 5)),
    ("aten::add_.t", "a.__iadd__(b)", ([1], [2])),
    ("aten::mul_.t", "a.__imul__(b)", ([1, 2], 2)),
    ("aten::Delete.t", "a.__delitem__(b)", ([1, 2, 3], 1)),
    ("aten::extend.t", "a.extend(b)", ([1], [2, 3])),
    ("aten::insert.t", "a.insert(b, c)", ([1, 2], -1, 5)),
    ("aten::pop.t", "a.pop(b)", ([1, 2, 3], 0)),
    ("aten::clear.t", "a.clear()", ([1, 2],)),
    ("aten::reverse.t", "a.reverse()", ([1, 2, 3],)),
    ("aten::remove.float", "a.remove(b)", ([1.5, 2.5, 1.5], 1.5)),
    ("aten::sort.int", "a.sort(reverse=b)", ([2, 3, 1], True)),
    ("aten::sort.str", "a.sort(reverse=b)", (["b", "a"], False)),
    ("aten::sort.any", "a.sort(reverse=b)", ([(1, 2), (0, 3)], False)),
    # dicts
    ("aten::dict", "dict()", ()),
    ("aten::dict.str", "dict(a)", ([("x", 1), ("y", 2), ("x", 3)],)),
    ("aten::dict.Dict_int", "dict(a)", ({2: 1, 1: 2},)),
    ("aten::copy.Dict_float", "a.copy()", ({0.5: 1},)),
    ("aten::len.Dict_bool", "len(a)", ({True: 1},)),
    ("aten::__contains__.complex", "b in a", ({1j: 1}, 1j)),
    ("aten::__getitem__.Dict_str", "a[b]", ({"x": 1}, "x")),
    ("aten::_set_item.str", "a.__setitem__(b, c)", ({"x": 1}, "y", 2)),
    ("aten::Delete.Dict_int", "a.__delitem__(b)", ({1: 2, 3: 4}, 1)),
    ("aten::get.int", "a.get(b)", ({1: 2}, 7)),
    ("aten::get.default_int", "a.get(b, c)", ({1: 2}, 7, 9)),
    ("aten::setdefault.str", "a.setdefault(b, c)", ({"x": 1}, "y", 2)),
    ("aten::pop.Dict_str", "a.pop(b)", ({"x": 1, "y": 2}, "x")),
    ("aten::pop.Dict_default_str", "a.pop(b, c)", ({"x": 1}, "z", 5)),
    ("aten::popitem.int", "a.popitem()", ({1: 2, 3: 4},)),
    ("aten::clear.bool", "a.clear()", ({True: 1},)),
    ("aten::update.str", "a.update(b)", ({"x": 1}, {"x": 2, "y": 3})),
    ("aten::keys.str", "list(a)", ({"b": 1, "a": 2},)),
    ("aten::values.float", "list(a.values())", ({0.5: 1, 0.25: 2},)),
    ("aten::items.int", "list(a.items())", ({2: "x", 1: "y"},)),
    # strings
    ("aten::__getitem__.str", "a[b]", ("abc", -1)),
    ("prim::StringIndex", "a[b]", ("abc", 1)),
    ("aten::len.str", "len(a)", ("äöü",)),
    ("aten::list", "list(a)", ("abc",)),
    ("aten::add.str", "a + b", ("ab", "c")),
    ("aten::slice.str", "a[b:c]", ("abcdef", 1, 4, 1)),
    ("aten::slice.str", "a[::-1]", ("abc", None, None, -1)),
    ("aten::upper", "a.upper()", ("straße",)),
    ("aten::title", "a.title()", ("hello world",)),
    ("aten::swapcase", "a.swapcase()", ("aBc",)),
    ("aten::capitalize", "a.capitalize()", ("hELLO",)),
    ("aten::isidentifier", "a.isidentifier()", ("ä1",)),
    ("aten::isdigit", "a.isdigit()", ("²",)),
    ("aten::isdecimal", "a.isdecimal()", ("²",)),
    ("aten::isspace", "a.isspace()", (" \t\n",)),
    ("aten::center", "a.center(b, c)", ("ab", 7, "*")),
    ("aten::ljust", "a.ljust(b, c)", ("ab", 4, "-")),
    ("aten::zfill", "a.zfill(b)", ("-42", 6)),
    ("aten::expandtabs", "a.expandtabs(b)", ("a\tb", 4)),
    ("aten::join", "a.join(b)", (", ", ["x", "y"])),
    ("aten::replace", "a.replace(b, c)", ("aaa", "a", "b", -1)),
    ("aten::replace", "a.replace(b, c, 2)", ("aaa", "a", "b", 2)),
    ("aten::partition", "a.partition(b)", ("a=b=c", "=")),
    ("aten::rpartition", "a.rpartition(b)", ("a=b=c", "=")),
    ("aten::split.str", "a.split()", (" a  b\tc ", None, -1)),
    ("aten::split.str", "a.split(b, c)", ("a,b,c", ",", 1)),
    ("aten::rsplit", "a.rsplit(b, c)", ("a b  c", " ", 1)),
    ("aten::splitlines", "a.splitlines(b)", ("a\r\nb\n", True)),
    ("aten::find", "a.find(b)", ("abcabc", "c", 0, -1)),
    ("aten::find", "a.find(b, c, -2)", ("abcabc", "c", 3, -2)),
    ("aten::rfind", "a.rfind(b)", ("abcabc", "c", 0, -1)),
    ("aten::index.str", "a.index(b, c)", ("abcabc", "a", 1, -1)),
    ("aten::rindex", "a.rindex(b, c)", ("abcabc", "a", 0, -1)),
    ("aten::count", "a.count(b)", ("aXaXa", "aX", 0, -1)),
    ("aten::startswith", "a.startswith(b)", ("abc", "ab", 0, -1)),
    ("aten::endswith", "a.endswith(b, c)", ("abc", "c", 1, -1)),
    ("aten::strip", "a.strip()", ("\r\n \x1cabc\x85", " \n\t\f\v")),
    ("aten::lstrip", "a.lstrip(b)", ("xxabcxx", "x")),
    ("aten::rstrip", "a.rstrip(b)", ("xxabcxyx", "xy")),
    ("aten::str", "str(a)", (5.0,)),
    ("aten::str", "str(a)", ([1.0, 2.0],)),
    ("aten::str", "str(a)", (None,)),
    ("aten::ord", "ord(a)", ("€",)),
    ("aten::chr", "chr(a)", (8364,)),
    ("aten::bin", "bin(a)", (-10,)),
    ("aten::hex", "hex(a)", (255,)),
    ("aten::oct", "oct(a)", (8,)),
    ("aten::format", "a.format(b, c)", ("{:>5d}|{!r}", 3, "x")),
    ("aten::format", "a.format(b)", ("{0}{0}", 1.0)),
    ("aten::percentFormat", "a % b", ("%05.1f", 2.25)),
    ("aten::percentFormat", "a % b", ("%s and %s", ("x", 2))),
    ("aten::percentFormat", "a % (b, c)", ("%s and %s", "x", 2)),
]


@pytest.mark.parametrize(("name", "expression", "arguments"), EXPRESSIONS)
def test_as_python(name: str, expression: str, arguments: tuple[Any, ...]) -> None:
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    answer = call(name, *ours)
    expected = eval(expression, dict(zip("abc", theirs)))  # noqa: S307 (of the table above)
    assert repr(answer) == repr(expected)
    assert repr(ours) == repr(theirs)


ERRORS: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("aten::__getitem__.t", ([1], 1), IndexError, "list index out of range"),
    ("aten::_set_item.t", ([1], -2, 0), IndexError, "list assignment index out of range"),
    ("aten::Delete.t", ([1], 3), IndexError, "list assignment index out of range"),
    ("aten::pop.t", ([], -1), IndexError, "pop from empty list"),
    ("aten::remove.int", ([1], 2), ValueError, "list.remove(x): x not in list"),
    ("aten::index.list_int", ([1], 2), ValueError, "2 is not in list"),
    ("aten::slice.t", ([1], None, None, 0), ValueError, "slice step cannot be zero"),
    ("prim::max.self_int", ([],), ValueError, "max() arg is an empty sequence"),
    ("aten::__getitem__.Dict_str", ({}, "x"), KeyError, "'x'"),
    ("aten::Delete.Dict_int", ({}, 3), KeyError, "3"),
    ("aten::pop.Dict_int", ({}, 3), KeyError, "3"),
    ("aten::popitem.str", ({},), KeyError, "'popitem(): dictionary is empty'"),
    ("aten::__getitem__.str", ("abc", 3), IndexError, "string index out of range"),
    ("aten::index.str", ("abc", "x", 0, -1), ValueError, "substring not found"),
    ("aten::split.str", ("abc", "", -1), ValueError, "empty separator"),
    ("aten::ord", ("ab",), TypeError, "ord() expected a character, but string of length 2 found"),
    ("aten::chr", (-1,), ValueError, "chr() arg not in range(0x110000)"),
    ("aten::percentFormat", ("%d %d", 1), TypeError, "not enough arguments for format string"),
]
# Newer versions of CPython say more.
_TEXT_VARIES = {"aten::index.list_int", "prim::max.self_int"}


@pytest.mark.parametrize(("name", "arguments", "error", "text"), ERRORS)
def test_errors_are_pythons(name: str, arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call(name, *arguments)
    assert type(raised.value) is error
    if name not in _TEXT_VARIES:
        assert str(raised.value) == text


def test_copies_are_copies_and_writes_are_seen() -> None:
    items = [1, 2]
    assert call("aten::list.t", items) is not items
    assert call("aten::copy.t", items) is not items
    assert call("aten::append.t", items, 3) is items
    assert call("aten::add_.t", items, [4]) is items
    assert items == [1, 2, 3, 4]


def test_tensors_in_lists_and_as_keys() -> None:
    x, y = torch.tensor(2.0), torch.tensor(1.0)
    assert call("aten::sorted.Tensor", [x, y]) == [y, x]
    assert call("aten::index.list_Tensor", [x, y], torch.tensor(1.0)) == 1
    assert call("aten::eq.Tensor_list", [x, y], [torch.tensor(2.0), torch.tensor(1.0)]) is True
    table = {x: "x"}
    assert call("aten::__contains__.Tensor", table, x) is True
    # Keys are distinguished by identity, as in Python.
    assert call("aten::__contains__.Tensor", table, torch.tensor(2.0)) is False


# ------------------------------------------------------------------------------------------------------------ building


def test_construction() -> None:
    assert call("prim::ListConstruct", 1, 2, outputs=[ListType(INT)]) == [1, 2]
    assert call("prim::ListConstruct", outputs=[ListType(INT)]) == []
    assert call("prim::DictConstruct", "a", 1, "b", 2, outputs=[TENSOR]) == {"a": 1, "b": 2}
    pair = TupleType((INT, INT))
    assert call("prim::TupleConstruct", 1, 2, outputs=[pair]) == (1, 2)
    assert call("prim::TupleConstruct", outputs=[TupleType(())]) == ()


def test_taking_apart() -> None:
    assert call("prim::TupleUnpack", (1, 2), outputs=[INT, INT]) == (1, 2)
    assert call("prim::TupleUnpack", (1,), outputs=[INT]) == 1
    assert call("prim::ListUnpack", [1, 2], outputs=[INT, INT]) == (1, 2)
    assert call("prim::ListUnpack", [(1, 2)], outputs=[TupleType((INT, INT))]) == (1, 2)
    assert call("prim::TupleIndex", (1, 2, 3), -1) == 3
    assert call("prim::TupleSlice", (1, 2, 3), outputs=[NONE], attributes={"beg": 1, "end": 3}) == (2, 3)
    step = {"beg": 0, "end": 4, "step": 2}
    assert call("prim::TupleSlice", (1, 2, 3, 4), outputs=[NONE], attributes=step) == (1, 3)


def test_unpacking_a_list_of_another_length() -> None:
    with pytest.raises(ValueError, match=r"^not enough values to unpack \(expected 2, got 1\)$"):
        call("prim::ListUnpack", [1], outputs=[INT, INT])
    with pytest.raises(ValueError, match=r"^too many values to unpack \(expected 2\)$"):
        call("prim::ListUnpack", [1, 2, 3], outputs=[INT, INT])


class _Unsized(tuple[int, int]):
    """A pair as the irreducible representations of e3nn."""

    def __len__(self) -> int:
        raise NotImplementedError


def test_a_tuple_that_refuses_its_length_is_unpacked() -> None:
    assert call("prim::TupleUnpack", _Unsized((1, 2)), outputs=[INT, INT]) == (1, 2)

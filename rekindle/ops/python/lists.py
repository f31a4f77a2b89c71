"""Lists: Python's, with Python's errors."""

from __future__ import annotations

import operator
from typing import Any, Final

from rekindle.errors import InternalError
from rekindle.ops.registration.declare import declare, implements

# ---------------------------------------------------------------------------------------------------- reading elements

declare(
    operator.getitem,
    "aten::__getitem__.t(t[](a) list, int idx) -> t(*)",
    "aten::select.t(t[](a) list, int idx) -> t(*)",
)
declare(len, "aten::len.t(t[] a) -> int", "aten::len.any(Any[] a) -> int")
declare(
    operator.contains,
    "aten::__contains__.int_list(int[] l, int item) -> bool",
    "aten::__contains__.str_list(str[] l, str item) -> bool",
    "aten::__contains__.float_list(float[] l, float item) -> bool",
)


def _message_of_index() -> str:
    try:
        list[int]().index(0)
    except ValueError as error:
        return str(error).replace("0", "{}")
    raise InternalError("a search in an empty list raises no error")


NOT_IN_LIST: Final = _message_of_index()
"""The message of ``xs.index(x)``, which differs between releases of Python; braces stand for the ``repr`` of ``x``."""

for _type in ("int", "float", "bool", "Tensor", "str"):
    declare(list.count, f"aten::count.{_type}({_type}[] self, {_type} el) -> int")
    declare(list.index, f"aten::index.list_{_type}({_type}[] self, {_type} el) -> int")
    declare(list.remove, f"aten::remove.{_type}({_type}[](a!) self, {_type} el) -> ()")


@implements("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]")
def slice_list(l: list[Any], start: int | None = None, end: int | None = None, step: int = 1) -> list[Any]:
    """Return a new list of the elements that the slice selects."""
    return l[start:end:step]


declare(
    all,
    "aten::all.int(int[] self) -> bool",
    "aten::all.float(float[] self) -> bool",
    "aten::all.bool(bool[] self) -> bool",
)
declare(
    any,
    "aten::any.str(str[] self) -> bool",
    "aten::any.int(int[] self) -> bool",
    "aten::any.float(float[] self) -> bool",
    "aten::any.bool(bool[] self) -> bool",
)
declare(sum, "aten::sum.int(int[] self) -> int")


@implements("aten::sum.float(float[] self) -> float")
def sum_of_floats(self: list[float]) -> float:
    """Return the sum, a float for the empty list too."""
    return sum(self, 0.0)


@implements("aten::sum.complex(complex[] self) -> complex")
def sum_of_complex(self: list[complex]) -> complex:
    """Return the sum, a complex for the empty list too."""
    return sum(self, 0j)


declare(sum, "aten::sum.bool(bool[] self) -> int")

# ----------------------------------------------------------------------------------------------------------- new lists

declare(operator.add, "aten::add.t(t[] a, t[] b) -> t[]")
declare(operator.mul, "aten::mul.left_t(t[] l, int n) -> t[]", "aten::mul.right_(int n, t[] l) -> t[]")
declare(list, "aten::list.t(t[] l) -> t[]", "aten::copy.t(t[](a) self) -> t[]")
declare(
    sorted,
    "aten::sorted.int(int[](a) input) -> int[]",
    "aten::sorted.float(float[](a) input) -> float[]",
    "aten::sorted.Tensor(Tensor[](a) input) -> Tensor[]",
    "aten::sorted.bool(bool[](a) input) -> bool[]",
    "aten::sorted.str(str[](a) input) -> str[]",
    "aten::sorted.any(t[](a) self) -> t[]",
    may_alias_inputs=True,
)


@implements("prim::rangelist(int n) -> int[]")
def range_list(n: int) -> list[int]:
    """Return ``[0, 1, …, n - 1]``."""
    return list(range(n))


# ------------------------------------------------------------------------------------------------------------- writing


@implements("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)")
def append(self: list[Any], el: Any) -> list[Any]:
    """Add ``el`` at the end."""
    self.append(el)
    return self


@implements("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)")
def set_item(l: list[Any], idx: int, el: Any) -> list[Any]:
    """Run ``l[idx] = el``; return the list."""
    l[idx] = el
    return l


declare(operator.iadd, "aten::add_.t(t[](a!) self, t[] b) -> t[]", may_alias_inputs=True)
declare(operator.imul, "aten::mul_.t(t[](a!) l, int n) -> t[](a!)")
declare(operator.delitem, "aten::Delete.t(t[](a!) self, int idx) -> ()")
declare(list.extend, "aten::extend.t(t[](a!) self, t[] other) -> ()")
declare(list.insert, "aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()")
declare(list.pop, "aten::pop.t(t[](a!) self, int idx=-1) -> t(*)")
declare(list.clear, "aten::clear.t(t[](a!) self) -> ()")
declare(list.reverse, "aten::reverse.t(t[](a!) self) -> ()")


@implements(
    "aten::sort.int(int[](a!) self, bool reverse=False) -> ()",
    "aten::sort.float(float[](a!) self, bool reverse=False) -> ()",
    "aten::sort.Tensor(Tensor[](a!) self, bool reverse=False) -> ()",
    "aten::sort.bool(bool[](a!) self, bool reverse=False) -> ()",
    "aten::sort.str(str[](a!) self, bool reverse=False) -> ()",
    "aten::sort.any(t[](a!) self, bool reverse=False) -> ()",
)
def sort(self: list[Any], reverse: bool = False) -> None:
    """Sort in place; equal elements keep their order."""
    self.sort(reverse=reverse)

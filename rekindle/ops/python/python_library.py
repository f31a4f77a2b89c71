"""Operators of Python that TorchScript lacks: functions of the standard library whose last digit cannot be reproduced
with other operators, and dicts and lists of other types.

They run as Python's own functions. Archives hold operators of tensors in place of the functions, whose last digit may
be another.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence

from rekindle.ops.python.dicts import clear, list_items, list_keys, list_values, pop, set_default, update
from rekindle.ops.registration.declare import declare, implements

declare(math.log2, "python::log2(float x) -> float")
if sys.version_info >= (3, 11):
    declare(math.exp2, "python::exp2(float x) -> float")
    declare(math.cbrt, "python::cbrt(float x) -> float")
declare(round, "python::round(float x, int digits) -> float")
declare(math.nextafter, "python::nextafter(float x, float towards) -> float")
declare(math.fsum, "python::fsum(float[] xs) -> float")


@implements("python::norm(float[] xs) -> float")
def norm(xs: Sequence[float]) -> float:
    """Return ``math.hypot(*xs)``."""
    return math.hypot(*xs)


@implements("python::casefold(str text) -> str")
def casefold(text: str) -> str:
    """Return ``text.casefold()``."""
    return text.casefold()


# Dicts whose keys are members of enums, tuples, or numbers of several types: TorchScript has none, and no schema can
# name the types of their keys.
declare(len, "python::len(Dict(k, t) self) -> int")
declare(dict, "python::copy(Dict(k, t)(a) self) -> Dict(k, t)", "python::dict(Dict(k, t)(a) self) -> Dict(k, t)")
declare(operator.contains, "python::__contains__(Dict(k, t) dict, k key) -> bool")
declare(operator.getitem, "python::__getitem__(Dict(k, t) self, k key) -> t(*)")
declare(operator.setitem, "python::_set_item(Dict(k, t)(a!) l, k(b -> *) idx, t(c -> *) v) -> ()")
declare(operator.delitem, "python::Delete(Dict(k, t)(a!) self, k key) -> ()")
declare(
    dict.get,
    "python::get(Dict(k, t) self, k key) -> t(*)?",
    "python::get.default(Dict(k, t) self, k key, t default_value) -> t(*)",
)
declare(
    pop,
    "python::pop(Dict(k, t)(a!) self, k key) -> t(*)",
    "python::pop.default(Dict(k, t)(a!) self, k key, t default_value) -> t(*)",
)
declare(set_default, "python::setdefault(Dict(k, t)(a!) self, k(b -> *) key, t(c -> *) default_value) -> t(*)")
declare(update, "python::update(Dict(k, t)(a!) self, Dict(k, t)(a!) to_add) -> ()")
declare(clear, "python::clear(Dict(k, t)(a!) self) -> ()")
declare(list_keys, "python::keys(Dict(k, t) self) -> k[](*)")
declare(list_values, "python::values(Dict(k, t) self) -> t[](*)")
declare(list_items, "python::items(Dict(k, t) self) -> ((k, t)[])")

# Lists of numbers of several types: Python compares an element by what it is, then by its value.
declare(list.count, "python::count(t[] self, t el) -> int")
declare(list.index, "python::index(t[] self, t el) -> int")
declare(list.remove, "python::remove(t[](a!) self, t el) -> ()")
declare(operator.contains, "python::__contains__.list(t[] l, t item) -> bool")
declare(operator.eq, "python::eq(t[] a, t[] b) -> bool")
declare(operator.ne, "python::ne(t[] a, t[] b) -> bool")
declare(all, "python::all(t[] self) -> bool")
declare(any, "python::any(t[] self) -> bool")

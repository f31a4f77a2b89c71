"""Operators on numbers, strings and containers that may raise, as far as the node alone determines it.

Programs observe such errors: an unused ``table[key]`` in a ``try`` tests whether the key exists. Operators on Tensors
are not covered: errors that an unused one would raise for its shapes are ignored. So is the conversion of an int beyond
the largest float outside of :mod:`math`, as in ``n * 0.5``: arithmetic may be reordered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from rekindle.analysis.effects import INLINE_SUBGRAPH_KINDS, may_write
from rekindle.ir.control_flow import LoopView, loop_of_parameter
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    STRING,
    TENSOR,
    DictType,
    ListType,
    NoneType,
    StringType,
    Type,
    union,
)


def may_raise(node: Node) -> bool:
    """Return whether a node is known to raise for some of Python's values. False is not a proof: nodes with blocks,
    calls and ``prim::RaiseException`` are not examined."""
    if node.kind in INLINE_SUBGRAPH_KINDS:
        return any(map(may_raise, node.get_graph("Subgraph").all_nodes()))
    if node.kind.startswith(_OF_DEVICES):
        return True
    condition = _RAISING.get(node.kind.replace("python::", "aten::", 1))
    return condition is not None and condition(node)


_OF_DEVICES: Final = ("cuda::", "python::cuda_", "python::accelerator")
"""The beginnings of kinds that raise where there is no such device."""


def always_raises(block: Block) -> bool:
    """Return whether ``block`` never completes: it raises an exception, or ends in branches that all do."""
    return any(node.kind == "prim::RaiseException" or _raises_in_all_branches(node) for node in block.nodes)


def _raises_in_all_branches(node: Node) -> bool:
    return node.kind == "prim::If" and all(map(always_raises, node.blocks))


def _always(node: Node) -> bool:
    return True


_ANY_NUMBER: Final = union([BOOL, NUMBER])
_ORDERED: Final = (union([BOOL, INT, FLOAT]), STRING, TENSOR)


def _is_number(type: Type) -> bool:
    return type.is_subtype_of(_ANY_NUMBER)


def _may_be_complex(type: Type) -> bool:
    return _is_number(type) and COMPLEX.is_subtype_of(type)


def _of_numbers(node: Node) -> bool:
    return all(_is_number(each.type) for each in node.inputs[:2])


def _orders(node: Node) -> bool:
    """Return whether the node compares numbers that may be complex: complex numbers have no order."""
    return _of_numbers(node) and any(_may_be_complex(each.type) for each in node.inputs[:2])


def _divides(node: Node) -> bool:
    """Return whether the node divides numbers, and its divisor is not a nonzero constant, or an operand may be complex:
    only ``/`` accepts complex numbers. False for tensors."""
    if not _of_numbers(node):
        return False
    if node.kind != "aten::div" and any(_may_be_complex(each.type) for each in node.inputs[:2]):
        return True
    _, by, *_ = node.inputs
    divisor = by.to_python()
    return not (isinstance(divisor, (int, float)) and divisor != 0)


def _steps(node: Node) -> bool:
    """Return whether the step of a range or slice, its last argument, may be zero: it is not a constant other than
    zero."""
    *_, step = node.inputs
    known = step.to_python()
    return not (isinstance(known, int) and known != 0)


def _powers(node: Node) -> bool:
    """Return whether the node, a power, is one of numbers whose exponent is not a small constant: 0 to 4 for an int, as
    in most programs, 0 or 1 for a float, which may overflow."""
    if not _of_numbers(node):
        return False
    base, power = node.inputs
    exponent = power.to_python()
    most = 4 if base.type.is_subtype_of(INT) else 1
    return not (isinstance(exponent, int) and 0 <= exponent <= most)


def _shifts(node: Node) -> bool:
    if not _of_numbers(node):
        return False
    _, by = node.inputs
    count = by.to_python()
    return not (isinstance(count, int) and count >= 0)


def _converts(node: Node) -> bool:
    """Return whether the node converts or rounds a number that may be NaN, infinite or complex, or converts a
    string."""
    given, *_ = node.inputs
    if _is_number(given.type):
        if _may_be_complex(given.type):
            return True
        known = given.to_python()
        is_finite = isinstance(known, (int, float)) and math.isfinite(known)
        return node.kind != "aten::Float" and FLOAT.is_subtype_of(given.type) and not is_finite
    return isinstance(given.type, StringType)


def _of_numbers_only(node: Node) -> bool:
    """Return whether all arguments are numbers: a function of ``math`` may raise for these outside its domain, or
    overflow."""
    return all(_is_number(each.type) for each in node.inputs)


def _of_other_than_floats(node: Node) -> bool:
    """Return whether a function of ``math`` may raise that is defined for every float: an int may be too large, a
    complex number is rejected."""
    return _of_numbers_only(node) and not all(each.type.is_subtype_of(FLOAT) for each in node.inputs)


def _may_have_complex(node: Node) -> bool:
    """Return whether the operand may be complex: ``abs`` overflows for complex numbers only."""
    return _may_be_complex(node.input.type)


def _formats(node: Node) -> bool:
    """Return whether the template has format specifications, which not every value accepts, or is not a constant."""
    template, *_ = node.inputs
    known = template.to_python()
    plain = {"aten::format": ":", "aten::percentFormat": "%"}[node.kind]
    return not isinstance(known, str) or plain in known.replace("%s", "").replace("%r", "")


def _item(node: Node) -> bool:
    """Return whether the node reads an element of a dict or a string, or of a list that may be too short."""
    container, index, *_ = node.inputs
    if isinstance(container.type, (DictType, StringType)):
        return True
    if not isinstance(container.type, ListType):
        return False
    return not (_counts(index, container) or _is_within(index, container) or container.node.kind == "aten::size")


def _is_within(index: Value, container: Value) -> bool:
    number, known = index.to_python(), container.to_python()
    if isinstance(number, int) and isinstance(known, list):
        return -len(known) <= number < len(known)
    if not isinstance(number, int) or container.node.kind != "prim::ListConstruct":
        return False
    count = len(container.node.inputs)
    return -count <= number < count and not any(may_write(use.user) for use in container.uses)


def _counts(index: Value, container: Value) -> bool:
    """Return whether the index is the number of an iteration of a loop over the list."""
    loop = loop_of_parameter(index)
    return loop is not None and index.offset == 0 and _measures(LoopView(loop).trip_count, container)


def _measures(length: Value, container: Value) -> bool:
    if length.node.kind == "aten::len":
        return length.node.input is container
    if length.node.kind not in ("prim::min", "prim::ListConstruct"):
        return False
    return any(_measures(each, container) for each in length.node.inputs)  # the lengths of what ``zip`` goes over


def _extremum(node: Node) -> bool:
    """Return whether the minimum or maximum may raise: of a list, which may be empty, or of two numbers without an
    order."""
    if len(node.inputs) == 1:
        return isinstance(node.input.type, ListType)
    return _orders(node)


def _sorts(node: Node) -> bool:
    """Return whether the node sorts a list whose elements may have no order, or an order that the program defines."""
    listed, *_ = node.inputs
    type = listed.type
    return isinstance(type, ListType) and not any(type.element.is_subtype_of(each) for each in _ORDERED)


def _changes_a_container(node: Node) -> bool:
    container, *_ = node.inputs
    is_new_entry = node.kind == "aten::_set_item" and isinstance(container.type, DictType)
    return isinstance(container.type, (ListType, DictType)) and not is_new_entry


def _unpacks(node: Node) -> bool:
    """Return whether the node unpacks a list of unknown length. The sizes and the chunks of a Tensor are excluded."""
    made = node.input.node
    if made.kind == "prim::ListConstruct":
        return len(made.inputs) != len(node.outputs) or any(may_write(use.user) for use in node.input.uses)
    return made.kind not in ("aten::size", "prim::ConstantChunk", "aten::chunk", "aten::split", "aten::unbind")


def _searches(node: Node) -> bool:
    """Return whether the node searches a list or a string; the node kind of ``x[mask]`` on a Tensor is the same."""
    sequence, *_ = node.inputs
    return isinstance(sequence.type, (ListType, StringType))


def _splits(node: Node) -> bool:
    """Return whether the node splits a string by a separator that may be empty; the node kind of ``split`` on a Tensor
    is the same."""
    text, separator, *_ = node.inputs
    is_none = isinstance(separator.type, NoneType)
    return isinstance(text.type, StringType) and not is_none and not separator.to_python()


def _fills(node: Node) -> bool:
    """Return whether the node pads a string, and the fill is not a constant of one character."""
    _, _, fill = node.inputs
    known = fill.to_python()
    return not (isinstance(known, str) and len(known) == 1)


def _slices(node: Node) -> bool:
    return _searches(node) and _steps(node)


def _element_of_a_tuple(node: Node) -> bool:
    _, index = node.inputs
    return index.node.kind != "prim::Constant"


_RAISING: Final[dict[str, Callable[[Node], bool]]] = {
    **dict.fromkeys(
        ("aten::div", "aten::floordiv", "aten::remainder", "aten::divmod", "aten::__round_to_zero_floordiv"), _divides
    ),
    "aten::pow": _powers,
    **dict.fromkeys(("aten::lt", "aten::le", "aten::gt", "aten::ge"), _orders),
    "aten::__range_length": _steps,
    **dict.fromkeys(("aten::__lshift__", "aten::__rshift__"), _shifts),
    **dict.fromkeys(("aten::Int", "aten::Float", "aten::floor", "aten::ceil", "aten::trunc", "aten::round"), _converts),
    **dict.fromkeys(
        (
            *("aten::sqrt", "aten::log", "aten::log2", "aten::log10", "aten::log1p", "aten::exp", "aten::exp2"),
            *("aten::expm1", "aten::acos", "aten::asin", "aten::acosh", "aten::atanh", "aten::sin", "aten::cos"),
            *("aten::tan", "aten::sinh", "aten::cosh", "aten::gamma", "aten::lgamma", "aten::factorial"),
            *("aten::fmod", "aten::mathremainder", "aten::ldexp", "aten::polar"),
        ),
        _of_numbers_only,
    ),
    **dict.fromkeys(
        (
            *("aten::atan", "aten::asinh", "aten::tanh", "aten::atan2", "aten::copysign", "aten::degrees"),
            *("aten::radians", "aten::erf", "aten::erfc", "aten::fabs", "aten::angle"),
        ),
        _of_other_than_floats,
    ),
    "prim::abs": _may_have_complex,
    "aten::fsum": _always,
    **dict.fromkeys(("aten::format", "aten::percentFormat"), _formats),
    "aten::__getitem__": _item,
    "aten::select": _item,
    "aten::slice": _slices,
    "prim::TupleIndex": _element_of_a_tuple,
    "prim::ListUnpack": _unpacks,
    **dict.fromkeys(("prim::min", "prim::max"), _extremum),
    **dict.fromkeys(("aten::sort", "aten::sorted"), _sorts),
    **dict.fromkeys(
        ("aten::_set_item", "aten::pop", "aten::popitem", "aten::remove", "aten::Delete"), _changes_a_container
    ),
    "aten::index": _searches,
    **dict.fromkeys(("aten::split", "aten::rsplit", "aten::partition", "aten::rpartition"), _splits),
    **dict.fromkeys(("aten::center", "aten::ljust", "aten::rjust"), _fills),
    **dict.fromkeys(("aten::rindex", "aten::ord", "aten::chr", "prim::StringIndex"), _always),
    **dict.fromkeys(("aten::device", "aten::get_autocast_dtype", "aten::broadcast_shapes"), _always),
}
"""Predicates by kind, and by Python's own operator of the same name."""

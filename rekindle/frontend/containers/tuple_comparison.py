"""Comparison of tuples, element by element, up to the first difference, as in Python.

``(a, b) < (c, d)`` becomes ``b < d if a == c else a < c``, and ``(a, b) == (c, d)`` becomes
``b == d if a == c else False``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import unpack_tuple
from rekindle.ir.types import BOOL, TupleType

COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})

_IN_LISTS: Final = frozenset({"IntType", "FloatType", "BoolType", "StringType", "TensorType"})
"""Kinds of element types of the lists that an operator compares. It compares tuples of these too, as in TorchScript."""

Compare = Callable[[str, Value, Value], Value]


def compares_tuples(operator: str, lhs: Value, rhs: Value) -> bool:
    """Return whether ``lhs operator rhs`` is a comparison of two tuples that has to be emitted element by element,
    since no operator compares them as lists."""
    if operator not in COMPARISONS or not isinstance(lhs.type, TupleType) or not isinstance(rhs.type, TupleType):
        return False
    kinds = {element.kind for type in (lhs.type, rhs.type) for element in type.elements}
    named = lhs.type.name is not None or rhs.type.name is not None
    return named or operator not in ("==", "!=") or len(kinds) != 1 or not kinds <= _IN_LISTS


def compare_tuples(
    emitter: Emitter, compare: Compare, operator: str, lhs: Value, rhs: Value, range: SourceRange
) -> Value:
    """Emit ``lhs operator rhs`` for two tuples, and return its bool; ``compare`` emits the comparison of two
    elements."""
    left, right = unpack_tuple(emitter.graph, lhs, range), unpack_tuple(emitter.graph, rhs, range)
    pairs = list(zip(left, right, strict=False))
    if operator in ("==", "!=") and len(left) != len(right):
        return emitter.graph.insert_constant(operator == "!=", range=range)

    def from_element(index: int) -> Value:
        if index == len(pairs):
            return emitter.graph.insert_constant(_compare_lengths(operator, len(left), len(right)), range=range)
        a, b = pairs[index]
        if index == len(pairs) - 1 and len(left) == len(right):
            return emitter.to_bool(compare(operator, a, b), range)
        equal = emitter.to_bool(compare("==", a, b), range)
        node, _, _ = emitter.branch(
            range, equal, RefinementSet(), lambda: from_element(index + 1), lambda: where_different(a, b)
        )
        return node.add_output(BOOL)

    def where_different(a: Value, b: Value) -> Value:
        if operator in ("==", "!="):
            return emitter.graph.insert_constant(operator == "!=", range=range)
        return emitter.to_bool(compare(operator, a, b), range)

    return from_element(0)


def _compare_lengths(operator: str, left: int, right: int) -> bool:
    return {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]

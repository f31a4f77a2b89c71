"""Explanations of type mismatches that the names of the types do not show."""

from __future__ import annotations

from rekindle.ir.types.base import Type
from rekindle.ir.types.containers import ListType, without_none
from rekindle.ir.types.named import InterfaceType


def mismatch_note(actual: Type, expected: Type) -> str:
    """Return lines to append to a message about expected and actual types, each led by a line break; empty if there
    is nothing to add."""
    actual, expected = without_none(actual), without_none(expected)
    if isinstance(expected, InterfaceType):
        found = expected.why_not(actual)
        return f"\n{found}" if found else ""
    if isinstance(actual, ListType) and isinstance(expected, ListType) and isinstance(expected.element, InterfaceType):
        if actual.element.is_subtype_of(expected.element):
            return (
                f"\na {actual.annotation} may hold nothing else, and other objects may be put into "
                f"a {expected.annotation}; declare the list as the latter where it is made"
            )
        return mismatch_note(actual.element, expected.element)
    return ""

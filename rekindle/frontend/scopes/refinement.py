"""Type refinement by conditions: after ``if x is not None`` an ``Optional[T]`` is a ``T`` within the branch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from rekindle.ir.graph import Value
from rekindle.ir.types import NONE, OptionalType, Type, unify, union

KNOWN_NONE: Final[Type] = OptionalType(NONE)
"""Marks, as a refined type, that a variable is None. The type of the variable stays as it is."""


@dataclass(slots=True)
class RefinementSet:
    """The refined types of variables if a condition is true, and if it is false."""

    if_true: dict[str, Type] = field(default_factory=dict)
    if_false: dict[str, Type] = field(default_factory=dict)

    def negated(self) -> RefinementSet:
        return RefinementSet(self.if_false, self.if_true)

    def and_(self, other: RefinementSet, assigned: Collection[str] = ()) -> RefinementSet:
        """Return the refinements of ``a and b``: if true, those of both, where ``b`` takes precedence; if false, the
        variables that both refine are refined to the common type. ``assigned`` are the names that ``b`` assigns, of
        which ``a`` says nothing if both are true."""
        kept = {name: type for name, type in self.if_true.items() if name not in assigned}
        return RefinementSet({**kept, **other.if_true}, _either(self.if_false, other.if_false))

    def or_(self, other: RefinementSet, assigned: Collection[str] = ()) -> RefinementSet:
        return self.negated().and_(other.negated(), assigned).negated()


def _either(a: dict[str, Type], b: dict[str, Type]) -> dict[str, Type]:
    """Return the refinements if ``a`` or ``b`` applies, and it is unknown which: of the variables in both, to the
    common type."""
    both = [name for name in a if name in b and (a[name] == KNOWN_NONE) == (b[name] == KNOWN_NONE)]
    return {name: unify(a[name], b[name]) or union((a[name], b[name])) for name in both}


@dataclass(slots=True)
class CondValue:
    """A condition: its bool value, its type refinements, and its constant value if known at compile time (``static``).
    An ``if`` with a static condition compiles only the branch that is taken, so that programs can adapt to their
    configuration."""

    value: Value
    refinements: RefinementSet = field(default_factory=RefinementSet)
    static: bool | None = None

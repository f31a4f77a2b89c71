"""Type refinement by conditions: ``if x is not None`` refines an ``Optional[T]`` to a ``T`` within."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rekindle.ir.graph import Value
from rekindle.ir.types import NONE, OptionalType, Type, unify, union

KNOWN_NONE: Final[Type] = OptionalType(NONE)
"""Refinement of a variable that is None: its type is unchanged, and it is not unwrapped."""


@dataclass(slots=True)
class RefinementSet:
    """The refined types of variables if a condition holds, and if it does not."""

    if_true: dict[str, Type] = field(default_factory=dict)
    if_false: dict[str, Type] = field(default_factory=dict)

    def negated(self) -> RefinementSet:
        return RefinementSet(self.if_false, self.if_true)

    def and_(self, other: RefinementSet) -> RefinementSet:
        """Return the refinements of ``a and b``: those of both if true; those that both have in common if false."""
        return RefinementSet({**self.if_true, **other.if_true}, _either(self.if_false, other.if_false))

    def or_(self, other: RefinementSet) -> RefinementSet:
        return self.negated().and_(other.negated()).negated()


def _either(a: dict[str, Type], b: dict[str, Type]) -> dict[str, Type]:
    """Return the refinements that hold if one of ``a`` and ``b`` holds, whichever it is."""
    both = [name for name in a if name in b and (a[name] == KNOWN_NONE) == (b[name] == KNOWN_NONE)]
    return {name: unify(a[name], b[name]) or union((a[name], b[name])) for name in both}


@dataclass(slots=True)
class CondValue:
    """A condition: its bool value, its type refinements, and its constant value if known at compile time (``static``).
    Of an ``if`` with a static condition, only the branch that is taken is compiled, so that programs can adapt to their
    configuration."""

    value: Value
    refinements: RefinementSet = field(default_factory=RefinementSet)
    static: bool | None = None

"""Enum types. They compare by identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from rekindle.ir.types.base import Type


@dataclass(slots=True, eq=False)
class EnumType(Type):
    """An enum: its members by name, all of one type."""

    kind: ClassVar[str] = "EnumType"
    name: str
    value_type: Type
    members: dict[str, object] = field(default_factory=dict, repr=False)
    python_class: type | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"Enum<{self.name}>"

    @property
    def annotation(self) -> str:
        return self.name

"""Constants that have a text but no value: what a graph read from text holds where the text does not tell the value."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.ir.types.enums import EnumType


@dataclass(slots=True, frozen=True)
class OpaqueConstant:
    """A constant of which only the ``text`` is known: ``<Tensor>``, ``object(0x55d0c8)``. A graph that holds one
    cannot run.
    """

    text: str


@dataclass(slots=True, frozen=True)
class EnumMember:
    """A member of an enum whose Python class is not known."""

    type: EnumType
    name: str

"""What a search finds: uses of TorchScript's names, and texts that only mention them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["import", "decorator", "call", "base class", "annotation", "reference"]


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a name in code. ``path`` is relative to what is examined; lines count from 1, columns from 0."""

    path: str
    line: int
    column: int
    end_line: int
    name: str
    """The name with its module, whatever the code calls it: ``torch.jit.script``."""
    form: Form
    scope: str
    """The function or class around it (``Net.export``); empty at the level of the module."""
    at_import: bool
    """Whether it is evaluated when the module is imported."""
    text: str
    """Its first line."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A line that has a name of TorchScript in a comment or a string."""

    path: str
    line: int
    kind: Literal["comment", "string", "unread file"]
    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be read as Python, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Found:
    """All that a search has found."""

    uses: list[Use]
    mentions: list[Mention]
    unread: list[Unread]
    files: int
    """How many files were read."""

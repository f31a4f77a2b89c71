"""What a search finds: uses of TorchScript's names, and texts that only mention them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["import", "decorator", "call", "base class", "annotation", "reference"]


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a name in code. ``path`` is relative to the examined folder; lines count from 1, columns from 0, in
    characters."""

    path: str
    line: int
    column: int
    end_line: int
    name: str
    """The qualified name (``torch.jit.script``), whatever alias the code uses."""
    form: Form
    scope: str
    """The function or class around it (``Net.export``); empty at the level of the module."""
    at_import: bool
    """Whether it is evaluated when the module is imported: it is in no function, and in no ``if TYPE_CHECKING`` or
    ``if __name__ == "__main__"``."""
    text: str
    """The source line at which it begins, without indentation; at most 200 characters."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A line with a name of TorchScript that is not a use: in a comment, a string, or a file that is not parsed."""

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
    """The result of a search."""

    uses: list[Use]
    mentions: list[Mention]
    unread: list[Unread]
    files: int
    """Number of ``.py`` files, those that cannot be parsed included."""

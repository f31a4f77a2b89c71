"""Module attributes with a declared type."""

from __future__ import annotations

from typing import Any, Final

from rekindle.program import torch_jit


class Attribute:
    """The value of a module's attribute together with its type, for values that do not determine it.

    Args:
        value: the value.
        type: the type in compiled programs.

    Example:
        >>> from typing import List
        >>> class Names(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.names = rekindle.Attribute([], List[str])
        ...     def forward(self) -> int:
        ...         return len(self.names)
        >>> rekindle.script(Names())()
        0
    """

    def __init__(self, value: object, type: object) -> None:
        self.value = value
        self.type = type

    def __repr__(self) -> str:
        return f"Attribute({self.value!r}, {self.type!r})"


ATTRIBUTES: Final[tuple[type[Any], ...]] = (Attribute, *torch_jit.ATTRIBUTE)
"""This class, and that of ``torch.jit``."""

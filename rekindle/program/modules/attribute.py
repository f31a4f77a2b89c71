"""Values of attributes with their types."""

from __future__ import annotations

from typing import Any, Final

from rekindle.program import torch_jit


class Attribute:
    """A value for an attribute of a module with the type that it has, where the value does not determine it:
    ``self.names = Attribute([], List[str])``."""

    def __init__(self, value: object, type: object) -> None:
        self.value = value
        self.type = type

    def __repr__(self) -> str:
        return f"Attribute({self.value!r}, {self.type!r})"


ATTRIBUTES: Final[tuple[type[Any], ...]] = (Attribute, *torch_jit.ATTRIBUTE)
"""This class, and that of ``torch.jit``."""

"""Concatenation: operators that join the tensors of a list along the dimension that is their last argument."""

from __future__ import annotations

from typing import Final

STACKS: Final = frozenset({"aten::stack"})
"""Operators that insert a dimension into each tensor first."""

JOINS: Final = frozenset({"aten::cat", "aten::concat", "autodiff::join"}) | STACKS
"""By qualified name."""

MAX_PARTS: Final = 8
"""Maximum number of tensors that are joined: each has loops of its own, which have to be compiled."""

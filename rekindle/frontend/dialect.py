"""Dialect: the choice of semantics for programs from Python, one for the process. The default is Python's; the drop-in
for ``torch.jit`` sets another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Dialect:
    """Options of the language, for functions that are compiled while they are set.

    ``tensors_as_numbers``: a Tensor is accepted as a declared number, in calls from Python and between functions, as in
    ``torch.jit``.
    """

    tensors_as_numbers: bool = False


DIALECT: Final = Dialect()

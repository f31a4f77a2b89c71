"""Gathers: operators that read elements of a tensor at the indices in another tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GatherOp:
    """An operator that gathers. ``dim`` is the position of the argument with the dimension (None: the first dimension),
    ``index`` of the one with the indices.
    ``is_aligned`` is as in :class:`~rekindle.codegen.value_descriptors.Gather`. ``is_indexing``: it is
    Python's indexing of the first dimension, where indices may be negative. ``is_vector``: the indices have one
    dimension. ``may_be_short``: they may be int32."""

    index: int
    dim: int | None = None
    is_aligned: bool = False
    is_indexing: bool = False
    is_vector: bool = False
    may_be_short: bool = True


LOOKUPS: Final = {
    "aten::embedding": GatherOp(index=1),
    "aten::index_select": GatherOp(index=2, dim=1, is_vector=True),
    "aten::gather": GatherOp(index=2, dim=1, is_aligned=True, may_be_short=False),
    "aten::index.Tensor": GatherOp(index=1, is_indexing=True, may_be_short=False),
}
"""By qualified name."""

OUT_OF_BOUNDS: Final = "an index is out of bounds"
"""Reason for the operators to run again: they raise a better error."""

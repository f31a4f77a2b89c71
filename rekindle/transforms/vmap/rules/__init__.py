"""Batching rules: compute a batch of results of an operator from batches of its arguments.

They are texts of functions, whose heads name operators of ``aten`` and what the rule uses:

.. code-block:: text

    batch sum.dim_IntList(self, dim, keepdim):
        return torch.sum(lifted(self), inner_or_every(self, dim), keepdim)

* An argument of the operator stands for itself; a tensor has the batch as its first dimension.
* Where a rule names ``batched_X`` too, a bool, tensor ``X`` may also be the same for all examples, without that
  dimension. Where it does not, such a tensor is expanded first, which copies nothing.
* ``batch_size`` is the size of the batch, and ``same`` says whether random numbers are the same for all examples.
* ``torch.SAME`` is the operator itself, where one rule serves several; ``own.NAME`` is one of ``autodiff``.
* ``def`` is a function that all rules may call.

Rules that follow from the schema are written by :mod:`rekindle.transforms.vmap.rules.families`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rekindle.transforms.vmap.rules import (
    backward_ops,
    derivatives,
    fourier,
    helpers,
    indexing,
    layers,
    losses,
    matrices,
    metadata,
    random,
    reductions,
    shapes,
)

TEXTS: Final[Mapping[str, str]] = {
    "helpers": helpers.TEXT,
    "facts": metadata.TEXT,
    "shapes": shapes.TEXT,
    "reductions": reductions.TEXT,
    "matrices": matrices.TEXT,
    "indexing": indexing.TEXT,
    "layers": layers.TEXT,
    "losses": losses.TEXT,
    "fourier": fourier.TEXT,
    "chance": random.TEXT,
    "derivatives": derivatives.TEXT,
    "backwards": backward_ops.TEXT,
}

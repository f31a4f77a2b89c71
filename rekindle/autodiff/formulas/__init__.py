"""The gradients of operators: a text for each family, in the form that :mod:`rekindle.autodiff.formula_parser`
reads."""

from __future__ import annotations

from typing import Final

from rekindle.autodiff.formulas import (
    activations,
    attention,
    double_backward,
    indexing,
    layers,
    linear_algebra,
    losses,
    matrices,
    pointwise,
    reductions,
    shapes,
)

TEXTS: Final[dict[str, str]] = {
    "pointwise": pointwise.TEXT,
    "activations": activations.TEXT,
    "matrices": matrices.TEXT,
    "reductions": reductions.TEXT,
    "shapes": shapes.TEXT,
    "indexing": indexing.TEXT,
    "layers": layers.TEXT,
    "losses": losses.TEXT,
    "double_backward": double_backward.TEXT,
    "attention": attention.TEXT,
    "linear_algebra": linear_algebra.TEXT,
}
"""By family."""
